//! Removal of the sockets that a predicate picks, one with each step of an iterator.

use core::fmt;
use core::hash::BuildHasher;
use core::iter::FusedIterator;

use super::connections::ConnectionCursor;
use super::{Name, SocketTable};
use crate::hash::DefaultHashBuilder;
use crate::memory::{Allocator, Global};

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
