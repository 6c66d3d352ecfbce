//! Memory of the caller: allocators for the structures that have an allocator parameter.
//!
//! ```text
//!     TrashMap<K, V>                        Global: the allocator of the program
//!     TrashMap<K, V, S, &StaticArea>        a slice: firmware and kernels without a heap
//!     TrashMap<K, V, S, HugePages>          pages of 2 MiB, of one NUMA node if wanted: Linux
//!     TrashMap<K, V, S, &Bump>              an arena of the crate `bumpalo`
//! ```
//!
//! | structure | constructors with an allocator | allocates |
//! |---|---|---|
//! | [`TrashMap`], [`TrashSet`], [`TrashTable`] | `new_in`, `with_hasher_in`, … | as it grows |
//! | [`FlowCache`] | `new_in`, `with_policy_and_hasher_in` | as it grows, with the policy of `new_in` |
//! | [`SocketTable`] | `new_in`, `with_hasher_in` | as it grows |
//! | [`RouteTable`], [`Routes`], [`PrefixSet`] | `new_in` | as it grows |
//! | [`EphemeralStore`] | `new_in`, `with_parts_in` | when it is created |
//! | [`SourceHashCache`] | `new_in` | when it is created |
//! | [`ChainedCache`] | `with_parts_in` | when it is created; its policy may be in other memory |
//!
//! `ConcurrentMap`, `ConcurrentTable`, `ConcurrentRoutes`, `ConcurrentStampedRoutes` and
//! `ConcurrentLcTrie` are in the memory of the program. What a writer has replaced there is freed
//! by the collector: by any thread, and, if pins delay it, after the end of the structure, when an
//! allocator that was borrowed may have ended, too.
//!
//! [`TrashMap`]: crate::TrashMap
//! [`TrashSet`]: crate::TrashSet
//! [`TrashTable`]: crate::TrashTable
//! [`FlowCache`]: crate::FlowCache
//! [`SocketTable`]: crate::SocketTable
//! [`RouteTable`]: crate::RouteTable
//! [`Routes`]: crate::Routes
//! [`PrefixSet`]: crate::routes::PrefixSet
//! [`EphemeralStore`]: crate::EphemeralStore
//! [`SourceHashCache`]: crate::SourceHashCache
//! [`ChainedCache`]: crate::ChainedCache
//!
//! [`Allocator`] is that of the crate [`allocator_api2`], the allocator interface of `core` for
//! stable Rust, so allocators of its ecosystem can be used. Structures clone their allocator, for
//! their parts. An allocator that is not [`Clone`] is passed as `&allocator`.
//!
//! Methods whose names begin with `try_` return an error if the allocator has no memory, and leave
//! the structure as it was. The others end the program then, as those of `alloc` do.
//!
//! # Example
//!
//! ```
//! use flowtable::{DefaultHashBuilder, TrashMap};
//!
//! let arena = bumpalo::Bump::with_capacity(1 << 16);
//! let mut flows = TrashMap::with_hasher_in(DefaultHashBuilder::with_seed(7), &arena);
//! assert_eq!(flows.try_insert("a", 1), Ok(None));
//! assert!(arena.allocated_bytes() >= flows.allocation_size());
//! ```

mod array;
#[cfg(feature = "huge-pages")]
mod huge_pages;
mod line_aligned;
mod static_area;

pub use allocator_api2::alloc::{AllocError, Allocator, Global};
#[cfg(feature = "huge-pages")]
pub use huge_pages::{HugePages, HugePagesError, PageSource};
pub use static_area::StaticArea;

pub(crate) use array::{Array, ArrayError, ArrayIterMut, CACHE_LINE};
pub(crate) use line_aligned::LineAligned;

pub(crate) use allocator_api2::boxed::Box;
pub(crate) use allocator_api2::vec::Vec;
