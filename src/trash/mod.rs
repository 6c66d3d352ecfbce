//! TRASH built for speed: a hash table that is a trie of two levels over the bits of a keyed hash.
//!
//! The [LC-trie](crate::trie) over headed keys, which is the paper's TRASH, follows two or three
//! pointers. Here the root is level-compressed to the end: its slots are *segments*, in which the
//! next bits of the hash pick a bucket of eight.
//!
//! ```text
//!            upper bits            lower half              a byte for each slot
//! hash × c  ┌──────────┬──────── … ──────────────────┐   hash ┌──┬──┬──┬──┬──┬──┬──┬──┐
//!           └────┬─────┴──────── … ────────┬─────────┘        └──┴──┴──┴──┴──┴──┴──┴──┘
//!                │                         │                    └──────── compared ───┐
//! directory ▼    │           segment       ▼                                          │
//!   ┌───┬───┬───┬┴──┐          headers   ┌───┬───┬───┬───┬───┬───┐  8 tags, one word ◄┘
//!   │   │   │   │ ●─┼────────►           └───┴───┴───┴─┬─┴───┴───┘
//!   └───┴───┴───┴───┘          entries   ┌─────────────▼─────────┐
//!                                        │  8 slots for a bucket │
//!                                        └───────────────────────┘
//! ```
//!
//! - **A look-up** reads the directory, which is small, a header, and the entry. A word operation
//!   compares all tags of a bucket; one wrong entry in 128 passes it. Three or four
//!   entries in a hundred are in a bucket behind their home; a count in each bucket tells when to go on.
//! - **Growth** is a step for each insertion that needs one: one segment of up to 64 KiB gets more
//!   buckets, or is split in two. Shrinking is the same backwards. So there are no pauses, and
//!   the bytes for an entry do not depend on how many there are. See `table.rs`.
//! - **Removal** frees the slot, counts down, and lets an entry back that was pushed behind it. There
//!   are no tombstones: a map under churn stays as it was on the first day.
//! - **A burst** of look-ups asks for all headers, then for all entries, and then compares: the misses
//!   of 32 look-ups overlap. See [`get_batch`](TrashMap::get_batch).
//!
//! # Hostile keys
//!
//! The default hash is keyed with a seed for each map. If the hash is not ([`with_hasher`]), or its
//! seed is known, someone may send keys that collide. The map notices: an entry that would be more than
//! sixteen buckets from home although half of its segment is free, or a segment with four times the
//! buckets it should have, happen by chance once in many billion insertions. It then *rekeys*: it draws a secret of
//! its own, hashes keys with that from now on, and moves the entries over, some with each insertion
//! or removal; look-ups search both tables until it is done. Hashes that are merely weak, such as
//! small numbers in which the upper bits are zero, are spread by a multiplication first.
//!
//! A look-up in a map that has rekeyed hashes twice, since the first hash may be the caller's. What
//! looks like a flood and is none: entries in the order of another map with an equal hasher, put into
//! a map that has not reserved the room for them. It is answered in the same way.
//!
//! Keys whose [`Hash`] feeds the same to every hasher are beyond help. The map stays correct with them,
//! and linear; it tries another secret each time that it has doubled, not more often.
//!
//! # Price
//!
//! Nine bits of tag and count for a slot, and 16 to 32 bytes for a segment; 1.7 slots for an entry
//! while the map grows, up to 2.3 after removals. For entries of 24 bytes that is 43 to 58 bytes each,
//! at every size from some thousand on. Until it is there for good, an entry is moved and hashed again
//! three times on average, by steps of some thousand entries: microseconds. So the hash of a key should
//! be cheap.
//!
//! The directory is doubled ahead of time, a place with each step, so no insertion pays for it. It is
//! halved at once: that copies 16 bytes for each segment.
//!
//! # Papers
//!
//! Olsson and Nilsson, *TRASH: a dynamic LC-trie and hash data structure* (2006), for the idea.
//! Growth in small steps is linear hashing with partial expansions (Litwin 1980; Larson 1980) with the
//! order of extendible hashing (Fagin et al. 1979). Counting what passed a bucket instead of leaving
//! tombstones is after Bronson and Shi's F14 (2019); comparing tags in a word after Lamport's multiple
//! byte processing (1975).
//!
//! # What was tried
//!
//! Measured with 24-byte entries, 1,000 to 8 million of them, against what is here:
//!
//! | layout | outcome |
//! |---|---|
//! | tags and five entries in a bucket of two adjacent lines | a look-up by itself equal, misses 3 times as long from 100,000 entries on (each fetches a line of entries), bursts 1.4 times as long: 1.6 lines of entries for each instead of 1.25 |
//! | the same and the second line prefetched | no gain |
//! | the same tag in all eight slots, spread over a word by multiplication | four instructions more for each look-up |
//! | places in the directory counted with a comparison instead of shown twice | four instructions more |
//! | segments of 64 to 256 KiB | equal look-ups, longer steps |
//! | four sweeps for a doubling instead of two | 40 bytes for an entry instead of 43; filling takes 1.2 times as long |
//! | holes left where they are by removals | after 20 million pairs of them on a million entries 10 % away from home instead of 2.5 %, misses 1.7 times as long |
//!
//! [`with_hasher`]: TrashMap::with_hasher

mod bucket;
mod burst;
mod check;
mod directory;
mod entry;
mod error;
mod holes;
mod iter;
mod rekey;
mod segment;
mod segment_iter;
mod shape;
mod shell;
mod slot;
mod table;
mod traits;
mod ways;

use alloc::boxed::Box;
use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use crate::hash::DefaultHashBuilder;
use crate::probes::Observer;
use rekey::Rekeyed;
use table::Table;

pub use check::Broken;
pub use entry::{Entry, OccupiedEntry, VacantEntry};
pub use error::{TryInsertError, TryReserveError};
pub use iter::{IntoIter, IntoKeys, IntoValues, Iter, IterMut, Keys, Values, ValuesMut};
pub use shape::TableShape;

/// A map from keys to values that never pauses: the state of a packet's flow by the flow's key.
///
/// It speaks like [`std::collections::HashMap`](https://doc.rust-lang.org/std/collections/struct.HashMap.html),
/// and adds bursts and hashes that the caller already has.
///
/// | method | cost |
/// |---|---|
/// | `get`, `get_mut`, `get_key_value`, `get_observed`, `contains_key`, `entry` | O(1): the line of a header, that of the entry |
/// | `insert`, `try_insert` | the same, and one step of at most two segments, some thousand entries |
/// | `remove`, `remove_entry` | the same; one in ten hashes the keys of the next bucket, to let one back home |
/// | `get_batch`, `get_many`, `insert_batch`, those that end in `mut` | the same for each key, with the misses of 32 overlapping |
/// | `iter`, `keys`, `values`, `retain`, `drain`, `clear`, `clone`, `drop`, `shape`, `reserve`, `shrink_to_fit` | O(slots) |
/// | `len`, `capacity`, `rekeys`, `allocation_size` | O(1) |
///
/// What takes a hash costs the same without hashing. An entry of key and value is in its slot up to 64 bytes, else
/// behind a pointer.
///
/// # Example
///
/// ```
/// use flowtable::{FourTuple, TrashMap};
/// use std::net::Ipv4Addr;
///
/// let (src, dst) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
/// let flow = FourTuple { src, dst, sport: 40_000, dport: 443 };
/// let mut bytes = TrashMap::new();
/// assert_eq!(bytes.insert(flow, 60), None);
/// *bytes.get_mut(&flow).unwrap() += 1500;
/// assert_eq!(bytes.get(&flow), Some(&1560));
/// assert!(!bytes.contains_key(&flow.reversed())); // the other direction is another key
/// assert_eq!(bytes.remove_entry(&flow), Some((flow, 1560)));
/// ```
pub struct TrashMap<K, V, S = DefaultHashBuilder> {
    table: Table<(K, V)>,
    hasher: S,
    /// What there is after a flood: another hash, and the table from before.
    rekeyed: Option<Box<Rekeyed<K, V>>>,
}

impl<K, V> TrashMap<K, V> {
    /// An empty map. Allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::with_hasher(DefaultHashBuilder::new())
    }

    /// An empty map with room for `capacity` entries: see [`reserve`](TrashMap::reserve).
    ///
    /// # Panics
    ///
    /// If so many entries take more bytes than there are addresses.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self
    where
        K: Eq + Hash,
    {
        Self::with_capacity_and_hasher(capacity, DefaultHashBuilder::new())
    }
}

impl<K, V, S> TrashMap<K, V, S> {
    /// An empty map that hashes with `hasher`. Allocates nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{DefaultHashBuilder, TrashMap};
    ///
    /// let map: TrashMap<u32, ()> = TrashMap::with_hasher(DefaultHashBuilder::with_seed(7));
    /// let other: TrashMap<u32, ()> = TrashMap::with_capacity_and_hasher(1000, map.hasher().clone());
    /// assert_eq!(map.hash_of(&1), other.hash_of(&1));
    /// ```
    #[must_use]
    pub const fn with_hasher(hasher: S) -> Self {
        Self { table: Table::new(), hasher, rekeyed: None }
    }

    /// The hasher that the map was made with.
    #[must_use]
    pub const fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Number of entries.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len() + self.former_table().map_or(0, Table::len)
    }

    /// Whether there are no entries.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries that the map can have before it takes another step of growth, if they are spread as
    /// evenly as chance does it.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.table.capacity().max(self.len())
    }

    /// Bytes that the map has allocated, free slots included; without what keys and values own. O(1).
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        let rekeyed = if self.rekeyed.is_some() { size_of::<Rekeyed<K, V>>() } else { 0 };
        let former = self.former_table().map_or(0, Table::allocation_size);
        self.table.allocation_size() + rekeyed + former
    }

    /// How often the map has drawn a secret because hashes were not random.
    ///
    /// # Example
    ///
    /// ```
    /// use core::hash::BuildHasherDefault;
    /// use flowtable::{TrashMap, hash::XorFold16};
    ///
    /// // Folded, a key of two equal halves is nothing but zeros.
    /// let keys = (0..1000_u32).map(|half| half << 16 | half);
    /// let map: TrashMap<u32, (), BuildHasherDefault<XorFold16>> = keys.map(|key| (key, ())).collect();
    /// assert_eq!((map.len(), map.rekeys()), (1000, 1));
    /// ```
    #[must_use]
    pub fn rekeys(&self) -> usize {
        self.rekeyed.as_ref().map_or(0, |rekeyed| rekeyed.count)
    }

    /// Takes out every entry and gives the memory back. The hash is that of the hasher again.
    pub fn clear(&mut self) {
        // Nothing is half gone when an entry panics on its way.
        let rekeyed = self.rekeyed.take();
        drop((core::mem::replace(&mut self.table, Table::new()), rekeyed));
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> TrashMap<K, V, S> {
    /// An empty map with room for `capacity` entries that hashes with `hasher`.
    ///
    /// # Panics
    ///
    /// If so many entries take more bytes than there are addresses.
    #[must_use]
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self {
        let mut map = Self::with_hasher(hasher);
        map.reserve(capacity);
        map
    }

    /// The hash of `key` under the map's hasher: what the methods that take a hash expect.
    #[inline]
    pub fn hash_of<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The value of `key`.
    #[inline]
    #[must_use]
    pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        self.get_hashed(self.hash_of(key), key)
    }

    /// The value of `key`, whose hash the caller has.
    ///
    /// A hash other than [`hash_of`](Self::hash_of) the key does not find it, and an insertion with it
    /// may have the key twice. To use the hash that a network card delivers, or an index that a packet
    /// carries, give the map a hasher that computes the same. Hashes that others can choose are no
    /// protection by themselves: after a flood the map hashes keys on its own.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map = flowtable::TrashMap::new();
    /// let hash = map.hash_of("a"); // once for all that follows
    /// map.insert_hashed(hash, "a", 1);
    /// *map.get_mut_hashed(hash, "a").unwrap() += 1;
    /// assert_eq!(map.get_hashed(hash, "a"), Some(&2));
    /// assert_eq!(map.remove_hashed(hash, "a"), Some(2));
    /// ```
    #[inline]
    #[must_use]
    pub fn get_hashed<Q: Hash + Equivalent<K> + ?Sized>(&self, hash: u64, key: &Q) -> Option<&V> {
        self.find(hash, key).map(|(_, value)| value)
    }

    /// The key of the map and the value of `key`.
    #[inline]
    #[must_use]
    pub fn get_key_value<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<(&K, &V)> {
        self.find(self.hash_of(key), key).map(|(key, value)| (key, value))
    }

    /// Whether `key` has a value.
    #[inline]
    #[must_use]
    pub fn contains_key<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> bool {
        self.find(self.hash_of(key), key).is_some()
    }

    /// The value of `key`, counting what the look-up touches: a bucket is a node.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::probes::Probes;
    /// use flowtable::TrashMap;
    ///
    /// let map = TrashMap::from([(7_u16, 'x')]);
    /// let mut probes = Probes::default();
    /// assert_eq!(map.get_observed_hashed(map.hash_of(&7), &7, &mut probes), Some(&'x'));
    /// assert_eq!(map.get_observed(&7, &mut probes), Some(&'x'));
    /// assert_eq!(probes, Probes { nodes: 2, entries: 2 });
    /// ```
    pub fn get_observed<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        key: &Q,
        observer: &mut impl Observer,
    ) -> Option<&V> {
        self.get_observed_hashed(self.hash_of(key), key, observer)
    }

    /// The same with the hash that the caller has: see [`get_hashed`](Self::get_hashed).
    #[inline]
    pub fn get_observed_hashed<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
        observer: &mut impl Observer,
    ) -> Option<&V> {
        self.find_observed(hash, key, observer).map(|(_, value)| value)
    }

    /// The value of `key` if the first entry that is looked at is its own, as nearly all are that are there.
    #[inline]
    pub(crate) fn get_first_hashed<Q: Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
    ) -> Option<&V> {
        self.find_first(hash, key).map(|(_, value)| value)
    }

    /// The value of `key`, to change.
    #[inline]
    #[must_use]
    pub fn get_mut<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q) -> Option<&mut V> {
        self.get_mut_hashed(self.hash_of(key), key)
    }

    /// The value of `key`, to change, with the hash that the caller has: see
    /// [`get_hashed`](Self::get_hashed).
    #[inline]
    #[must_use]
    pub fn get_mut_hashed<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        hash: u64,
        key: &Q,
    ) -> Option<&mut V> {
        // Nearly always it is, and what has just been loaded is not loaded again.
        if self.find_first(hash, key).is_some() {
            return self.table.first_mut(hash).map(|(_, value)| value);
        }
        self.search_mut(hash, key)
    }

    /// Gives `key` a value and returns the one that it had. The key that was there stays.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.insert_hashed(self.hash_of(&key), key, value)
    }

    /// The same with the hash that the caller has: see [`get_hashed`](Self::get_hashed).
    pub fn insert_hashed(&mut self, hash: u64, key: K, value: V) -> Option<V> {
        let (hash, at) = self.locate(hash, &key);
        if let Some((_, old)) = at.and_then(|at| self.table.get_mut(at)) {
            return Some(core::mem::replace(old, value));
        }
        let room = self.room_for(hash).unwrap_or_else(|error| error.raise());
        self.table.put(room, (key, value));
        None
    }

    /// Gives `key` a value and returns the one that it had, or gives both back if there is no memory.
    /// While there are free slots near, an insertion does without. (A key that is there is given the
    /// value, unlike by methods of the same name elsewhere.)
    ///
    /// # Errors
    ///
    /// If memory is needed and cannot be had; the map is as it was.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map = flowtable::TrashMap::new();
    /// match map.try_insert("key", "value") {
    ///     Ok(replaced) => assert_eq!(replaced, None),
    ///     Err(refused) => drop((refused.key, refused.value)), // to be put elsewhere
    /// }
    /// ```
    pub fn try_insert(&mut self, key: K, value: V) -> Result<Option<V>, TryInsertError<K, V>> {
        self.try_insert_hashed(self.hash_of(&key), key, value)
    }

    /// The same with the hash that the caller has: see [`get_hashed`](Self::get_hashed).
    ///
    /// # Errors
    ///
    /// As [`try_insert`](Self::try_insert).
    pub fn try_insert_hashed(
        &mut self,
        hash: u64,
        key: K,
        value: V,
    ) -> Result<Option<V>, TryInsertError<K, V>> {
        let (hash, at) = match self.try_locate(hash, &key) {
            Ok(located) => located,
            Err(error) => return Err(TryInsertError { key, value, error }),
        };
        if let Some((_, old)) = at.and_then(|at| self.table.get_mut(at)) {
            return Ok(Some(core::mem::replace(old, value)));
        }
        match self.room_for(hash) {
            Ok(room) => {
                self.table.put(room, (key, value));
                Ok(None)
            }
            Err(error) => Err(TryInsertError { key, value, error }),
        }
    }

    /// Takes `key` out and returns its value.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map = flowtable::TrashMap::from([(1, 'a')]);
    /// assert_eq!(map.get_key_value(&1), Some((&1, &'a')));
    /// assert_eq!(map.remove(&1), Some('a'));
    /// assert_eq!(map.remove(&1), None);
    /// ```
    pub fn remove<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q) -> Option<V> {
        self.remove_hashed(self.hash_of(key), key)
    }

    /// The same with the hash that the caller has: see [`get_hashed`](Self::get_hashed).
    pub fn remove_hashed<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        hash: u64,
        key: &Q,
    ) -> Option<V> {
        self.remove_by(hash, key).map(|(_, value)| value)
    }

    /// Takes `key` out and returns the key of the map with its value.
    pub fn remove_entry<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q) -> Option<(K, V)> {
        self.remove_by(self.hash_of(key), key)
    }

    /// The place of `key`, found once: to look at, fill, change or empty.
    ///
    /// # Example
    ///
    /// ```
    /// let mut packets = flowtable::TrashMap::new();
    /// for port in [443_u16, 53, 443] {
    ///     *packets.entry(port).or_insert(0) += 1;
    /// }
    /// assert_eq!(packets, flowtable::TrashMap::from([(53, 1), (443, 2)]));
    /// ```
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V, S> {
        let (hash, at) = self.locate(self.hash_of(&key), &key);
        match at {
            Some(at) => Entry::Occupied(OccupiedEntry { map: self, at }),
            None => Entry::Vacant(VacantEntry { map: self, hash, key }),
        }
    }

    /// Keeps the entries for which `keep` says so, and asks in no order. O(slots).
    ///
    /// # Example
    ///
    /// ```
    /// let mut map: flowtable::TrashMap<u32, u32> = (0..10).map(|i| (i, i * i)).collect();
    /// map.retain(|key, _| key % 3 == 0);
    /// assert_eq!(map.len(), 4);
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let mut keep = |(key, value): &mut (K, V)| keep(key, value);
        let Self { hasher, rekeyed, .. } = self;
        if let Some(Rekeyed { former: Some(former), .. }) = rekeyed.as_deref_mut() {
            // Its holes stay: an entry must not move to where it is not looked for any more.
            let secret = former.secret.as_ref();
            former.table.retain(&mut keep, &|(key, _)| rekey::hash(hasher, secret, key));
        }
        let Self { table, hasher, rekeyed } = self;
        let hasher = rekey::own_hasher(hasher, rekeyed);
        table.retain(keep, &hasher);
        table.fill_all_holes(&hasher);
        table.tidy(usize::MAX, &hasher);
    }

    /// Makes room for `additional` entries more, and keeps it: the map does not get smaller than
    /// that when entries leave, until [`shrink_to_fit`](Self::shrink_to_fit).
    ///
    /// Entries are spread by chance, so some insertions may still have to give a segment more room.
    ///
    /// # Panics
    ///
    /// If so many entries take more bytes than there are addresses.
    pub fn reserve(&mut self, additional: usize) {
        self.try_reserve(additional).unwrap_or_else(|error| error.raise());
    }

    /// Makes room for `additional` entries more, like [`reserve`](Self::reserve), if there is memory.
    ///
    /// # Errors
    ///
    /// If the memory cannot be had. It is asked for in one piece first, so that an attempt that must
    /// fail takes nothing.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map: flowtable::TrashMap<u64, u64> = flowtable::TrashMap::with_capacity(1000);
    /// map.reserve(5000);
    /// assert!(map.capacity() >= 5000 && map.try_reserve(usize::MAX / 2).is_err());
    /// map.shrink_to_fit();
    /// assert_eq!((map.capacity(), map.allocation_size()), (0, 0));
    /// ```
    pub fn try_reserve(&mut self, additional: usize) -> Result<(), TryReserveError> {
        self.make_room(additional)?;
        self.table.keep(self.len().saturating_add(additional));
        Ok(())
    }

    /// Gives back the memory that is reserved, and what is free beyond the load of growth. O(slots).
    pub fn shrink_to_fit(&mut self) {
        self.settle();
        if self.is_empty() {
            self.clear();
        }
        let Self { table, hasher, rekeyed } = self;
        let hasher = rekey::own_hasher(hasher, rekeyed);
        table.shrink_to_fit(&hasher);
    }

    /// Takes out all entries and hands them over; what is not fetched is dropped. Gives the memory
    /// back.
    pub fn drain(&mut self) -> IntoIter<K, V> {
        let former = self.rekeyed.take().and_then(|rekeyed| rekeyed.former);
        let table = core::mem::replace(&mut self.table, Table::new());
        IntoIter::new(table, former.map(|former| former.table))
    }

    /// Segments, load, distances and memory at this moment. O(slots), and hashes every key.
    #[must_use]
    pub fn shape(&self) -> TableShape {
        let mut entries_by_distance = alloc::vec![0; table::REACH + 2];
        self.table.count_distances(&mut entries_by_distance, &|(key, _)| self.own_hash(key));
        TableShape {
            entries: self.len(),
            segments: self.table.directory.segments().count(),
            slots: self.table.slots(),
            entries_by_distance,
            former: self.former_table().map_or(0, Table::len),
            bytes: self.allocation_size(),
        }
    }

    /// Checks every invariant, for tests. O(slots).
    ///
    /// # Errors
    ///
    /// The invariant that is broken, which would be a mistake in this crate or a key type that breaks
    /// the laws of [`Hash`] and [`Eq`].
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), Broken> {
        self.table.validate(&|(key, _)| self.own_hash(key))
    }
}
