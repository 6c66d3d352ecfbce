//! Workloads of McKenney and Dove, *Efficient demultiplexing of incoming TCP packets*, 1992.

pub mod balanced_hash;
pub mod setup;
pub mod subjects;

pub use traffic::tpca;
