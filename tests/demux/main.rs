//! The demultiplexers.

// The equations have exponentials, which come with `std`.
#[cfg(feature = "std")]
mod claims;
mod connection_id;
mod methods;
mod model;
