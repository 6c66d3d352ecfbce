//! Sockets of IPv4 in whole words, as they are in memory: two loads and not four, and the smaller
//! socket first by one subtraction and two rotations.
//!
//! ```text
//!     bytes    │ src 4 │ dst 4 │ sport 2 │ dport 2 │ protocol │
//!     words    │ addresses     │ ports             │
//! ```
#![allow(unsafe_code)]

use core::mem::offset_of;
use core::net::Ipv4Addr;

use super::FiveTuple;
use crate::key::bits::Octets;

type Tuple = FiveTuple<Ipv4Addr>;

const _: () = {
    assert!(size_of::<Ipv4Addr>() == 4 && size_of::<Tuple>() == 14);
    assert!(offset_of!(Tuple, src) == 0 && offset_of!(Tuple, dst) == 4);
    assert!(offset_of!(Tuple, sport) == 8 && offset_of!(Tuple, dport) == 10);
    assert!(offset_of!(Tuple, protocol) == 12);
};

impl<A: Copy> Octets<A> {
    /// Both addresses, as they are in memory.
    #[inline(always)]
    fn word(self, tuple: &FiveTuple<A>) -> u64 {
        let bytes: *const u8 = (&raw const *tuple).cast();
        // SAFETY: the type is `Tuple`, in which the addresses are the bytes 0 to 7.
        unsafe { bytes.cast::<u64>().read_unaligned() }
    }

    /// Both ports.
    #[inline(always)]
    fn ports(self, tuple: &FiveTuple<A>) -> u32 {
        let bytes: *const u8 = (&raw const *tuple).cast();
        // SAFETY: the type is `Tuple`, in which the ports are the bytes 8 to 11.
        unsafe { bytes.wrapping_add(8).cast::<u32>().read_unaligned() }
    }

    /// Whether a tuple in memory is equal to a tuple in registers.
    #[inline(always)]
    pub(super) fn are_equal(self, stored: &FiveTuple<A>, tuple: &FiveTuple<A>) -> bool {
        self.word(stored) == self.word(tuple)
            && self.ports(stored) == self.ports(tuple)
            && stored.protocol == tuple.protocol
    }

    /// Both addresses, the source in the upper half.
    #[inline(always)]
    pub(super) fn addresses(self, tuple: &FiveTuple<A>) -> u64 {
        self.word(tuple).swap_bytes()
    }

    /// The tuple with the smaller socket first, and whether that is the other order.
    #[inline(always)]
    pub(super) fn ordered(self, tuple: &FiveTuple<A>) -> (FiveTuple<A>, bool) {
        let (addresses, ports) = (self.addresses(tuple), self.ports(tuple));
        let both = |addresses: u64, ports: u32| u128::from(addresses) << 64 | u128::from(ports);
        // One subtraction of two words.
        let (this, other) = (ports.rotate_left(16), ports);
        let reverse = both(addresses, this) > both(addresses.rotate_left(32), other);
        let addresses = addresses.rotate_left(32 * u32::from(reverse)).swap_bytes();
        let ports = ports.rotate_left(16 * u32::from(reverse));
        let mut ordered = *tuple;
        let bytes: *mut u8 = (&raw mut ordered).cast();
        // SAFETY: the type is `Tuple`, whose addresses are the bytes 0 to 7; any bytes are some.
        unsafe { bytes.cast::<u64>().write_unaligned(addresses) };
        // SAFETY: as above, for the bytes 8 to 11.
        unsafe { bytes.wrapping_add(8).cast::<u32>().write_unaligned(ports) };
        (ordered, reverse)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::flow::{Direction, FlowName};

    /// Tuples of which many fields are equal.
    fn tuples() -> impl Strategy<Value = Tuple> {
        let octets = || prop::sample::select(&[0_u8, 1, 127, 128, 255][..]);
        let address = move || [octets(), octets(), octets(), octets()].prop_map(Ipv4Addr::from);
        let port = move || [octets(), octets()].prop_map(u16::from_be_bytes);
        (address(), address(), port(), port(), octets()).prop_map(|fields| {
            let (src, dst, sport, dport, protocol) = fields;
            Tuple { src, dst, sport, dport, protocol }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 2000 }))]
        #[test]
        fn words_are_ordered_and_equal_as_fields_are(one in tuples(), other in tuples()) {
            for tuple in [one, Tuple { dst: one.src, ..one }, Tuple { dport: one.sport, ..one }] {
                let expected = if (tuple.src, tuple.sport) <= (tuple.dst, tuple.dport) {
                    (tuple, Direction::Forward)
                } else {
                    (tuple.reversed(), Direction::Reverse)
                };
                prop_assert_eq!(FlowName::normalized(&tuple), expected);
            }
            let changed = [
                other,
                one,
                Tuple { src: other.src, ..one },
                Tuple { dst: other.dst, ..one },
                Tuple { sport: other.sport, ..one },
                Tuple { dport: other.dport, ..one },
                Tuple { protocol: other.protocol, ..one },
            ];
            for tuple in changed {
                prop_assert_eq!(one.is_same(&tuple), one == tuple);
            }
        }
    }
}
