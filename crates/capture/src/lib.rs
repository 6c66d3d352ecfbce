//! Packet captures: from the bytes of a file or a pipe to the keys of flows.
//!
//! ```text
//!     file, pipe ─► decompressed() ─► Window ─► Pcap or Pcapng ─► Frame ─► locate() ─► Packet
//!                   gzip or not       bounded   the records       as       where IP    key, bytes,
//!                                     memory                      captured begins      flags
//! ```
//!
//! No input causes a panic, and memory stays bounded: a record is read in a window of at most 16
//! MiB, which grows only as bytes arrive.
//!
//! The key of a flow is from the *outermost* IP header. A packet that has none, or one that cannot
//! be read, is a [`Reject`], with its reason.

pub mod clock;
mod damage;
pub mod data;
mod ethernet;
mod link;
mod order;
mod packet;
mod pcap;
mod pcapng;
mod reader;
mod reject;
mod source;
pub mod synth;
mod wifi;
mod window;

pub use damage::{Damage, DamageKind, Damages};
pub use packet::{Numbers, Packet, Ports};
pub use reader::{Capture, End, Frame, OpenError, Opening};
pub use reject::Reject;
pub use source::{Decompressed, decompressed};
