//! Parts without policy, for the structures above: storage, links, tags and hints to the CPU.
//!
//! | part | what it is |
//! |---|---|
//! | [`chunked_vec`] | a vector that grows by chunks and never moves its elements |
//! | [`index`] | an optional index in four bytes |
//! | [`slab`] | entries under stable indices, over a `Vec` or a chunked vector |
//! | [`intrusive_list`] | doubly linked lists over slots |
//! | [`tags`] | eight tags of a bucket compared at once |
//! | [`prefetch`], [`popcount`] | instructions that `core` does not offer everywhere |
//! | [`splitmix`] | a generator for what only has to look random |

pub(crate) mod chunked_vec;
pub(crate) mod index;
pub(crate) mod intrusive_list;
pub(crate) mod popcount;
pub(crate) mod prefetch;
pub(crate) mod slab;
pub(crate) mod splitmix;
pub(crate) mod tags;
