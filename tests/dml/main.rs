//! Data manipulation headers.

mod header;
mod receive;

#[global_allocator]
static ALLOCATOR: ::model::alloc::Counting = ::model::alloc::Counting::new();
