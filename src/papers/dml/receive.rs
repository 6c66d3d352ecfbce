//! The receiver: one pass over a packet for all operations of its regions.
//!
//! The edges of regions divide the packet into pieces. Each piece is read at most once: summed if
//! it is in a checksum region, copied if it is application data, or both. The sum of a region is
//! the difference of two prefix sums, at its edges. So the cost of a region does not depend on the
//! number of regions that overlap it.

use core::error::Error;
use core::fmt;

use super::builder::MAX_REGIONS;
use super::checksum::{BufferTooSmall, Checksum};
use super::header::{DmlHeader, Kind, Region};

/// A receiver of packets, which copies application data and sums checksum regions in one pass.
///
/// It contains buffers for the edges of the largest header, 9 KiB: create one per thread, not one
/// per packet. It does not allocate.
///
/// | method | cost |
/// |---|---|
/// | `receive` | O(bytes in regions + regions · log regions) |
///
/// Paper: Chandranmenon and Varghese, section 5.1.
///
/// # Example
///
/// ```
/// use flowtable::papers::dml::{Checksum, DmlBuilder, DmlHeader, Kind, Receiver, Region};
///
/// // A header of four bytes, the last two of which are the checksum of all; six bytes of data.
/// let mut packet = *b"hd\0\0greets";
/// let field = Checksum::of(&packet).field();
/// packet[2..4].copy_from_slice(&field);
/// let mut dml = DmlBuilder::new(0x0800);
/// dml.add(Region::new(Kind::DATA, 0, 6))?;
/// dml.push_header(4)?;
/// dml.add(Region::new(Kind::CHECKSUM, 0, 10))?;
/// let mut frame = vec![0; dml.encoded_len()];
/// dml.write_to(&mut frame)?;
/// frame.extend(packet);
///
/// let (mut receiver, mut buffer) = (Receiver::new(), [0; 100]);
/// let (header, packet) = DmlHeader::parse(&frame)?;
/// let received = receiver.receive(&header, packet, &mut buffer)?;
/// assert_eq!(&buffer[..received.copied], b"greets");
/// assert!(received.checksums.iter().all(|sum| sum.checksum.verifies()));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Receiver {
    /// The edges of regions that are not empty.
    edges: [Edge; 2 * MAX_REGIONS],
    /// The checksum regions in the order of the header.
    checksums: [RegionChecksum; MAX_REGIONS],
    /// The prefix sum at the first byte of each checksum region. One more than needed, so that
    /// every `u8` is an index.
    before: [u32; MAX_REGIONS + 1],
}

/// The result of [`Receiver::receive`].
///
/// Paper: Chandranmenon and Varghese, section 5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Received<'r> {
    /// The number of bytes of application data, at the start of the destination.
    pub copied: usize,
    /// The checksum regions in the order of the header, and their sums.
    ///
    /// The layers have to check that the regions they require exist: a header without any is valid.
    pub checksums: &'r [RegionChecksum],
}

/// The sum of a region of kind [`CHECKSUM`](Kind::CHECKSUM).
///
/// Paper: Chandranmenon and Varghese, section 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionChecksum {
    /// The region.
    pub region: Region,
    /// Its sum.
    pub checksum: Checksum,
}

/// The start or end of a region: the offset, the kind of edge and the index of the checksum region,
/// packed into a word that sorts by offset, then kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Edge(u64);

/// The kind of an edge. At equal offsets, data ends before other data begins, as that is no
/// overlap.
#[derive(Clone, Copy)]
enum EdgeKind {
    DataEnds = 0,
    DataBegins = 1,
    SumEnds = 2,
    SumBegins = 3,
}

impl Edge {
    const fn new(offset: u32, kind: EdgeKind, index: u8) -> Self {
        Self((offset as u64) << 16 | (kind as u64) << 8 | index as u64)
    }

    const fn offset(self) -> u32 {
        (self.0 >> 16) as u32
    }

    const fn kind(self) -> EdgeKind {
        match (self.0 >> 8) as u8 {
            0 => EdgeKind::DataEnds,
            1 => EdgeKind::DataBegins,
            2 => EdgeKind::SumEnds,
            _ => EdgeKind::SumBegins,
        }
    }

    const fn index(self) -> usize {
        (self.0 & 0xff) as usize
    }
}

/// The edges and checksum regions of one packet.
struct Plan<'r> {
    edges: &'r [Edge],
    checksums: &'r mut [RegionChecksum],
    before: &'r mut [u32; MAX_REGIONS + 1],
}

impl Receiver {
    /// Creates a receiver.
    #[must_use]
    pub const fn new() -> Self {
        let none = Region::new(Kind(0), 0, 0);
        Self {
            edges: [Edge(0); 2 * MAX_REGIONS],
            checksums: [RegionChecksum { region: none, checksum: Checksum::ZERO }; MAX_REGIONS],
            before: [0; MAX_REGIONS + 1],
        }
    }

    /// Copies application data to the start of `destination`, and sums each checksum region.
    ///
    /// Bytes in both are read once, bytes in neither are not read. Data regions are concatenated in
    /// the order of the packet. Checksum regions may overlap any others.
    ///
    /// # Errors
    ///
    /// If the packet is shorter than the one the header was parsed with, data regions overlap, or
    /// they do not fit into the destination. All of this is checked before the first byte is
    /// copied.
    pub fn receive(
        &mut self,
        header: &DmlHeader<'_>,
        packet: &[u8],
        destination: &mut [u8],
    ) -> Result<Received<'_>, ReceiveError> {
        let mut plan = self.plan(header, packet.len())?;
        let needed = plan.data_length()?;
        let capacity = destination.len();
        let to = destination.get_mut(..needed).ok_or(BufferTooSmall { needed, capacity })?;
        plan.run(packet, to);
        Ok(Received { copied: needed, checksums: plan.checksums })
    }

    /// Collects the edges and checksum regions, and sorts the edges by offset.
    fn plan(&mut self, header: &DmlHeader<'_>, packet: usize) -> Result<Plan<'_>, ReceiveError> {
        let (mut edges, mut checksums) = (0, 0);
        for region in header.regions() {
            if region.end() > packet as u64 {
                return Err(ReceiveError::OutOfPacket(region));
            }
            let index = checksums;
            let (begins, ends) = match region.kind {
                Kind::DATA => (EdgeKind::DataBegins, EdgeKind::DataEnds),
                Kind::CHECKSUM => {
                    self.checksums[index] = RegionChecksum { region, checksum: Checksum::ZERO };
                    checksums += 1;
                    (EdgeKind::SumBegins, EdgeKind::SumEnds)
                }
                _ => continue,
            };
            // The edges of an empty region would be in the wrong order.
            if region.length > 0 {
                // Regions of a header end at 2^32 - 1 at most, and there are at most 255.
                let (begin, end) = (region.offset, region.offset + region.length);
                self.edges[edges] = Edge::new(begin, begins, index as u8);
                self.edges[edges + 1] = Edge::new(end, ends, index as u8);
                edges += 2;
            }
        }
        let edges = &mut self.edges[..edges];
        edges.sort_unstable();
        Ok(Plan { edges, checksums: &mut self.checksums[..checksums], before: &mut self.before })
    }
}

impl Plan<'_> {
    /// The length of the application data. Fails if two of its regions overlap.
    fn data_length(&self) -> Result<usize, ReceiveError> {
        let (mut length, mut begun) = (0, None);
        for edge in self.edges {
            match (edge.kind(), begun) {
                (EdgeKind::DataBegins, None) => begun = Some(edge.offset()),
                (EdgeKind::DataBegins, Some(_)) => {
                    return Err(ReceiveError::DataOverlaps { at: edge.offset() });
                }
                (EdgeKind::DataEnds, Some(from)) => {
                    length += (edge.offset() - from) as usize;
                    begun = None;
                }
                _ => {}
            }
        }
        Ok(length)
    }

    /// Copies and sums all pieces. `to` has the length of the data, and edges are within the
    /// packet.
    fn run(&mut self, packet: &[u8], mut to: &mut [u8]) {
        let (mut at, mut copying, mut summing, mut sum) = (0, false, 0_u32, 0_u32);
        for edge in self.edges {
            let piece = &packet[at..edge.offset() as usize];
            if !piece.is_empty() {
                let part = match (copying, summing > 0) {
                    (false, false) => Checksum::ZERO,
                    (false, true) => Checksum::of(piece),
                    (true, summed) => {
                        let (copy, rest) = to.split_at_mut(piece.len());
                        to = rest;
                        if summed {
                            Checksum::of_copied(piece, copy)
                        } else {
                            copy.copy_from_slice(piece);
                            Checksum::ZERO
                        }
                    }
                };
                // The sum of at most 510 pieces fits into 25 bits.
                sum += u32::from(part.at_offset(at).sum());
                at += piece.len();
            }
            match edge.kind() {
                EdgeKind::DataBegins => copying = true,
                EdgeKind::DataEnds => copying = false,
                EdgeKind::SumBegins => {
                    self.before[edge.index()] = sum;
                    summing += 1;
                }
                EdgeKind::SumEnds => {
                    let RegionChecksum { region, checksum } = &mut self.checksums[edge.index()];
                    let within = Checksum::between(self.before[edge.index()], sum);
                    *checksum = within.at_offset(region.offset as usize);
                    summing -= 1;
                }
            }
        }
    }
}

impl Default for Receiver {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes no fields, as the buffers have no content between packets.
impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

/// The error of receiving a packet. Nothing was written.
///
/// # Example
///
/// ```
/// use flowtable::papers::dml::{DmlBuilder, DmlHeader, Kind, ReceiveError, Receiver, Region};
///
/// let mut dml = DmlBuilder::new(0x0800);
/// dml.add(Region::new(Kind::DATA, 0, 10))?;
/// dml.add(Region::new(Kind::DATA, 5, 10))?;
/// let mut frame = [0; 64];
/// dml.write_to(&mut frame)?;
/// let (header, packet) = DmlHeader::parse(&frame)?;
/// let mut receiver = Receiver::new();
/// let error = receiver.receive(&header, packet, &mut [0; 64]).unwrap_err();
/// assert_eq!(error, ReceiveError::DataOverlaps { at: 5 });
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The packet is shorter than the one the header was parsed with: this region ends beyond it.
    OutOfPacket(Region),
    /// Regions of application data overlap.
    DataOverlaps {
        /// The first byte in two of them.
        at: u32,
    },
    /// The application data does not fit into the destination.
    BufferTooSmall(BufferTooSmall),
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfPacket(region) => write!(f, "{region} ends beyond the packet"),
            Self::DataOverlaps { at } => {
                write!(f, "byte {at} is in two regions of application data")
            }
            Self::BufferTooSmall(error) => error.fmt(f),
        }
    }
}

impl Error for ReceiveError {}

impl From<BufferTooSmall> for ReceiveError {
    fn from(error: BufferTooSmall) -> Self {
        Self::BufferTooSmall(error)
    }
}
