//! `TrashMap`, `TrashSet` and `TrashTable`.
//!
//! Modules that do not run under sanitizers are not compiled for them, since that takes minutes.

#[cfg(not(sanitizer = "address"))]
mod allocators;
#[cfg(not(sanitizer = "address"))]
mod claims;
mod drops;
mod entry_ref;
mod fixed_memory;
mod floods;
#[cfg(not(sanitizer = "address"))]
mod memory;
mod methods;
mod model;
mod panics;
mod queries;
mod set;
mod sizes;
#[cfg(not(sanitizer = "address"))]
mod table;

#[global_allocator]
static ALLOCATOR: ::model::alloc::Counting = ::model::alloc::Counting::new();
