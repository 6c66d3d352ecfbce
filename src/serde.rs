//! Serialize and Deserialize for the types whose fields have laws; the others derive them in place.
//!
//! A map is written as a map, in the order of its keys, without its tuning. What is read is checked
//! as strictly as what is constructed: thresholds out of range are an error of the format.

use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::bits::BitString;
use crate::lc_trie::LcTrieMap;
use crate::trie::Thresholds;
use crate::unicache::PassiveGc;

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
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

struct Entries<K, V>(PhantomData<(K, V)>);

impl<'de, K: BitString + Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for Entries<K, V> {
    type Value = LcTrieMap<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut map = LcTrieMap::new();
        while let Some((key, value)) = entries.next_entry()? {
            map.insert(key, value);
        }
        Ok(map)
    }
}
