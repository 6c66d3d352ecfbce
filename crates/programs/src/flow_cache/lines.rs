//! Export of records as lines of JSON, one object for both directions.

use core::fmt;
use std::io::{self, BufWriter, Write};

use super::biflow::Counters;
use super::export::Sink;
use super::record::Record;

pub(crate) struct Lines {
    out: BufWriter<Box<dyn Write + Send>>,
}

impl Lines {
    pub(crate) fn new(out: Box<dyn Write + Send>) -> Self {
        Self { out: BufWriter::new(out) }
    }
}

/// A record as an object: `src` is its initiator, `forward` its direction.
///
/// Its strings are addresses, flags and fixed words, which need no escapes.
struct Line<'a>(&'a Record);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { id, key, counted, reason, class, .. } = self.0;
        write!(f, r#"{{"flow_id":{id},"src":"{}","dst":"{}","#, key.src(), key.dst())?;
        let (proto, sport, dport) = (key.protocol(), key.sport(), key.dport());
        write!(f, r#""proto":{proto},"sport":{sport},"dport":{dport},"#)?;
        write!(f, r#""end_reason":"{reason}","class":"{class}","#)?;
        let (forward, reverse) = (Half(&counted.forward), Half(&counted.reverse));
        write!(f, r#""forward":{forward},"reverse":{reverse}}}"#)
    }
}

/// One direction of a record as an object; `null` if it has no packets.
struct Half<'a>(&'a Counters);

impl fmt::Display for Half<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counters { packets, bytes, first_ns, last_ns, flags, .. } = self.0;
        if *packets == 0 {
            return f.write_str("null");
        }
        write!(f, r#"{{"packets":{packets},"ip_bytes":{bytes},"first_ns":{first_ns},"#)?;
        write!(f, r#""last_ns":{last_ns},"tcp_flags":"{flags}"}}"#)
    }
}

impl Sink for Lines {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        writeln!(self.out, "{}", Line(record))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
