//! The keys of the maps of connections: a five-tuple, and whether the connection allows reuse.

use core::cell::Cell;
use core::hash::{BuildHasher, Hash, Hasher};
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::hash::{Prehashed, Query};
use crate::key::bits::{BitString, hash_words};
use crate::key::flow::{FiveTuple, FlowKey};

/// A packet, or a packet with its hash.
pub(super) trait PacketQuery: Query<FlowKey, Key = FlowKey> {}

impl<Q: Query<FlowKey, Key = FlowKey>> PacketQuery for Q {}

/// Returns the hash of a connection to insert. Not inlined: so lookups have the code that hashes
/// their packets inline.
#[inline(never)]
pub(super) fn hash_of(hasher: &impl BuildHasher, key: &FlowKey) -> u64 {
    hasher.hash_one(key)
}

/// A packet that is hashed at most once, for all maps of a table: their hashers are equal.
pub(super) struct HashedOnce<Q> {
    packet: Q,
    hash: Cell<Option<u64>>,
}

impl<Q: PacketQuery> HashedOnce<Q> {
    #[inline(always)]
    pub(super) const fn new(packet: Q) -> Self {
        Self::with(packet, None)
    }

    /// The packet, with its hash if that is known.
    #[inline(always)]
    pub(super) const fn with(packet: Q, hash: Option<u64>) -> Self {
        Self { packet, hash: Cell::new(hash) }
    }
}

impl<Q: PacketQuery> Query<FlowKey> for HashedOnce<Q> {
    type Key = FlowKey;

    #[inline(always)]
    fn key(&self) -> &FlowKey {
        self.packet.key()
    }

    #[inline(always)]
    fn hash_with<S: BuildHasher>(&self, hasher: &S) -> u64 {
        let hash = self.hash.get().unwrap_or_else(|| self.packet.hash_with(hasher));
        self.hash.set(Some(hash));
        hash
    }
}

/// A connection. The flag is in a byte that a [`FiveTuple`] pads, and is no part of the key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends<I> {
    src: I,
    dst: I,
    sport: u16,
    dport: u16,
    protocol: u8,
    /// Whether sockets with reuse can be bound to its port.
    pub(super) allows_reuse: bool,
}

impl<I: Copy> Ends<I> {
    #[inline]
    pub(super) const fn new(tuple: FiveTuple<I>, allows_reuse: bool) -> Self {
        let FiveTuple { src, dst, sport, dport, protocol } = tuple;
        Self { src, dst, sport, dport, protocol, allows_reuse }
    }

    /// The key of a lookup.
    #[inline]
    pub(super) const fn of(tuple: &FiveTuple<I>) -> Self {
        Self::new(*tuple, false)
    }

    #[inline]
    pub(super) const fn with(self, hash: u64) -> Prehashed<Self> {
        Prehashed { hash, key: self }
    }

    /// The key of a packet with the packet's hash.
    #[inline]
    pub(super) fn with_of(
        self,
        packet: &impl PacketQuery,
        hasher: &impl BuildHasher,
    ) -> Prehashed<Self> {
        self.with(packet.hash_with(hasher))
    }

    #[inline]
    pub(super) const fn tuple(&self) -> FiveTuple<I> {
        let Self { src, dst, sport, dport, protocol, .. } = *self;
        FiveTuple { src, dst, sport, dport, protocol }
    }
}

impl<I: Copy + PartialEq> PartialEq for Ends<I> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.tuple() == other.tuple()
    }
}

impl<I: Copy + Eq> Eq for Ends<I> {}

/// The hash of the [`FlowKey`].
impl<I: BitString> Hash for Ends<I> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_words(&self.tuple(), Some(if I::BITS == 32 { 4 } else { 6 }), state);
    }
}

impl From<&Ends<Ipv4Addr>> for FlowKey {
    #[inline]
    fn from(ends: &Ends<Ipv4Addr>) -> Self {
        Self::V4(ends.tuple())
    }
}

impl From<&Ends<Ipv6Addr>> for FlowKey {
    #[inline]
    fn from(ends: &Ends<Ipv6Addr>) -> Self {
        Self::V6(ends.tuple())
    }
}
