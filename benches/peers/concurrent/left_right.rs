//! left_right: two copies of a map, one for the readers, one for the writer, which are swapped.

use std::sync::{Mutex, PoisonError};

use flowtable::DefaultHashBuilder;
use hashbrown::HashMap;
use left_right::{Absorb, ReadHandle, ReadHandleFactory, WriteHandle};

use super::Key;
use super::shared_map::{SharedMap, View, low_half};
use crate::subject::BURST;

#[derive(Clone)]
struct Copy(HashMap<Key, u64, DefaultHashBuilder>);

/// An entry to insert.
struct Insert(Key, u64);

impl Absorb<Insert> for Copy {
    fn absorb_first(&mut self, &mut Insert(key, value): &mut Insert, _: &Self) {
        self.0.insert(key, value);
    }

    fn sync_with(&mut self, first: &Self) {
        self.0.clone_from(&first.0);
    }
}

pub(crate) struct LeftRight {
    writer: Mutex<WriteHandle<Copy, Insert>>,
    readers: ReadHandleFactory<Copy>,
}

impl LeftRight {
    pub(crate) fn new(hasher: DefaultHashBuilder) -> Self {
        let (writer, reader) = left_right::new_from_empty(Copy(HashMap::with_hasher(hasher)));
        Self { writer: Mutex::new(writer), readers: reader.factory() }
    }
}

pub(crate) struct Handle<'a> {
    map: &'a LeftRight,
    reader: ReadHandle<Copy>,
}

impl SharedMap for LeftRight {
    type View<'a> = Handle<'a>;

    fn view(&self) -> Handle<'_> {
        Handle { map: self, reader: self.readers.handle() }
    }
}

impl View for Handle<'_> {
    #[inline]
    fn get(&self, key: &Key) -> Option<u64> {
        self.reader.enter()?.0.get(key).copied()
    }

    /// Publishes the insertion, as the other maps do.
    #[inline]
    fn insert(&mut self, key: Key, value: u64) {
        let mut writer = self.map.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.append(Insert(key, value));
        writer.publish();
    }

    #[inline]
    fn burst(&self, keys: &[Key; BURST]) -> u64 {
        let Some(map) = self.reader.enter() else { return 0 };
        keys.iter().filter_map(|key| map.0.get(key)).map(|&value| low_half(value)).sum()
    }
}
