//! A flow meter on a [`FlowCache`](flowtable::FlowCache): both directions of a conversation in one
//! entry.
//!
//! ```text
//!     Frame ─► Intake ─► Arrival ─► Meter: FlowCache ───────► Record ─► rows of CSV, lines of
//!              parses,                   │  evicted, idle,    ▲        JSON, messages of IPFIX,
//!              dates                     │  over, reported,   │        largest
//!                                        └► left at the end ──┘
//! ```
//!
//! Time is that of the packets, by a [`PacketClock`](capture::clock::PacketClock): wrong
//! timestamps do not count. Flows that are due expire once for each tick of 10 ms, before its first
//! packet, so that no record spans a silence that is longer than the timeout by more than two
//! ticks. The records of a flow add up to it. Several meters have a thread each: see `workers.rs`.

mod arrival;
mod biflow;
mod card;
mod collector;
mod community_id;
mod destination;
mod ending;
mod engine;
mod export;
mod file_sink;
mod files;
#[cfg(libpcap)]
mod filter;
mod identity;
mod inputs;
mod intake;
#[cfg(libpcap)]
mod interfaces;
mod ipfix;
mod key;
mod lines;
mod live;
mod mac_table;
mod memory;
mod messages;
mod meter;
#[cfg(not(libpcap))]
mod no_libpcap;
mod options;
mod patient_file;
mod record;
mod report;
mod rows;
mod screen;
mod session;
mod text;
mod usage;
mod workers;

use biflow::Biflow;
pub use card::Card;
use intake::{Intake, Times, Totals};
use meter::Meter;
pub use options::Options;
pub use session::run;
