//! Find the state that belongs to a packet.
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod bits;
mod flow;
mod hash;
mod observe;

pub use bits::{BitString, Headed, Header};
pub use flow::{Direction, FiveTuple, FlowKey, FourTuple, TcpFlags};
pub use hash::DefaultHashBuilder;
pub use observe::{Observer, Probes};
