//! `StaticArea`: its blocks compared with a list of blocks, every invariant checked after every
//! step.
#![no_main]

use std::mem::MaybeUninit;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use model::static_area::CheckedArea;

#[derive(Arbitrary, Debug)]
struct Input {
    /// The memory: its size, and how far it is from an aligned address.
    bytes: u16,
    offset: u8,
    ops: Vec<Op>,
}

#[derive(Arbitrary, Debug)]
enum Op {
    Allocate {
        size: u16,
        align: u8,
    },
    /// One of the blocks of a segment.
    Segment,
    Free(usize),
}

fuzz_target!(|input: Input| {
    let offset = usize::from(input.offset % 32);
    let mut memory = vec![MaybeUninit::uninit(); offset + usize::from(input.bytes)];
    let mut area = CheckedArea::new(&mut memory[offset..]);
    for op in input.ops {
        match op {
            Op::Allocate { size, align } => {
                area.allocate(usize::from(size) / 8, 1 << (align % 12));
            }
            Op::Segment => {
                area.allocate(1168, 64);
            }
            Op::Free(index) => area.free(index),
        }
        area.check();
    }
    while !area.is_empty() {
        area.free(0);
    }
    area.check();
});
