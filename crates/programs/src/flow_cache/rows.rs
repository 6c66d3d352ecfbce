//! Export of records as rows of CSV, one for each direction with packets.

use std::io::{self, Write};

use csv::{ErrorKind, Writer, WriterBuilder};

use super::export::Sink;
use super::record::{HalfRecord, Record};

const HEADER: [&str; 9] =
    ["src", "dst", "proto", "sport", "dport", "packets", "ip_bytes", "first_ns", "last_ns"];

pub(crate) struct Rows {
    csv: Writer<Box<dyn Write>>,
}

impl Rows {
    /// Writes the header.
    pub(crate) fn new(out: Box<dyn Write>) -> io::Result<Self> {
        let mut csv = WriterBuilder::new().has_headers(false).from_writer(out);
        csv.write_record(HEADER).map_err(io_error)?;
        Ok(Self { csv })
    }
}

impl Sink for Rows {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        for HalfRecord { key, counters, .. } in record.directions() {
            let addresses = (key.src(), key.dst());
            let ports = (key.protocol(), key.sport(), key.dport());
            let counts = (counters.packets, counters.bytes, counters.first_ns, counters.last_ns);
            self.csv.serialize((addresses, ports, counts)).map_err(io_error)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.csv.flush()
    }
}

/// Returns the inner I/O error: the conversion in `csv` would hide its kind.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
