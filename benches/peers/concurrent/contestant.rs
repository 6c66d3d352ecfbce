//! A contestant: a map that threads share, and the loops that measure it, compiled for that map alone.

use super::Key;
use super::growth::{self, Looked};
use super::work::{self, Done, Job};
use crate::contestant::BURST;
use crate::entrant::{Enters, Entrant};

/// What a map has to be able to do.
pub(crate) trait Shared: Send + Sync + 'static {
    /// What a thread has of the map.
    type View<'a>: View;

    fn view(&self) -> Self::View<'_>;

    /// Gives back what maps that are gone have left to be freed later.
    fn settle() {}
}

/// A thread's way into a map.
pub(crate) trait View {
    /// Lets go of everything that was found: once in [`BURST`] operations.
    #[inline]
    fn repin(&mut self) {}

    fn get(&self, key: &Key) -> Option<u64>;

    /// Replaces the value, if there is one.
    fn insert(&mut self, key: Key, value: u64);

    /// What [`seen`] makes of the values of a burst: one after the other, where a map knows nothing
    /// better.
    #[inline]
    fn burst(&self, keys: &[Key; BURST]) -> u64 {
        keys.iter().filter_map(|key| self.get(key)).map(seen).sum()
    }
}

/// What all values have in common that a key ever has: see [`Traffic`](super::traffic::Traffic).
#[inline]
pub(crate) fn seen(value: u64) -> u64 {
    value & 0xffff_ffff
}

/// Who a contestant is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Ours.
    Ours,
    /// A peer that the best one is chosen from.
    Rival,
    /// Somebody to look at, too.
    Other,
    /// Not a map: the machine itself. It finds nothing.
    Machine,
}

/// A map whose type is not known to who makes it work.
pub(crate) trait Work {
    fn part(&self) -> Part;

    /// Inserts `keys` into an empty map and says after each how many these are. The value of a key is
    /// its place.
    fn fill(&mut self, keys: &[Key], after: &mut dyn FnMut(usize));

    /// A thread for each task.
    fn work(&self, job: &Job<'_>) -> Done;

    /// Inserts `keys` into an empty map, while another thread reads; notes the nanoseconds from each
    /// insertion to the next, and from each look-up to the next.
    fn grow(&mut self, keys: &[Key], inserts: &mut [u32]) -> Looked;

    /// Drops the map, and gives back what it has left.
    fn clear(&mut self);
}

pub(crate) type Contestant = Entrant<dyn Work>;

struct Loops<M> {
    part: Part,
    new: Box<dyn Fn() -> M>,
    map: M,
}

/// How a map is made, and who it is.
impl<M: Shared, F: Fn() -> M + 'static> Enters<dyn Work> for (Part, F) {
    fn enter(self) -> Box<dyn Work> {
        let (part, new) = self;
        let map = new();
        Box::new(Loops { part, new: Box::new(new), map })
    }
}

impl<M: Shared> Work for Loops<M> {
    fn part(&self) -> Part {
        self.part
    }

    fn fill(&mut self, keys: &[Key], after: &mut dyn FnMut(usize)) {
        self.clear();
        let mut view = self.map.view();
        for (at, &key) in keys.iter().enumerate() {
            if at % BURST == 0 {
                view.repin();
            }
            view.insert(key, at as u64);
            after(at + 1);
        }
    }

    fn work(&self, job: &Job<'_>) -> Done {
        work::work(&self.map, job)
    }

    fn grow(&mut self, keys: &[Key], inserts: &mut [u32]) -> Looked {
        self.clear();
        growth::beside_a_reader(&self.map, keys, inserts)
    }

    fn clear(&mut self) {
        self.map = (self.new)();
        M::settle();
    }
}
