//! The builder of a header, used by each layer of the sender in turn.

use alloc::vec::Vec;
use core::error::Error;
use core::fmt;

use super::checksum::BufferTooSmall;
use super::header::{DmlHeader, PREFIX, Region, VERSION};

/// The most regions of a header: its count has eight bits.
pub const MAX_REGIONS: usize = u8::MAX as usize;

/// A builder of headers, which collects the regions of a packet from the topmost layer down.
///
/// A layer pushes its own header, and then adds its regions relative to the first byte of that
/// header. Each header pushed later moves them.
///
/// | method | cost |
/// |---|---|
/// | `add`, `push_header`, `encoded_len` | O(1) |
/// | `regions`, `write_to`, `clear` | O(regions) |
///
/// It allocates memory for the regions, which [`clear`](Self::clear) keeps for the next packet.
///
/// Paper: Chandranmenon and Varghese, section 5.
///
/// # Example
///
/// ```
/// use flowtable::papers::dml::{DmlBuilder, DmlHeader, Kind, Region};
///
/// let mut dml = DmlBuilder::new(0x0800);
/// // The application has 100 bytes.
/// dml.add(Region::new(Kind::DATA, 0, 100))?;
/// // TCP pushes a header of 20 bytes: its packet has 120, and the checksum covers all of them.
/// dml.push_header(20)?;
/// dml.add(Region::new(Kind::CHECKSUM, 0, 120))?;
/// // The IP header has 24 bytes with its options.
/// dml.push_header(24)?;
/// dml.add(Region::new(Kind::CHECKSUM, 0, 24))?;
///
/// let ranges = dml.regions().map(|region| (region.offset, region.length));
/// assert!(ranges.eq([(44, 100), (24, 120), (0, 24)]));
/// let mut frame = [0; 200];
/// let header = dml.write_to(&mut frame)?;
/// assert_eq!((header, dml.encoded_len()), (4 + 3 * 12, 40));
/// let (header, packet) = DmlHeader::parse(&frame)?;
/// assert_eq!(packet.len(), 160);
/// assert!(header.regions().eq(dml.regions()));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct DmlBuilder {
    ethertype: u16,
    /// None ends beyond `reach`, after it is moved by the headers pushed later.
    regions: Vec<LayerRegion>,
    /// The total length of the headers pushed so far.
    pushed: u32,
    /// The greatest end of a region in the packet as it is now.
    reach: u32,
}

/// A region as it was added by its layer.
#[derive(Clone, Copy, Debug)]
struct LayerRegion {
    /// Relative to the packet of the layer.
    region: Region,
    /// The total length of the headers pushed before: later ones move the region.
    pushed: u32,
}

impl DmlBuilder {
    /// Creates a builder without regions. `ethertype` is the type of the packet's lowest layer:
    /// 0x0800 for IPv4.
    #[must_use]
    pub const fn new(ethertype: u16) -> Self {
        Self { ethertype, regions: Vec::new(), pushed: 0, reach: 0 }
    }

    /// Adds a region relative to the first byte of the packet as it is at this layer.
    ///
    /// # Errors
    ///
    /// If there are [`MAX_REGIONS`] already, or the region ends beyond byte 2^32 - 1. The builder
    /// is unchanged then.
    pub fn add(&mut self, region: Region) -> Result<(), BuildError> {
        if self.regions.len() == MAX_REGIONS {
            return Err(BuildError::TooMany);
        }
        let end = region.offset.checked_add(region.length).ok_or(BuildError::TooFar)?;
        self.regions.push(LayerRegion { region, pushed: self.pushed });
        self.reach = self.reach.max(end);
        Ok(())
    }

    /// Pushes a header of `length` bytes in front of the packet, which moves all regions so far.
    ///
    /// # Errors
    ///
    /// If a region or the headers would end beyond byte 2^32 - 1. The builder is unchanged then.
    pub fn push_header(&mut self, length: u32) -> Result<(), BuildError> {
        let pushed = self.pushed.checked_add(length).ok_or(BuildError::TooFar)?;
        self.reach = match self.regions.is_empty() {
            true => 0,
            false => self.reach.checked_add(length).ok_or(BuildError::TooFar)?,
        };
        self.pushed = pushed;
        Ok(())
    }

    /// Iterates over the regions at their current offsets, in the order of insertion.
    #[must_use]
    pub fn regions(&self) -> impl ExactSizeIterator<Item = Region> + Clone + '_ {
        self.regions.iter().map(|added| {
            // At most `reach`, so this does not overflow.
            let offset = added.region.offset + (self.pushed - added.pushed);
            Region { offset, ..added.region }
        })
    }

    /// Returns the length of the header on the wire: 4 bytes, and 12 for each region.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        PREFIX + Region::ENCODED * self.regions.len()
    }

    /// Writes the header to the start of `out`, and returns its length. The packet follows it.
    ///
    /// # Errors
    ///
    /// If `out` is shorter than [`encoded_len`](Self::encoded_len). Nothing is written then.
    pub fn write_to(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let (needed, capacity) = (self.encoded_len(), out.len());
        let out = out.get_mut(..needed).ok_or(BufferTooSmall { needed, capacity })?;
        let (prefix, regions) = out.split_at_mut(PREFIX);
        let [upper, lower] = self.ethertype.to_be_bytes();
        prefix.copy_from_slice(&[VERSION, self.regions.len() as u8, upper, lower]);
        for (bytes, region) in regions.chunks_exact_mut(Region::ENCODED).zip(self.regions()) {
            bytes.copy_from_slice(&region.encoded());
        }
        Ok(needed)
    }

    /// Removes all regions and headers, for the next packet. Keeps the memory.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::papers::dml::{DmlBuilder, Kind, Region};
    ///
    /// let mut dml = DmlBuilder::new(0x0800);
    /// for length in [100, 1400] {
    ///     dml.clear(); // for the next packet
    ///     dml.add(Region::new(Kind::DATA, 0, length))?;
    ///     dml.push_header(20)?;
    ///     assert_eq!((dml.regions().len(), dml.encoded_len()), (1, 4 + 12));
    /// }
    /// # Ok::<(), flowtable::papers::dml::BuildError>(())
    /// ```
    pub fn clear(&mut self) {
        self.regions.clear();
        (self.pushed, self.reach) = (0, 0);
    }
}

/// Continues with the regions of a received packet, to encapsulate it in further headers.
impl From<DmlHeader<'_>> for DmlBuilder {
    fn from(header: DmlHeader<'_>) -> Self {
        let regions = header.regions().map(|region| LayerRegion { region, pushed: 0 }).collect();
        // The parser rejects a header if a region ends beyond 2^32 - 1.
        let reach = header.regions().map(|region| region.end() as u32).max().unwrap_or(0);
        Self { ethertype: header.ethertype, regions, pushed: 0, reach }
    }
}

/// The error of adding a region or a header. The builder is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// There are [`MAX_REGIONS`] regions already.
    TooMany,
    /// A region, or the headers alone, would end beyond byte 2^32 - 1 of the packet.
    TooFar,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooMany => "a header has at most 255 regions",
            Self::TooFar => "a packet ends at byte 2^32 - 1 at most",
        })
    }
}

impl Error for BuildError {}
