//! `TrashMap`.

mod claims;
mod drops;
mod floods;
mod memory;
mod methods;
mod model;
mod panics;
#[cfg(feature = "serde")]
mod serde;
mod sizes;

#[global_allocator]
static ALLOCATOR: ::model::alloc::Counting = ::model::alloc::Counting::new();
