//! Packet captures: from the bytes of a file or a pipe to the keys of flows.
//!
//! ```text
//!     file, pipe ─► decompressed() ─► Window ─► Pcap or Pcapng ─► Frame ─► packets() ─► Packet
//!                   gzip or not       bounded   the records       as       headers      key,
//!                                     memory                      captured to IP        bytes
//! ```
//!
//! No input causes a panic, and memory stays bounded: a record is read in a window of at most 16
//! MiB, which grows only as bytes arrive.
//!
//! The key of a flow is from the *outermost* IP header, or from one inside tunnels: [`Tunnels`]. A
//! packet that has none, or one that cannot be read, is a [`Reject`], with its reason.

mod blocks;
pub mod clock;
mod damage;
pub mod data;
mod ethernet;
mod guess;
mod ip;
mod labels;
mod layout;
mod link;
mod links;
mod mac;
mod magic;
mod nested;
mod not_ip;
mod order;
mod packet;
mod pcap;
mod pcapng;
mod plain;
mod quoted;
mod reader;
mod record;
mod reject;
mod scan;
mod source;
mod span;
mod step;
pub mod synth;
mod tags;
mod tunnel;
mod walk;
mod wifi;
mod window;

pub use damage::{Damage, DamageKind, Damages};
pub use mac::{Mac, Macs};
pub use not_ip::{NotIp, WifiKind};
pub use packet::{Icmp, Numbers, Packet, Packets, Ports, Tunnels, packets};
pub use reader::{Capture, OpenError, Opening};
pub use record::{End, Frame};
pub use reject::Reject;
pub use source::{Decompressed, decompressed, decompressed_within, is_compressed};
pub use step::Vlans;
