//! Keys: [bit strings](bits), [flow keys](flow), and prefixes of [one](prefix) or of
//! [either](any_prefix) address family.

pub mod any_prefix;
pub mod bits;
mod fin_watch;
pub mod flow;
#[cfg(feature = "ipnet")]
mod ipnet;
mod name;
pub mod prefix;

pub use fin_watch::FinWatch;
