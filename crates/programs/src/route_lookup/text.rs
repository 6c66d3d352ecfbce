//! Lines with routes, as operators have them.
//!
//! ```text
//!     192.0.2.0/24 upstream 1        192.0.2.7                   default via 192.0.2.1 dev eth0
//!     10.1.2.3/8,AS65000             10.0.0.0/255.0.0.0 name     blackhole 10.0.0.0/8
//! ```

use core::net::IpAddr;
use std::borrow::Cow;

use flowtable::PrefixError;

/// A route and its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) address: IpAddr,
    pub(super) len: u32,
    pub(super) name: Cow<'a, str>,
}

/// Words that Linux prints before a prefix; they are a part of the name.
const KINDS: [&str; 9] = [
    "anycast",
    "blackhole",
    "broadcast",
    "local",
    "multicast",
    "prohibit",
    "throw",
    "unicast",
    "unreachable",
];

/// Parses a line, trimmed and without a comment.
///
/// # Errors
///
/// The reason why it is no route.
pub(super) fn parse(line: &str) -> Result<Line<'_>, String> {
    let (word, rest) = first_word(line);
    if KINDS.contains(&word) {
        let (prefix, rest) = first_word(rest);
        let (address, len) = prefix_of(prefix, rest)?;
        let name = Cow::from(format!("{word} {rest}").trim_end().to_owned());
        return Ok(Line { address, len, name });
    }
    let (address, len) = prefix_of(word, rest)?;
    Ok(Line { address, len, name: rest.into() })
}

/// Returns the first word of a line, without quotes, and the rest. They are separated by white
/// space or a comma.
fn first_word(line: &str) -> (&str, &str) {
    let is_separator = |c: char| c.is_whitespace() || c == ',';
    let (word, rest) = line.split_once(is_separator).unwrap_or((line, ""));
    (word.trim_matches('"'), rest.trim())
}

/// Parses a prefix, an address, or the word `default`, whose family is that of the rest.
fn prefix_of(word: &str, rest: &str) -> Result<(IpAddr, u32), String> {
    let because = |error: PrefixError| format!("{word}: {error}");
    let no_prefix = || format!("{word}: not an address, with or without a slash and a length");
    if word == "default" {
        let is_v6 = |word: &str| word.parse().is_ok_and(|address: IpAddr| address.is_ipv6());
        let zero: IpAddr = match rest.split_whitespace().any(is_v6) {
            true => [0_u16; 8].into(),
            false => [0_u8; 4].into(),
        };
        return Ok((zero, 0));
    }
    let (address, len) = word.split_once('/').map_or((word, None), |(a, len)| (a, Some(len)));
    let address: IpAddr = address.parse().map_err(|_| no_prefix())?;
    let max = if address.is_ipv4() { 32 } else { 128 };
    let len = match len {
        None => max,
        Some(len) => len.parse().ok().or_else(|| length_of_mask(len)).ok_or_else(no_prefix)?,
    };
    if len > max { Err(because(PrefixError::Length { len, max })) } else { Ok((address, len)) }
}

/// Returns the number of ones in an IPv4 mask, which has no ones after a zero.
fn length_of_mask(mask: &str) -> Option<u32> {
    let mask = u32::from(mask.parse::<core::net::Ipv4Addr>().ok()?);
    (mask.leading_ones() == mask.count_ones()).then_some(mask.leading_ones())
}
