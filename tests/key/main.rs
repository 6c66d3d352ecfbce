//! Keys: bit strings and prefixes.

mod bits;
mod icmp;
mod prefix;
mod words;
