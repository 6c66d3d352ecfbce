//! Signals that end a run early, or request a report.
//!
//! The first SIGINT, SIGTERM or SIGHUP sets a flag, which the program checks; the next one ends the
//! process at once. A signal that was ignored when the program was started, such as SIGHUP by
//! `nohup`, is ignored.

use core::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A signal that ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(usize);

impl Signal {
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

/// The signals that have arrived.
#[derive(Debug)]
pub struct Signals {
    /// The number of a signal that ends the run; 0 before it.
    ending: Arc<AtomicUsize>,
    is_report_due: Arc<AtomicBool>,
}

impl Signals {
    /// Begins to watch for signals.
    ///
    /// # Errors
    ///
    /// If the operating system refuses it.
    pub fn watch() -> io::Result<Self> {
        let signals = Self {
            ending: Arc::new(AtomicUsize::new(0)),
            is_report_due: Arc::new(AtomicBool::new(false)),
        };
        signals.register()?;
        Ok(signals)
    }

    #[cfg(unix)]
    fn register(&self) -> io::Result<()> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
        use signal_hook::flag;

        let is_second = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if is_ignored(signal) {
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
    fn register(&self) -> io::Result<()> {
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

    /// Returns whether a report was requested since the last call.
    pub fn take_report_request(&self) -> bool {
        self.is_report_due.load(Ordering::Relaxed)
            && self.is_report_due.swap(false, Ordering::Relaxed)
    }
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
