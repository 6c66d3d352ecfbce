//! model

pub mod papers;
