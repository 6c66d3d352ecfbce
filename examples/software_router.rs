//! Who forwards the next packet? A router in user space under four schedules, and under none.
//!
//! ```text
//! cargo run --release --example software_router                        # generated traffic
//! cargo run --release --example software_router -- --load 300
//! cargo run --release --example software_router -- capture.pcapng.gz --measure
//! ```
//!
//! Packets arrive at three ports, are classified by their flows, forwarded by functions of which one takes a hundred
//! times as long as another, and sent. Each stage is a thread of the crate's scheduler, between queues that have an
//! end. Prints throughput, drops and queues of each path, and the part of the time that went to packets and not to
//! switches: for turns of one packet, of sixteen, of a timeslice, and of the batching throttle. Then it shows what
//! becomes of a router that reads whatever arrives before it does anything else: the more comes, the less leaves.
//!
//! Exits with 0; with 1 if packets are nowhere, or leave otherwise under one schedule than under another, or the
//! results could not be written; with 2 if there is no capture to read, it has no IP packets, or the arguments are
//! wrong.

mod capture;
mod program;
mod software_router_parts;

use std::io::{self, Write};
use std::process::ExitCode;

use capture::{Capture, synth};
use program::{Failure, Program, open};
use software_router_parts::{Contest, Costs, Options, Report, Traffic, USAGE};

const PROGRAM: Program = Program("software_router");

/// The generated traffic is the same in each run.
const SEED: u64 = 2001;

fn main() -> ExitCode {
    PROGRAM.end(try_main())
}

fn try_main() -> Result<(), Failure> {
    let options = Options::from_env()?;
    if options.help {
        return Ok(io::stdout().write_all(USAGE.as_bytes())?);
    }
    let (name, traffic) = read(&options)?;
    let costs = if options.measure { Costs::measured(&traffic) } else { Costs::PAPER };
    let contest = Contest::new(&traffic, &costs, options.load);
    let report = Report { name: &name, contest: &contest };
    io::stdout().write_all(report.to_string().as_bytes())?;
    contest.verdict()
}

/// The IP packets of the capture, or generated ones, and what they are called.
fn read(options: &Options) -> Result<(String, Traffic), Failure> {
    let (name, mut capture) = match &options.capture {
        Some(path) => (path.display().to_string(), open(path)?),
        None => {
            let name = "generated traffic".to_owned();
            let made = Capture::memory(synth::capture(SEED));
            let made = made.map_err(|error| Failure::Input(name.clone(), error))?;
            (name, made)
        }
    };
    let traffic = Traffic::read(&mut capture);
    let traffic = traffic.ok_or_else(|| Failure::Nothing(name.clone(), "IP packet to forward"))?;
    PROGRAM.say_end(&capture, traffic.packets.len());
    Ok((name, traffic))
}
