//! `SourceHashCache`, `ChainedCache` and `DuplicateFilter`.

mod allocators;
mod claims;
mod contents;
mod model;

#[global_allocator]
static ALLOCATOR: ::model::alloc::Counting = ::model::alloc::Counting::with_max_size(1 << 30);
