//! Records as lines of JSON, one object for both directions.

use core::net::IpAddr;
use std::io::{self, BufWriter, Write};

use serde::Serialize;

use super::biflow::Counters;
use super::export::Sink;
use super::record::Record;

pub(crate) struct Lines {
    out: BufWriter<Box<dyn Write>>,
}

impl Lines {
    pub(crate) fn new(out: Box<dyn Write>) -> Self {
        Self { out: BufWriter::new(out) }
    }
}

/// A record: `src` is its initiator, `forward` goes from there.
#[derive(Serialize)]
struct Line {
    flow_id: u64,
    src: IpAddr,
    dst: IpAddr,
    proto: u8,
    sport: u16,
    dport: u16,
    end_reason: String,
    class: String,
    forward: Option<Way>,
    reverse: Option<Way>,
}

#[derive(Serialize)]
struct Way {
    packets: u64,
    ip_bytes: u64,
    first_ns: u64,
    last_ns: u64,
    tcp_flags: String,
}

impl Way {
    /// `None` if there are no packets.
    fn of(counters: &Counters) -> Option<Self> {
        (counters.packets > 0).then(|| Self {
            packets: counters.packets,
            ip_bytes: counters.bytes,
            first_ns: counters.first_ns,
            last_ns: counters.last_ns,
            tcp_flags: counters.flags.to_string(),
        })
    }
}

impl Sink for Lines {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        let Record { id, key, counted, reason, class, .. } = record;
        let line = Line {
            flow_id: *id,
            src: key.src(),
            dst: key.dst(),
            proto: key.protocol(),
            sport: key.sport(),
            dport: key.dport(),
            end_reason: reason.to_string(),
            class: class.to_string(),
            forward: Way::of(&counted.forward),
            reverse: Way::of(&counted.reverse),
        };
        serde_json::to_writer(&mut self.out, &line)?;
        self.out.write_all(b"\n")
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
