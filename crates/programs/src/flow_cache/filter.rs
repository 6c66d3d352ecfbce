//! BPF filters of packets of captures: the expressions of tcpdump.

use capture::Frame;
use pcap::{BpfProgram, Capture, Error, Linktype};

/// A filter, compiled for each link type that occurs.
pub(crate) struct Filter {
    expression: String,
    /// The program of a link type; `None` if the expression accepts none of its packets.
    programs: Vec<(u16, Option<BpfProgram>)>,
}

impl Filter {
    /// Creates a filter from an expression.
    ///
    /// # Errors
    ///
    /// If the expression is invalid.
    pub(crate) fn new(expression: &str) -> Result<Self, String> {
        const ETHERNET: u16 = 1;
        const RAW: u16 = 101;
        let compiled = [ETHERNET, RAW].map(|link| (link, compiled(expression, link)));
        if let [(_, Err(error)), (_, Err(_))] = &compiled {
            return Err(format!("--filter {expression}: {error}"));
        }
        let programs = compiled.into_iter().map(|(link, program)| (link, program.ok()));
        Ok(Self { expression: expression.to_owned(), programs: programs.collect() })
    }

    /// Returns whether a frame passes.
    pub(crate) fn accepts(&mut self, frame: &Frame<'_>) -> bool {
        let known = self.programs.iter().position(|(link, _)| *link == frame.link);
        let at = known.unwrap_or_else(|| {
            let program = compiled(&self.expression, frame.link).ok();
            self.programs.push((frame.link, program));
            self.programs.len() - 1
        });
        self.programs[at].1.as_ref().is_some_and(|program| program.filter(frame.data))
    }
}

fn compiled(expression: &str, link: u16) -> Result<BpfProgram, Error> {
    /// The number of raw IP, which in memory is not that of files.
    const RAW: i32 = 12;
    let number = if link == 101 { RAW } else { i32::from(link) };
    Capture::dead(Linktype(number))?.compile(expression, true)
}
