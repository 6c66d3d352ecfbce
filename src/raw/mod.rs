//! Building blocks without policy: storage, linked lists, tags and CPU hints.
//!
//! | module | contents |
//! |---|---|
//! | [`burst_vec`] | the values of a burst, in place |
//! | [`chunked_vec`] | a vector that grows by chunks and never moves its elements |
//! | [`index`] | an optional index in four bytes |
//! | [`slab`] | entries with stable indices, over a `Vec` or a chunked vector |
//! | [`intrusive_list`] | doubly linked lists over slots |
//! | [`bit_ops`], [`prefetch`] | CPU instructions that `core` does not expose everywhere |
//! | [`results`] | the slices that bursts of lookups write to |
//! | [`splitmix`] | a mixing function for words, not cryptographic |

pub(crate) mod bit_ops;
pub(crate) mod burst_vec;
pub(crate) mod chunked_vec;
pub(crate) mod index;
pub(crate) mod intrusive_list;
pub(crate) mod prefetch;
pub(crate) mod results;
pub(crate) mod slab;
pub(crate) mod splitmix;
