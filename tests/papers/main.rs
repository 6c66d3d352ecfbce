//! What the papers describe besides tables: the module `papers`.

mod dml;
#[cfg(not(sanitizer = "address"))]
mod esp;
mod hash;
mod inventory;
mod page;
mod schedule;
mod threaded;

#[global_allocator]
static ALLOCATOR: ::model::alloc::Counting = ::model::alloc::Counting::new();
