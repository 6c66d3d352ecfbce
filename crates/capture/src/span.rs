//! Bytes of a frame from some header on.

use super::order::Order;
use super::reject::Reject;

/// The bytes of a frame from some header on: those that were captured, and how many there were on
/// the wire.
///
/// Reads beyond the captured bytes are [`Reject::LinkCut`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'a> {
    captured: &'a [u8],
    /// Number of bytes on the wire; at least `captured.len()`.
    wire: usize,
}

impl<'a> Span<'a> {
    /// Creates the span of a frame. A length on the wire that is below that of the captured bytes
    /// is wrong, and does not count.
    #[inline]
    pub(crate) fn new(captured: &'a [u8], wire_len: u32) -> Self {
        Self { captured, wire: captured.len().max(wire_len as usize) }
    }

    pub(crate) const fn captured(&self) -> &'a [u8] {
        self.captured
    }

    /// Returns the number of bytes on the wire.
    pub(crate) const fn wire(&self) -> usize {
        self.wire
    }

    /// Returns whether the capture has none of these bytes, although there were some.
    pub(crate) const fn is_cut(&self) -> bool {
        self.captured.is_empty() && self.wire > 0
    }

    /// Returns the bytes behind a header of `length` bytes.
    #[inline]
    pub(crate) fn after(&self, length: usize) -> Result<Self, Reject> {
        let captured = self.captured.get(length..).ok_or(Reject::LinkCut)?;
        Ok(Self { captured, wire: self.wire - length })
    }

    /// Returns the bytes behind a header of `length` bytes: none if it is cut.
    #[inline]
    pub(crate) fn skip(&self, length: usize) -> Self {
        let captured = self.captured.get(length..).unwrap_or_default();
        Self { captured, wire: self.wire.saturating_sub(length) }
    }

    /// Returns the first `length` bytes: the others belong to another layer.
    #[inline]
    pub(crate) fn first(&self, length: usize) -> Self {
        let captured = self.captured.get(..length).unwrap_or(self.captured);
        Self { captured, wire: self.wire.min(length) }
    }

    /// Returns these bytes, if they were at least `length` on the wire.
    pub(crate) fn of_length(&self, length: usize) -> Self {
        Self { wire: self.wire.max(length), ..*self }
    }

    pub(crate) fn starts_with(&self, prefix: &[u8]) -> bool {
        self.captured.starts_with(prefix)
    }

    #[inline]
    pub(crate) fn u8(&self, at: usize) -> Result<u8, Reject> {
        self.captured.get(at).copied().ok_or(Reject::LinkCut)
    }

    /// Reads a 16-bit integer in network byte order.
    #[inline]
    pub(crate) fn u16(&self, at: usize) -> Result<u16, Reject> {
        self.u16_in(Order::Big, at)
    }

    /// Reads a 32-bit integer in network byte order.
    #[inline]
    pub(crate) fn u32(&self, at: usize) -> Result<u32, Reject> {
        self.u32_in(Order::Big, at)
    }

    #[inline]
    pub(crate) fn u16_in(&self, order: Order, at: usize) -> Result<u16, Reject> {
        order.u16(self.captured, at).ok_or(Reject::LinkCut)
    }

    #[inline]
    pub(crate) fn u32_in(&self, order: Order, at: usize) -> Result<u32, Reject> {
        order.u32(self.captured, at).ok_or(Reject::LinkCut)
    }
}
