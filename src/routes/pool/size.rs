//! The sizes of blocks.

/// The size classes, in units: a block grows by a third to a half when it moves. With classes twice
/// as fine, a block takes a tenth less memory, and moves in most insertions while it is small.
pub(super) const BLOCK_SIZES: [u8; 13] = [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128];

/// Units of the largest block.
pub(super) const MAX_BLOCK: usize = BLOCK_SIZES[BLOCK_SIZES.len() - 1] as usize;

/// The size class of each length from 1 on: the first one that it fits into.
const CLASS_OF_LEN: [u8; MAX_BLOCK + 1] = {
    let mut classes = [0; MAX_BLOCK + 1];
    let mut len = 1;
    while len < classes.len() {
        let class = classes[len - 1];
        classes[len] = if len > BLOCK_SIZES[class as usize] as usize { class + 1 } else { class };
        len += 1;
    }
    classes
};

/// The units of a block for each number of units in use.
const SIZE_OF_LEN: [u8; MAX_BLOCK + 1] = {
    let (mut sizes, mut len) = ([0; MAX_BLOCK + 1], 1);
    while len < sizes.len() {
        sizes[len] = BLOCK_SIZES[CLASS_OF_LEN[len] as usize];
        len += 1;
    }
    sizes
};

/// Returns the size class of a block for `len` units in use: at least one.
pub(super) fn size_class(len: u32) -> usize {
    usize::from(CLASS_OF_LEN[len as usize])
}

/// Returns the units of a block for `len` units in use.
#[inline]
pub(in super::super) fn block_size(len: u32) -> u32 {
    u32::from(SIZE_OF_LEN[len as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_has_the_smallest_block_that_it_fits_in() {
        for len in 1..=MAX_BLOCK as u32 {
            let fits = |&&size: &&u8| u32::from(size) >= len;
            assert_eq!(
                BLOCK_SIZES.iter().find(fits).copied().map(u32::from),
                Some(block_size(len))
            );
        }
    }
}
