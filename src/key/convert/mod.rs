//! Conversions of prefixes from and to the types of other crates, by features of their names.

#[cfg(feature = "cidr")]
mod cidr;
#[cfg(feature = "ipnet")]
mod ipnet;
#[cfg(feature = "ipnetwork")]
mod ipnetwork;
