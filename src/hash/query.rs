//! Queries: a key to look up, with or without its hash.
//!
//! ```text
//!     map.get(&key)                              &Q              the map hashes the key
//!     map.get(Prehashed { hash, key: &key })     Prehashed<&Q>   the hash is at hand
//! ```
//!
//! All structures that hash take a [`Query`] where they look a key up. `&Q` is one for every `Q`
//! that hashbrown accepts, so for all that `std` accepts. The trait is implemented for the
//! *reference* and passed by value: literals and conversions in `&…` are inferred as ever, and a
//! [`Prehashed`] key need not be stored to be borrowed.
//!
//! Three forms of `std` are written differently:
//!
//! - `map.get(&u64::from(port))` instead of `map.get(&port.into())`, as in hashbrown, because
//!   [`Equivalent`] is more general than `Borrow`;
//! - `map.get(name.as_str())` instead of `map.get::<str>(name.as_ref())`;
//! - `map.get(&*key)` if `key` is a `&mut` that is used later: it would be moved.
//!
//! # Insertions
//!
//! A method that takes an owned key, such as `insert` and `entry`, takes exactly a `K`, as in
//! `std`. A generic parameter there would break `insert("a".into(), 1)` and conversions such as
//! `&String` to `&str`. With a hash at hand, an insertion starts from the borrowed key, which is
//! cloned only if it is new: [`TrashMap::entry_ref`](crate::TrashMap::entry_ref), and the methods
//! of other structures that look a key up and insert it if it is absent.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

/// A key with its hash by the hasher of the structure that it is for.
///
/// The hash is the result of `hash_of` of the structure, or of its `hasher()`. With another hash
/// the key is not found, and an insertion may have it twice. All 64 bits count: see
/// [`trash`](crate::trash#hashes). To use the hash that a network card delivers, give the structure
/// the hasher [`Rss`](crate::hash::Rss).
///
/// It is passed by reference, or by value with the key borrowed, as by [`as_ref`](Self::as_ref).
///
/// # Example
///
/// ```
/// use flowtable::{Prehashed, TrashMap};
///
/// let mut ports = TrashMap::from([("https".to_string(), 443)]);
/// let https = Prehashed { hash: ports.hash_of("https"), key: "https" }; // once for what follows
/// assert_eq!(ports.get(https), Some(&443));
/// assert_eq!(ports.remove(https), Some(443));
/// assert_eq!(*ports.entry_ref(https).or_insert(8443), 8443);
///
/// let stored = Prehashed { hash: https.hash, key: String::from("https") };
/// assert!(ports.contains_key(&stored) && ports.contains_key(stored.as_ref()));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prehashed<Q> {
    /// The hash of the key.
    pub hash: u64,
    /// The key, or a reference to it.
    pub key: Q,
}

impl<Q> Prehashed<Q> {
    /// Borrows the key, for methods that take `Prehashed<&Q>` only.
    #[inline]
    #[must_use]
    pub const fn as_ref(&self) -> Prehashed<&Q> {
        Prehashed { hash: self.hash, key: &self.key }
    }
}

/// A key to look up among keys of type `K`: a reference, or a reference with its hash.
///
/// `&Q` is a query if `Q` is `Hash` and [`Equivalent<K>`], as every borrowed form of `K` is;
/// `&Prehashed<Q>` and `Prehashed<&Q>` then are, too.
///
/// # Contract
///
/// Keys that are equivalent have equal hashes, and `hash_with` returns the hash of `key`. Otherwise
/// this key may be found or not, and be in a structure twice; and a removal with a wrong hash may
/// hide other keys of a concurrent table. No memory is accessed that must not be.
///
/// # Example
///
/// ```
/// use core::hash::BuildHasher;
/// use flowtable::{DefaultHashBuilder, Prehashed, hash::Query};
///
/// /// The shard for a key, by the hash that its map uses.
/// fn shard<K>(query: impl Query<K>, hasher: &impl BuildHasher) -> u64 {
///     query.hash_with(hasher) >> 32 & 15
/// }
///
/// let hasher = DefaultHashBuilder::with_seed(7);
/// let key = Prehashed { hash: hasher.hash_one("a"), key: "a" };
/// assert_eq!(shard::<String>("a", &hasher), shard::<String>(key, &hasher));
/// assert_eq!(Query::<String>::key(&key), "a");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be looked up among keys of type `{K}`",
    label = "pass a reference to the key: `&key`, or `Prehashed {{ hash, key: &key }}`",
    note = "`&Q` is a query if `Q` is `Hash` and `Equivalent<{K}>`, as borrowed forms of `{K}` are"
)]
pub trait Query<K: ?Sized> {
    /// The borrowed form of the key.
    type Key: Hash + Equivalent<K> + ?Sized;

    /// Returns the borrowed key.
    fn key(&self) -> &Self::Key;

    /// Returns the hash of the key, which `hasher` computes unless it is at hand.
    fn hash_with<S: BuildHasher>(&self, hasher: &S) -> u64;
}

impl<K: ?Sized, Q: Hash + Equivalent<K> + ?Sized> Query<K> for &Q {
    type Key = Q;

    #[inline(always)]
    fn key(&self) -> &Q {
        self
    }

    #[inline(always)]
    fn hash_with<S: BuildHasher>(&self, hasher: &S) -> u64 {
        hasher.hash_one(*self)
    }
}

/// `std` converts `&mut Q` to `&Q`, which a generic parameter does not.
impl<K: ?Sized, Q: Hash + Equivalent<K> + ?Sized> Query<K> for &mut Q {
    type Key = Q;

    #[inline(always)]
    fn key(&self) -> &Q {
        self
    }

    #[inline(always)]
    fn hash_with<S: BuildHasher>(&self, hasher: &S) -> u64 {
        hasher.hash_one(&**self)
    }
}

impl<K: ?Sized, Q: Hash + Equivalent<K> + ?Sized> Query<K> for Prehashed<&Q> {
    type Key = Q;

    #[inline(always)]
    fn key(&self) -> &Q {
        self.key
    }

    #[inline(always)]
    fn hash_with<S: BuildHasher>(&self, _: &S) -> u64 {
        self.hash
    }
}

impl<K: ?Sized, Q: Hash + Equivalent<K>> Query<K> for &Prehashed<Q> {
    type Key = Q;

    #[inline(always)]
    fn key(&self) -> &Q {
        &self.key
    }

    #[inline(always)]
    fn hash_with<S: BuildHasher>(&self, _: &S) -> u64 {
        self.hash
    }
}
