//! The demultiplexers.

mod methods;
mod model;
