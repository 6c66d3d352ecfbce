//! Iteration over the sockets of a table, and removal of the sockets that a predicate picks, one
//! with each step of an iterator.

use core::fmt;
use core::hash::BuildHasher;
use core::iter::FusedIterator;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::slice;

use super::connections::ConnectionCursor;
use super::ends::Ends;
use super::listeners::Listener;
use super::{Name, SocketTable, small_table};
use crate::hash::DefaultHashBuilder;
use crate::memory::{Allocator, Global};
use crate::raw::slab::Slot;
use crate::trash;

/// An iterator over the sockets of a table and their names: see [`SocketTable::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a, T> {
    bound: slice::Iter<'a, Slot<Listener<T>>>,
    few: slice::Iter<'a, small_table::Slot<T>>,
    v4: trash::Iter<'a, Ends<Ipv4Addr>, T>,
    v6: trash::Iter<'a, Ends<Ipv6Addr>, T>,
    len: usize,
}

/// An iterator over mutable references to the sockets of a table and their names: see
/// [`SocketTable::iter_mut`].
#[derive(Debug)]
pub struct IterMut<'a, T> {
    bound: slice::IterMut<'a, Slot<Listener<T>>>,
    few: slice::IterMut<'a, small_table::Slot<T>>,
    v4: trash::IterMut<'a, Ends<Ipv4Addr>, T>,
    v6: trash::IterMut<'a, Ends<Ipv6Addr>, T>,
    len: usize,
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = (Name, &'a T);

    fn next(&mut self) -> Option<Self::Item> {
        self.len = self.len.saturating_sub(1);
        if let Some(listener) = self.bound.find_map(Slot::entry) {
            return Some((listener.name(), &listener.socket));
        }
        if let Some(slot) = self.few.next() {
            return Some((Name::Connected(slot.key), &slot.socket));
        }
        if let Some((ends, socket)) = self.v4.next() {
            return Some((Name::Connected(ends.into()), socket));
        }
        self.v6.next().map(|(ends, socket)| (Name::Connected(ends.into()), socket))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<'a, T> Iterator for IterMut<'a, T> {
    type Item = (Name, &'a mut T);

    fn next(&mut self) -> Option<Self::Item> {
        self.len = self.len.saturating_sub(1);
        if let Some(listener) = self.bound.find_map(Slot::entry_mut) {
            return Some((listener.name(), &mut listener.socket));
        }
        if let Some(slot) = self.few.next() {
            return Some((Name::Connected(slot.key), &mut slot.socket));
        }
        if let Some((ends, socket)) = self.v4.next() {
            return Some((Name::Connected(ends.into()), socket));
        }
        self.v6.next().map(|(ends, socket)| (Name::Connected(ends.into()), socket))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}
impl<T> ExactSizeIterator for IterMut<'_, T> {}
impl<T> FusedIterator for Iter<'_, T> {}
impl<T> FusedIterator for IterMut<'_, T> {}

impl<T, S, A: Allocator + Clone> SocketTable<T, S, A> {
    /// Iterates over all sockets and their names, in no particular order.
    pub fn iter(&self) -> Iter<'_, T> {
        let (v4, v6) = self.connections.maps();
        Iter {
            bound: self.listeners.sockets().slots().iter(),
            few: self.connections.few().slots().iter(),
            v4: v4.iter(),
            v6: v6.iter(),
            len: self.len(),
        }
    }

    /// Iterates over all sockets, as mutable references, and their names, in no particular order.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::sockets::{Local, Reuse, SocketTable};
    ///
    /// let mut sockets = SocketTable::new(10);
    /// for port in 1..=4 {
    ///     sockets.bind(Local::new(([0, 0, 0, 0], port).into(), 17), Reuse::No, port)?;
    /// }
    /// sockets.iter_mut().for_each(|(_, socket)| *socket *= 10);
    /// // Sockets that have timed out are closed.
    /// sockets.retain(|_, socket| *socket > 20);
    /// let mut left: Vec<u16> = sockets.iter().map(|(_, socket)| *socket).collect();
    /// left.sort();
    /// assert_eq!(left, [30, 40]);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn iter_mut(&mut self) -> IterMut<'_, T> {
        let len = self.len();
        let Self { connections, listeners, .. } = self;
        let (few, v4, v6) = connections.parts_mut();
        IterMut {
            bound: listeners.sockets_mut().slots_mut().iter_mut(),
            few: few.slots_mut().iter_mut(),
            v4: v4.iter_mut(),
            v6: v6.iter_mut(),
            len,
        }
    }
}

impl<'a, T, S, A: Allocator + Clone> IntoIterator for &'a SocketTable<T, S, A> {
    type Item = (Name, &'a T);
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T, S, A: Allocator + Clone> IntoIterator for &'a mut SocketTable<T, S, A> {
    type Item = (Name, &'a mut T);
    type IntoIter = IterMut<'a, T>;

    fn into_iter(self) -> IterMut<'a, T> {
        self.iter_mut()
    }
}

/// Removes and returns the sockets for which a predicate returns true. See
/// [`SocketTable::extract_if`].
pub struct ExtractIf<'a, T, F, S = DefaultHashBuilder, A = Global>
where
    S: BuildHasher,
    A: Allocator + Clone,
{
    sockets: &'a mut SocketTable<T, S, A>,
    predicate: F,
    /// The next slot of a bound socket.
    bound: u32,
    connections: ConnectionCursor,
}

impl<T, S: BuildHasher, A: Allocator + Clone> SocketTable<T, S, A> {
    /// Returns an iterator that removes the sockets for which `predicate` returns true: bound ones,
    /// and then connections. Sockets that it has not visited when it is dropped stay. O(sockets) if
    /// it is run to its end.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::FlowKey;
    /// use flowtable::sockets::{Local, Name, Reuse, SocketTable};
    ///
    /// let mut sockets = SocketTable::new(10);
    /// let name = sockets.bind(Local::new("0.0.0.0:80".parse()?, 6), Reuse::No, "listener")?;
    /// let [from, to] = ["192.0.2.7".parse()?, "198.51.100.1".parse()?];
    /// for port in 1..=3 {
    ///     sockets.accept(&FlowKey::new(from, to, port, 80, 6).unwrap(), "connection")?;
    /// }
    /// let is_connection = |name: &Name, _: &mut _| matches!(name, Name::Connected(_));
    /// assert_eq!(sockets.extract_if(is_connection).count(), 3);
    /// assert!(sockets.iter().eq([(name, &"listener")]));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn extract_if<F: FnMut(&Name, &mut T) -> bool>(
        &mut self,
        predicate: F,
    ) -> ExtractIf<'_, T, F, S, A> {
        let connections = self.connections.cursor();
        ExtractIf { sockets: self, predicate, bound: 0, connections }
    }
}

impl<T, F, S, A> Iterator for ExtractIf<'_, T, F, S, A>
where
    F: FnMut(&Name, &mut T) -> bool,
    S: BuildHasher,
    A: Allocator + Clone,
{
    type Item = (Name, T);

    fn next(&mut self) -> Option<(Name, T)> {
        let Self { sockets, predicate, bound, connections } = self;
        let picks = |name, socket: &mut T| predicate(&name, socket);
        if let Some(removed) = sockets.listeners.extract_next(bound, picks) {
            sockets.ports.remove_listener(&removed);
            return Some((removed.name(), removed.socket));
        }
        let picks = |key, socket: &mut T| predicate(&Name::Connected(key), socket);
        let (key, socket) =
            sockets.connections.extract_next(&mut sockets.ports, connections, picks)?;
        Some((Name::Connected(key), socket))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.sockets.len()))
    }
}

impl<T, F, S, A> FusedIterator for ExtractIf<'_, T, F, S, A>
where
    F: FnMut(&Name, &mut T) -> bool,
    S: BuildHasher,
    A: Allocator + Clone,
{
}

impl<T, F, S, A> Drop for ExtractIf<'_, T, F, S, A>
where
    S: BuildHasher,
    A: Allocator + Clone,
{
    fn drop(&mut self) {
        let SocketTable { connections, ports, .. } = &mut *self.sockets;
        connections.shrink(ports);
    }
}

impl<T, F, S, A> fmt::Debug for ExtractIf<'_, T, F, S, A>
where
    S: BuildHasher,
    A: Allocator + Clone,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtractIf").finish_non_exhaustive()
    }
}
