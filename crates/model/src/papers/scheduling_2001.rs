//! The simulation of Qie, Bavier, Peterson and Karlin, *Scheduling computations on a software-based
//! router*, 2001.

pub mod results;
pub mod simulation;
