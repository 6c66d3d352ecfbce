//! Keys of flows as text that fits into a line of 80 columns.

use core::fmt;

use flowtable::FlowKey;

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
        let text = self.key.to_string();
        let Some((source, rest)) = text.split_once(" > ") else { return f.write_str(&text) };
        let (sockets, protocol) = rest.split_once(" proto ").unwrap_or((rest, ""));
        let protocol = match protocol {
            "1" => "icmp",
            "6" => "tcp",
            "17" => "udp",
            "58" => "icmp6",
            other => other,
        };
        if self.indent + source.len() + sockets.len() + protocol.len() + 4 <= COLUMNS {
            return write!(f, "{source} > {sockets} {protocol}");
        }
        let second = format!(" > {sockets} {protocol}");
        let indent = self.indent.min(COLUMNS.saturating_sub(second.len()));
        write!(f, "{source}\n{:indent$}{second}", "")
    }
}
