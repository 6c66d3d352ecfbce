//! Retired blocks and groups.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::block::{Block, NewBlock};
use super::header::Header;
use super::pool::{Freed, Pool};
use super::slots::Group;
use crate::concurrent::garbage::{Dropped, OVERHEAD, first_panic};
use crate::concurrent::sync::Arc;

/// Blocks and groups that a change has replaced: no slot names them any more.
pub(super) struct Retired<V> {
    pub(super) blocks: Vec<NonNull<Header>>,
    pub(super) groups: Vec<Group>,
    pub(super) bytes: usize,
    /// The memory of the blocks.
    memory: Arc<Freed>,
    values: PhantomData<V>,
}

impl<V> Retired<V> {
    pub(super) fn new(pool: &Pool) -> Self {
        let (blocks, groups, memory) = (Vec::new(), Vec::new(), Arc::clone(pool.memory()));
        Self { blocks, groups, bytes: 0, memory, values: PhantomData }
    }

    pub(super) fn block(&mut self, block: Block<'_, V>) {
        self.bytes += block.bytes();
        self.blocks.push(block.as_ptr());
    }

    pub(super) fn group(&mut self, group: Group) {
        self.bytes += Group::BYTES;
        self.groups.push(group);
    }

    /// Adds a block and all blocks below it.
    pub(super) fn tree(&mut self, root: Block<'_, V>) {
        let mut open = Vec::from([root]);
        while let Some(block) = open.pop() {
            self.block(block);
            open.extend(block.children().map(|(_, child)| child));
        }
    }

    /// Returns whether nothing was replaced.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.groups.is_empty()
    }

    /// Returns the bytes that are counted as garbage.
    pub(super) fn cost(&self) -> usize {
        self.bytes + self.blocks.capacity() * size_of::<NonNull<Header>>() + OVERHEAD
    }

    /// Drops the values and frees the memory. Returns the first panic after all are dropped.
    ///
    /// # Safety
    ///
    /// No pin exists from the time before this was replaced.
    pub(super) unsafe fn free(self) -> Dropped {
        let mut result = Ok(());
        for group in self.groups {
            // SAFETY: by the contract.
            unsafe { group.free() };
        }
        for header in self.blocks {
            // SAFETY: it is one of this table, and is freed here, once.
            let block = unsafe { Block::<V>::from_ptr(header) };
            // SAFETY: by the contract.
            let block = unsafe { NewBlock::from_block(block, &self.memory) };
            result = first_panic(result, block.free());
        }
        result
    }
}
