//! `FlowCache` and its eviction policies.

mod claims;
mod emergency;
mod evict;
mod full;
mod idle;
mod images;
mod inconsistent;
mod memory;
mod model;
mod scan;
mod state;

#[global_allocator]
static ALLOCATOR: ::model::alloc::Counting = ::model::alloc::Counting::new();
