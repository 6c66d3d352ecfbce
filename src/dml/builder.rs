//! The header under construction, on its way down the layers of the sender.

use alloc::vec::Vec;

use super::error::{BuildError, NoRoom};
use super::header::{DmlHeader, PREFIX, VERSION};
use super::region::Region;

/// As many regions as the count of a header can say.
pub const MAX_REGIONS: usize = u8::MAX as usize;

/// Collects the regions of a packet, from the topmost layer down.
///
/// A layer pushes its own header, and then adds its regions relative to the first byte of that header. Every header
/// that is pushed later moves them.
///
/// | method | cost |
/// |---|---|
/// | `add`, `push_header`, `reach`, `encoded_len` | O(1) |
/// | `regions`, `write_to`, `clear` | O(regions) |
///
/// Regions are in memory that it allocates, and keeps for the next packet if it is [cleared](Self::clear).
///
/// # Example
///
/// ```
/// use flowtable::dml::{DmlBuilder, DmlHeader, Kind, Region};
///
/// let mut dml = DmlBuilder::new(0x0800);
/// // The application has 100 bytes.
/// dml.add(Region::new(Kind::DATA, 0, 100))?;
/// // TCP puts a header of 20 bytes in front: its packet has 120, and its checksum is over all of them.
/// dml.push_header(20)?;
/// dml.add(Region::new(Kind::CHECKSUM, 0, 120))?;
/// // The header of IP has 24 bytes with its options.
/// dml.push_header(24)?;
/// dml.add(Region::new(Kind::CHECKSUM, 0, 24))?;
///
/// assert!(dml.regions().map(|region| (region.offset, region.length)).eq([(44, 100), (24, 120), (0, 24)]));
/// let mut frame = [0; 200];
/// let header = dml.write_to(&mut frame)?;
/// assert_eq!((header, dml.reach()), (4 + 3 * 12, 144));
/// let (header, packet) = DmlHeader::parse(&frame)?;
/// assert_eq!(packet.len(), 160);
/// assert!(header.regions().eq(dml.regions()));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct DmlBuilder {
    ethertype: u16,
    /// None ends behind `reach`, shifted by what was pushed later.
    regions: Vec<Placed>,
    /// Bytes of all headers so far.
    pushed: u32,
    /// Where the last region ends in the packet as it is now.
    reach: u32,
}

/// A region as it was added.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// Relative to the packet of its layer.
    region: Region,
    /// Bytes of headers that had been pushed then: all later ones are in front of it.
    pushed: u32,
}

impl DmlBuilder {
    /// No regions yet, for a packet whose lowest layer has this number in data-link headers: 0x0800 for IPv4.
    #[must_use]
    pub const fn new(ethertype: u16) -> Self {
        Self { ethertype, regions: Vec::new(), pushed: 0, reach: 0 }
    }

    /// Adds a region relative to the first byte of the packet as it is at this layer.
    ///
    /// # Errors
    ///
    /// If there are [`MAX_REGIONS`], or the region ends beyond byte 2^32 - 1. Nothing changes then.
    pub fn add(&mut self, region: Region) -> Result<(), BuildError> {
        if self.regions.len() == MAX_REGIONS {
            return Err(BuildError::TooMany);
        }
        let end = region.offset.checked_add(region.length).ok_or(BuildError::TooFar)?;
        self.regions.push(Placed { region, pushed: self.pushed });
        self.reach = self.reach.max(end);
        Ok(())
    }

    /// A layer puts a header of so many bytes in front of the packet: all regions so far move behind it.
    ///
    /// # Errors
    ///
    /// If a region would end beyond byte 2^32 - 1, or the headers alone would. Nothing changes then.
    pub fn push_header(&mut self, length: u32) -> Result<(), BuildError> {
        let pushed = self.pushed.checked_add(length).ok_or(BuildError::TooFar)?;
        self.reach = match self.regions.is_empty() {
            true => 0,
            false => self.reach.checked_add(length).ok_or(BuildError::TooFar)?,
        };
        self.pushed = pushed;
        Ok(())
    }

    /// The regions as they are now, in the order in which they were added.
    #[must_use]
    pub fn regions(&self) -> impl ExactSizeIterator<Item = Region> + Clone + '_ {
        self.regions.iter().map(|placed| {
            // Below `reach`, so this does not overflow.
            let offset = placed.region.offset + (self.pushed - placed.pushed);
            Region { offset, ..placed.region }
        })
    }

    /// Where the last region ends: a packet that is shorter will be refused.
    #[inline]
    #[must_use]
    pub const fn reach(&self) -> u32 {
        self.reach
    }

    /// Bytes that the header will have on the wire: 4, and 12 for each region.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        PREFIX + Region::ENCODED * self.regions.len()
    }

    /// Writes the header to the beginning of `out`, and returns how many bytes it has; the packet goes behind it.
    ///
    /// # Errors
    ///
    /// If `out` is shorter than [`encoded_len`](Self::encoded_len). Nothing is written then.
    pub fn write_to(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let (needed, room) = (self.encoded_len(), out.len());
        let out = out.get_mut(..needed).ok_or(NoRoom { needed, room })?;
        let (prefix, regions) = out.split_at_mut(PREFIX);
        let [upper, lower] = self.ethertype.to_be_bytes();
        prefix.copy_from_slice(&[VERSION, self.regions.len() as u8, upper, lower]);
        for (bytes, region) in regions.chunks_exact_mut(Region::ENCODED).zip(self.regions()) {
            bytes.copy_from_slice(&region.encoded());
        }
        Ok(needed)
    }

    /// No regions and no headers, for the next packet. The memory stays.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::dml::{DmlBuilder, Kind, Region};
    ///
    /// let mut dml = DmlBuilder::new(0x0800);
    /// for length in [100, 1400] {
    ///     dml.clear(); // the next packet begins
    ///     dml.add(Region::new(Kind::DATA, 0, length))?;
    ///     dml.push_header(20)?;
    ///     assert_eq!((dml.reach(), dml.encoded_len()), (20 + length, 4 + 12));
    /// }
    /// # Ok::<(), flowtable::dml::BuildError>(())
    /// ```
    pub fn clear(&mut self) {
        self.regions.clear();
        (self.pushed, self.reach) = (0, 0);
    }
}

/// The regions of a packet that came: to put it into another one, headers are pushed from there on.
impl From<DmlHeader<'_>> for DmlBuilder {
    fn from(header: DmlHeader<'_>) -> Self {
        let regions = header.regions().map(|region| Placed { region, pushed: 0 }).collect();
        // A header is refused if a region of it ends beyond 2^32 - 1.
        let reach = header.regions().map(|region| region.end() as u32).max().unwrap_or(0);
        Self { ethertype: header.ethertype(), regions, pushed: 0, reach }
    }
}
