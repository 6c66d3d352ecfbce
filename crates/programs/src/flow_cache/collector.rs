//! Export of records as IPFIX, to a file or by UDP to a collector.

use core::time::Duration;
use std::io::{self, BufWriter, Write};
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::thread;
use std::time::Instant;

use flowtable::Timestamp;

use super::export::Sink;
use super::ipfix::Message;
use super::record::Record;

/// Packs records into messages with sequence numbers.
pub(crate) struct Ipfix {
    carrier: Carrier,
    message: Message,
    /// Time of the last record of the message.
    made: Timestamp,
    /// Messages sent.
    messages: u64,
    /// Number of records in the messages sent, modulo 2^32.
    sequence: u32,
    /// The templates sent last.
    templates: Option<Templates>,
}

/// When templates were sent.
struct Templates {
    /// Messages up to then.
    messages: u64,
    at: Instant,
}

/// The destination of messages.
enum Carrier {
    File(BufWriter<Box<dyn Write + Send>>),
    Collector(Collector),
}

impl Ipfix {
    /// The observation domain: one meter has one observation point.
    const DOMAIN: u32 = 1;

    /// Period of templates to a collector, which may have been started late, or have lost one: in
    /// messages of records, and in time.
    const TEMPLATES_EVERY: u64 = 32;
    const TEMPLATES_AFTER: Duration = Duration::from_secs(30);

    /// Time for a collector to process the first templates: one with several workers may process
    /// the next messages at the same time.
    const HEAD_START: Duration = Duration::from_millis(50);

    pub(crate) fn to_file(out: Box<dyn Write + Send>) -> Self {
        Self::new(Carrier::File(BufWriter::new(out)))
    }

    pub(crate) fn to_collector(collector: Collector) -> Self {
        Self::new(Carrier::Collector(collector))
    }

    fn new(carrier: Carrier) -> Self {
        let (message, made) = (Message::new(), Timestamp::default());
        Self { carrier, message, made, messages: 0, sequence: 0, templates: None }
    }

    fn are_templates_due(&self) -> bool {
        let Some(last) = &self.templates else { return true };
        match self.carrier {
            Carrier::File(_) => false,
            Carrier::Collector(_) => {
                self.messages - last.messages >= Self::TEMPLATES_EVERY
                    || last.at.elapsed() >= Self::TEMPLATES_AFTER
            }
        }
    }

    /// Sends the templates in a message of their own.
    fn send_templates(&mut self) -> io::Result<()> {
        let is_first = self.templates.is_none();
        let mut message = Message::new();
        message.add_templates();
        self.send_message(message)?;
        if is_first && matches!(self.carrier, Carrier::Collector(_)) {
            thread::sleep(Self::HEAD_START);
        }
        self.templates = Some(Templates { messages: self.messages, at: Instant::now() });
        Ok(())
    }

    /// Sends the message, if it has a record.
    fn send(&mut self) -> io::Result<()> {
        if self.message.records() == 0 {
            return Ok(());
        }
        if self.are_templates_due() {
            self.send_templates()?;
        }
        let message = mem::replace(&mut self.message, Message::new());
        self.send_message(message)
    }

    fn send_message(&mut self, message: Message) -> io::Result<()> {
        let records = message.records();
        // The field has 32 bits and ends in 2106.
        let export_s = (self.made.as_nanos() / 1_000_000_000) as u32;
        let bytes = message.finish(export_s, self.sequence, Self::DOMAIN);
        self.messages += 1;
        self.sequence = self.sequence.wrapping_add(records);
        match &mut self.carrier {
            Carrier::File(out) => out.write_all(&bytes),
            Carrier::Collector(collector) => {
                collector.send(&bytes);
                Ok(())
            }
        }
    }
}

impl Sink for Ipfix {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        for half in record.directions() {
            if !self.message.fits(&half) {
                self.send()?;
            }
            self.message.add(&half, record.id, record.reason);
            self.made = record.made;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()?;
        match &mut self.carrier {
            Carrier::File(out) => out.flush(),
            Carrier::Collector(collector) => {
                collector.check_error();
                Ok(())
            }
        }
    }

    fn losses(&self) -> Option<String> {
        match &self.carrier {
            Carrier::File(_) => None,
            Carrier::Collector(collector) => collector.losses(self.messages),
        }
    }
}

/// A collector, reached by UDP. A lost message does not stop the export: the collector may come
/// back.
pub(crate) struct Collector {
    socket: UdpSocket,
    name: String,
    /// Messages since the last pause.
    burst: u32,
    /// Number of messages known to be lost, and the error of the last one.
    lost: u64,
    error: Option<io::Error>,
}

impl Collector {
    /// Messages between two pauses: UDP has no flow control. With the pause there are at most 8000
    /// messages per second, some 190,000 records of IPv4. A socket buffer of Linux's default size
    /// holds 10 ms of that, in which the collector may be busy.
    const BURST: u32 = 8;
    const PAUSE: Duration = Duration::from_millis(1);

    /// Opens a socket to `HOST:PORT`.
    ///
    /// # Errors
    ///
    /// If the address does not resolve, or has no route.
    pub(crate) fn connect(name: &str) -> io::Result<Self> {
        let mut result = Err(io::Error::other("no address"));
        for address in name.to_socket_addrs()? {
            result = Self::socket(address);
            if result.is_ok() {
                break;
            }
        }
        Ok(Self { socket: result?, name: name.to_owned(), burst: 0, lost: 0, error: None })
    }

    fn socket(address: SocketAddr) -> io::Result<UdpSocket> {
        let socket = match address {
            SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?,
            SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?,
        };
        socket.connect(address)?;
        Ok(socket)
    }

    fn send(&mut self, message: &[u8]) {
        // A pending error is that of an earlier message, and would keep this one from being sent.
        self.check_error();
        if let Err(error) = self.socket.send(message) {
            self.record_loss(error);
        }
        self.burst += 1;
        if self.burst == Self::BURST {
            self.burst = 0;
            thread::sleep(Self::PAUSE);
        }
    }

    /// Counts a loss if the network has refused a message since the last check.
    fn check_error(&mut self) {
        if let Ok(Some(error)) = self.socket.take_error() {
            self.record_loss(error);
        }
    }

    fn record_loss(&mut self, error: io::Error) {
        self.lost += 1;
        self.error = Some(error);
    }

    /// Describes the losses among `messages` messages, if there are any.
    fn losses(&self, messages: u64) -> Option<String> {
        let error = self.error.as_ref()?;
        let Self { name, lost, .. } = self;
        Some(format!("{name} did not receive {lost} of {messages} messages: {error}"))
    }
}
