//! Keys in all forms that `std` accepts, inferred as there, and with their hashes.
#![expect(clippy::needless_borrows_for_generic_args, reason = "`std` needs these borrows")]

use std::borrow::{Borrow, Cow};
use std::collections::HashMap;
use std::ffi::{CStr, OsStr, OsString};
use std::hash::{BuildHasher, Hash};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::str::FromStr;
use std::sync::Arc;

use equivalent::Equivalent;
use flowtable::hash::Query;
use flowtable::{DefaultHashBuilder, FlowKey, Prehashed, TrashMap, TrashSet};

/// Compiles and runs statements with a map of `std` and with one of ours, neither annotated more.
macro_rules! as_in_std {
    (|$map:ident: <$key:ty, $value:ty>| $body:block) => {{
        {
            let mut $map: HashMap<$key, $value> = HashMap::new();
            $body
        }
        let mut $map: TrashMap<$key, $value> = TrashMap::new();
        $body
    }};
}

#[test]
fn integers() -> Result<(), Box<dyn std::error::Error>> {
    as_in_std!(|map: <u64, char>| {
        map.insert(5, 'a');
        map.insert(7_u8.into(), 'b');
        map.insert("9".parse()?, 'c');
        let (key, reference) = (5, &mut 7);
        assert_eq!([map.get(&5), map.get(&key), map.get(&(2 + 3))], [Some(&'a'); 3]);
        assert!(map.contains_key(&key) && map.contains_key(&u64::from(7_u8)));
        assert_eq!(map.get(reference), Some(&'b'));
        assert_eq!((map[&5], map[&(8 + 1)]), ('a', 'c'));
        let sums = [5, 6, 7].iter().filter_map(|key| map.get(key));
        assert_eq!(sums.collect::<String>(), "ab");
        let get = |key| map.get(key);
        assert_eq!((get(&5), get(&6)), (Some(&'a'), None));
        *map.get_mut(&5).unwrap() = 'd';
        assert_eq!(map.get_key_value(&5), Some((&5, &'d')));
        assert_eq!(map.remove(&5), Some('d'));
        assert_eq!(map.remove_entry(&7), Some((7, 'b')));
        map.retain(|&key, _| key != 9);
        assert!(map.is_empty());
    });
    Ok(())
}

#[test]
fn strings() {
    as_in_std!(|map: <String, usize>| {
        map.insert("a".into(), 1);
        map.insert("b".to_owned(), 2);
        map.insert(Cow::from("c").into(), 3);
        let (string, boxed) = (String::from("a"), Box::<str>::from("b"));
        let shared: Rc<str> = Rc::from("b");
        assert_eq!([map.get("a"), map.get(&string), map.get(&*string)], [Some(&1); 3]);
        assert_eq!((map.get(string.as_str()), map.get(&string[..])), (Some(&1), Some(&1)));
        assert_eq!([map.get(&*boxed), map.get(boxed.as_ref()), map.get(&*shared)], [Some(&2); 3]);
        assert!(["a", "b"].iter().all(|name| map.contains_key(*name)));
        assert!("a b c".split(' ').all(|name| map.contains_key(name)));
        assert_eq!((map["a"], map[&string], map[&*boxed]), (1, 1, 2));
        assert_eq!(map.get_mut("a"), Some(&mut 1));
        assert_eq!(map.remove("none"), None);
        *map.entry("d".into()).or_default() += 4;
        assert_eq!(map.remove_entry("d"), Some(("d".into(), 4)));
    });
    let string = String::from("a");
    as_in_std!(|map: <&str, u8>| {
        map.insert(&string, 1); // a coercion
        map.insert("b", 2);
        assert_eq!([map.get("a"), map.get(&"a"), map.get(&*string)], [Some(&1); 3]);
        assert_eq!((map.get(string.as_str()), map.contains_key("c")), (Some(&1), false));
        assert_eq!((map["a"], map[&"b"], *map.entry(&string).or_insert(5)), (1, 2, 1));
    });
}

#[test]
fn pointers_slices_and_tuples() {
    as_in_std!(|map: <Box<str>, u8>| {
        map.insert("a".into(), 1);
        map.insert(Box::from("b"), 2);
        assert_eq!((map.get("a"), map.get(&Box::<str>::from("b"))), (Some(&1), Some(&2)));
    });
    as_in_std!(|map: <Arc<str>, u8>| {
        map.insert("a".into(), 1);
        let key: Arc<str> = Arc::from("a");
        assert_eq!((map.get("a"), map.get(&key), map.get(&*key)), (Some(&1), Some(&1), Some(&1)));
    });
    as_in_std!(|map: <Vec<u8>, u8>| {
        map.insert(vec![1, 2], 1);
        map.insert([3].into(), 2);
        assert_eq!((map.get(&[1, 2][..]), map.get(&vec![3])), (Some(&1), Some(&2)));
        assert_eq!(map.get([1, 2].as_slice()), Some(&1));
        assert_eq!(map.get(b"\x01\x02".as_ref() as &[u8]), Some(&1));
    });
    as_in_std!(|map: <[u8; 2], u8>| {
        map.insert([1, 2], 1);
        assert_eq!((map.get(&[1, 2]), map.get(b"\x01\x02")), (Some(&1), Some(&1)));
        assert_eq!(map.get([1, 2].as_slice()), Some(&1));
        assert_eq!(map.get(&0x0102_u16.to_be_bytes()), Some(&1));
    });
    as_in_std!(|map: <(u16, Option<u8>), u8>| {
        map.insert((1, None), 1);
        assert_eq!((map.get(&(1, None)), map.get(&(1, Some(2)))), (Some(&1), None));
        assert!([(1, None)].iter().all(|key| map.contains_key(key)));
    });
    as_in_std!(|map: <Box<u32>, u8>| {
        map.insert(Box::new(1), 1);
        assert_eq!((map.get(&1), map.get(&Box::new(1))), (Some(&1), Some(&1)));
    });
    as_in_std!(|map: <(), u8>| {
        assert_eq!(map.get(&()), None);
        map.insert((), 1);
        assert_eq!(map[&()], 1);
    });
}

#[test]
fn names_and_addresses() -> Result<(), Box<dyn std::error::Error>> {
    as_in_std!(|map: <PathBuf, u8>| {
        map.insert("/etc".into(), 1);
        let path = PathBuf::from("/etc");
        assert_eq!([map.get(path.as_path()), map.get(Path::new("/etc"))], [Some(&1); 2]);
        assert_eq!(map.get(&path), Some(&1));
    });
    as_in_std!(|map: <OsString, u8>| {
        map.insert("a".into(), 1);
        assert_eq!(map.get(OsStr::new("a")), Some(&1));
    });
    as_in_std!(|map: <&CStr, u8>| {
        map.insert(c"a", 1);
        assert_eq!((map.get(c"a"), map.get(&c"a")), (Some(&1), Some(&1)));
    });
    as_in_std!(|map: <Cow<'_, str>, u8>| {
        map.insert("a".into(), 1);
        assert_eq!((map.get("a"), map.get(&Cow::from("a"))), (Some(&1), Some(&1)));
    });
    as_in_std!(|map: <IpAddr, u8>| {
        map.insert([10, 0, 0, 1].into(), 1);
        map.insert("::1".parse()?, 2);
        let strict: IpAddr = "::1".parse()?;
        assert_eq!((map.get(&strict), map.get(&IpAddr::from([10, 0, 0, 1]))), (Some(&2), Some(&1)));
        assert_eq!(map.get(&IpAddr::from_str("::1")?), Some(&2));
        assert_eq!(map.get(&IpAddr::V4(Ipv4Addr::LOCALHOST)), None);
    });
    Ok(())
}

/// Functions that are generic over the borrowed form, as programs have them.
fn by_borrow<K: Borrow<Q> + Eq + Hash, Q: Eq + Hash + ?Sized>(
    map: &TrashMap<K, u8>,
    key: &Q,
) -> Option<u8> {
    map.get(key).copied()
}

fn by_equivalent<K: Eq + Hash, Q: Equivalent<K> + Hash + ?Sized>(
    map: &TrashMap<K, u8>,
    key: &Q,
) -> Option<u8> {
    map.get(key).copied()
}

fn by_query<K: Eq + Hash>(map: &TrashMap<K, u8>, key: impl Query<K>) -> Option<u8> {
    map.get(key).copied()
}

#[test]
fn generic_functions() {
    let map = TrashMap::from([(String::from("a"), 1)]);
    assert_eq!(
        (by_borrow(&map, "a"), by_equivalent(&map, "a"), by_query(&map, "a")),
        (Some(1), Some(1), Some(1))
    );
    let a = Prehashed { hash: map.hash_of("a"), key: "a" };
    assert_eq!((by_query(&map, a), by_query(&map, &String::from("b"))), (Some(1), None));
}

/// A map whose key type is known only from what follows.
#[test]
fn keys_of_a_type_inferred_later() {
    let mut map = TrashMap::new();
    assert_eq!(map.get(&1), None);
    map.insert(1_u8, 'a');
    assert_eq!(map.get(&1), Some(&'a'));
    let mut set = TrashSet::new();
    set.insert("a");
    assert!(set.contains("a") && set.contains(&"a") && set.get(&"b").is_none());
    assert!(set.remove("a") && set.take("a").is_none());
}

#[test]
fn keys_with_their_hashes() {
    let hasher = DefaultHashBuilder::with_seed(1);
    let mut map = TrashMap::with_hasher(hasher.clone());
    let flow = FlowKey::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 1, 2, 6).unwrap();
    let stored = Prehashed { hash: hasher.hash_one(flow), key: flow };
    map.entry_ref(stored.as_ref()).or_insert(1);
    assert_eq!(map.get(stored.as_ref()), Some(&1));
    assert_eq!(map.get(Prehashed { hash: stored.hash, key: &flow }), Some(&1));
    assert_eq!(map.get(Prehashed { hash: !stored.hash, key: &flow }), None);
    let found = map.remove_entry(stored.as_ref());
    assert_eq!(found, Some((flow, 1)));

    let names: TrashSet<String, _> = TrashSet::with_hasher(hasher.clone());
    assert!(!names.contains(Prehashed { hash: names.hash_of("a"), key: "a" }));
    // The hash of a query, which `hash_with` does not compute if it is at hand.
    assert_eq!(Query::<FlowKey>::hash_with(&&flow, &hasher), stored.hash);
    let other = DefaultHashBuilder::with_seed(2);
    assert_eq!(Query::<FlowKey>::hash_with(&stored.as_ref(), &other), stored.hash);
}

/// Types of both sides are equal, so inference has one candidate.
#[test]
fn comparisons_infer_the_type_of_a_collection() {
    let map: TrashMap<u32, u32> = (0..3).map(|key| (key, key)).collect();
    assert_eq!(map, (0..3).map(|key| (key, key)).collect());
    assert!(TrashMap::<u32, u32>::new() == Default::default());
    let set: flowtable::TrashSet<u32> = (0..3).collect();
    assert_eq!(set, (0..3).collect());
}
