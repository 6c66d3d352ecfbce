//! Workloads of Chandranmenon and Varghese, *Trading packet headers for packet processing*, 1995.

pub mod bpf;
pub mod fids;
pub mod filters;
pub mod indices;
pub mod network;
pub mod router;
pub mod table_model;
pub mod traffic;
pub mod transfers;

/// Seed of all random numbers.
pub const SEED: u64 = 1995;
