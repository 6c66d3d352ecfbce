//! Modules shared by the benches: figures, and facts about the machine.

pub mod figure;
pub mod machine;
