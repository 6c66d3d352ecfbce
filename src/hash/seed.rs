//! Seeds, drawn without allocating.

/// Draws a seed: the standard library has a key of the operating system for each thread, and counts
/// the draws.
#[cfg(feature = "std")]
pub(super) fn draw() -> [u64; 4] {
    use core::hash::BuildHasher;

    let drawn = std::hash::RandomState::new();
    [0, 1, 2, 3].map(|word: u64| drawn.hash_one(word))
}

/// Two addresses and a counter: without an operating system there is no source of randomness.
#[cfg(not(feature = "std"))]
pub(super) fn draw() -> [u64; 4] {
    use core::ptr::from_ref;
    use core::sync::atomic::{AtomicUsize, Ordering};

    static COUNT: AtomicUsize = AtomicUsize::new(0);
    // Not one operation, as some CPUs have none. Threads that read the same count have different
    // stacks.
    let count = COUNT.load(Ordering::Relaxed);
    COUNT.store(count.wrapping_add(1), Ordering::Relaxed);
    [count, from_ref(&count).addr(), from_ref(&COUNT).addr(), 0].map(|word| word as u64)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::draw;

    #[test]
    fn seeds_differ() {
        let mut seeds: Vec<[u64; 4]> = (0..100).map(|_| draw()).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 100);
    }
}
