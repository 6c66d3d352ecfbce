//! In place of interfaces and filters, without libpcap.

use core::convert::Infallible;

use capture::Frame;

use crate::program::Console;

const MISSING: &str = "needs libpcap: install libpcap-dev, and build with `--features interface`";

/// No interfaces.
pub(crate) struct Interfaces(Infallible);

impl Interfaces {
    /// Fails.
    ///
    /// # Errors
    ///
    /// Always: a line with the reason.
    pub(crate) fn open(_: &[String], _: Option<&str>) -> Result<Self, String> {
        Err(format!("--interface {MISSING}"))
    }

    pub(crate) fn report_to(&mut self, _: Console) {
        match self.0 {}
    }

    pub(crate) fn read(&mut self, _: impl FnMut(&Frame<'_>)) -> bool {
        match self.0 {}
    }

    pub(crate) fn dropped(&self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn count_dropped(&mut self) -> u64 {
        match self.0 {}
    }
}

/// No filter.
pub(crate) struct Filter(Infallible);

impl Filter {
    /// Fails.
    ///
    /// # Errors
    ///
    /// Always: a line with the reason.
    pub(crate) fn new(_: &str) -> Result<Self, String> {
        Err(format!("--filter {MISSING}"))
    }

    pub(crate) fn accepts(&mut self, _: &Frame<'_>) -> bool {
        match self.0 {}
    }
}
