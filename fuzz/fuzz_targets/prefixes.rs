//! The parsers of prefixes, strict and lenient: what one of them accepts is printed and parsed
//! back, and agrees with the standard parser of addresses.
#![no_main]

use std::fmt::{Debug, Display};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use flowtable::key::bits::Address;
use flowtable::{AnyPrefix, Prefix};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let v4 = of_family::<Ipv4Addr>(text).map(AnyPrefix::from);
    let v6 = of_family::<Ipv6Addr>(text).map(AnyPrefix::from);
    assert!(v4.is_none() || v6.is_none());
    let any = AnyPrefix::parse_lenient(text).ok();
    assert_eq!(any, v4.or(v6));
    let strict: Option<AnyPrefix> = text.parse().ok();
    assert!(strict.is_none() || strict == any);
    let Some(prefix) = any else { return };
    assert_eq!(prefix.to_string().parse(), Ok(prefix));
    assert!(prefix.contains(prefix.address()) && prefix.contains(prefix.last_address()));
    assert_eq!(AnyPrefix::new(prefix.address(), prefix.len()), Ok(prefix));
    assert_eq!(prefix.netmask().is_ipv4(), prefix.is_ipv4());
});

/// Returns the prefix that a text is, leniently.
fn of_family<A>(text: &str) -> Option<Prefix<A>>
where
    A: Address + FromStr + Display + Debug + Into<IpAddr>,
{
    let lenient = Prefix::<A>::parse_lenient(text).ok();
    let strict: Option<Prefix<A>> = text.parse().ok();
    let (address, len) = match text.split_once('/') {
        Some((address, len)) => (address, Some(len)),
        None => (text, None),
    };
    let is_number = |len: &str| len.parse().is_ok_and(|number: u32| number.to_string() == len);
    // `None` if the length is none of an address of this family.
    let len = match len {
        None => Some(A::BITS),
        Some(len) if is_number(len) => len.parse().ok().filter(|&len| len <= A::BITS),
        Some(_) => None,
    };
    let parts = address.parse::<A>().ok().zip(len);
    assert_eq!(lenient.is_some(), parts.is_some());
    let (prefix, (address, len)) = lenient.zip(parts)?;
    assert!(prefix.len() == len && prefix.contains(&address));
    let has_host_bits = prefix.address() != address;
    assert_eq!(strict.is_some(), text.contains('/') && !has_host_bits);
    assert_eq!(prefix.to_string().parse(), Ok(prefix));
    let halves = prefix.halves().into_iter().flatten();
    assert!(halves.clone().all(|half| half.supernet() == Some(prefix)));
    assert!(prefix.subnets(len + 1).into_iter().flatten().eq(halves));
    lenient
}
