//! Classic hashes and source indices.

mod classic;
mod source_index;
