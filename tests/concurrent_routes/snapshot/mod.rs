//! `SnapshotRoutes`.

mod forgotten;
mod guarantees;
mod guards;
mod model;
mod panics;
