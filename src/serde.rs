//! `Serialize` and `Deserialize` for types with invariants; the other types derive them.
//!
//! A map is serialized as a map, a set as a sequence, in iteration order, without parameters and
//! hasher.
//! Deserialized values are validated as constructors do: thresholds out of range are an error.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::net::{IpAddr, SocketAddr};
use core::str::FromStr;

use alloc::string::String;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::eviction::PassiveGc;
use crate::key::any_prefix::AnyPrefix;
use crate::key::bits::{Address, BitString};
use crate::key::prefix::Prefix;
use crate::memory::Allocator;
use crate::routes::{PrefixSet, RouteTable, Routes};
use crate::sockets::Local;
use crate::trash::{TrashMap, TrashSet};
use crate::trie::Thresholds;
use crate::trie::map::LcTrieMap;
use crate::trie::routes::LcRouteTable;

impl<'de> Deserialize<'de> for Thresholds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(rename = "Thresholds")]
        struct Unchecked {
            inflate: u8,
            halve: u8,
        }
        let Unchecked { inflate, halve } = Unchecked::deserialize(deserializer)?;
        Self::new(inflate, halve).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for PassiveGc {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(rename = "PassiveGc")]
        struct Unchecked {
            threshold: usize,
            goal: usize,
        }
        let Unchecked { threshold, goal } = Unchecked::deserialize(deserializer)?;
        Self::new(threshold, goal).map_err(D::Error::custom)
    }
}

/// The fields of a [`Local`].
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Local")]
struct LocalFields {
    address: IpAddr,
    is_v6_only: bool,
    port: Option<u16>,
    protocol: u8,
}

impl Serialize for Local {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (address, port) = (self.address(), self.port());
        let (is_v6_only, protocol) = (self.is_v6_only(), self.protocol());
        LocalFields { address, is_v6_only, port, protocol }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Local {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let LocalFields { address, is_v6_only, port, protocol } =
            LocalFields::deserialize(deserializer)?;
        let local = match port {
            Some(port) => Self::new(SocketAddr::new(address, port), protocol),
            None => Self::all_ports(address, protocol),
        };
        Ok(if is_v6_only { local.v6_only() } else { local })
    }
}

impl<K: BitString + Serialize, V: Serialize> Serialize for LcTrieMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de, K: BitString + Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de>
    for LcTrieMap<K, V>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(PhantomData, |map: &mut Self, key, value| {
            map.insert(key, value);
        }))
    }
}

/// `"10.0.0.0/8"` in human-readable formats, address and length in others.
impl<A: Address + fmt::Display + Serialize> Serialize for Prefix<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(self),
            false => (self.address(), self.len()).serialize(serializer),
        }
    }
}

impl<'de, A: Address + FromStr + Deserialize<'de>> Deserialize<'de> for Prefix<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let prefix = match deserializer.is_human_readable() {
            true => String::deserialize(deserializer)?.parse(),
            false => <(A, u32)>::deserialize(deserializer)?.try_into(),
        };
        prefix.map_err(D::Error::custom)
    }
}

/// Like a prefix of its family in human-readable formats.
impl Serialize for AnyPrefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(self),
            false => (self.address(), self.len()).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for AnyPrefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let prefix = match deserializer.is_human_readable() {
            true => String::deserialize(deserializer)?.parse(),
            false => <(IpAddr, u8)>::deserialize(deserializer)?.try_into(),
        };
        prefix.map_err(D::Error::custom)
    }
}

/// A map from prefixes to values, for addresses that implement `Display` and `FromStr`, which byte
/// arrays do not.
impl<A, V: Serialize, M: Allocator + Clone> Serialize for RouteTable<A, V, M>
where
    A: Address + fmt::Display + Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de, A, V> Deserialize<'de> for RouteTable<A, V>
where
    A: Address + FromStr + Deserialize<'de>,
    V: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(PhantomData, |table: &mut Self, prefix, value| {
            table.insert(prefix, value);
        }))
    }
}

/// A map from prefixes of both families to values.
impl<V: Serialize, M: Allocator + Clone> Serialize for Routes<V, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Routes<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(PhantomData, |table: &mut Self, prefix, value| {
            table.insert(prefix, value);
        }))
    }
}

impl<A, V: Serialize> Serialize for LcRouteTable<A, V>
where
    A: Address + fmt::Display + Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, A, V> Deserialize<'de> for LcRouteTable<A, V>
where
    A: Address + FromStr + Deserialize<'de>,
    V: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(PhantomData, |table: &mut Self, prefix, value| {
            table.insert(prefix, value);
        }))
    }
}

impl<K: Serialize, V: Serialize, S, A: Allocator + Clone> Serialize for TrashMap<K, V, S, A> {
    fn serialize<Ser: Serializer>(&self, serializer: Ser) -> Result<Ser::Ok, Ser::Error> {
        serializer.collect_map(self)
    }
}

impl<'de, K, V, S> Deserialize<'de> for TrashMap<K, V, S>
where
    K: Eq + Hash + Deserialize<'de>,
    V: Deserialize<'de>,
    S: BuildHasher + Default,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(PhantomData, |map: &mut Self, key, value| {
            map.insert(key, value);
        }))
    }
}

impl<T: Serialize, S, A: Allocator + Clone> Serialize for TrashSet<T, S, A> {
    fn serialize<Ser: Serializer>(&self, serializer: Ser) -> Result<Ser::Ok, Ser::Error> {
        serializer.collect_seq(self)
    }
}

impl<'de, T, S> Deserialize<'de> for TrashSet<T, S>
where
    T: Eq + Hash + Deserialize<'de>,
    S: BuildHasher + Default,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Values(PhantomData, |set: &mut Self, value| {
            set.insert(value);
        }))
    }
}

/// A sequence of prefixes in order.
impl<A, M: Allocator + Clone> Serialize for PrefixSet<A, M>
where
    A: Address + fmt::Display + Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

impl<'de, A> Deserialize<'de> for PrefixSet<A>
where
    A: Address + FromStr + Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Values(PhantomData, |set: &mut Self, prefix| {
            set.insert(prefix);
        }))
    }
}

/// Deserializes a set: inserts each value with the function.
struct Values<T, C, F>(PhantomData<(T, C)>, F);

impl<'de, T, C, F> Visitor<'de> for Values<T, C, F>
where
    T: Deserialize<'de>,
    C: Default,
    F: Fn(&mut C, T),
{
    type Value = C;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<C, A::Error> {
        let mut set = C::default();
        while let Some(value) = values.next_element()? {
            (self.1)(&mut set, value);
        }
        Ok(set)
    }
}

/// Deserializes a map: inserts each entry with the function.
struct Entries<K, V, M, F>(PhantomData<(K, V, M)>, F);

impl<'de, K, V, M, F> Visitor<'de> for Entries<K, V, M, F>
where
    K: Deserialize<'de>,
    V: Deserialize<'de>,
    M: Default,
    F: Fn(&mut M, K, V),
{
    type Value = M;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<M, A::Error> {
        let mut map = M::default();
        while let Some((key, value)) = entries.next_entry()? {
            (self.1)(&mut map, key, value);
        }
        Ok(map)
    }
}
