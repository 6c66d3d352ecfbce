//! Keys: bit strings and prefixes.

mod bits;
mod prefix;
mod words;
