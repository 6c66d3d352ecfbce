//! Building blocks without policy: storage, linked lists and CPU hints.
//!
//! | module | contents |
//! |---|---|
//! | [`burst`] | the values of a burst, in place, and the slices for its results |
//! | [`chunked_vec`] | a vector that grows by chunks and never moves its elements |
//! | [`slab`] | entries with stable indices, over a `Vec` or a chunked vector; optional indices |
//! | [`intrusive_list`] | doubly linked lists over slots |
//! | [`bit_ops`], [`prefetch`] | CPU instructions that `core` does not expose everywhere |
//! | [`splitmix`] | a mixing function for words, not cryptographic |

pub(crate) mod bit_ops;
pub(crate) mod burst;
pub(crate) mod chunked_vec;
pub(crate) mod intrusive_list;
pub(crate) mod prefetch;
pub(crate) mod slab;
pub(crate) mod splitmix;
