//! `EphemeralStore` and ephemeral state processing.

mod esp;
mod model;
mod store;
