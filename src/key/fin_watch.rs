//! The end of a TCP connection.

use super::flow::TcpFlags;

/// A detector of the end of a TCP connection by one direction: the paper's active garbage
/// collection.
///
/// ```text
///     A → B   FIN ACK     A's direction is marked
///     B → A   FIN ACK     B's direction is marked
///     A → B   ACK         marked, and no FIN: closed, both directions may be removed
/// ```
///
/// Keep one with each direction's entry, and pass it the flags of that direction. A reset closes
/// the connection at once, and a new SYN on the same sockets restarts the detector. A connection
/// that is closed on one side only counts as closed at the next ACK from that side: that costs a
/// cache one miss, but a table that has to track open connections requires that both directions
/// are [closed](Self::is_closed).
///
/// Paper: Olsson and Nilsson, *TRASH*, section 4.6 and appendix B. Here a reset ends a
/// connection, too.
///
/// # Example
///
/// ```
/// use flowtable::TcpFlags;
/// use flowtable::key::FinWatch;
///
/// let mut direction = FinWatch::default();
/// assert!(!direction.observe(TcpFlags::ACK));
/// assert!(!direction.observe(TcpFlags::FIN | TcpFlags::ACK));
/// assert!(direction.is_closed());
/// assert!(direction.observe(TcpFlags::ACK));
/// assert!(FinWatch::default().observe(TcpFlags::RST));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FinWatch {
    pub(crate) closed: bool,
}

impl FinWatch {
    /// Processes the flags of the next segment, and returns whether the connection is closed.
    #[must_use]
    pub fn observe(&mut self, flags: TcpFlags) -> bool {
        if flags.contains(TcpFlags::RST) {
            return true;
        }
        if flags.contains(TcpFlags::SYN) {
            self.closed = false;
            return false;
        }
        if flags.contains(TcpFlags::FIN) {
            self.closed = true;
            return false;
        }
        self.closed && flags.contains(TcpFlags::ACK)
    }

    /// Returns whether a FIN was observed in this direction.
    #[must_use]
    pub const fn is_closed(self) -> bool {
        self.closed
    }
}
