//! The data manipulation header: the byte ranges that each layer operates on, in front of a packet.
//!
//! A stack locates these ranges one layer after the other: the IP header contains the end of IP, so
//! TCP is parsed only then, and so on up to the application. Each layer sums, decrypts or copies
//! its own bytes, and they pass through the CPU once for each. If the packet lists up front which
//! bytes are checksummed, where the application data is and where it goes, one loop can do all of
//! it: *integrated layer processing*.
//!
//! # How regions move
//!
//! A layer of the sender has no information on the headers pushed after its own. So each adds its
//! regions relative to its own first byte, and each later header moves all regions so far:
//!
//! ```text
//!     application                            ┌────────┐
//!                                            │  data  │     data  0+100
//!                                            0       100
//!     TCP pushes 20                  ┌───────┬────────┐
//!                                    │  TCP  │  data  │     data 20+100   checksum  0+120
//!                                    0       20      120
//!     IP pushes 24           ┌───────┬───────┬────────┐
//!                            │  IP   │  TCP  │  data  │     data 44+100   checksum 24+120
//!                            0       24      44      144                  checksum  0+24
//!     sent   ┌───────┬───────┬───────┬───────┬────────┐
//!            │ link  │  DML  │  IP   │  TCP  │  data  │
//!            └───────┴───────┴───────┴───────┴────────┘
//!                            └ offset 0: the first byte after the DML header
//! ```
//!
//! A [`DmlBuilder`] of the sender does that. The receiver parses a [`DmlHeader`], and a
//! [`Receiver`] makes one pass over the packet for it. Routers on the path ignore the header. A
//! router that encapsulates the packet continues from the sender's regions:
//! `DmlBuilder::from(header)`.
//!
//! # On the wire
//!
//! The header follows the data-link header, whose type identifies it. Numbers are in network byte
//! order. If the header is aligned to four bytes, so are its numbers and the packet after it.
//!
//! ```text
//!      0               1               2               3
//!     ┌───────────────┬───────────────┬───────────────────────────────┐
//!     │  version = 1  │    regions    │ type of the packet: EtherType │
//!     ├───────────────┴───────────────┼───────────────────────────────┤ ┐
//!     │             kind              │             flags             │ │
//!     ├───────────────────────────────┴───────────────────────────────┤ │
//!     │         offset from the first byte after this header          │ │ for each region
//!     ├───────────────────────────────────────────────────────────────┤ │
//!     │                            length                             │ │
//!     └───────────────────────────────────────────────────────────────┘ ┘
//! ```
//!
//! The type is the EtherType of the packet without DML, as after a VLAN tag.
//!
//! | kind | region | flags |
//! |--:|---|---|
//! | 1 | [`CHECKSUM`](Kind::CHECKSUM): Internet checksum, its field included | |
//! | 2 | [`KEY`](Kind::KEY): identifies the decryption key | |
//! | 3 | [`DECRYPT`](Kind::DECRYPT): encrypted bytes | |
//! | 4 | [`DESTINATION`](Kind::DESTINATION): identifies the memory for the data | |
//! | 5 | [`DATA`](Kind::DATA): application data | |
//! | 6 | [`DISPATCH`](Kind::DISPATCH): identifies a handler or process | [`DispatchFlags`] |
//! | other | preserved | preserved |
//!
//! # Invariants
//!
//! - Whatever headers are pushed, a region contains the bytes that its layer added.
//! - A region of a `DmlHeader` ends within the packet it was parsed with. Offsets and lengths are
//!   added in 64 bits.
//! - Regions may be empty, be in any order, and overlap, even regions of one kind: nested layers
//!   sum some bytes twice. Only [`Receiver::receive`] rejects overlapping data, which it would copy
//!   twice.
//! - A failed operation changes nothing: no region is added or moved, no byte is written.
//!
//! # Malicious headers
//!
//! A receiver may trust the properties that the parser checks, and no others: that regions are
//! within the packet. A malicious sender can
//!
//! - cause its own packet to be read, and its bytes to be copied into the buffer of the receiver,
//!   up to the end of the buffer. No offset reaches other memory.
//! - list wrong bytes, or omit a checksum. So a receiver that requires an intact packet has to find
//!   the region that it expects, and compare it with the layer's own header, as without DML.
//! - cost time. 255 regions of a packet of 64 KiB are still summed in one pass, as each sum is a
//!   difference of two prefix sums; sorting 510 edges is added to that.
//!
//! # Cost
//!
//! 4 bytes and 12 for each region: 40 for the three of the picture, as much as IP and TCP without
//! options. Regions have 32-bit offsets, for packets larger than 64 KiB, which exist on loopback
//! and after receive offload.
//!
//! Decryption is not part of the pass, as the crate has no ciphers. To decrypt in place, collect
//! the [regions](DmlHeader::regions) first.
//!
//! The gain is smaller than in 1995, when a copy took as long as a sum and both waited for memory.
//! Today a copy takes a quarter of the time of a sum at 1500 bytes, and packets are in a CPU cache.
//! Measured here, [`Checksum::copying`] is 1.0 to 1.2 times as fast as a sum and a copy at 1500 and
//! 9000 bytes, 1.2 to 1.6 times at 64 KiB. A [`Receiver`] takes some 100 ns to sort the regions, so
//! separate passes are faster for packets of 1500 bytes, and slower for 64 KiB. Parsing four nested
//! headers by hand takes a third of the time of their six regions, which are 76 bytes more to read.
//! Use the header if layers are many, or unknown to the code that touches the bytes. The bench
//! `paper` has the figures.
//!
//! # Papers
//!
//! Chandranmenon and Varghese, *Trading packet headers for packet processing* (1995), place the
//! header after the data-link header and define the purposes of regions; the byte layout and the
//! EtherType field are ours. They measured no implementation, and quote gains of 50 % and of 10 to
//! 20 % from integrated layer processing: Clark and Tennenhouse, *Architectural considerations for
//! a new generation of protocols* (1990), and later measurements. The checksum: RFC 1071.

mod builder;
mod checksum;
mod header;
mod receive;

pub use builder::{BuildError, DmlBuilder, MAX_REGIONS};
pub use checksum::{BufferTooSmall, Checksum};
pub use header::{DispatchFlags, DmlHeader, Kind, ParseError, Region};
pub use receive::{ReceiveError, Received, Receiver, RegionChecksum};
