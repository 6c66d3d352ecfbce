//! What the tests of ephemeral state processing and its fuzz target share.

pub(crate) mod pair;
pub(crate) mod repair;
pub(crate) mod twin;
