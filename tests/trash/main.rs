//! `TrashMap`, `TrashSet` and `TrashTable`.

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
mod table;

#[global_allocator]
static ALLOCATOR: ::model::alloc::Counting = ::model::alloc::Counting::new();
