//! The pool against a map of its blocks.
#![allow(unsafe_code)]

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ptr::NonNull;
use std::thread::JoinHandle;

use proptest::prelude::*;

use super::{Freed, Pool, free, size_of_block};
use crate::concurrent::sync::Arc;

const STEPS: usize = if cfg!(miri) { 60 } else { 2000 };

#[derive(Clone, Debug)]
enum Step {
    /// The size, and the logarithm of the alignment.
    Allocate(usize, u32),
    /// One of the blocks.
    Free(usize),
    /// All blocks for which a number is less than this one, of 4.
    FreeMany(usize),
    Return(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        // Mostly of a few sizes, so that chunks fill.
        8 => (prop_oneof![Just(48), Just(496), 32_usize..700], 3_u32..8)
            .prop_map(|(size, align)| Step::Allocate(size, if size < 500 { 3 } else { align })),
        5 => (0_usize..1000).prop_map(Step::Free),
        1 => (1_usize..5).prop_map(Step::FreeMany),
        1 => (0_usize..20).prop_map(Step::Return),
    ]
}

/// A block, and the byte that it is full of.
struct Held {
    block: NonNull<u8>,
    layout: Layout,
    fill: u8,
}

// SAFETY: a block belongs to the model.
unsafe impl Send for Held {}

impl Held {
    fn allocate(pool: &mut Pool, layout: Layout, fill: u8) -> Self {
        let block = pool.allocate(layout);
        // SAFETY: the block has this size.
        unsafe { block.write_bytes(fill, layout.size()) };
        Self { block, layout, fill }
    }

    /// Frees it on this thread. Its contents are as they were written.
    fn free(self, memory: &Freed) {
        // SAFETY: as above, and all bytes are written.
        let bytes =
            unsafe { NonNull::slice_from_raw_parts(self.block, self.layout.size()).as_ref() };
        assert!(bytes.iter().all(|&byte| byte == self.fill));
        // SAFETY: it is freed once; the caller has the pool, or its memory.
        unsafe { free(NonNull::from(memory), self.block, self.layout) };
    }
}

fn free_on_a_thread(freed: Vec<Held>, memory: &Arc<Freed>) -> JoinHandle<()> {
    let memory = Arc::clone(memory);
    std::thread::spawn(move || freed.into_iter().for_each(|held| held.free(&memory)))
}

#[derive(Default)]
struct Model {
    blocks: BTreeMap<usize, Held>,
}

impl Model {
    fn insert(&mut self, held: Held) {
        let (at, size) = (held.block.addr().get(), held.layout.size());
        assert_eq!(at % held.layout.align(), 0);
        let before = self.blocks.range(..at).next_back();
        assert!(before.is_none_or(|(other, held)| other + held.layout.size() <= at));
        let after = self.blocks.range(at..).next();
        assert!(after.is_none_or(|(&other, _)| at + size <= other));
        self.blocks.insert(at, held);
    }

    fn remove(&mut self, nth: usize) -> Option<Held> {
        let key = *self.blocks.keys().nth(nth % self.blocks.len().max(1))?;
        self.blocks.remove(&key)
    }

    fn remove_many(&mut self, part: usize) -> Vec<Held> {
        let keys: Vec<_> = self.blocks.keys().copied().filter(|key| key / 64 % 4 < part).collect();
        keys.iter().filter_map(|key| self.blocks.remove(key)).collect()
    }

    /// Checks the pool, after all freed blocks are returned.
    fn check(&self, pool: &mut Pool) {
        pool.return_freed(usize::MAX);
        pool.validate().unwrap();
        let pooled = |held: &&Held| super::pooled(held.layout).is_some();
        let sizes = self.blocks.values().filter(pooled).map(|held| size_of_block(held.layout));
        let used: usize = sizes.sum();
        assert_eq!((pool.unused_bytes() + used) % (super::chunks::BYTES), 0);
        assert!(used > 0 || pool.unused_bytes() == 0, "chunks without blocks are freed");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

    #[test]
    fn blocks_do_not_overlap_and_keep_their_contents(
        steps in proptest::collection::vec(step(), 0..STEPS),
    ) {
        let (mut pool, mut model) = (Pool::new(), Model::default());
        let memory = Arc::clone(pool.memory());
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Allocate(size, align) => {
                    let layout = Layout::from_size_align(size, 1 << align).unwrap();
                    model.insert(Held::allocate(&mut pool, layout, number as u8));
                }
                Step::Free(nth) => {
                    model.remove(nth).into_iter().for_each(|held| held.free(&memory));
                }
                Step::FreeMany(part) => {
                    let freed = model.remove_many(part);
                    free_on_a_thread(freed, &memory).join().unwrap();
                    model.check(&mut pool);
                }
                Step::Return(limit) => pool.return_freed(limit),
            }
            pool.validate().unwrap();
        }
        model.check(&mut pool);
        // Retired blocks are freed later than the table.

        drop(pool);
        model.remove_many(4).into_iter().for_each(|held| held.free(&memory));
    }
}

#[test]
fn several_threads_free_while_a_writer_allocates() {
    const ROUNDS: usize = if cfg!(miri) { 3 } else { 200 };
    let mut pool = Pool::new();
    let memory = Arc::clone(pool.memory());
    let layout = Layout::from_size_align(48, 8).unwrap();
    let mut bytes = Vec::new();
    for round in 0..ROUNDS {
        let mut half = || Vec::from_iter((0..100).map(|_| Held::allocate(&mut pool, layout, 7)));
        let halves = [half(), half()];
        let threads = halves.map(|half| free_on_a_thread(half, &memory));
        let kept = Vec::from_iter((0..100).map(|_| Held::allocate(&mut pool, layout, 8)));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        kept.into_iter().for_each(|held| held.free(&memory));
        bytes.push(pool.unused_bytes());
        assert!(round < 1 || bytes[round] <= 2 * super::chunks::BYTES, "chunks are used again");
    }
    pool.return_freed(usize::MAX);
    pool.validate().unwrap();
    assert_eq!(pool.unused_bytes(), 0);
}
