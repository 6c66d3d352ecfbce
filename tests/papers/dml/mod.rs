//! Data manipulation headers.

mod header;
mod receive;
