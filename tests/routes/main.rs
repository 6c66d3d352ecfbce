//! `RouteTable`.
//!
//! Modules that do not run under sanitizers are not compiled for them, since that takes minutes.
//!
//! Without `std`, only the instructions that count bits differ. Then the tests of what does not
//! depend on them are left out.

#[cfg(all(feature = "std", not(sanitizer = "address")))]
mod allocators;
mod corners;
#[cfg(not(sanitizer = "address"))]
mod dense;
#[cfg(feature = "std")]
mod drops;
#[cfg(feature = "std")]
mod inconsistent;
#[cfg(all(feature = "std", not(sanitizer = "address")))]
mod internet;
#[cfg(all(feature = "std", not(sanitizer = "address")))]
mod memory;
mod methods;
mod model;
#[cfg(all(feature = "std", not(sanitizer = "address")))]
mod more;
#[cfg(all(feature = "std", not(sanitizer = "address")))]
mod shortcuts;
#[cfg(all(feature = "std", not(sanitizer = "address")))]
mod stamped;

#[global_allocator]
static ALLOCATOR: ::model::alloc::Counting = ::model::alloc::Counting::new();
