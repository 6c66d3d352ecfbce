//! The data manipulation header: where in a packet each layer has something to do, told in front of all layers.
//!
//! A stack finds out what it must touch one layer after the other: where IP ends is in IP's header, so TCP is looked
//! at only then, and so on up to the application. Each layer sums, decrypts or copies what is its own, and the bytes
//! go through the processor once for each. If the packet says up front which bytes are checksummed, where the
//! application data is and for whom, one loop can do everything at once: *integrated layer processing*.
//!
//! # How regions move
//!
//! The sender's layers do not know what will be in front of them. So each adds its regions relative to its own first
//! byte, and all that are there move when another header is put in front:
//!
//! ```text
//!     application                                  ┌───────────┐
//!                                                  │   data    │             data 0+100
//!                                       0          100
//!     TCP pushes 20                     ┌──────────┬───────────┐
//!                                       │   TCP    │   data    │             data 20+100   checksum 0+120
//!                                       0          20         120
//!     IP pushes 24           ┌──────────┬──────────┬───────────┐
//!                            │    IP    │   TCP    │   data    │             data 44+100   checksum 24+120
//!                            0          24         44         144                          checksum  0+24
//!     sent   ┌───────┬───────┬──────────┬──────────┬───────────┐
//!            │ link  │  DML  │    IP    │   TCP    │   data    │
//!            └───────┴───────┴──────────┴──────────┴───────────┘
//!                            └ offset 0 is here: the first byte behind the DML header
//! ```
//!
//! A [`DmlBuilder`] does that; a [`DmlHeader`] is what comes out at the other end, and a [`Receiver`] goes over the
//! packet once for it. Routers on the way do not look at it. One that puts the packet into another one goes on where
//! the sender stopped: `DmlBuilder::from(header)`.
//!
//! # On the wire
//!
//! The header is directly behind the data-link header, whose type says so. Numbers are in network byte order; all are
//! aligned as they should be if the header is aligned to four bytes, and so is the packet behind it.
//!
//! ```text
//!      0               1               2               3
//!     ┌───────────────┬───────────────┬───────────────────────────────┐
//!     │  version = 1  │    regions    │ type of the packet: EtherType │
//!     ├───────────────┴───────────────┼───────────────────────────────┤ ┐
//!     │             kind              │             flags             │ │
//!     ├───────────────────────────────┴───────────────────────────────┤ │
//!     │        offset from the first byte behind this header          │ │ as often as there are regions
//!     ├───────────────────────────────────────────────────────────────┤ │
//!     │                            length                             │ │
//!     └───────────────────────────────────────────────────────────────┘ ┘
//! ```
//!
//! The type is what the data-link header would have had, as behind a VLAN tag.
//!
//! | kind | region | flags |
//! |--:|---|---|
//! | 1 | [`CHECKSUM`](Kind::CHECKSUM): Internet checksum over these bytes, its own field included | |
//! | 2 | [`KEY`](Kind::KEY): says which key decrypts | |
//! | 3 | [`DECRYPT`](Kind::DECRYPT): is to be decrypted | |
//! | 4 | [`DESTINATION`](Kind::DESTINATION): says into which memory data goes | |
//! | 5 | [`DATA`](Kind::DATA): application data | |
//! | 6 | [`DISPATCH`](Kind::DISPATCH): names a message handler or a process | [`DispatchFlags`] |
//! | other | kept, and handed on | kept |
//!
//! # What holds
//!
//! - Whatever headers are pushed, a region names the bytes that its layer meant.
//! - A region of a `DmlHeader` ends within the packet it was parsed with. Offsets and lengths are added in 64 bits.
//! - Regions may be empty, be in any order, and overlap, also those of one kind: nested layers sum the same bytes. Only
//!   [`Receiver::receive`] refuses data that overlaps, as bytes would come twice.
//! - What fails changes nothing: no region is added or moved, no byte is written.
//!
//! # Headers that lie
//!
//! Nothing in a header is trusted but what was checked: that regions are within the packet. A sender who lies can
//!
//! - have its own packet read, and bytes of it copied into the buffer that the receiver gave, to the buffer's end at
//!   most. No offset reaches anything else.
//! - name wrong bytes, or leave a checksum out. So a receiver that must know that a packet is whole asks for the
//!   region it expects, and compares it with what the layer's header says, as without DML.
//! - cost time. All 255 regions over one packet of 64 KiB are summed in one pass all the same, since a sum is the
//!   difference of two; sorting 510 edges comes on top.
//!
//! # Price
//!
//! 4 bytes and 12 for each region: 40 for the three of the picture, as much as IP and TCP without options. Regions
//! are 32 bits wide for packets that are larger than 64 KiB, as they are on loopback and after a card has merged some.
//!
//! Decryption is not part of the pass: the crate has no ciphers. [`DmlHeader::parse_mut`] gives what is to be
//! decrypted.
//!
//! What is won is less than it was in 1995, when a copy took as long as a sum and both waited for memory. Today a
//! copy takes a quarter of what a sum does at 1500 bytes, and packets are found in a cache. Measured here,
//! [`Checksum::copying`] is 1.0 to 1.2 times as fast as a sum and a copy at 1500 and 9000 bytes, 1.2 to 1.6 times at 64
//! KiB. A [`Receiver`] spends some 100 ns on finding out what to do, so passes of their own are faster for packets
//! of 1500 bytes, and slower for those of 64 KiB. Four nested headers are read by hand in a third of the time that their
//! six regions take, which are 76 bytes more to read. Take the header where layers are many, or not known to whoever
//! touches the bytes. The bench `paper` has the figures.
//!
//! # Papers
//!
//! Chandranmenon and Varghese, *Trading packet headers for packet processing* (1995), put the header behind that of the
//! data link and say what its regions are for; how their bytes are laid out, and the EtherType, is ours. They measured
//! nothing of it, and quote that integrated layer processing gains 50 %: Clark and Tennenhouse, *Architectural
//! considerations for a new generation of protocols* (1990). The checksum is that of RFC 1071.

mod builder;
mod checksum;
mod error;
mod header;
mod receive;
mod region;

pub use builder::{DmlBuilder, MAX_REGIONS};
pub use checksum::Checksum;
pub use error::{BuildError, NoRoom, ParseError, ReceiveError};
pub use header::{DmlHeader, Regions};
pub use receive::{Received, Receiver};
pub use region::{DispatchFlags, Kind, Region};
