//! Keys: [bit strings](bits), [flow keys](flow), and [prefixes](prefix) of addresses, also of
//! [either family](any_prefix).

pub mod any_prefix;
pub mod bits;
mod convert;
mod fin_watch;
pub mod flow;
mod name;
pub mod prefix;

pub use fin_watch::FinWatch;
