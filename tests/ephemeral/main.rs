//! `EphemeralStore`.
//!
//! Modules that do not run under sanitizers are not compiled for them, since that takes minutes.

#[cfg(all(feature = "papers", not(sanitizer = "address")))]
mod claims;
mod model;
mod store;
