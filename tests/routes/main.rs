//! `RouteTable`.
//!
//! Without `std`, only the instructions that count bits differ. Then the tests of what does not
//! depend on them are left out.

#[cfg(feature = "std")]
mod allocators;
mod corners;
mod dense;
#[cfg(feature = "std")]
mod drops;
#[cfg(feature = "std")]
mod inconsistent;
#[cfg(feature = "std")]
mod internet;
#[cfg(feature = "std")]
mod memory;
mod methods;
mod model;
#[cfg(feature = "std")]
mod more;
#[cfg(feature = "std")]
mod shortcuts;
#[cfg(feature = "std")]
mod stamped;

#[global_allocator]
static ALLOCATOR: ::model::alloc::Counting = ::model::alloc::Counting::new();
