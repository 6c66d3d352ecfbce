//! `SourceHashCache`, `BoundedCache` and `DuplicateFilter`.
//!
//! Modules that do not run under sanitizers are not compiled for them, since that takes minutes.

#[cfg(not(sanitizer = "address"))]
mod allocators;
#[cfg(all(feature = "papers", not(sanitizer = "address")))]
mod claims;
mod contents;
mod model;

#[global_allocator]
static ALLOCATOR: ::model::alloc::Counting = ::model::alloc::Counting::with_max_size(1 << 30);
