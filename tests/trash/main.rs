//! `TrashMap`, `TrashSet` and `TrashTable`.
//!
//! Modules that do not run under sanitizers are not compiled for them, since that takes minutes.

#[cfg(not(sanitizer = "address"))]
mod allocators;
#[cfg(not(sanitizer = "address"))]
mod claims;
mod copies;
mod drops;
mod entries;
mod entry_ref;
mod fixed_memory;
mod floods;
#[cfg(not(sanitizer = "address"))]
mod memory;
mod methods;
mod model;
mod panics;
#[cfg(feature = "rayon")]
mod parallel;
mod queries;
mod set;
mod sizes;
mod slots;
#[cfg(not(sanitizer = "address"))]
mod table;

#[global_allocator]
static ALLOCATOR: ::model::alloc::Counting = ::model::alloc::Counting::new();
