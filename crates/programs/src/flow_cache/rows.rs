//! Records as rows of CSV, one for each direction with packets.

use core::fmt;
use std::io::{self, Write};
use std::path::Path;

use capture::Macs;

use super::community_id;
use super::file_sink::Format;
use super::record::{HalfRecord, Record, is_tcp, ports};
use super::text::{Columns, count_lines, whole_length, whole_lines};

/// The columns of all rows.
const HEADER: &str = "src,dst,proto,sport,dport,packets,ip_bytes,first_ns,last_ns,\
                      tcp_flags,icmp_type,icmp_code,end_reason,flow_id";

/// The format of the rows. Addresses, numbers and fixed words need no quotes.
pub(crate) struct Rows {
    columns: Columns,
}

impl Rows {
    pub(crate) const fn new(columns: Columns) -> Self {
        Self { columns }
    }

    /// Returns the first line.
    fn header(&self) -> String {
        let mut header = HEADER.to_owned();
        if self.columns.community_id {
            header.push_str(",community_id");
        }
        if self.columns.vlan {
            header.push_str(",vlan");
        }
        if self.columns.mac {
            header.push_str(",src_mac,dst_mac");
        }
        header.push('\n');
        header
    }
}

/// A row without the columns that were requested.
struct Row<'a> {
    record: &'a Record,
    half: &'a HalfRecord,
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { record, half: HalfRecord { key, counters, .. } } = self;
        let [sport, dport] = ports(key);
        write!(f, "{},{},{},{sport},{dport},", key.src(), key.dst(), key.protocol())?;
        write!(f, "{},{},{},", counters.packets, counters.bytes, counters.first_ns)?;
        write!(f, "{},", counters.last_ns)?;
        if is_tcp(key) {
            write!(f, "{}", counters.flags)?;
        }
        match counters.icmp {
            Some(icmp) => write!(f, ",{},{}", icmp >> 8, icmp & 0xff)?,
            None => f.write_str(",,")?,
        }
        write!(f, ",{},{}", record.reason, record.id)
    }
}

impl Format for Rows {
    fn unit(&self) -> &'static str {
        "rows"
    }

    fn whole_length(&self, existing: &Path) -> io::Result<u64> {
        let wrong = || io::Error::other("exists, and has other columns: --overwrite replaces it");
        whole_length(existing, self.header().as_bytes())?.ok_or_else(wrong)
    }

    fn begin(&mut self, is_empty: bool, out: &mut Vec<u8>) {
        if is_empty {
            out.extend(self.header().as_bytes());
        }
    }

    fn write(&mut self, record: &Record, out: &mut Vec<u8>) {
        for half in record.directions() {
            // A vector takes all.
            let _ = write!(out, "{}", Row { record, half: &half });
            if self.columns.community_id {
                let _ = write!(out, ",{}", community_id::of(&half));
            }
            if self.columns.vlan {
                let _ = write!(out, ",{}", record.vlans);
            }
            if self.columns.mac {
                let _ = match half.macs {
                    Some(Macs { source, destination }) => write!(out, ",{source},{destination}"),
                    None => write!(out, ",,"),
                };
            }
            out.push(b'\n');
        }
    }

    fn whole(&self, bytes: &[u8]) -> usize {
        whole_lines(bytes)
    }

    fn count(&self, bytes: &[u8]) -> u64 {
        count_lines(bytes)
    }
}
