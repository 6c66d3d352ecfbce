//! Where records go when they leave the cache: rows of CSV, and the largest of them.

use core::cmp::Reverse;
use std::io::{self, Write};

use csv::{ErrorKind, Writer, WriterBuilder};
use flowtable::FlowKey;

use super::record::Record;

const HEADER: [&str; 9] =
    ["src", "dst", "proto", "sport", "dport", "packets", "ip_bytes", "first_ns", "last_ns"];

/// Takes records.
pub(crate) struct Export {
    csv: Option<Writer<Box<dyn Write>>>,
    /// How many of the largest are wanted.
    top: usize,
    /// All of them, and at most as many again that are not.
    largest: Vec<(FlowKey, Record)>,
    records: u64,
}

impl Export {
    /// Writes CSV to `out`, if there is one, and remembers the `top` largest records.
    pub(crate) fn new(out: Option<Box<dyn Write>>, top: usize) -> io::Result<Self> {
        let mut csv = out.map(|out| WriterBuilder::new().has_headers(false).from_writer(out));
        if let Some(csv) = &mut csv {
            csv.write_record(HEADER).map_err(io_error)?;
        }
        Ok(Self { csv, top, largest: Vec::new(), records: 0 })
    }

    pub(crate) fn take(&mut self, key: FlowKey, record: Record) -> io::Result<()> {
        self.records += 1;
        self.largest.push((key, record));
        if self.largest.len() / 2 > self.top {
            self.drop_smaller();
        }
        let Some(csv) = &mut self.csv else { return Ok(()) };
        let addresses = (key.src(), key.dst());
        let ports = (key.protocol(), key.sport(), key.dport());
        let counts = (record.packets, record.bytes, record.first_ns, record.last_ns);
        csv.serialize((addresses, ports, counts)).map_err(io_error)
    }

    /// Hands all rows on.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.csv.as_mut().map_or(Ok(()), Writer::flush)
    }

    /// Number of records taken.
    pub(crate) const fn records(&self) -> u64 {
        self.records
    }

    /// The largest records by bytes, the largest first.
    pub(crate) fn largest(&mut self) -> &[(FlowKey, Record)] {
        self.drop_smaller();
        &self.largest
    }

    fn drop_smaller(&mut self) {
        self.largest
            .sort_unstable_by_key(|(key, record)| (Reverse(record.bytes), record.first_ns, *key));
        self.largest.truncate(self.top);
    }
}

/// The error below, whose kind the conversion that `csv` offers would hide.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
