//! Records as lines of JSON, one object for both directions.

use core::fmt;
use std::io::{self, Write};
use std::path::Path;

use capture::Macs;

use super::biflow::Counters;
use super::community_id;
use super::file_sink::Format;
use super::mac_table::RecordMacs;
use super::record::{Record, ports};
use super::text::{Columns, count_lines, whole_length, whole_lines};

/// The beginning of all lines.
const START: &str = r#"{"flow_id":"#;

/// The format of the lines. Their strings are addresses, flags and fixed words, which need no
/// escapes.
pub(crate) struct Lines {
    columns: Columns,
}

impl Lines {
    pub(crate) const fn new(columns: Columns) -> Self {
        Self { columns }
    }
}

/// A record as an object: `src` is its initiator, `forward` its direction.
struct Line<'a> {
    record: &'a Record,
    columns: Columns,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { id, key, counted, reason, class, .. } = self.record;
        write!(f, r#"{START}{id},"src":"{}","dst":"{}","#, key.src(), key.dst())?;
        let (proto, [sport, dport]) = (key.protocol(), ports(key));
        write!(f, r#""proto":{proto},"sport":{sport},"dport":{dport},"#)?;
        if self.columns.community_id {
            if let Some(half) = self.record.directions().next() {
                write!(f, r#""community_id":"{}","#, community_id::of(&half))?;
            }
        }
        if self.columns.vlan {
            write!(f, r#""vlan":"{}","#, self.record.vlans)?;
        }
        write!(f, r#""end_reason":"{reason}","class":"{class}","#)?;
        let RecordMacs { forward, reverse } = self.record.macs;
        let (forward, reverse) = (Half(&counted.forward, forward), Half(&counted.reverse, reverse));
        writeln!(f, r#""forward":{forward},"reverse":{reverse}}}"#)
    }
}

/// One direction of a record as an object; `null` if it has no packets.
struct Half<'a>(&'a Counters, Option<Macs>);

impl fmt::Display for Half<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counters { packets, bytes, first_ns, last_ns, flags, icmp } = self.0;
        if *packets == 0 {
            return f.write_str("null");
        }
        write!(f, r#"{{"packets":{packets},"ip_bytes":{bytes},"first_ns":{first_ns},"#)?;
        write!(f, r#""last_ns":{last_ns},"tcp_flags":"{flags}""#)?;
        if let Some(icmp) = icmp {
            write!(f, r#","icmp_type":{},"icmp_code":{}"#, icmp >> 8, icmp & 0xff)?;
        }
        if let Some(Macs { source, destination }) = self.1 {
            write!(f, r#","src_mac":"{source}","dst_mac":"{destination}""#)?;
        }
        f.write_str("}")
    }
}

impl Format for Lines {
    fn unit(&self) -> &'static str {
        "lines"
    }

    fn whole_length(&self, existing: &Path) -> io::Result<u64> {
        let wrong = || {
            io::Error::other("exists, and has no lines of this program: --overwrite replaces it")
        };
        whole_length(existing, START.as_bytes())?.ok_or_else(wrong)
    }

    fn write(&mut self, record: &Record, out: &mut Vec<u8>) {
        // A vector takes all.
        let _ = write!(out, "{}", Line { record, columns: self.columns });
    }

    fn whole(&self, bytes: &[u8]) -> usize {
        whole_lines(bytes)
    }

    fn count(&self, bytes: &[u8]) -> u64 {
        count_lines(bytes)
    }
}
