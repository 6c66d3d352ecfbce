//! The two address families.

use std::fmt::Debug;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use flowtable::key::bits::Address;
use ip_network_table_deps_treebitmap::address::Address as Nibbles;
use poptrie::Prefix as Key;

/// Whether this is compiled for CPUs with the bit instructions, as by `-C target-cpu=native`.
pub(crate) const IS_NATIVE: bool = cfg!(target_feature = "bmi2");

/// An address of a family, with the traits that the subjects require.
pub(crate) trait Family:
    Address + Nibbles + Copy + Debug + Ord + Hash + FromStr + Into<IpAddr> + Send + Sync + 'static
{
    const NAME: &str;

    /// The name in the figures, which tells builds for the CPU itself apart.
    const KEY: &'static str;

    /// Prefixes of each length in the routing system of October 2025.
    const LENGTHS: &'static [(u32, usize)];

    /// For the synthetic table: the numbers of blocks of a length that contain routes. The last
    /// ones contain nearly all routes.
    const BLOCKS: &'static [(u32, usize)];

    /// The skew of routes over the blocks: the share of the fullest tenth grows with it.
    const SKEW: i32;

    /// The common first bits of all routed addresses, and their number.
    const ROUTED: (u128, u32);

    /// A prefix as a pair of an integer and a length.
    type Key: Key + prefix_trie::Prefix;

    fn key(self, len: u32) -> Self::Key;

    fn integer(self) -> <Self::Key as Key>::ADDRESS;

    /// The address with these first bits.
    fn from_left(bits: u128) -> Self;

    /// The address in the first bits; the others are zero.
    fn left(self) -> u128;
}

impl Family for Ipv4Addr {
    const NAME: &str = "v4";

    const KEY: &'static str = if IS_NATIVE { "v4, native" } else { "v4" };

    const LENGTHS: &'static [(u32, usize)] = &[
        (8, 16),
        (9, 13),
        (10, 38),
        (11, 103),
        (12, 299),
        (13, 581),
        (14, 1_203),
        (15, 2_100),
        (16, 13_490),
        (17, 8_235),
        (18, 13_798),
        (19, 24_870),
        (20, 42_611),
        (21, 50_750),
        (22, 108_623),
        (23, 96_510),
        (24, 537_698),
        (25, 20),
        (26, 3),
        (27, 11),
        (28, 18),
        (29, 17),
        (30, 3),
        (31, 3),
        (32, 886),
    ];

    const BLOCKS: &'static [(u32, usize)] = &[(8, 220), (12, 3_049), (16, 33_013)];

    const SKEW: i32 = 3;

    /// All addresses: the few networks that are not routed do not matter here.
    const ROUTED: (u128, u32) = (0, 0);

    type Key = (u32, u8);

    #[inline]
    fn key(self, len: u32) -> Self::Key {
        (self.to_bits(), len as u8)
    }

    #[inline]
    fn integer(self) -> u32 {
        self.to_bits()
    }

    fn from_left(bits: u128) -> Self {
        Self::from_bits((bits >> 96) as u32)
    }

    fn left(self) -> u128 {
        u128::from(self.to_bits()) << 96
    }
}

impl Family for Ipv6Addr {
    const NAME: &str = "v6";

    const KEY: &'static str = if IS_NATIVE { "v6, native" } else { "v6" };

    const LENGTHS: &'static [(u32, usize)] = &[
        (16, 1),
        (19, 1),
        (20, 16),
        (21, 3),
        (22, 7),
        (23, 8),
        (24, 30),
        (25, 8),
        (26, 15),
        (27, 20),
        (28, 193),
        (29, 4_371),
        (30, 650),
        (31, 284),
        (32, 22_548),
        (33, 2_926),
        (34, 2_603),
        (35, 1_043),
        (36, 5_996),
        (37, 880),
        (38, 1_617),
        (39, 1_377),
        (40, 13_418),
        (41, 903),
        (42, 2_301),
        (43, 1_001),
        (44, 14_365),
        (45, 1_553),
        (46, 3_039),
        (47, 3_153),
        (48, 75_488),
        (49, 11),
        (50, 3),
        (52, 1),
        (55, 1),
        (56, 24),
        (58, 20),
        (60, 2),
        (64, 184),
        (112, 2),
        (122, 1),
        (124, 4),
        (125, 9),
        (126, 19),
        (127, 42),
        (128, 6),
    ];

    const BLOCKS: &'static [(u32, usize)] =
        &[(16, 60), (20, 617), (24, 7_246), (28, 18_851), (32, 29_369)];

    const SKEW: i32 = 6;

    /// 2000::/3.
    const ROUTED: (u128, u32) = (0b001 << 125, 3);

    type Key = (u128, u8);

    #[inline]
    fn key(self, len: u32) -> Self::Key {
        (self.to_bits(), len as u8)
    }

    #[inline]
    fn integer(self) -> u128 {
        self.to_bits()
    }

    fn from_left(bits: u128) -> Self {
        Self::from_bits(bits)
    }

    fn left(self) -> u128 {
        self.to_bits()
    }
}
