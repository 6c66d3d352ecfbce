//! Bit strings compared with vectors of booleans.
#![no_main]

use std::fmt::Debug;
use std::net::{Ipv4Addr, Ipv6Addr};

use arbitrary::{Result, Unstructured};
use flowtable::key::bits::{BitString, Headed};
use flowtable::{FiveTuple, FlowKey, FourTuple};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    // A truncated input is a shorter one.
    let _ = compare(&mut input);
});

fn compare(input: &mut Unstructured<'_>) -> Result<()> {
    match input.arbitrary::<u8>()? % 18 {
        0 => check::<u8>(input),
        1 => check::<u16>(input),
        2 => check::<u32>(input),
        3 => check::<u64>(input),
        4 => check::<u128>(input),
        5 => check::<[u8; 0]>(input),
        6 => check::<[u8; 1]>(input),
        7 => check::<[u8; 7]>(input),
        8 => check::<[u8; 9]>(input),
        9 => check::<[u8; 37]>(input),
        10 => check::<(u8, u64)>(input),
        11 => check::<(u64, [u8; 3])>(input),
        12 => check::<((u16, u128), ([u8; 0], (u8, [u8; 11])))>(input),
        13 => check::<Headed<[u8; 13]>>(input),
        14 => check::<Headed<u16, u32>>(input),
        15 => check::<FourTuple<Ipv4Addr>>(input),
        16 => check::<FiveTuple<Ipv6Addr>>(input),
        _ => check::<FlowKey>(input),
    }
}

/// A bit string that can be written bit by bit.
trait BitByBit: BitString + Debug {
    fn read(input: &mut Unstructured<'_>) -> Result<Self>;
    fn bits(&self) -> Vec<bool>;
}

fn check<B: BitByBit>(input: &mut Unstructured<'_>) -> Result<()> {
    let mut bytes: [u8; 64] = input.arbitrary()?;
    let a = B::read(&mut Unstructured::new(&bytes))?;
    // A similar string: two random ones differ in their first bits.
    bytes[usize::from(input.arbitrary::<u8>()? % 64)] ^= input.arbitrary::<u8>()?;
    let b = B::read(&mut Unstructured::new(&bytes))?;
    let (x, y) = (a.bits(), b.bits());
    assert_eq!(x.len(), B::BITS as usize);
    assert_eq!(a.cmp(&b), x.cmp(&y), "order of {a:?} and {b:?}");

    for pos in (0..=B::BITS + 65).chain([u32::MAX - 64, u32::MAX - 1, u32::MAX, input.arbitrary()?])
    {
        let bit = |i: u32| pos.checked_add(i).is_some_and(|i| x.get(i as usize) == Some(&true));
        let window = (0..64).fold(0, |word, i| word << 1 | u64::from(bit(i)));
        assert_eq!(a.window(pos), window, "window({pos}) of {a:?}");
        for count in 1..=64 {
            assert_eq!(
                a.slice(pos, count),
                window >> (64 - count),
                "slice({pos}, {count}) of {a:?}"
            );
        }
        // The result is unspecified, but there is no panic.
        for count in [0, 65, u32::MAX, input.arbitrary()?] {
            a.slice(pos, count);
        }
        let differ = |&i: &u32| x[i as usize] != y[i as usize];
        let first = (pos..B::BITS).find(differ);
        assert_eq!(a.first_difference(&b, pos), first, "{a:?} and {b:?} from {pos}");
        assert_eq!(b.first_difference(&a, pos), first, "{b:?} and {a:?} from {pos}");
    }
    Ok(())
}

fn bits_of_bytes(bytes: &[u8]) -> Vec<bool> {
    bytes.iter().flat_map(|byte| (0..8).rev().map(move |i| byte >> i & 1 == 1)).collect()
}

impl BitByBit for u8 {
    fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        input.arbitrary()
    }
    fn bits(&self) -> Vec<bool> {
        bits_of_bytes(&[*self])
    }
}

impl BitByBit for u16 {
    fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        input.arbitrary()
    }
    fn bits(&self) -> Vec<bool> {
        bits_of_bytes(&self.to_be_bytes())
    }
}

impl BitByBit for u32 {
    fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        input.arbitrary()
    }
    fn bits(&self) -> Vec<bool> {
        bits_of_bytes(&self.to_be_bytes())
    }
}

impl BitByBit for u64 {
    fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        input.arbitrary()
    }
    fn bits(&self) -> Vec<bool> {
        bits_of_bytes(&self.to_be_bytes())
    }
}

impl BitByBit for u128 {
    fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        input.arbitrary()
    }
    fn bits(&self) -> Vec<bool> {
        bits_of_bytes(&self.to_be_bytes())
    }
}

impl<const N: usize> BitByBit for [u8; N] {
    fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        input.arbitrary()
    }
    fn bits(&self) -> Vec<bool> {
        bits_of_bytes(self)
    }
}

impl BitByBit for Ipv4Addr {
    fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        input.arbitrary()
    }
    fn bits(&self) -> Vec<bool> {
        bits_of_bytes(&self.octets())
    }
}

impl BitByBit for Ipv6Addr {
    fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        input.arbitrary()
    }
    fn bits(&self) -> Vec<bool> {
        bits_of_bytes(&self.octets())
    }
}

impl<A: BitByBit, B: BitByBit> BitByBit for (A, B) {
    fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        Ok((A::read(input)?, B::read(input)?))
    }
    fn bits(&self) -> Vec<bool> {
        [self.0.bits(), self.1.bits()].concat()
    }
}

impl<K: BitByBit, H: BitByBit + BitString> BitByBit for Headed<K, H> {
    fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        Ok(Self { header: H::read(input)?, key: K::read(input)? })
    }
    fn bits(&self) -> Vec<bool> {
        [self.header.bits(), self.key.bits()].concat()
    }
}

impl<A: BitByBit> BitByBit for FourTuple<A> {
    fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        let ((src, dst), (sport, dport)) = <((A, A), (u16, u16))>::read(input)?;
        Ok(Self { src, dst, sport, dport })
    }
    fn bits(&self) -> Vec<bool> {
        ((self.src, self.dst), (self.sport, self.dport)).bits()
    }
}

impl<A: BitByBit> BitByBit for FiveTuple<A> {
    fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        let (FourTuple { src, dst, sport, dport }, protocol) = <(FourTuple<A>, u8)>::read(input)?;
        Ok(Self { src, dst, sport, dport, protocol })
    }
    fn bits(&self) -> Vec<bool> {
        (self.sockets(), self.protocol).bits()
    }
}

impl BitByBit for FlowKey {
    fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        Ok(match input.arbitrary()? {
            false => Self::V4(BitByBit::read(input)?),
            true => Self::V6(BitByBit::read(input)?),
        })
    }
    fn bits(&self) -> Vec<bool> {
        let mut bits = vec![matches!(self, Self::V6(_))];
        bits.extend(match self {
            Self::V4(tuple) => tuple.bits(),
            Self::V6(tuple) => tuple.bits(),
        });
        bits.resize(Self::BITS as usize, false);
        bits
    }
}
