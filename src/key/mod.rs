//! Keys: [bit strings](bits), [flow keys](flow), and [prefixes](prefix) of addresses.

pub mod bits;
pub mod flow;
pub mod prefix;
