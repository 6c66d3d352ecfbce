//! Export of records as IPFIX by UDP to a collector.
//!
//! ```text
//!     record ─► Packing ─► message ─► Socket ─► collector
//!                            │          │
//!                            │          └► an error: another socket, or the next address
//!                            └► lost, if that fails; it is tried again each second
//! ```
//!
//! A lost message does not stop the export: the collector may come back. After a socket was opened,
//! the templates are sent again, since it is another transport session.

use core::time::Duration;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use super::export::{Closed, Sink};
use super::ipfix::Message;
use super::messages::{MessageOptions, Packing};
use super::record::Record;
use crate::program::Console;
use crate::program::signals::Signals;

/// A collector and what is sent to it.
pub(crate) struct Collector {
    packing: Packing,
    session: Session,
}

impl Collector {
    /// Opens a socket to `HOST:PORT`.
    ///
    /// # Errors
    ///
    /// If the name has no address.
    pub(crate) fn connect(
        name: &str,
        options: &MessageOptions,
        console: Console,
        signals: Signals,
    ) -> io::Result<Self> {
        let addresses: Vec<SocketAddr> = name.to_socket_addrs()?.collect();
        if addresses.is_empty() {
            return Err(io::Error::other("no address"));
        }
        let mut session = Session::new(name.to_owned(), addresses, options.size, console, signals);
        let mut packing = Packing::new(options);
        session.open(&mut packing);
        Ok(Self { packing, session })
    }
}

impl Sink for Collector {
    fn write(&mut self, record: &Record) -> Result<(), Closed> {
        let session = &mut self.session;
        self.packing.add(record, |packing, message| session.send(packing, &message));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Closed> {
        if let Some(message) = self.packing.take() {
            self.session.send(&mut self.packing, &message);
        }
        self.session.check_error(&mut self.packing);
        Ok(())
    }

    fn state(&self) -> Option<String> {
        self.session.losses()
    }

    fn losses(&self) -> Option<String> {
        self.session.losses()
    }
}

/// The socket to a collector, and what became of the messages.
struct Session {
    name: String,
    addresses: Vec<SocketAddr>,
    /// The address in use, by its index.
    at: usize,
    /// `None` after an error, until the next attempt.
    socket: Option<UdpSocket>,
    /// The addresses that a thread is resolving again.
    resolving: Option<Receiver<Vec<SocketAddr>>>,
    /// The maximum length of messages that was requested.
    size: Option<usize>,
    /// Messages since the last pause.
    burst: u32,
    /// Messages sent, lost ones included, and those known to be lost.
    messages: u64,
    lost: u64,
    error: String,
    /// Whether messages are being lost: the first loss was reported.
    is_failing: bool,
    last_loss: Instant,
    /// When another socket was opened last.
    reopened: Option<Instant>,
    /// Messages up to the last templates, and their time.
    templates: (u64, Instant),
    console: Console,
    signals: Signals,
}

impl Session {
    /// Period of templates: the collector may have been started late, or have lost one.
    const TEMPLATES_EVERY: u64 = 32;
    const TEMPLATES_AFTER: Duration = Duration::from_secs(30);

    /// Time for a collector to process the first templates: one with several workers may process
    /// the next messages at the same time. A refusal arrives within it, too.
    const HEAD_START: Duration = Duration::from_millis(50);

    /// Time between two attempts to open a socket.
    const RETRY: Duration = Duration::from_secs(1);

    /// Time without an error after which messages are received again.
    const RECOVERY: Duration = Duration::from_secs(5);

    /// Messages between two pauses: UDP has no flow control. With the pause there are at most 8000
    /// messages per second, some 160,000 records of IPv4. A socket buffer of Linux's default size
    /// holds 10 ms of that, in which the collector may be busy.
    const BURST: u32 = 8;
    const PAUSE: Duration = Duration::from_millis(1);

    fn new(
        name: String,
        addresses: Vec<SocketAddr>,
        size: Option<usize>,
        console: Console,
        signals: Signals,
    ) -> Self {
        let now = Instant::now();
        Self {
            name,
            addresses,
            at: 0,
            socket: None,
            resolving: None,
            size,
            burst: 0,
            messages: 0,
            lost: 0,
            error: String::new(),
            is_failing: false,
            last_loss: now,
            reopened: None,
            templates: (0, now),
            console,
            signals,
        }
    }

    /// Opens a socket to the first address, from the present one on, that does not refuse the
    /// templates. If all do, the present one is kept.
    fn open(&mut self, packing: &mut Packing) {
        let first = self.at;
        for step in 0..self.addresses.len() {
            self.at = (first + step) % self.addresses.len();
            match self.try_address(packing) {
                Ok(socket) => {
                    self.socket = Some(socket);
                    return;
                }
                Err(error) => self.error = error.to_string(),
            }
        }
        self.at = first;
        // A collector that refuses messages may be started later.
        self.socket = connected(self.addresses[first]).ok();
        self.report_loss(&self.error.clone());
    }

    /// Sends the templates to the present address, and waits for a refusal.
    fn try_address(&mut self, packing: &mut Packing) -> io::Result<UdpSocket> {
        let socket = connected(self.addresses[self.at])?;
        packing.set_limit(self.size.unwrap_or_else(|| size_for(&socket)));
        for message in packing.templates() {
            socket.send(&message)?;
            self.messages += 1;
        }
        self.templates = (self.messages, Instant::now());
        thread::sleep(Self::HEAD_START);
        match socket.take_error()? {
            Some(error) => {
                self.lost += 1;
                Err(error)
            }
            None => Ok(socket),
        }
    }

    /// Opens another socket, unless that was tried a moment ago. Returns whether there is one.
    fn reopen(&mut self, packing: &mut Packing) -> bool {
        if !self.can_retry() {
            return false;
        }
        self.reopened = Some(Instant::now());
        self.resolve();
        self.socket = None;
        self.open(packing);
        self.socket.is_some()
    }

    fn can_retry(&self) -> bool {
        self.reopened.is_none_or(|reopened| reopened.elapsed() >= Self::RETRY)
    }

    /// Resolves the name again, in a thread of its own, since it may take many seconds. A later
    /// attempt uses the addresses.
    fn resolve(&mut self) {
        if let Some(resolving) = &self.resolving {
            match resolving.try_recv() {
                Ok(addresses) if !addresses.is_empty() => {
                    (self.addresses, self.at, self.resolving) = (addresses, 0, None);
                }
                Ok(_) | Err(std::sync::mpsc::TryRecvError::Disconnected) => self.resolving = None,
                Err(std::sync::mpsc::TryRecvError::Empty) => {}
            }
        } else if self.name.parse::<SocketAddr>().is_err() {
            let (name, (sender, receiver)) = (self.name.clone(), channel());
            let resolve = move || {
                let addresses = name.to_socket_addrs().map(Iterator::collect);
                // The run may have ended.
                let _ = sender.send(addresses.unwrap_or_default());
            };
            let spawned = thread::Builder::new().name("resolver".to_owned()).spawn(resolve);
            self.resolving = spawned.is_ok().then_some(receiver);
        }
    }

    fn send(&mut self, packing: &mut Packing, message: &[u8]) {
        if let Err(ended) = self.signals.check_outputs() {
            self.error = ended.to_string();
            (self.messages, self.lost) = (self.messages + 1, self.lost + 1);
            return;
        }
        // A pending error is that of an earlier message, and would keep this one from being sent.
        self.check_error(packing);
        if self.socket.is_none() && !self.reopen(packing) {
            self.messages += 1;
            return self.lose();
        }
        let Err(error) = self.deliver(packing, message) else { return self.follow_path(packing) };
        // The address of this host may have changed, or a route: another socket may have one.
        self.socket = None;
        self.error = error.to_string();
        if self.reopen(packing) && self.deliver(packing, message).is_ok() {
            self.console
                .say(&format_args!("--ipfix {}: {error}: another socket was opened", self.name));
        } else {
            self.messages += 1;
            self.lose();
        }
    }

    /// Sends a message, after the templates if they are due.
    fn deliver(&mut self, packing: &Packing, message: &[u8]) -> io::Result<()> {
        if self.are_templates_due() {
            for templates in packing.templates() {
                self.try_send(&templates)?;
                self.messages += 1;
            }
            self.templates = (self.messages, Instant::now());
        }
        self.try_send(message)?;
        self.messages += 1;
        Ok(())
    }

    fn try_send(&mut self, message: &[u8]) -> io::Result<()> {
        let Some(socket) = &self.socket else { return Err(ErrorKind::NotConnected.into()) };
        match socket.send(message) {
            // Of an earlier message.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                socket.send(message)?;
                self.error = error.to_string();
                self.lose();
            }
            result => drop(result?),
        }
        self.burst += 1;
        if self.burst == Self::BURST {
            self.burst = 0;
            thread::sleep(Self::PAUSE);
        }
        Ok(())
    }

    fn are_templates_due(&self) -> bool {
        let (messages, at) = self.templates;
        self.messages - messages >= Self::TEMPLATES_EVERY || at.elapsed() >= Self::TEMPLATES_AFTER
    }

    /// Adapts the length of the next messages to the MTU of the path.
    fn follow_path(&self, packing: &mut Packing) {
        if let (Some(socket), None) = (&self.socket, self.size) {
            packing.set_limit(size_for(socket));
        }
    }

    /// Counts a loss if the network has refused a message since the last check, and tries the next
    /// address.
    fn check_error(&mut self, packing: &mut Packing) {
        let error = self.socket.as_ref().and_then(|socket| socket.take_error().ok().flatten());
        match error {
            Some(error) => {
                self.error = error.to_string();
                self.lose();
                if self.addresses.len() > 1 && self.can_retry() {
                    self.at = (self.at + 1) % self.addresses.len();
                    self.reopen(packing);
                }
            }
            None if self.is_failing && self.last_loss.elapsed() >= Self::RECOVERY => {
                self.is_failing = false;
                let (name, lost) = (&self.name, self.lost);
                let line =
                    format_args!("--ipfix {name} is reached again; {lost} messages are lost");
                self.console.say(&line);
            }
            None => {}
        }
    }

    fn lose(&mut self) {
        self.lost += 1;
        self.report_loss(&self.error.clone());
    }

    /// Reports the first loss at once.
    fn report_loss(&mut self, error: &str) {
        self.last_loss = Instant::now();
        if !self.is_failing {
            self.is_failing = true;
            let name = &self.name;
            let line = format_args!("--ipfix {name} is not reached: {error}: it is tried again");
            self.console.say(&line);
        }
    }

    /// Describes the losses, if there are any.
    fn losses(&self) -> Option<String> {
        let Self { name, lost, messages, error, .. } = self;
        let line = || format!("{name} did not receive {lost} of {messages} messages: {error}");
        (*lost > 0).then(line)
    }
}

/// The time in which a socket has to take a message: a signal is noticed only after it.
const LONGEST_WAIT: Duration = Duration::from_millis(200);

fn connected(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?,
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?,
    };
    socket.connect(address)?;
    socket.set_write_timeout(Some(LONGEST_WAIT))?;
    Ok(socket)
}

/// Returns the length of messages that are not fragmented: what the MTU of the path leaves, as far
/// as the operating system knows it, and at most what nearly all paths do.
#[cfg(target_os = "linux")]
fn size_for(socket: &UdpSocket) -> usize {
    use rustix::net::sockopt::{ip_mtu, ipv6_mtu};

    /// Lengths of the headers of IP and UDP.
    const HEADERS_V4: u32 = 28;
    const HEADERS_V6: u32 = 48;
    let known = match socket.peer_addr() {
        Ok(SocketAddr::V4(_)) => ip_mtu(socket).ok().map(|mtu| mtu.saturating_sub(HEADERS_V4)),
        Ok(SocketAddr::V6(_)) => ipv6_mtu(socket).ok().map(|mtu| mtu.saturating_sub(HEADERS_V6)),
        Err(_) => None,
    };
    let within =
        |size: u32| (size as usize).clamp(Message::MIN_LIMIT, MessageOptions::DEFAULT_SIZE);
    known.map_or(UNKNOWN_PATH, within)
}

/// The length for a path of unknown MTU, RFC 7011, 10.3.3.
const UNKNOWN_PATH: usize = 512;

#[cfg(not(target_os = "linux"))]
fn size_for(_: &UdpSocket) -> usize {
    UNKNOWN_PATH
}
