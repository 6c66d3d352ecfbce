//! Reference models, generators, hostile hashers and keys: for tests, fuzz targets and benches.
//!
//! A reference model is a slow and obviously correct implementation of a structure. The types
//! named `Checked…` hold a structure and its model, apply each operation to both, and compare the
//! results.

pub mod alloc;
pub mod area;
pub mod bit_strings;
pub mod caches;
pub mod counted;
pub mod demux;
#[cfg(feature = "papers")]
pub mod dml;
pub mod drop_record;
pub mod ephemeral;
#[cfg(feature = "papers")]
pub mod esp;
pub mod flow_cache;
pub mod hashers;
pub mod histories;
pub mod hooks;
pub mod limited;
pub mod papers;
pub mod prefixes;
pub mod process;
pub mod routes;
#[cfg(feature = "papers")]
pub mod schedule;
mod set_back;
pub mod sockets;
pub mod threads;
pub mod versioned;

/// Returns the size of a test: `all` if `ALL_ROUNDS` is set when this is compiled, as in `.ci/run`;
/// otherwise `few`, so that `cargo test` takes minutes; or `miri` in Miri, which is a hundred times
/// slower.
#[must_use]
pub const fn scaled<T: Copy>(all: T, few: T, miri: T) -> T {
    match (cfg!(miri), option_env!("ALL_ROUNDS")) {
        (true, _) => miri,
        (false, None) => few,
        (false, Some(_)) => all,
    }
}

/// Returns the number of cases of a property: `PROPTEST_CASES`, or else `all`, a part of them or
/// `miri`, as [`scaled`].
#[must_use]
pub fn cases(all: u32, miri: u32) -> u32 {
    let set = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    set.unwrap_or_else(|| scaled(all, all.div_ceil(16), miri))
}
