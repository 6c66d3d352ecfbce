//! A flow meter for packet captures: the main use of the crate, from end to end.
//!
//! ```text
//! cargo run --release --example flow_cache                      # generated traffic
//! cargo run --release --example flow_cache -- capture.pcapng.gz --csv flows.csv
//! tcpdump -U -w - | cargo run --release --example flow_cache -- - --timeouts meter --live \
//!     --ipfix 127.0.0.1:2055
//! ```
//!
//! Prints totals, how flows ended, the largest of them, and the metrics of the cache. Writes
//! records as CSV, as JSON, and as IPFIX. By default, a flow ends only with the capture, or beyond
//! a million flows: captures in, exact flows out.
//!
//! Exits with 0 if the capture was read, even if it is cut; with 1 if the results could not be
//! written or did not arrive; with 2 if the input is not a capture or is damaged, or the arguments
//! are wrong.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Instant;

use capture::Capture;
use programs::flow_cache::{Export, Live, Meter, Options, Reading, Report, open_sinks};
use programs::program::failure::{Failure, Kind};
use programs::program::{Program, print};
use programs::trace::Trace;

/// The generated traffic is the same in each run.
const SEED: u64 = 2006;

fn main() -> ExitCode {
    Program::run("flow_cache", try_main)
}

fn try_main(program: Program, options: Options) -> Result<(), Failure> {
    let config = options.config()?;
    let mut trace_program = program;
    // A bar would disturb results on a terminal.
    trace_program.quiet |= options.standard_outputs() > 0 && io::stdout().is_terminal();
    let (name, trace) = match &options.capture {
        Some(input) => (input.to_string(), Trace::open(trace_program, input)?),
        None => {
            let name = "generated traffic (no capture was named)";
            (name.to_owned(), Trace::generated(trace_program, SEED))
        }
    };
    // Created only now: a mistyped name of a capture must not destroy an older output file.
    let sinks = open_sinks(&options).map_err(|why| Failure::new(Kind::Input, why))?;
    let mut export = Export::new(sinks, options.top);
    let mut meter = Meter::new(config, options.ending.detects_close());
    let reading = trace.read(program, |capture, bar| {
        let live = options.live.then(|| Live::new(bar, options.top)).flatten();
        Ok(read(capture, &mut meter, &mut export, live)?)
    })?;
    let metrics = meter.metrics();
    for record in meter.drain() {
        export.take(record)?;
    }
    export.flush()?;
    let (counts, losses) = (export.counts(), export.losses());
    let (totals, largest) = (meter.totals(), export.largest());
    let report = Report { name: &name, reading, totals, counts, largest, metrics: &metrics };
    match options.standard_outputs() {
        0 => print(&report)?,
        // Separate from the results. A closed standard error is ignored.
        _ if !program.quiet => _ = write!(io::stderr(), "{report}"),
        _ => {}
    }
    losses.map_or(Ok(()), |losses| Err(Failure::new(Kind::Results, losses)))
}

/// Meters all frames.
fn read(
    capture: &mut Capture,
    meter: &mut Meter,
    export: &mut Export,
    mut live: Option<Live>,
) -> io::Result<Reading> {
    let start = Instant::now();
    while let Some(frame) = capture.next_frame() {
        while !meter.advance(&frame) {
            export.take_all(meter.take_records())?;
        }
        meter.observe(&frame);
        export.take_all(meter.take_records())?;
        export.tick(meter.cache().now())?;
        if let Some(live) = &mut live {
            live.packet(meter);
        }
    }
    Ok(Reading { elapsed: start.elapsed(), skipped_blocks: capture.skipped_blocks() })
}
