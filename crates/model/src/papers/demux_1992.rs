//! McKenney and Dove, *Efficient demultiplexing of incoming TCP packets* (1992).

pub mod balanced;
pub mod measure;
pub mod setup;

pub use traffic::tpca;
