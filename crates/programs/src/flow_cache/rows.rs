//! Export of records as rows of CSV, one for each direction with packets.

use std::io::{self, Write};
use std::mem;

use csv::{ErrorKind, Writer, WriterBuilder};

use super::export::Sink;
use super::record::{HalfRecord, Record};

const HEADER: [&str; 9] =
    ["src", "dst", "proto", "sport", "dport", "packets", "ip_bytes", "first_ns", "last_ns"];

pub(crate) struct Rows {
    csv: Writer<Box<dyn Write + Send>>,
    has_header: bool,
}

impl Rows {
    pub(crate) fn new(out: Box<dyn Write + Send>) -> Self {
        let csv = WriterBuilder::new().has_headers(false).from_writer(out);
        Self { csv, has_header: false }
    }

    /// Writes the header before the first row.
    fn begin(&mut self) -> io::Result<()> {
        match mem::replace(&mut self.has_header, true) {
            true => Ok(()),
            false => self.csv.write_record(HEADER).map_err(io_error),
        }
    }
}

impl Sink for Rows {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        self.begin()?;
        for HalfRecord { key, counters, .. } in record.directions() {
            let addresses = (key.src(), key.dst());
            let ports = (key.protocol(), key.sport(), key.dport());
            let counts = (counters.packets, counters.bytes, counters.first_ns, counters.last_ns);
            self.csv.serialize((addresses, ports, counts)).map_err(io_error)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.begin()?;
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
