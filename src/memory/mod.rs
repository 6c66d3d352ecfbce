//! Memory of the caller: allocators for the structures that have an allocator parameter.
//!
//! ```text
//!     TrashMap<K, V>                        Global: the allocator of the program
//!     TrashMap<K, V, S, &Talck<R, O>>       a buffer, by the crate `talc`: firmware and kernels
//!     TrashMap<K, V, S, &Bump>              an arena of the crate `bumpalo`
//! ```
//!
//! | structure | constructors with an allocator | allocates |
//! |---|---|---|
//! | [`TrashMap`], [`TrashSet`], [`TrashTable`] | `new_in`, `with_hasher_in`, … | as it grows |
//! | [`FlowCache`] | `new_in`, `with_policy_and_hasher_in` | as it grows, with the policy of `new_in` |
//! | [`SocketTable`] | `new_in`, `with_hasher_in` | as it grows |
//! | [`RouteTable`], [`Routes`], [`PrefixSet`] | `new_in` | as it grows |
//! | [`EphemeralStore`] | `with_parts_in` | when it is created |
//! | [`SourceHashCache`] | `new_in` | when it is created |
//! | [`BoundedCache`] | `with_parts_in` | when it is created; its policy may be in other memory |
//!
//! `ConcurrentMap`, `ConcurrentTable`, `ConcurrentRoutes`, `ConcurrentStampedRoutes` and
//! `ConcurrentLcTrie` are in the memory of the program. Entries that a writer replaces there are
//! freed by the collector: by any thread, and, if pins delay it, after the end of the structure,
//! when an allocator that was borrowed may have ended, too.
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
//! [`BoundedCache`]: crate::BoundedCache
//!
//! [`Allocator`] is the trait of the crate [`allocator_api2`], the allocator interface of `core`
//! for stable Rust, so allocators of its ecosystem can be used. Structures clone their allocator,
//! for their parts. An allocator that is not [`Clone`] is passed as `&allocator`.
//!
//! Methods whose names begin with `try_` return an error if the allocator has no memory, and leave
//! the structure as it was. The others end the program then, as `alloc` does.
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
//!
//! # Without a heap
//!
//! Firmware gives a structure a buffer, which an allocator such as
//! [`talc`](https://docs.rs/talc) divides:
//!
//! ```
//! use flowtable::{DefaultHashBuilder, TrashMap};
//! use talc::{ErrOnOom, Span, Talc, locking::AssumeUnlockable};
//!
//! let mut buffer = [0_u8; 1 << 14];
//! let mut heap = Talc::new(ErrOnOom);
//! // SAFETY: the buffer outlives the table and has no other user.
//! unsafe { heap.claim(Span::from_array(&raw mut buffer)) }.expect("the buffer is large enough");
//! // One thread uses the heap; with more of them, take a lock here.
//! let heap = heap.lock::<AssumeUnlockable>();
//! let mut flows = TrashMap::with_hasher_in(DefaultHashBuilder::with_seed(7), &heap);
//! let full = (0_u32..).find(|&flow| flows.try_insert(flow, 0_u32).is_err());
//! assert!(full > Some(300), "the buffer is full, and the map is as it was");
//! ```
//!
//! # Huge pages
//!
//! A table beyond the reach of the TLB is faster in pages of 2 MiB. The allocator of the program
//! takes them from the system: glibc by `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` in the environment,
//! mimalloc by `MIMALLOC_ALLOW_LARGE_OS_PAGES=1`, jemalloc by `thp:always`.

mod array;
mod line_aligned;

pub use allocator_api2::alloc::{AllocError, Allocator, Global};

pub(crate) use array::{Array, ArrayError, ArrayIterMut, CACHE_LINE};
pub(crate) use line_aligned::LineAligned;

pub(crate) use allocator_api2::boxed::Box;
pub(crate) use allocator_api2::vec::Vec;
