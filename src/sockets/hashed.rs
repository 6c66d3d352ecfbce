//! Lookups of connections by the hash that the caller has.

use core::hash::BuildHasher;

use super::{Match, SocketTable, Specificity};
use crate::key::flow::FlowKey;
use crate::memory::Allocator;

impl<T, S: BuildHasher, A: Allocator + Clone> SocketTable<T, S, A> {
    /// Returns the hash of a packet, for the methods that take one.
    #[inline]
    #[must_use]
    pub fn hash_of(&self, packet: &FlowKey) -> u64 {
        self.connections.hash_of(packet)
    }

    /// Returns the socket that matches a packet best, given the hash of the packet: see
    /// [`lookup`](Self::lookup).
    ///
    /// With another hash than [`hash_of`](Self::hash_of) the packet, its connection may be missed.
    /// Only connections are found by the hash: bound sockets and ports are hashed by the hasher of
    /// the table, and so is what is inserted or removed. To use the hash that a network card
    /// delivers, give the table the hasher [`Rss`](crate::hash::Rss), which computes the same. Then
    /// ephemeral ports can be predicted by those who have the key of the card.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::FlowKey;
    /// use flowtable::hash::{Rss, source_index::Toeplitz};
    /// use flowtable::sockets::SocketTable;
    ///
    /// let [from, to] = ["66.9.149.187".parse()?, "161.142.100.80".parse()?];
    /// let packet = FlowKey::new(from, to, 2794, 1766, 6).unwrap();
    /// let from_card = Rss::table_hash(0x51cc_c178); // in the descriptor of the packet
    ///
    /// let mut sockets = SocketTable::with_hasher(100, Rss::new(Toeplitz::MICROSOFT));
    /// sockets.accept(&packet, 1)?;
    /// assert_eq!(sockets.hash_of(&packet), from_card);
    /// *sockets.lookup_mut_hashed(from_card, &packet).unwrap().socket += 1;
    /// assert_eq!(sockets.lookup_hashed(from_card, &packet).unwrap().socket, &2);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn lookup_hashed(&self, hash: u64, packet: &FlowKey) -> Option<Match<&T>> {
        match self.connections.get_hashed(hash, packet) {
            Some(socket) => Some(Match { socket, by: Specificity::Connection }),
            None => self.lookup_bound(packet),
        }
    }

    /// Returns a mutable reference to the socket that matches a packet best, given the hash of the
    /// packet: see [`lookup_hashed`](Self::lookup_hashed).
    #[inline]
    #[must_use]
    pub fn lookup_mut_hashed(&mut self, hash: u64, packet: &FlowKey) -> Option<Match<&mut T>> {
        let Self { connections, listeners, hasher, .. } = self;
        if let Some(socket) = connections.get_mut_hashed(hash, packet) {
            return Some(Match { socket, by: Specificity::Connection });
        }
        super::lookup_bound_mut(listeners, hasher, packet)
    }

    /// Looks up the sockets of a burst of packets, given their hashes: see
    /// [`lookup_batch`](Self::lookup_batch) and [`lookup_hashed`](Self::lookup_hashed).
    ///
    /// # Panics
    ///
    /// If `hashes` and `packets` differ in length, or `found` is shorter.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::FlowKey;
    /// use flowtable::sockets::SocketTable;
    ///
    /// let mut sockets = SocketTable::new(100);
    /// let [from, to] = ["192.0.2.7".parse()?, "198.51.100.1".parse()?];
    /// let packets = [80, 81].map(|port| FlowKey::new(from, to, 5353, port, 6).unwrap());
    /// sockets.accept(&packets[0], "web")?;
    /// let hashes = packets.each_ref().map(|packet| sockets.hash_of(packet));
    /// let mut found = [None; 2];
    /// sockets.lookup_batch_hashed(&hashes, &packets, &mut found);
    /// assert_eq!(found.map(|found| found.map(|found| *found.socket)), [Some("web"), None]);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn lookup_batch_hashed<'a>(
        &'a self,
        hashes: &[u64],
        packets: &[FlowKey],
        found: &mut [Option<Match<&'a T>>],
    ) {
        assert_eq!(hashes.len(), packets.len(), "one hash for each packet");
        self.lookup_bursts(Some(hashes), packets, found);
    }
}
