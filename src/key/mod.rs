//! Keys: [bit strings](bits), the names of [flows](flow), and [prefixes](prefix) of addresses.

pub mod bits;
pub mod flow;
pub mod prefix;
