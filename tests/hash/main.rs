//! Hashes of network cards and source indices.

#[cfg(feature = "papers")]
mod claims;
mod id;
mod quality;
mod rss;
#[cfg(feature = "papers")]
mod source_index;
