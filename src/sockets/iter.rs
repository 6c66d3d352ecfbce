//! Iteration over the sockets of a table.

use core::iter::FusedIterator;
use core::slice;

use super::ends::Ends;
use super::listeners::Listener;
use super::small_table;
use super::{Name, SocketTable};
use crate::memory::Allocator;
use crate::raw::slab::Slot;
use crate::trash;
use core::net::{Ipv4Addr, Ipv6Addr};

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
