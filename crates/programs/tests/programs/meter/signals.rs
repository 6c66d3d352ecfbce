//! Signals and silence: live runs, with a real process and a pipe.

use std::fs;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use capture::data::{
    ETHERNET, LITTLE, MICROSECONDS, announce, block, compressed, folder, gzip, interface, pcap,
    section, udp,
};

use super::Record;
use crate::run::{Run, example};

/// How long a test waits for what should happen soon, on a busy computer.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Returns a command that runs the example with the default reactions to signals: those that are
/// ignored here, as they are in the background of a script, would be ignored there, too.
fn live_example() -> Command {
    let reset = "--default-signal=INT,TERM,HUP,USR1";
    let can_reset = Command::new("env").args([reset, "true"]).output();
    if can_reset.is_ok_and(|output| output.status.success()) {
        let mut command = Command::new("env");
        command.arg(reset).arg(example());
        return command;
    }
    Command::new(example())
}

/// A run on a pipe that stays open.
pub(super) struct LiveRun {
    child: Child,
    pipe: ChildStdin,
    /// Its standard error so far.
    errors: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl LiveRun {
    fn new(arguments: &[&str]) -> Self {
        Self::with(&[&["-"], arguments].concat())
    }

    /// Runs it with these arguments, and perhaps another input than the pipe.
    pub(super) fn with(arguments: &[&str]) -> Self {
        let mut command = live_example();
        command.args(arguments);
        Self::spawn(command)
    }

    /// Runs it without a terminal, as services are.
    pub(super) fn service(arguments: &[&str]) -> Self {
        Self::within(&["setsid"], arguments)
    }

    /// Runs it by a command, which executes what its last arguments are.
    pub(super) fn within(by: &[&str], arguments: &[&str]) -> Self {
        let live = live_example();
        let mut command = Command::new(by[0]);
        command.args(&by[1..]).arg(live.get_program()).args(live.get_args()).args(arguments);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the example can be run");
        let pipe = child.stdin.take().expect("it is piped");
        let mut stderr = child.stderr.take().expect("it is piped");
        let errors = Arc::new(Mutex::new(String::new()));
        let collected = Arc::clone(&errors);
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]);
                collected.lock().expect("no reader panics").push_str(&text);
            }
        });
        Self { child, pipe, errors, reader }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.pipe.write_all(bytes).expect("the pipe is open");
    }

    /// Returns what it has written to standard error so far.
    pub(super) fn errors(&self) -> String {
        self.errors.lock().expect("no reader panics").clone()
    }

    /// Waits until it has written these words to standard error.
    pub(super) fn wait_for_error(&self, words: &str) {
        let start = Instant::now();
        while !self.errors().contains(words) {
            assert!(start.elapsed() < PATIENCE, "{words:?} is not in {:?}", self.errors());
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.expect("there is kill").success());
    }

    /// Waits until the process catches SIGINT.
    fn wait_for_handlers(&self) {
        let status = format!("/proc/{}/status", self.child.id());
        let is_caught = |status: String| {
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
            Some(u64::from_str_radix(mask.trim(), 16).ok()? & 2 > 0)
        };
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            match fs::read_to_string(&status).ok().and_then(is_caught) {
                Some(true) => return,
                Some(false) => thread::sleep(Duration::from_millis(10)),
                // Another system.
                None => return thread::sleep(Duration::from_secs(2)),
            }
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether it has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it can be waited for").is_some()
    }

    /// Waits for the end, with the pipe open.
    pub(super) fn end(mut self) -> Run {
        let start = Instant::now();
        while !self.has_ended() {
            assert!(start.elapsed() < PATIENCE, "it does not end");
            thread::sleep(Duration::from_millis(10));
        }
        self.output()
    }

    /// Closes the pipe, and waits for the end.
    fn output(self) -> Run {
        let Self { child, pipe, errors, reader } = self;
        drop(pipe);
        let mut run = Run::new(child.wait_with_output().expect("it has ended"));
        reader.join().expect("it does not panic");
        run.stderr = errors.lock().expect("no reader panics").clone();
        run
    }
}

/// Returns a path for a file, and its name.
fn place(name: &str) -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    let name = path.to_str().expect("the build folder has a name in UTF-8").to_owned();
    (path, name)
}

/// Waits until the file has these words.
pub(super) fn wait_for(path: &Path, words: &str) {
    let start = Instant::now();
    while !fs::read_to_string(path).is_ok_and(|text| text.contains(words)) {
        assert!(start.elapsed() < PATIENCE, "{words} is not in {}", path.display());
        thread::sleep(Duration::from_millis(10));
    }
}

/// Returns a capture of this many flows of one packet.
fn flows(count: u16, second: u32) -> Vec<u8> {
    flows_to(53, count, second)
}

fn flows_to(dport: u16, count: u16, second: u32) -> Vec<u8> {
    let frames: Vec<_> = (1..=count).map(|port| udp(port, dport, 0)).collect();
    let records: Vec<_> = (1..).zip(&frames).map(|(at, frame)| (second, at, &frame[..])).collect();
    pcap(LITTLE, MICROSECONDS, ETHERNET, &records)
}

/// All flows are drained, all files are flushed, and the report is printed.
#[test]
fn a_signal_ends_a_run_as_the_end_of_its_input_would() {
    // SIGHUP opens files again if there is no terminal.
    for (name, code, workers) in [("INT", 130, "1"), ("TERM", 143, "3")] {
        let (csv, csv_name) = place(&format!("ended by {name}.csv"));
        let (ipfix, ipfix_name) = place(&format!("ended by {name}.ipfix"));
        let arguments = ["--csv", &csv_name, "--ipfix", &ipfix_name, "--workers", workers];
        let mut run = LiveRun::new(&arguments);
        run.write(&flows(5000, 1_700_000_000));
        run.signal(name);
        let run = run.end();
        assert_eq!(run.code, Some(code), "{run:?}");
        assert_eq!(run.errors(), [format!("flow_cache: ended by SIG{name}")]);
        let rows = fs::read_to_string(csv).expect("it was written");
        assert_eq!(rows.lines().count() as u64, 1 + run.count("packets, "));
        assert_eq!(rows.lines().count(), 5001, "{run:?}");
        assert!(fs::metadata(ipfix).expect("it was written").len() > 5000 * 50);
        assert!(run.stdout.contains("packets per second"), "{run:?}");
    }
}

/// The churn capture: 13,688 rows, as without a signal.
#[test]
fn a_signal_loses_no_row_of_a_real_capture() {
    const TEST: &str = "a_signal_loses_no_row_of_a_real_capture";
    let path = folder().map(|folder| folder.join("mix/lab-http-churn-small.pcap.gz"));
    let Some(capture) = path.and_then(|path| fs::read(path).ok()) else {
        return announce(TEST, format_args!("SKIPPED: {}", capture::data::NO_CAPTURES));
    };
    let (csv, name) = place("no_row_lost.csv");
    let mut run = LiveRun::new(&["--csv", &name]);
    run.write(&capture);
    run.signal("INT");
    let run = run.end();
    assert_eq!(run.code, Some(130), "{run:?}");
    let rows = fs::read_to_string(csv).expect("it was written");
    assert_eq!(rows.lines().count(), 1 + 13_688);
}

/// An output whose reader does not read: the rows that it does not take are lost, and counted.
#[test]
fn a_signal_ends_an_export_to_a_full_pipe() {
    const FLOWS: usize = 20_000;
    for workers in ["1", "2"] {
        let mut run = LiveRun::new(&["--csv", "-", "--workers", workers]);
        // More rows than a pipe holds.
        run.write(&flows(FLOWS as u16, 1_700_000_000));
        run.signal("TERM");
        let run = run.end();
        assert_eq!(run.code, Some(1), "{run:?}");
        let errors = run.errors().join("\n");
        assert!(errors.contains("cannot be written: ended by SIGTERM; "), "{errors}");
        let lost = run.count("rows are lost") as usize;
        assert_eq!(run.stdout.matches('\n').count(), 1 + FLOWS - lost, "{run:?}");
    }
}

/// A collector gets no more than UDP can take: the last messages of many flows take seconds.
#[test]
fn a_signal_ends_a_long_export_to_a_collector() {
    let collector = UdpSocket::bind("127.0.0.1:0").expect("there is a port");
    let address = collector.local_addr().expect("it is bound").to_string();
    let mut run = LiveRun::new(&["--ipfix", &address, "--message-size", "512"]);
    for server_port in 1..=4 {
        run.write(&flows_to(server_port, 50_000, 1_700_000_000));
    }
    run.signal("TERM");
    let run = run.end();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("messages: ended by SIGTERM"), "{run:?}");
}

#[test]
fn a_second_interrupt_ends_at_once() {
    // Standard error blocks the last lines: it is the pipe that the rows have filled.
    let shell = ["sh", "-c", "exec \"$0\" \"$@\" 2>&1"];
    let mut run = LiveRun::within(&shell, &["-", "--csv", "-"]);
    run.write(&flows(20_000, 1_700_000_000));
    run.signal("INT");
    thread::sleep(Duration::from_millis(1500));
    assert!(!run.has_ended());
    run.signal("INT");
    let run = run.end();
    assert_eq!(run.code, Some(130));
    assert!(run.stdout.lines().count() < 20_000);
}

/// Before the capture begins, too; then there is nothing to report.
#[test]
fn a_signal_ends_a_run_without_packets() {
    let run = LiveRun::new(&[]);
    run.wait_for_handlers();
    run.signal("INT");
    let run = run.end();
    assert_eq!((run.code, run.stdout.as_str()), (Some(130), ""), "{run:?}");
    assert_eq!(run.errors(), ["flow_cache: SIGINT before the beginning of standard input"]);
}

/// During a search after a damage, which would take minutes; in one capture, and in the first of
/// several, whose beginnings are read before all others.
#[test]
fn a_signal_ends_a_long_search() {
    let (path, name) = place("long search.pcap.gz");
    let damage = gzip(&vec![0xa5; 1 << 24]);
    let mut capture = gzip(&flows(100, 1_700_000_000));
    capture.extend(damage.repeat(500));
    fs::write(&path, capture).expect("the build folder can be written");
    let (empty, other) = place("no packet.pcap.gz");
    let header = pcap(LITTLE, MICROSECONDS, ETHERNET, &[]);
    let bytes = [gzip(&[&header[..], &[0xa5; 100]].concat()), damage.repeat(500)].concat();
    fs::write(&empty, bytes).expect("the build folder can be written");
    for (captures, packets) in [(vec![&name[..]], "100 packets, "), (vec![&other, &name], "")] {
        let run = LiveRun::with(&captures);
        run.wait_for_handlers();
        thread::sleep(Duration::from_secs(1));
        run.signal("TERM");
        let run = run.end();
        assert_eq!(run.code, Some(143), "{run:?}");
        assert!(run.stdout.contains(packets), "{run:?}");
    }
}

/// During the decompression of blocks without packets: gigabytes, which would take a minute.
#[test]
fn a_signal_ends_a_long_decompression() {
    const CUSTOM: u32 = 0xbad;
    const MOST: usize = 1 << 26;
    let head = compressed(&[section(LITTLE), interface(LITTLE, None, None)].concat());
    let blocks = compressed(&block(LITTLE, CUSTOM, &vec![0; (1 << 24) - 12]));
    for ((format, head), (_, blocks)) in head.into_iter().zip(blocks) {
        let (path, name) = place(&format!("long {format}.pcapng"));
        let count = (MOST / blocks.len()).min(10_000);
        fs::write(&path, [head, blocks.repeat(count)].concat()).expect("it can be written");
        let run = LiveRun::with(&[&name]);
        run.wait_for_handlers();
        thread::sleep(Duration::from_millis(300));
        run.signal("TERM");
        let run = run.end();
        assert_eq!(run.code, Some(143), "{format}: {run:?}");
        fs::remove_file(path).expect("it was written");
    }
}

#[test]
fn a_report_can_be_requested() {
    for workers in ["1", "3"] {
        let (csv, name) = place(&format!("requested of {workers}.csv"));
        let mut run = LiveRun::new(&["--csv", &name, "--idle", "1", "--workers", workers]);
        run.write(&flows(100, 1_700_000_000));
        wait_for(&csv, ",100,53,");
        run.signal("USR1");
        thread::sleep(Duration::from_millis(500));
        let frame = udp(1000, 53, 0);
        run.write(&pcap(LITTLE, MICROSECONDS, ETHERNET, &[(1_700_000_010, 0, &frame)])[24..]);
        run.signal("TERM");
        let run = run.end();
        assert!(run.stderr.contains("100 packets, "), "{run:?}");
        assert!(run.stderr.contains("100 were idle, "), "{run:?}");
        assert!(run.stdout.contains("101 packets, "), "{run:?}");
    }
}

/// Timeouts expire and rows arrive while the pipe is silent; packets of the past and present.
#[test]
fn time_goes_on_without_packets() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is later");
    for (second, workers) in [(1_700_000_000, "1"), (now.as_secs() as u32, "3")] {
        let (json, name) = place(&format!("time goes on at {second}.json"));
        let arguments = ["--json", &name, "--idle", "2", "--active", "1", "--workers", workers];
        let mut run = LiveRun::new(&arguments);
        run.write(&flows(50, second));
        wait_for(&json, "\"sport\":50,");
        // A flow that ended in the silence does not continue.
        thread::sleep(Duration::from_secs(3));
        let frame = udp(1, 53, 0);
        run.write(&pcap(LITTLE, MICROSECONDS, ETHERNET, &[(second + 4, 0, &frame)])[24..]);
        run.signal("INT");
        let run = run.end();
        assert_eq!(run.code, Some(130), "{run:?}");
        let text = fs::read_to_string(json).expect("it was written");
        let lines = Run { code: None, stdout: text, stderr: String::new() };
        let records = Record::all(&lines);
        assert_eq!(records.len(), 51, "{run:?}");
        let reasons: Vec<_> = records.iter().map(|record| record.end_reason.as_str()).collect();
        assert_eq!(reasons[50], "forced");
        assert!(reasons[..50].iter().all(|reason| *reason == "active"), "{reasons:?}");
        assert_eq!(run.count("were idle"), 50);
    }
}

/// A pipe that delivers slowly loses nothing.
#[test]
fn a_slow_pipe_is_read_to_its_end() {
    let bytes = flows(3, 1_700_000_000);
    let mut run = LiveRun::new(&["--csv", "-"]);
    for piece in bytes.chunks(40) {
        run.write(piece);
        thread::sleep(Duration::from_millis(150));
    }
    let run = run.output();
    assert_eq!((run.code, run.rows().len()), (Some(0), 3), "{run:?}");
}
