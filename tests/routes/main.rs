//! `RouteTable`.

mod allocators;
mod corners;
mod dense;
mod drops;
mod inconsistent;
mod internet;
mod memory;
mod methods;
mod model;
mod more;
mod stamped;

#[global_allocator]
static ALLOCATOR: ::model::alloc::Counting = ::model::alloc::Counting::new();
