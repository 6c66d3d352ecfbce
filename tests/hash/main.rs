//! Classic hashes and source indices.

mod claims;
mod classic;
mod rss;
mod source_index;
