//! `TrashMap`, `TrashSet` and `TrashTable`.

mod allocators;
mod claims;
mod drops;
mod entry_ref;
mod floods;
mod memory;
mod methods;
mod model;
mod panics;
mod set;
mod sizes;
mod static_area;
mod table;

#[global_allocator]
static ALLOCATOR: ::model::alloc::Counting = ::model::alloc::Counting::new();
