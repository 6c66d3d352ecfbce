//! Keys of flows as text that fits into a line of 80 columns.

use core::fmt;
use core::net::{IpAddr, SocketAddr};

use flowtable::FlowKey;

use super::record::is_icmp;

/// A key, whose second socket is on a line of its own if the line would be too long.
pub(crate) struct KeyText<'a> {
    pub(crate) key: &'a FlowKey,
    /// Columns before it.
    pub(crate) indent: usize,
}

/// The width of a line.
pub(crate) const COLUMNS: usize = 80;

impl fmt::Display for KeyText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key;
        // ICMP has no ports.
        let socket = |address: IpAddr, port| match is_icmp(key) {
            true => address.to_string(),
            false => SocketAddr::new(address, port).to_string(),
        };
        let (source, target) = (socket(key.src(), key.sport()), socket(key.dst(), key.dport()));
        let protocol = match key.protocol() {
            1 => "icmp".to_owned(),
            6 => "tcp".to_owned(),
            17 => "udp".to_owned(),
            58 => "icmp6".to_owned(),
            other => other.to_string(),
        };
        if self.indent + source.len() + target.len() + protocol.len() + 4 <= COLUMNS {
            return write!(f, "{source} > {target} {protocol}");
        }
        let second = format!(" > {target} {protocol}");
        let indent = self.indent.min(COLUMNS.saturating_sub(second.len()));
        write!(f, "{source}\n{:indent$}{second}", "")
    }
}
