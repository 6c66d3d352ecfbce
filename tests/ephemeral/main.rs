//! `EphemeralStore` and ephemeral state processing.

mod claims;
mod esp;
mod model;
mod store;
