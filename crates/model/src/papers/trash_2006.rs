//! Fu, Hagsand and Karlsson, TRASH (2006).

pub mod traffic;
