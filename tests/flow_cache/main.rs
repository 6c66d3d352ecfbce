//! `FlowCache` and its eviction policies.

mod allocators;
mod claims;
mod cores;
mod emergency;
mod evict;
mod existing;
mod expectations;
mod floods;
mod full;
mod idle;
mod inconsistent;
mod memory;
mod model;
mod over;
mod scan;
mod state;

#[global_allocator]
static ALLOCATOR: ::model::alloc::Counting = ::model::alloc::Counting::new();
