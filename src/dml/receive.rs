//! One pass over a packet: what the regions of its header ask for, all at once.
//!
//! The places where regions begin and end cut the packet into pieces. Each piece is read once, at most: summed if it
//! is in any checksum region, copied if it is application data, or both. The sum from the packet's first byte to each
//! place is kept, and the sum of a region is the difference of two of those: so regions cost what their edges do,
//! however many of them lie over the same bytes.

use core::fmt;

use super::builder::MAX_REGIONS;
use super::checksum::Checksum;
use super::error::{NoRoom, ReceiveError};
use super::header::DmlHeader;
use super::region::{Kind, Region};

/// Receives packets: copies their application data and sums their checksum regions, in one pass.
///
/// It has room for the edges of the largest header, 9 KiB: make one for each thread, and not for each packet. It does
/// not allocate.
///
/// | method | cost |
/// |---|---|
/// | `receive` | O(bytes in regions + regions · log regions) |
///
/// # Example
///
/// ```
/// use flowtable::dml::{Checksum, DmlBuilder, DmlHeader, Kind, Receiver, Region};
///
/// // A header of four bytes, the last two of which are the checksum over all; six bytes of data.
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
/// assert!(received.checksums.iter().all(|(_, sum)| sum.verifies()));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Receiver {
    /// Where regions that are not empty begin and end.
    edges: [Edge; 2 * MAX_REGIONS],
    /// The checksum regions in the order of the header.
    checksums: [(Region, Checksum); MAX_REGIONS],
    /// For each of them, the sum from the packet's first byte to its own. One more than needed: any number is in it.
    before: [u32; MAX_REGIONS + 1],
}

/// What a packet had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'r> {
    /// Bytes of application data at the beginning of the destination.
    pub copied: usize,
    /// The checksum regions in the order of the header, and their sums.
    ///
    /// Which must be there is for the layers to know: a header without any is as valid as others.
    pub checksums: &'r [(Region, Checksum)],
}

/// A place where a region begins or ends: the place, then what it is, then the number of the checksum region, so
/// that sorting them takes whole words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Edge(u64);

/// What changes there. At one place, data ends before other data begins: that is no overlap.
#[derive(Clone, Copy)]
enum What {
    DataEnds = 0,
    DataBegins = 1,
    SumEnds = 2,
    SumBegins = 3,
}

impl Edge {
    const fn new(at: u32, what: What, number: u8) -> Self {
        Self((at as u64) << 16 | (what as u64) << 8 | number as u64)
    }

    const fn at(self) -> u32 {
        (self.0 >> 16) as u32
    }

    const fn what(self) -> What {
        match (self.0 >> 8) as u8 {
            0 => What::DataEnds,
            1 => What::DataBegins,
            2 => What::SumEnds,
            _ => What::SumBegins,
        }
    }

    const fn number(self) -> usize {
        (self.0 & 0xff) as usize
    }
}

/// The edges and checksum regions of one packet.
struct Plan<'r> {
    edges: &'r [Edge],
    checksums: &'r mut [(Region, Checksum)],
    before: &'r mut [u32; MAX_REGIONS + 1],
}

impl Receiver {
    /// One for any packet.
    #[must_use]
    pub const fn new() -> Self {
        let none = Region::new(Kind::new(0), 0, 0);
        Self {
            edges: [Edge(0); 2 * MAX_REGIONS],
            checksums: [(none, Checksum::ZERO); MAX_REGIONS],
            before: [0; MAX_REGIONS + 1],
        }
    }

    /// Copies application data to the beginning of `destination`, and sums each checksum region; bytes in both are
    /// read once, those in neither are not read.
    ///
    /// Regions of data are copied one behind the other, in the order of the packet. Checksum regions may overlap
    /// anything.
    ///
    /// # Errors
    ///
    /// If the packet is shorter than the one the header was parsed with, regions of data overlap, or they do not fit
    /// into the destination. That is known before the first byte is copied.
    pub fn receive(
        &mut self,
        header: &DmlHeader<'_>,
        packet: &[u8],
        destination: &mut [u8],
    ) -> Result<Received<'_>, ReceiveError> {
        let mut plan = self.plan(header, packet.len())?;
        let needed = plan.data_length()?;
        let room = destination.len();
        let to = destination.get_mut(..needed).ok_or(NoRoom { needed, room })?;
        plan.run(packet, to);
        Ok(Received { copied: needed, checksums: plan.checksums })
    }

    /// All edges, in the order of the packet.
    fn plan(&mut self, header: &DmlHeader<'_>, packet: usize) -> Result<Plan<'_>, ReceiveError> {
        let (mut edges, mut checksums) = (0, 0);
        for region in header.regions() {
            if region.end() > packet as u64 {
                return Err(ReceiveError::OutOfPacket(region));
            }
            let number = checksums;
            let (begins, ends) = match region.kind {
                Kind::DATA => (What::DataBegins, What::DataEnds),
                Kind::CHECKSUM => {
                    self.checksums[number] = (region, Checksum::ZERO);
                    checksums += 1;
                    (What::SumBegins, What::SumEnds)
                }
                _ => continue,
            };
            // An empty one would end before it begins.
            if region.length > 0 {
                // Regions of a header end at 2^32 - 1 at most, and have numbers below 255.
                let (begin, end) = (region.offset, region.offset + region.length);
                self.edges[edges] = Edge::new(begin, begins, number as u8);
                self.edges[edges + 1] = Edge::new(end, ends, number as u8);
                edges += 2;
            }
        }
        let edges = &mut self.edges[..edges];
        edges.sort_unstable();
        Ok(Plan { edges, checksums: &mut self.checksums[..checksums], before: &mut self.before })
    }
}

impl Plan<'_> {
    /// Bytes of application data, if no two regions overlap.
    fn data_length(&self) -> Result<usize, ReceiveError> {
        let (mut length, mut begun) = (0, None);
        for edge in self.edges {
            match (edge.what(), begun) {
                (What::DataBegins, None) => begun = Some(edge.at()),
                (What::DataBegins, Some(_)) => {
                    return Err(ReceiveError::DataOverlaps { at: edge.at() });
                }
                (What::DataEnds, Some(from)) => {
                    length += (edge.at() - from) as usize;
                    begun = None;
                }
                _ => {}
            }
        }
        Ok(length)
    }

    /// The pass. `to` has room for all data, and edges are within the packet.
    fn run(&mut self, packet: &[u8], mut to: &mut [u8]) {
        let (mut at, mut copying, mut summing, mut sum) = (0, false, 0_u32, 0_u32);
        for edge in self.edges {
            let piece = &packet[at..edge.at() as usize];
            if !piece.is_empty() {
                let part = match (copying, summing > 0) {
                    (false, false) => Checksum::ZERO,
                    (false, true) => Checksum::of(piece),
                    (true, summed) => {
                        let (here, rest) = to.split_at_mut(piece.len());
                        to = rest;
                        if summed {
                            Checksum::of_copied(piece, here)
                        } else {
                            here.copy_from_slice(piece);
                            Checksum::ZERO
                        }
                    }
                };
                // There are 510 pieces at most, and 25 bits are enough for all.
                sum += u32::from(part.behind(at).sum());
                at += piece.len();
            }
            match edge.what() {
                What::DataBegins => copying = true,
                What::DataEnds => copying = false,
                What::SumBegins => {
                    self.before[edge.number()] = sum;
                    summing += 1;
                }
                What::SumEnds => {
                    let (region, checksum) = &mut self.checksums[edge.number()];
                    let here = Checksum::between(self.before[edge.number()], sum);
                    *checksum = here.behind(region.offset as usize);
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

/// There is nothing in it between packets.
impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
