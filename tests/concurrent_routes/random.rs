//! Random addresses and prefixes.

use flowtable::Prefix;
use flowtable::key::bits::Address;

/// Random numbers: xorshift.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 3
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Returns an address of which most bits are zero, so that addresses have bits in common.
    pub(crate) fn address<A: Address>(&mut self) -> A {
        let words: [u64; 8] = core::array::from_fn(|_| match self.below(3) {
            0 => 0,
            1 => self.next() & self.next() & self.next() << 40,
            _ => self.below(8) << self.below(60) | self.below(4) << 62,
        });
        A::from_windows(|pos| {
            let (word, shift) = ((pos / 64) as usize % 8, pos % 64);
            words[word] << shift | words[(word + 1) % 8].checked_shr(64 - shift).unwrap_or(0)
        })
    }

    pub(crate) fn prefix<A: Address>(&mut self) -> Prefix<A> {
        let address = self.address();
        // The default route costs as much as thousands of others.
        let len =
            if self.below(8) == 0 { self.below(7) } else { self.below(u64::from(A::BITS) + 1) };
        Prefix::new(address, (len as u32).min(A::BITS)).unwrap()
    }
}
