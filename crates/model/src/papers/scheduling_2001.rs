//! Scheduling of a software-based router (2001).

pub mod simulation;
pub mod table;
