//! Code that benches share: figures, and a description of the machine.

pub mod figure;
pub mod machine;
