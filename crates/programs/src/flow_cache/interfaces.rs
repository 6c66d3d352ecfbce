//! Packets of network interfaces, by libpcap.
//!
//! ```text
//!     kernel ─► ring of an interface ─► Frame, in place ─► each
//!                     │
//!                     └► down, or gone: opened again each second
//! ```

use core::fmt;
use std::time::{Duration, Instant};

use capture::Frame;
use nix::net::if_::InterfaceFlags;
use pcap::{Active, Capture, Error, Precision};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::program::Console;

/// Bytes of a packet that are read: the headers.
const SNAP_LEN: i32 = 512;

/// Bytes of packets that wait in the kernel, at most, for each interface.
const RING: i32 = 32 << 20;

/// The time in milliseconds after which the kernel passes packets on, even if they are few.
const DELAY_MS: i32 = 50;

/// The time after which other work is done.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The interfaces of a run.
pub(crate) struct Interfaces {
    all: Vec<Interface>,
    filter: Option<String>,
    /// When the interfaces were checked last.
    checked: Instant,
    console: Option<Console>,
}

struct Interface {
    name: String,
    /// `None` while it cannot be opened.
    capture: Option<Capture<Active>>,
    link: u16,
    is_down: bool,
    /// Packets that were dropped, since the program or the interface was too slow; the counter of
    /// the kernel, which has 32 bits; and when that was reported last.
    dropped: u64,
    counter: u32,
    reported: Option<Instant>,
}

impl Interfaces {
    /// Packets that are read from an interface before the next one.
    const BATCH: usize = 256;

    /// The time between two checks.
    const PERIOD: Duration = Duration::from_secs(1);

    /// Opens interfaces.
    ///
    /// # Errors
    ///
    /// A line about the interface that cannot be opened, or about the filter.
    pub(crate) fn open(names: &[String], filter: Option<&str>) -> Result<Self, String> {
        let open = |name: &String| {
            let capture = open(name, filter).map_err(|error| error.of(name, filter))?;
            let link = link(&capture);
            Ok(Interface {
                name: name.clone(),
                capture: Some(capture),
                link,
                is_down: false,
                dropped: 0,
                counter: 0,
                reported: None,
            })
        };
        let all = names.iter().map(open).collect::<Result<_, String>>()?;
        let filter = filter.map(str::to_owned);
        Ok(Self { all, filter, checked: Instant::now(), console: None })
    }

    /// Reports events of interfaces there from now on.
    pub(crate) fn report_to(&mut self, console: Console) {
        self.console = Some(console);
    }

    /// Passes packets that have arrived to `each`; waits for one for a limited time. Returns
    /// whether there was one.
    pub(crate) fn read(&mut self, mut each: impl FnMut(&Frame<'_>)) -> bool {
        if self.checked.elapsed() >= Self::PERIOD {
            self.check();
        }
        if self.read_once(&mut each) > 0 {
            return true;
        }
        self.wait();
        self.read_once(&mut each) > 0
    }

    /// Passes a batch of packets of each interface to `each`. Returns their number.
    fn read_once(&mut self, each: &mut impl FnMut(&Frame<'_>)) -> usize {
        let mut count = 0;
        for interface in &mut self.all {
            match interface.read(each) {
                Ok(more) => count += more,
                Err(error) => {
                    let name = &interface.name;
                    let then = "it is opened again when that is possible";
                    say(self.console.as_ref(), &format_args!("interface {name}: {error}: {then}"));
                    (interface.capture, interface.is_down) = (None, true);
                }
            }
        }
        count
    }

    fn wait(&self) {
        let captures = self.all.iter().filter_map(|interface| interface.capture.as_ref());
        let mut files: Vec<_> = captures.map(|one| PollFd::new(one, PollFlags::IN)).collect();
        let is_broken = match poll(&mut files, Some(&WAIT)) {
            // The socket of an interface that is down is always ready, with an error.
            Ok(_) => files.iter().any(|file| file.revents().contains(PollFlags::ERR)),
            Err(_) => false,
        };
        if is_broken || files.is_empty() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Opens interfaces again, and reports what has changed.
    fn check(&mut self) {
        self.checked = Instant::now();
        for interface in &mut self.all {
            let console = self.console.as_ref();
            let (name, was_down) = (&interface.name, interface.is_down);
            match &mut interface.capture {
                None => {
                    if let Ok(capture) = open(name, self.filter.as_deref()) {
                        (interface.link, interface.counter) = (link(&capture), 0);
                        (interface.capture, interface.is_down) = (Some(capture), false);
                    }
                }
                Some(capture) => {
                    interface.is_down = !is_up(name);
                    if let Ok(stat) = capture.stats() {
                        let counter = stat.dropped.wrapping_add(stat.if_dropped);
                        let more = counter.wrapping_sub(interface.counter);
                        interface.dropped += u64::from(more);
                        interface.counter = counter;
                    }
                }
            }
            match (was_down, interface.is_down) {
                (false, true) => say(console, &format_args!("interface {name} is down")),
                (true, false) => say(console, &format_args!("interface {name} is up again")),
                _ => {}
            }
            interface.report_drops(console);
        }
    }

    /// Returns the number of packets that arrived too fast.
    pub(crate) fn dropped(&self) -> u64 {
        self.all.iter().map(|interface| interface.dropped).sum()
    }

    /// Returns a new count of [`dropped`](Self::dropped) packets.
    pub(crate) fn count_dropped(&mut self) -> u64 {
        self.check();
        self.dropped()
    }
}

impl Interface {
    /// The time between two reports of drops.
    const PERIOD: Duration = Duration::from_secs(60);

    fn read(&mut self, each: &mut impl FnMut(&Frame<'_>)) -> Result<usize, Error> {
        let Some(capture) = &mut self.capture else { return Ok(0) };
        let link = self.link;
        capture.dispatch(Some(Interfaces::BATCH), |packet| {
            let time = packet.header.ts;
            // With nanoseconds in place of microseconds, as requested.
            let time_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64;
            let wire_len = packet.header.len;
            each(&Frame { time_ns, link, wire_len, data: packet.data });
        })
    }

    fn report_drops(&mut self, console: Option<&Console>) {
        let is_due = self.reported.is_none_or(|at| at.elapsed() >= Self::PERIOD);
        if self.dropped > 0 && is_due {
            self.reported = Some(Instant::now());
            let (name, count) = (&self.name, self.dropped);
            let lost = "packets arrived too fast, and are lost";
            say(console, &format_args!("interface {name}: {count} {lost}"));
        }
    }
}

fn say(console: Option<&Console>, what: &dyn fmt::Display) {
    if let Some(console) = console {
        console.say(what);
    }
}

/// The reason why an interface cannot be opened.
enum Failure {
    Interface(Error),
    Filter(Error),
}

impl Failure {
    fn of(&self, name: &str, filter: Option<&str>) -> String {
        match self {
            Self::Interface(error) => format!("interface {name} cannot be read: {error}"),
            Self::Filter(error) => format!("--filter {}: {error}", filter.unwrap_or_default()),
        }
    }
}

fn open(name: &str, filter: Option<&str>) -> Result<Capture<Active>, Failure> {
    let capture = Capture::from_device(name).map_err(Failure::Interface)?;
    let capture = capture.snaplen(SNAP_LEN).buffer_size(RING).timeout(DELAY_MS);
    let capture = capture.precision(Precision::Nano).open().map_err(Failure::Interface)?;
    let mut capture = capture.setnonblock().map_err(Failure::Interface)?;
    if let Some(filter) = filter {
        capture.filter(filter, true).map_err(Failure::Filter)?;
    }
    Ok(capture)
}

fn link(capture: &Capture<Active>) -> u16 {
    // No link type has more bits.
    capture.get_datalink().0 as u16
}

/// Returns whether an interface is up, as far as the operating system shows that.
fn is_up(name: &str) -> bool {
    let Ok(mut all) = nix::ifaddrs::getifaddrs() else { return true };
    let interface = all.find(|one| one.interface_name == name);
    interface.is_none_or(|one| one.flags.contains(InterfaceFlags::IFF_UP))
}
