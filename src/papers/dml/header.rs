//! The header on the wire, and its parser.

use core::fmt;
use core::iter::FusedIterator;
use core::slice::ChunksExact;

use super::error::ParseError;
use super::region::{Kind, Region};

/// The version of the format.
pub(super) const VERSION: u8 = 1;

/// The length of the header in front of the regions.
pub(super) const PREFIX: usize = 4;

/// A parsed data manipulation header, whose regions are within the packet after it.
///
/// It borrows the bytes it was parsed from, and copies none.
///
/// | method | cost |
/// |---|---|
/// | `parse`, `find`, iteration | O(regions) |
///
/// Paper: Chandranmenon and Varghese, section 5.
///
/// # Example
///
/// ```
/// use flowtable::papers::dml::{DmlHeader, Kind, ParseError};
///
/// let frame = b"\x01\x01\x08\x00\0\x05\0\0\0\0\0\x02\0\0\0\x04..data";
/// let (header, packet) = DmlHeader::parse(frame)?;
/// assert_eq!((header.ethertype, packet), (0x0800, &b"..data"[..]));
/// let data = header.find(Kind::DATA).and_then(|region| region.slice(packet));
/// assert_eq!(data, Some(&b"data"[..]));
///
/// let error = DmlHeader::parse(&frame[..21]).unwrap_err();
/// assert!(matches!(error, ParseError::OutOfPacket { packet: 5, .. }));
/// # Ok::<(), ParseError>(())
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct DmlHeader<'a> {
    /// The EtherType of the packet: 0x0800 for IPv4.
    pub ethertype: u16,
    /// A multiple of [`Region::ENCODED`] bytes. Each region ends within the packet, and at 2^32 - 1
    /// at most.
    regions: &'a [u8],
}

impl<'a> DmlHeader<'a> {
    /// Parses the header at the start of `frame`, which begins after the data-link header. Returns
    /// the header and the packet after it.
    ///
    /// # Errors
    ///
    /// If the bytes end within the header, the version is unknown, or a region ends beyond the
    /// packet.
    pub fn parse(frame: &'a [u8]) -> Result<(Self, &'a [u8]), ParseError> {
        let length = Self::length(frame)?;
        let (header, packet) = frame.split_at(length);
        Ok((Self::of(header, packet.len())?, packet))
    }

    /// Parses the header at the start of `frame`, and returns a mutable packet, for decryption in
    /// place.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::papers::dml::{DmlHeader, Kind};
    ///
    /// let mut frame = *b"\x01\x01\x08\x00\0\x03\0\0\0\0\0\x01\0\0\0\x02.bc";
    /// let (header, packet) = DmlHeader::parse_mut(&mut frame)?;
    /// for region in header.regions().filter(|region| region.kind == Kind::DECRYPT) {
    ///     let bytes = &mut packet[region.offset as usize..][..region.length as usize];
    ///     bytes.iter_mut().for_each(|byte| *byte ^= 0x20);
    /// }
    /// assert_eq!(packet, b".BC");
    /// # Ok::<(), flowtable::papers::dml::ParseError>(())
    /// ```
    pub fn parse_mut(frame: &'a mut [u8]) -> Result<(Self, &'a mut [u8]), ParseError> {
        let length = Self::length(frame)?;
        let (header, packet) = frame.split_at_mut(length);
        Ok((Self::of(header, packet.len())?, packet))
    }

    /// The length of the header at the start of `frame`, which contains all of it.
    fn length(frame: &[u8]) -> Result<usize, ParseError> {
        let given = frame.len();
        let Some(&[version, count, _, _]) = frame.first_chunk::<PREFIX>() else {
            return Err(ParseError::Truncated { needed: PREFIX, given });
        };
        if version != VERSION {
            return Err(ParseError::Version(version));
        }
        let needed = PREFIX + usize::from(count) * Region::ENCODED;
        if given < needed { Err(ParseError::Truncated { needed, given }) } else { Ok(needed) }
    }

    /// The header in these bytes, if its regions are within a packet of this length.
    fn of(header: &'a [u8], packet: usize) -> Result<Self, ParseError> {
        let (prefix, regions) = header.split_at(PREFIX);
        let header = Self { ethertype: u16::from_be_bytes([prefix[2], prefix[3]]), regions };
        let reach = (packet as u64).min(u64::from(u32::MAX));
        match header.regions().find(|region| region.end() > reach) {
            Some(region) => Err(ParseError::OutOfPacket { region, packet }),
            None => Ok(header),
        }
    }

    /// Iterates over all regions, in the order of the header. The sender chooses the order.
    #[inline]
    #[must_use]
    pub fn regions(&self) -> Regions<'a> {
        Regions(self.regions.chunks_exact(Region::ENCODED))
    }

    /// Returns the first region of a kind.
    #[inline]
    #[must_use]
    pub fn find(&self, kind: Kind) -> Option<Region> {
        self.regions().find(|region| region.kind == kind)
    }
}

impl fmt::Debug for DmlHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DmlHeader")
            .field("ethertype", &self.ethertype)
            .field("regions", &self.regions())
            .finish()
    }
}

/// An iterator over the regions of a header. See [`DmlHeader::regions`].
///
/// Paper: Chandranmenon and Varghese, section 5.
#[derive(Clone)]
pub struct Regions<'a>(ChunksExact<'a, u8>);

impl Iterator for Regions<'_> {
    type Item = Region;

    #[inline]
    fn next(&mut self) -> Option<Region> {
        self.0.next()?.first_chunk().copied().map(Region::decoded)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for Regions<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Region> {
        self.0.next_back()?.first_chunk().copied().map(Region::decoded)
    }
}

impl ExactSizeIterator for Regions<'_> {}
impl FusedIterator for Regions<'_> {}

impl fmt::Debug for Regions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}
