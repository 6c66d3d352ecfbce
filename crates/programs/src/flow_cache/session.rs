//! A run of the meter: captures in, records and a report out.
//!
//! ```text
//!     Inputs ──► frame ──► Intake ──► Engine: meters, records ──► Export ──► files, collector
//!        │                   ▲
//!        └► silence: the time of the clock on the wall
//!     Signals ─► the end of the run, or a report
//! ```

use core::task::Poll;
use core::time::Duration;
use std::io::{self, IsTerminal, Write};
use std::time::{Instant, SystemTime};

use flowtable::Timestamp;

use super::engine::Engine;
use super::export::Export;
use super::files::open_outputs;
use super::inputs::{Inputs, Problems};
use super::report::{Reading, Report};
use super::screen::Live;
use super::{Intake, Options};
use crate::program::failure::{Failure, Kind};
use crate::program::signals::{Signal, Signals};
use crate::program::{Console, Program, print};

/// Runs the meter. All results are written, and the report is printed, even if the captures are
/// damaged, an output cannot be written, or a signal ends the run.
///
/// # Errors
///
/// The most severe failure; the others are reported in lines of their own.
pub fn run(program: Program, options: &Options) -> Result<(), Failure> {
    let configs = options.configs()?;
    let signals = Signals::watch_with_reopening()
        .map_err(|error| Failure::new(Kind::Input, format_args!("signals: {error}")))?;
    let has_terminal = io::stdout().is_terminal();
    let mut bar_program = program;
    // A bar would disturb results on a terminal.
    bar_program.quiet |= options.standard_outputs() > 0 && has_terminal;
    let mut inputs = Inputs::open(bar_program, options, &signals)?;
    // Created only now: a mistyped name of a capture must not destroy an older output file.
    let console = Console::new(program, inputs.bar().clone());
    inputs.report_to(console.clone());
    let outputs =
        open_outputs(options, &console, &signals).map_err(|why| Failure::new(Kind::Input, why))?;
    let live = options.live.then(|| Live::new(inputs.bar(), options.top)).flatten();
    let mut session = Session {
        intake: Intake::new(options),
        engine: Engine::new(configs, options, outputs)?,
        live,
        name: options.input_name(),
        start: Instant::now(),
        silence: None,
        has_terminal,
    };
    let problems = session.read(inputs, &signals);
    match session.engine.is_closed() {
        true => Ok(()),
        false => session.finish(program, options, &problems, &signals),
    }
}

/// A silence of the input.
struct Silence {
    /// When it was noticed.
    since: Instant,
    /// The time of the packets at that.
    time: Timestamp,
}

struct Session {
    intake: Intake,
    engine: Engine,
    live: Option<Live>,
    /// The names of the captures.
    name: String,
    start: Instant,
    silence: Option<Silence>,
    /// Whether the report is for a terminal.
    has_terminal: bool,
}

impl Session {
    /// Time that a live input has to deliver what is on its way, after a signal has ended the run.
    const LAST_PACKETS: Duration = Duration::from_millis(500);

    /// The silence after which time goes on by the clock on the wall.
    const SILENCE: Duration = Duration::from_secs(1);

    /// Meters all frames, until the inputs end or a signal does. Returns what was wrong with the
    /// inputs.
    fn read(&mut self, mut inputs: Inputs, signals: &Signals) -> Problems {
        let mut deadline = None;
        while !self.engine.is_closed() {
            let is_ending = signals.ending().is_some();
            if is_ending {
                let now = Instant::now();
                let deadline = *deadline.get_or_insert(now + Self::LAST_PACKETS);
                if now >= deadline || !inputs.is_live() {
                    break;
                }
            }
            let is_live = inputs.is_live();
            let Self { intake, engine, .. } = self;
            let read = inputs.read(|frame| intake.observe(frame, engine));
            engine.settle();
            match read {
                Poll::Ready(true) => self.silence = None,
                Poll::Ready(false) => break,
                Poll::Pending if is_ending => break,
                Poll::Pending if is_live => self.pass_time(),
                // A long way without a packet.
                Poll::Pending => {}
            }
            self.draw();
            if signals.take_report_request() {
                self.report_progress(&inputs.problems());
            }
            if signals.take_reopening_request() {
                self.engine.with_export(Export::reopen);
            }
        }
        inputs.finish()
    }

    /// Continues while the input is silent.
    fn pass_time(&mut self) {
        let Self { intake, engine, .. } = self;
        let (now, time) = (Instant::now(), intake.now());
        let silence = self.silence.get_or_insert(Silence { since: now, time });
        let passed = now.duration_since(silence.since);
        if passed >= Self::SILENCE && intake.totals().packets > 0 {
            intake.settle(latest_time(), engine);
            intake.pass_time(silence.time + passed, engine);
        }
        engine.flush();
    }

    fn draw(&mut self) {
        if let (Some(live), Some(meter)) = (&mut self.live, self.engine.single()) {
            live.packet(self.intake.totals(), meter);
        }
    }

    /// Writes a report of the run so far to standard error.
    fn report_progress(&mut self, problems: &Problems) {
        let mut text = self.report(problems);
        for line in self.engine.with_export(|export| export.failures()) {
            text.push_str(&line);
            text.push('\n');
        }
        // A closed standard error is ignored.
        let write = || write!(io::stderr(), "{text}");
        let _ = match &self.live {
            Some(live) => live.suspend(write),
            None => write(),
        };
    }

    fn report(&mut self, problems: &Problems) -> String {
        let Problems { damages, dropped, .. } = *problems;
        let reading = Reading { elapsed: self.start.elapsed(), damages, dropped };
        let metrics = self.engine.metrics();
        let (name, totals) = (&self.name, self.intake.totals());
        self.engine.with_export(|export| {
            let (counts, largest) = (export.counts(), export.largest());
            Report { name, reading, totals, counts, metrics, largest }.to_string()
        })
    }

    /// Writes the flows that are left and the report, and returns the most severe failure.
    fn finish(
        mut self,
        program: Program,
        options: &Options,
        problems: &Problems,
        signals: &Signals,
    ) -> Result<(), Failure> {
        self.live = None;
        let Self { intake, engine, .. } = &mut self;
        intake.finish(latest_time(), engine);
        engine.finish();
        if engine.is_closed() {
            return Ok(());
        }
        problems.lines.iter().for_each(|line| program.log(line));
        let mut failures = self.engine.with_export(|export| export.failures());
        let report = self.report(problems);
        let printed = match options.standard_outputs() {
            0 => print(&report),
            // Separate from the results. A closed standard error is ignored.
            _ if !program.quiet => {
                let _ = io::stderr().write_all(report.as_bytes());
                Ok(())
            }
            _ => Ok(()),
        };
        // No terminal is left that could show the report.
        let is_hung_up = self.has_terminal && signals.ending() == Some(Signal::HANGUP);
        failures.extend(printed.err().filter(|_| !is_hung_up).map(|failure| failure.to_string()));
        if let Some(last) = failures.pop() {
            failures.iter().for_each(|line| program.log(line));
            return Err(Failure::new(Kind::Results, last));
        }
        if let Some(signal) = signals.ending() {
            return Err(Failure::new(Kind::Signal(signal), format_args!("ended by {signal}")));
        }
        if problems.is_damaged {
            return Err(Failure::new(Kind::Input, "the captures are damaged: packets are missing"));
        }
        self.intake.totals().parsed.verdict()
    }
}

/// Returns the latest time that a packet of the present can have: that of this computer and a day,
/// since its clock may be wrong by a time zone.
fn latest_time() -> Timestamp {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::ZERO + now + Duration::from_secs(24 * 3600)
}
