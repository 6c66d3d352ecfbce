//! Keys: [bit strings](bits), [flow keys](flow), and [prefixes](prefix) of addresses, also of
//! [either family](any_prefix).

pub mod any_prefix;
pub mod bits;
mod convert;
pub mod flow;
mod name;
pub mod prefix;
