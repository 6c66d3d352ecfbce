//! `EphemeralStore` and ephemeral state processing.
//!
//! Modules that do not run under sanitizers are not compiled for them, since that takes minutes.

#[cfg(not(sanitizer = "address"))]
mod claims;
#[cfg(not(sanitizer = "address"))]
mod esp;
mod model;
mod store;
