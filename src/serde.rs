//! `Serialize` and `Deserialize` for types with invariants; the other types derive them.
//!
//! A map is serialized as a map, in its iteration order, without its parameters and hasher.
//! Deserialized values are validated as constructors do: thresholds out of range are an error.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::str::FromStr;

use alloc::string::String;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::eviction::PassiveGc;
use crate::key::bits::{Address, BitString};
use crate::key::prefix::Prefix;
use crate::routes::RouteTable;
use crate::trash::TrashMap;
use crate::trie::Thresholds;
use crate::trie::map::LcTrieMap;

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

/// A map from prefixes to values, for addresses that implement `Display` and `FromStr`, which byte
/// arrays do not.
impl<A, V: Serialize> Serialize for RouteTable<A, V>
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

impl<K: Serialize, V: Serialize, S> Serialize for TrashMap<K, V, S> {
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
