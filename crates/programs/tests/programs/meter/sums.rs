//! Records add up to their flows, however they are split.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use capture::data::{ETHERNET, IP_AT, LITTLE, MICROSECONDS, flows, pcap, udp};

use super::Record;
use crate::run::{HEADER, Run, example};

/// Runs the example on generated traffic, with more arguments.
fn generated(arguments: &[&str]) -> Run {
    let run = Run::with(&arguments.iter().map(OsStr::new).collect::<Vec<_>>());
    assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
    run
}

/// Returns the path of a file that does not exist.
fn place(name: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path.to_str().expect("the build folder has a name in UTF-8").to_owned()
}

/// Options that split flows into records, and whether flows end idle, closed, or evicted, and
/// whether they are reported.
const OPTION_SETS: [(&[&str], [bool; 4]); 12] = [
    (&["--capacity", "1"], [false, false, true, false]),
    (&["--capacity", "100"], [false, false, true, false]),
    (&["--capacity", "1000", "--timeouts", "off"], [false, false, true, false]),
    (&["--capacity", "2598"], [false, false, false, false]),
    (&["--timeouts", "meter", "--linger", "30"], [true, true, false, false]),
    (&["--timeouts", "conntrack"], [true, false, false, false]),
    (&["--idle", "0.05"], [true, false, false, false]),
    (&["--idle", "0.5", "--linger", "off"], [true, false, false, false]),
    (&["--linger", "0.001"], [false, true, false, false]),
    (&["--active", "0.01"], [false, false, false, true]),
    (&["--timeouts", "meter", "--capacity", "300"], [false, false, true, false]),
    (&["--idle", "1", "--active", "0.02", "--linger", "0.1", "--capacity", "50"], [true; 4]),
];

#[test]
fn records_add_up_to_the_exact_flows() {
    let exact = generated(&["--csv", "-"]);
    let exact_flows = flows(exact.stdout.as_bytes());
    assert_eq!(exact_flows.len(), exact.rows().len(), "one row for each direction");
    assert_eq!(exact.count("rows"), exact_flows.len() as u64);
    for (arguments, ends) in OPTION_SETS {
        let run = generated(&[&["--csv", "-"], arguments].concat());
        assert_eq!(flows(run.stdout.as_bytes()), exact_flows, "{arguments:?}");
        assert_eq!(run.count("rows"), run.rows().len() as u64, "{arguments:?}");
        let [idle, closed, evicted] =
            ["were idle", "were closed", "were evicted"].map(|words| run.count(words));
        let flows = run.count("flows, each");
        assert_eq!(
            idle + closed + evicted + run.count("were left at the end"),
            flows,
            "{arguments:?}"
        );
        let has_reports = run.count("records, ") > flows;
        let seen = [idle > 0, closed > 0, evicted > 0, has_reports];
        assert_eq!(seen, ends, "{arguments:?}: {run:?}");
    }
}

#[test]
fn lines_of_json_agree_with_rows() {
    for (arguments, _) in OPTION_SETS {
        let csv = place("lines_of_json.csv");
        let files = ["--json", "-", "--csv", &csv, "--overwrite"];
        let run = generated(&[&files, arguments].concat());
        let records = Record::all(&run);
        assert_eq!(run.count("records, "), records.len() as u64, "{arguments:?}");
        let rows: Vec<String> = records.iter().flat_map(Record::rows).collect();
        let file = fs::read_to_string(&csv).expect("it was written");
        assert!(file.starts_with(HEADER), "{file}");
        assert_eq!(file.lines().skip(1).collect::<Vec<_>>(), rows, "{arguments:?}");

        let mut flows: BTreeMap<u64, Vec<&Record>> = BTreeMap::new();
        for record in &records {
            assert!(record.forward.is_some() || record.reverse.is_some(), "{record:?}");
            flows.entry(record.flow_id).or_default().push(record);
        }
        for parts in flows.values() {
            let key =
                |record: &Record| (record.src.clone(), record.sport, record.dport, record.proto);
            assert!(parts.iter().all(|part| key(part) == key(parts[0])), "{parts:?}");
            let before_last = &parts[..parts.len() - 1];
            assert!(before_last.iter().all(|part| part.end_reason == "active"), "{parts:?}");
        }
    }
}

#[test]
fn results_never_go_over_each_other() {
    let csv = place("results_never.csv");
    for second in ["--json", "--ipfix"] {
        let arguments = ["--csv", &csv, second, &csv].map(OsStr::new);
        Run::with(&arguments).assert_refused("is the file of --csv");
    }
    #[cfg(unix)]
    {
        let link = place("results_never.link");
        fs::hard_link(&csv, &link).expect("the build folder has hard links");
        let arguments = ["--json", &csv, "--ipfix", &link].map(OsStr::new);
        Run::with(&arguments).assert_refused("is the file of --json");
    }
    // Anything but a regular file may be used repeatedly.
    #[cfg(target_os = "linux")]
    generated(&["--csv", "/dev/null", "--json", "/dev/null", "--ipfix", "/dev/null"]);
}

/// Lines are flushed as time passes, not when a buffer is full: a reader of a pipe receives each
/// within a second of the packets' time.
#[test]
fn lines_are_flushed_each_second() {
    let frame = udp(1, 2, 0);
    let mut command = Command::new(example());
    command.args(["-", "--json", "-", "--idle", "1"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the example can be run");
    let stdout = child.stdout.take().expect("it was asked for");
    let (sender, lines) = mpsc::channel();
    let reader = thread::spawn(move || {
        BufReader::new(stdout).lines().try_for_each(|line| sender.send(line))
    });
    let mut pipe = child.stdin.take().expect("it was asked for");
    // A packet is counted when the reader of the capture has read past it.
    let records = [(1, 0, &frame[..]), (5, 0, &frame), (9, 0, &frame), (9, 1, &frame)];
    pipe.write_all(&pcap(LITTLE, MICROSECONDS, ETHERNET, &records)).expect("it reads");
    for _ in 0..2 {
        let line = lines.recv_timeout(Duration::from_secs(60)).expect("a line, with the pipe open");
        let line = line.expect("it can be read");
        assert!(line.contains("\"end_reason\":\"idle\""), "{line}");
    }
    drop(pipe);
    assert_eq!(lines.iter().count(), 1);
    assert!(child.wait().expect("it ends").success());
    let received = reader.join().expect("it does not panic");
    received.expect("all lines are wanted");
}

/// The community ID, by the vectors of its specification.
#[test]
fn community_ids_are_those_of_the_specification() {
    let with = |mut frame: Vec<u8>, addresses: [[u8; 4]; 2], protocol: u8| {
        frame[IP_AT + 12..IP_AT + 20].copy_from_slice(&addresses.concat());
        frame[IP_AT + 9] = protocol;
        frame
    };
    let (one, other) = ([1, 2, 3, 4], [5, 6, 7, 8]);
    for (frame, id) in [
        (with(udp(1122, 3344, 0), [one, other], 17), "1:0Mu9InQx6z4ZiCZM/7HXi2WMhOg="),
        (with(udp(3344, 1122, 0), [other, one], 17), "1:0Mu9InQx6z4ZiCZM/7HXi2WMhOg="),
        (with(udp(1122, 3344, 0), [one, other], 6), "1:wCb3OG7yAFWelaUydu0D+125CLM="),
        (with(udp(1122, 3344, 0), [one, other], 132), "1:EKt4MsxuyaE6mL+hmrEkQ9csDD8="),
        // Echo request, echo reply, and time exceeded, of one direction.
        (with(udp(0x0800, 0, 0), [one, other], 1), "1:crodRHL2FEsHjbv3UkRrfbs4bZ0="),
        (with(udp(0x0000, 0, 0), [other, one], 1), "1:crodRHL2FEsHjbv3UkRrfbs4bZ0="),
        (with(udp(0x0b00, 0, 0), [one, other], 1), "1:f/YiSyWqczrTgfUCZlBUnvHRcPk="),
        // A protocol without ports.
        (with(udp(1122, 3344, 0), [one, other], 46), "1:ikv3kmf89luf73WPz1jOs49S768="),
    ] {
        let capture = pcap(LITTLE, MICROSECONDS, ETHERNET, &[(1, 0, &frame)]);
        let run = |option| Run::piped(&capture, usize::MAX, &[option, "-", "--community-id"]);
        let rows = run("--csv").stdout;
        let lines: Vec<&str> = rows.lines().collect();
        assert_eq!(lines[0], format!("{HEADER},community_id"));
        assert!(lines[1].ends_with(&format!(",{id}")), "{id}: {rows}");
        assert_eq!(Record::all(&run("--json"))[0].community_id.as_deref(), Some(id));
    }
}
