//! What is done to a cache and its naive twin.
#![allow(dead_code, reason = "not every test needs all")]

use core::fmt::Debug;

use flowtable::cache::Replacement;

/// A key, and the index that it comes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) index: u32,
    pub(crate) key: u32,
}

/// One step. What a cache does not have, it skips.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Get(Name),
    /// The value is changed.
    GetMut(Name),
    Peek(Name),
    GetOrInsert(Name),
    Insert(Name),
    Remove(Name),
    GetBatch(Vec<Name>),
    /// The values are changed.
    GetBatchMut(Vec<Name>),
    PeekBatch(Vec<Name>),
    /// Keeps the values that this number does not divide, and changes them.
    Retain(u32),
    Clear,
    Replace(Replacement),
    /// Goes on with a clone, or with the original.
    Fork {
        with_clone: bool,
    },
    /// Goes on with the other one, which must be as it was.
    Back,
}

/// A cache and its twin, which take each step together.
pub(crate) trait Beside: Clone {
    /// Takes a step. Values that come are made of this number.
    fn step(&mut self, step: &Step, now: u32);

    /// Checks the invariants, and that the same is in both.
    fn check(&self);
}

/// Takes steps, with everything compared after each.
pub(crate) fn run<T: Beside>(first: T, steps: &[Step]) {
    let mut others = Vec::new();
    let mut pair = first;
    for (now, step) in steps.iter().enumerate() {
        match step {
            Step::Fork { with_clone } => {
                let mut other = pair.clone();
                if *with_clone {
                    core::mem::swap(&mut pair, &mut other);
                }
                others.push(other);
            }
            Step::Back => pair = others.pop().unwrap_or(pair),
            step => pair.step(step, now as u32),
        }
        pair.check();
    }
    others.iter().for_each(Beside::check);
}

/// What a number of a step is made to: a key or a value of this type.
pub(crate) trait Make: Clone + Debug + Ord {
    fn make(number: u32) -> Self;
}

impl Make for u32 {
    fn make(number: u32) -> Self {
        number
    }
}

/// Without a size: all are equal.
impl Make for () {
    fn make(_: u32) -> Self {}
}

/// With something to drop.
impl Make for Box<u32> {
    fn make(number: u32) -> Self {
        Self::new(number)
    }
}

/// Larger than a line.
impl Make for [u64; 12] {
    fn make(number: u32) -> Self {
        [number.into(); 12]
    }
}

/// Aligned to more than a line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(align(128))]
pub(crate) struct Wide(u32);

impl Make for Wide {
    fn make(number: u32) -> Self {
        Self(number)
    }
}
