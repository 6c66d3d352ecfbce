//! Scripts of operations on a cache and its reference model.

pub mod bounded;
pub mod chains;
pub mod filter;
pub mod sets;

use core::fmt::Debug;

use flowtable::cache::Replacement;

/// A key and the index of its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    pub index: u32,
    pub key: u32,
}

/// One operation. A cache skips those that it does not have.
#[derive(Clone, Debug)]
pub enum Step {
    Get(Name),
    /// Changes the value.
    GetMut(Name),
    Peek(Name),
    /// Changes the value.
    PeekMut(Name),
    Promote(Name),
    GetOrInsert(Name),
    Insert(Name),
    Remove(Name),
    GetBatch(Vec<Name>),
    /// Changes the values.
    GetBatchMut(Vec<Name>),
    /// Keeps and changes the values that are no multiples of this number.
    Retain(u32),
    /// Changes the values that are multiples of this number.
    Change(u32),
    Clear,
    SetCapacity(usize),
    PopLru,
    Replace(Replacement),
    /// Clones the cache and continues with the clone or with the original.
    Fork {
        with_clone: bool,
    },
    /// Continues with the other one, which must be unchanged.
    Back,
}

/// A cache and its reference model, to which each operation is applied.
pub trait Lockstep: Clone {
    /// Applies an operation to both; new values are made of the number `now`.
    fn step(&mut self, step: &Step, now: u32);

    /// Checks the invariants and that both have the same entries.
    fn check(&self);
}

/// Applies operations and compares everything after each of them.
pub fn run<T: Lockstep>(first: T, steps: &[Step]) {
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
    others.iter().for_each(Lockstep::check);
}

/// A key or value type that is made of a number.
pub trait Make: Clone + Debug + Ord {
    fn make(number: u32) -> Self;
}

impl Make for u32 {
    fn make(number: u32) -> Self {
        number
    }
}

/// Zero-sized: all values are equal.
impl Make for () {
    fn make(_: u32) -> Self {}
}

/// Owns memory.
impl Make for Box<u32> {
    fn make(number: u32) -> Self {
        Self::new(number)
    }
}

/// Larger than a cache line.
impl Make for [u64; 12] {
    fn make(number: u32) -> Self {
        [number.into(); 12]
    }
}

/// Aligned to more than a cache line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(align(128))]
pub struct Wide(u32);

impl Make for Wide {
    fn make(number: u32) -> Self {
        Self(number)
    }
}
