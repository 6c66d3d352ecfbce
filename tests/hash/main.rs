//! Classic hashes and source indices.

mod claims;
mod classic;
mod source_index;
