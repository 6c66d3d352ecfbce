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

/// Returns the size of a test: `all`; or `few` for sanitizers, if `FEW_ROUNDS` is set when this is
/// compiled: they are ten times slower; or `miri` in Miri, which is a hundred times slower.
#[must_use]
pub const fn scaled<T: Copy>(all: T, few: T, miri: T) -> T {
    match (cfg!(miri), option_env!("FEW_ROUNDS")) {
        (true, _) => miri,
        (false, Some(_)) => few,
        (false, None) => all,
    }
}
