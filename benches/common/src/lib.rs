//! What the benches have in common.

pub mod figure;
pub mod machine;
