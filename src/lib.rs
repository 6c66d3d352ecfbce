//! Find the state that belongs to a packet.
#![no_std]

extern crate alloc;

pub mod bits;
pub mod flow;
pub mod hash;
pub mod lc_trie;
pub mod observe;
#[cfg(feature = "serde")]
mod serde;
mod slab;
pub mod trie;
pub mod unicache;

pub use bits::{BitString, Headed, Header};
pub use flow::{Direction, FiveTuple, FlowKey, FourTuple, TcpFlags};
pub use hash::DefaultHashBuilder;
pub use lc_trie::LcTrieMap;
pub use observe::{Observer, Probes};
pub use trie::{Broken, RebalanceFrom, Shape, Thresholds, Tuning, TuningError};
pub use unicache::{FinWatch, GcError, PassiveGc, Unicache};
