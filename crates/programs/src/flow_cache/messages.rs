//! Records packed into IPFIX messages with sequence numbers.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::mem;
use std::path::Path;

use flowtable::Timestamp;

use super::file_sink::Format;
use super::ipfix::{Content, Message, Row, Templates};
use super::record::Record;

/// Options of messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageOptions {
    /// The maximum length; by default, what is not fragmented on the way to a collector.
    pub(crate) size: Option<usize>,
    /// The observation domain; 1 by default.
    pub(crate) domain: Option<u32>,
    pub(crate) content: Content,
}

impl MessageOptions {
    /// The maximum length where no other one is known: with the headers of UDP and IPv6, it is the
    /// least MTU of IPv6, which tunnels and access networks have, too.
    pub(crate) const DEFAULT_SIZE: usize = 1232;
}

/// Packs records into messages.
pub(crate) struct Packing {
    templates: Templates,
    domain: u32,
    has_both: bool,
    /// The maximum length of the next messages.
    limit: usize,
    message: Message,
    /// The time of the last record.
    made: Timestamp,
    /// Records in the messages before the last one that was taken, modulo 2^32, and in that.
    sequence: u32,
    taken: u32,
}

impl Packing {
    pub(crate) fn new(options: &MessageOptions) -> Self {
        let limit = options.size.unwrap_or(MessageOptions::DEFAULT_SIZE);
        Self {
            templates: Templates::new(options.content),
            domain: options.domain.unwrap_or(1),
            has_both: options.content.has_both,
            limit,
            message: Message::new(limit),
            made: Timestamp::default(),
            sequence: 0,
            taken: 0,
        }
    }

    /// Sets the maximum length of the messages that have no record yet.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        if mem::replace(&mut self.limit, limit) != limit && self.message.records() == 0 {
            self.message = Message::new(limit);
        }
    }

    /// Returns messages with the templates, to be sent before the message that was taken last.
    pub(crate) fn templates(&self) -> Vec<Vec<u8>> {
        let messages = self.templates.messages(self.limit).into_iter();
        messages.map(|message| self.finish(message)).collect()
    }

    /// Makes the next templates those after the message that was taken last.
    fn continue_after(&mut self) {
        self.sequence = self.sequence.wrapping_add(mem::take(&mut self.taken));
    }

    fn finish(&self, message: Message) -> Vec<u8> {
        // The field has 32 bits and ends in 2106.
        let export_s = (self.made.as_nanos() / 1_000_000_000) as u32;
        message.finish(export_s, self.sequence, self.domain)
    }

    /// Adds a record. Passes messages that are full to `each`.
    pub(crate) fn add(&mut self, record: &Record, mut each: impl FnMut(&mut Self, Vec<u8>)) {
        for row in Row::all(record, self.has_both) {
            if !self.message.add(&row, &self.templates) {
                if let Some(packed) = self.take() {
                    each(self, packed);
                }
                self.message = Message::new(self.limit);
                self.message.add(&row, &self.templates);
            }
            self.made = record.made;
        }
    }

    /// Returns the message, if it has a record, and begins the next one.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        if self.message.records() == 0 {
            return None;
        }
        let message = mem::replace(&mut self.message, Message::new(self.limit));
        self.continue_after();
        self.taken = message.records();
        Some(self.finish(message))
    }
}

/// The format of a file of messages.
pub(crate) struct Messages {
    packing: Packing,
}

impl Messages {
    pub(crate) fn new(options: &MessageOptions) -> Self {
        Self { packing: Packing::new(options) }
    }
}

impl Format for Messages {
    fn unit(&self) -> &'static str {
        "messages"
    }

    fn whole_length(&self, existing: &Path) -> io::Result<u64> {
        let wrong = || io::Error::other("exists, and is no IPFIX: --overwrite replaces it");
        whole_length(existing)?.ok_or_else(wrong)
    }

    fn begin(&mut self, _: bool, out: &mut Vec<u8>) {
        self.packing.continue_after();
        for packed in self.packing.templates() {
            out.extend(packed);
        }
    }

    fn write(&mut self, record: &Record, out: &mut Vec<u8>) {
        self.packing.add(record, |_, packed| out.extend(packed));
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(packed) = self.packing.take() {
            out.extend(packed);
        }
    }

    fn whole(&self, bytes: &[u8]) -> usize {
        ends(bytes).last().unwrap_or(0)
    }

    fn count(&self, bytes: &[u8]) -> u64 {
        ends(bytes).count() as u64
    }
}

/// The header of a message up to its length.
const START: usize = 4;

/// Returns the length in the header of a message, if it has one.
fn length(header: &[u8]) -> Option<usize> {
    let [0, 10, high, low] = *header.first_chunk::<START>()? else { return None };
    Some(usize::from(u16::from_be_bytes([high, low]))).filter(|length| *length >= START)
}

/// Iterates over the ends of the whole messages in these bytes.
fn ends(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += length(&bytes[at..])?;
        (at <= bytes.len()).then_some(at)
    })
}

/// Returns the length of the whole messages of a file; `None` if it has anything else, except for a
/// message at the end that is cut.
fn whole_length(path: &Path) -> io::Result<Option<u64>> {
    let mut file = BufReader::new(File::open(path)?);
    let mut whole = 0;
    loop {
        let mut header = Vec::new();
        (&mut file).take(START as u64).read_to_end(&mut header)?;
        let Some(length) = length(&header) else {
            let start = &header[..header.len().min(2)];
            let is_cut = header.len() < START && [0, 10].starts_with(start);
            return Ok(is_cut.then_some(whole));
        };
        let rest = (length - START) as u64;
        if io::copy(&mut (&mut file).take(rest), &mut io::sink())? != rest {
            return Ok(Some(whole));
        }
        whole += length as u64;
    }
}
