//! Signals that end a run early, request a report, or request that files are opened again.
//!
//! The first SIGINT, SIGTERM or SIGHUP sets a flag, which the program checks; the next one ends the
//! process at once. A signal that was ignored when the program was started, such as SIGHUP by
//! `nohup`, is ignored. A service, which has no terminal that could be closed, can take SIGHUP as a
//! request to open its files again.

use core::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A signal that ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(usize);

impl Signal {
    /// SIGHUP: the terminal was closed.
    pub const HANGUP: Self = Self(1);

    /// Returns the exit code of a process that it has ended.
    pub const fn code(self) -> u8 {
        128 + self.0 as u8
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => write!(f, "SIGHUP"),
            2 => write!(f, "SIGINT"),
            15 => write!(f, "SIGTERM"),
            number => write!(f, "signal {number}"),
        }
    }
}

/// The signals that have arrived. Copies have the same ones.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// The number of a signal that ends the run; 0 before it.
    ending: Arc<AtomicUsize>,
    /// The time at which that signal was noticed.
    noticed: Arc<OnceLock<Instant>>,
    is_report_due: Arc<AtomicBool>,
    is_reopening_due: Arc<AtomicBool>,
}

impl Signals {
    /// The time after a signal in which outputs can take results. A run ends within a second.
    const GRACE: Duration = Duration::from_millis(800);

    /// Begins to watch for signals; SIGHUP ends the run.
    ///
    /// # Errors
    ///
    /// If the operating system refuses it.
    pub fn watch() -> io::Result<Self> {
        let signals = Self::default();
        signals.register(false)?;
        Ok(signals)
    }

    /// Begins to watch for signals. SIGHUP is a request to open files again if this process has no
    /// terminal, and ends the run otherwise.
    ///
    /// # Errors
    ///
    /// If the operating system refuses it.
    pub fn watch_with_reopening() -> io::Result<Self> {
        let signals = Self::default();
        signals.register(!has_terminal())?;
        Ok(signals)
    }

    #[cfg(unix)]
    fn register(&self, reopens: bool) -> io::Result<()> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
        use signal_hook::flag;

        let is_second = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if is_ignored(signal) {
                continue;
            }
            if signal == SIGHUP && reopens {
                flag::register(signal, Arc::clone(&self.is_reopening_due))?;
                continue;
            }
            // In this order: the first signal finds the flag unset.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&is_second))?;
            flag::register(signal, Arc::clone(&is_second))?;
            flag::register_usize(signal, Arc::clone(&self.ending), signal as usize)?;
        }
        flag::register(SIGUSR1, Arc::clone(&self.is_report_due))?;
        Ok(())
    }

    /// Signals are those of Unix; others end the process.
    #[cfg(not(unix))]
    fn register(&self, _: bool) -> io::Result<()> {
        Ok(())
    }

    /// Returns the signal that ends the run, if one has arrived.
    pub fn ending(&self) -> Option<Signal> {
        // Relaxed: the flag publishes no other data.
        match self.ending.load(Ordering::Relaxed) {
            0 => None,
            number => Some(Signal(number)),
        }
    }

    /// Returns a failure if a signal has ended the run, and the time of its outputs is over.
    ///
    /// # Errors
    ///
    /// That signal.
    pub(crate) fn check_outputs(&self) -> io::Result<()> {
        let Some(signal) = self.ending() else { return Ok(()) };
        match self.noticed.get_or_init(Instant::now).elapsed() < Self::GRACE {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::TimedOut, format!("ended by {signal}"))),
        }
    }

    /// Returns whether a report was requested since the last call.
    pub fn take_report_request(&self) -> bool {
        take(&self.is_report_due)
    }

    /// Returns whether reopening of files was requested since the last call.
    pub fn take_reopening_request(&self) -> bool {
        take(&self.is_reopening_due)
    }
}

/// Clears a flag, and returns its value. The flags publish no other data.
fn take(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Relaxed) && flag.swap(false, Ordering::Relaxed)
}

/// Returns whether this process has a controlling terminal. To be called before the terminal can
/// be closed.
#[cfg(unix)]
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

#[cfg(not(unix))]
fn has_terminal() -> bool {
    true
}

/// Returns whether a signal is ignored, as far as the operating system shows that.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (signal - 1) != 0)
}
