//! Generated traffic that example programs share with the benches and tests of the papers.
//!
//! Apart from the crate `model`, since the first build of an example would compile all of that.

pub mod tpca;
