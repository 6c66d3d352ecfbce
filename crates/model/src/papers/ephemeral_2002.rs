//! Stores and published figures of Calvert, Griffioen and Wen, *Lightweight network support for
//! scalable end-to-end services*, 2002.

pub mod chains;
pub mod tables;
