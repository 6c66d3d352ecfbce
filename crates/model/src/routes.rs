//! Reference models of the route tables.

pub mod by_length;
pub mod list;
