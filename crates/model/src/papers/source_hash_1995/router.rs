//! The forwarding of a packet: the slow path, and the fast path through a flow cache.
//!
//! ```text
//!     long      validate the header ─▸ longest match ─▸ TTL ─▸ checksum
//!     short     name of the flow, index ─▸ entry of the cache ─▸ TTL ─▸ checksum
//! ```
//!
//! There are 100 routes to 16 interfaces, as in the paper. Its routes were in the radix tree of
//! 4.4BSD, a binary trie without one-child nodes. An LC-trie whose nodes are never doubled is such
//! a trie, and a node is doubled only if one of its children skips no bit. In the addresses of
//! these routes each bit that differs is followed by a zero, so that every child skips one.

use std::net::Ipv4Addr;

use flowtable::hash::source_index::SourceIndex;
use flowtable::papers::hash::{Crc8Pair, XorFold16, hash_bytes};
use flowtable::trie::routes::LcRouteTable;
use flowtable::trie::{Thresholds, Tuning};
use flowtable::{Prefix, SourceHashCache};

use super::fids::Fid;

/// An interface index.
pub type Port = u8;
/// The flow cache of the paper: 65,536 direct-mapped flows.
pub type Cache<V> = SourceHashCache<Fid, V, 1>;

pub const PORTS: u8 = 16;
/// Bytes of an IP header without options.
const HEADER: usize = 20;
/// An experimental IP option (RFC 4727) of 12 bytes, two of them unused: the index and the flow
/// number.
pub const OPTION: [u8; 4] = [0x9e, 12, 0, 0];
/// Version 4, and a header of 32 bytes: a header with [`OPTION`].
pub const VERSION_AND_LENGTH: u8 = 0x48;

/// Returns the flow identifier and the source index of a packet, or `None` if it has none.
#[inline]
pub fn name_of(ip: &[u8]) -> Option<(Fid, SourceIndex)> {
    let header: &[u8; 32] = ip.first_chunk()?;
    if header[0] != VERSION_AND_LENGTH || header[20..24] != OPTION {
        return None;
    }
    let mut fid = [0; 12];
    fid[..8].copy_from_slice(&header[12..20]);
    fid[8..].copy_from_slice(&header[28..]);
    // A random number may be read in native byte order.
    let index = u32::from_ne_bytes([header[24], header[25], header[26], header[27]]);
    Some((Fid(fid), SourceIndex::new(index)))
}

/// Returns whether an IPv4 header passes the checks of RFC 1812, 5.2.2, including the checksum.
#[inline]
pub fn is_valid(ip: &[u8]) -> bool {
    let Some(fixed) = ip.first_chunk::<HEADER>() else { return false };
    let header = usize::from(fixed[0] & 0xf) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    fixed[0] >> 4 == 4
        && (HEADER..=total).contains(&header)
        && total <= ip.len()
        && checksum(&ip[..header]) == 0
}

/// Computes the Internet checksum (RFC 1071) over whole words. 0 for a header with a valid one.
#[inline]
pub fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(4);
    let sum: u64 =
        words.map(|word| u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    // The sum of byte-swapped words is the byte-swapped sum.
    !(sum as u16).to_be()
}

/// Decrements the TTL and updates the checksum by equation 3 of RFC 1624. Returns false if the TTL
/// expires.
#[inline]
pub fn hop(ip: &mut [u8]) -> bool {
    let Some(header) = ip.first_chunk_mut::<HEADER>() else { return false };
    if header[8] <= 1 {
        return false;
    }
    let word = |at: usize, header: &[u8; HEADER]| u16::from_be_bytes([header[at], header[at + 1]]);
    let (before, checksum) = (word(8, header), word(10, header));
    header[8] -= 1;
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(word(8, header));
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    true
}

/// Forwards by the slow path and returns the interface.
#[inline]
pub fn forward(ip: &mut [u8], route: impl Fn(Ipv4Addr) -> Option<Port>) -> Option<Port> {
    let port = slow_path(ip, route)?;
    hop(ip).then_some(port)
}

#[inline]
fn slow_path(ip: &[u8], route: impl Fn(Ipv4Addr) -> Option<Port>) -> Option<Port> {
    let is_valid = is_valid(ip);
    let destination = ip.get(16..HEADER)?.first_chunk::<4>()?;
    if is_valid { route(Ipv4Addr::from(*destination)) } else { None }
}

/// Forwards by the fast path if the flow is in the cache.
#[inline]
pub fn forward_cached(
    ip: &mut [u8],
    cache: &mut Cache<Port>,
    index: impl Fn(&Fid, SourceIndex) -> SourceIndex,
    route: impl Fn(Ipv4Addr) -> Option<Port>,
) -> Option<Port> {
    let Some((fid, source)) = name_of(ip) else { return forward(ip, route) };
    let index = index(&fid, source);
    let port = match cache.get(index, &fid) {
        Some(&port) => port,
        None => {
            let port = slow_path(ip, route)?;
            let _ = cache.insert(index, fid, port);
            port
        }
    };
    hop(ip).then_some(port)
}

pub fn by_source(_: &Fid, source: SourceIndex) -> SourceIndex {
    source
}

pub fn by_xor(fid: &Fid, _: SourceIndex) -> SourceIndex {
    SourceIndex::new(hash_bytes::<XorFold16>(&fid.0) as u32)
}

pub fn by_crc(fid: &Fid, _: SourceIndex) -> SourceIndex {
    SourceIndex::new(hash_bytes::<Crc8Pair>(&fid.0) as u32)
}

/// Spreads the low four bits of a byte, each followed by a zero.
fn spread(half: u8) -> u8 {
    (0..4).map(|bit| (half >> bit & 1) << (2 * bit + 1)).sum()
}

/// Returns the prefix of subnet `number` of 256.
pub fn subnet(number: u8) -> [u8; 3] {
    [10, spread(number >> 4), spread(number & 0xf)]
}

/// One hundred routes: the default route, net 10, 16 nets in it, and 82 of their 256 subnets.
pub fn routes() -> Vec<(Prefix<Ipv4Addr>, Port)> {
    let route = |[a, b, c]: [u8; 3], len| Prefix::new(Ipv4Addr::new(a, b, c, 0), len);
    let nets = (0..16).map(|net| route([10, spread(net), 0], 16));
    // 3 and 256 are coprime, so subnets are distinct.
    let subnets = (0..82_u8).map(|number| route(subnet(number.wrapping_mul(3)), 24));
    let all = [route([0; 3], 0), route([10, 0, 0], 8)].into_iter().chain(nets).chain(subnets);
    all.zip((0..PORTS).cycle())
        .map(|(prefix, port)| (prefix.expect("lengths are right"), port))
        .collect()
}

/// Thresholds of a binary trie: a node is doubled only into a full one, and halved once it has an
/// empty slot.
pub fn binary() -> Tuning {
    let full = Thresholds::new(100, 99).expect("they are in range and in order");
    Tuning { node: full, root: full, ..Tuning::LINUX }
}

/// The routes in a binary trie, as in the router of the paper.
pub fn radix_tree() -> LcRouteTable<Ipv4Addr, Port> {
    let mut table = LcRouteTable::with_tuning(binary());
    table.extend(routes());
    table
}

/// Returns a function for the interface of the longest match.
pub fn in_trie(table: &LcRouteTable<Ipv4Addr, Port>) -> impl Fn(Ipv4Addr) -> Option<Port> {
    |address| table.lookup(&address).map(|route| *route.1)
}
