//! Records add up to their flows, however they are split.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use capture::data::{ETHERNET, IP_AT, LITTLE, MICROSECONDS, flows, pcap, tcp6, udp};

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

/// Returns an IP packet whose payload begins with these numbers: ports, or type and code of ICMP.
fn ip_packet(src: IpAddr, dst: IpAddr, protocol: u8, numbers: [u16; 2]) -> Vec<u8> {
    let start = match protocol {
        1 | 58 => numbers.map(|number| number as u8).to_vec(),
        _ => numbers.map(u16::to_be_bytes).concat(),
    };
    let payload = [start, vec![0; 20]].concat();
    let mut ip = match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut header = udp(0, 0, payload.len() - 8)[IP_AT..][..20].to_vec();
            header[9] = protocol;
            header[12..].copy_from_slice(&[src.octets(), dst.octets()].concat());
            header
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let mut header = tcp6(0, 0)[IP_AT..][..40].to_vec();
            header[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
            header[6] = protocol;
            header[8..].copy_from_slice(&[src.octets(), dst.octets()].concat());
            header
        }
        _ => panic!("{src} and {dst} have two versions"),
    };
    ip.extend(payload);
    ip
}

/// The community ID, by the vectors that its specification publishes for all protocols, and by
/// those of other programs.
#[test]
fn community_ids_are_those_of_the_specification() {
    const RAW: u32 = 101;
    for (flow, id) in [
        (("1.2.3.4", "5.6.7.8", 17, [1122, 3344]), "0Mu9InQx6z4ZiCZM/7HXi2WMhOg="),
        (("5.6.7.8", "1.2.3.4", 17, [3344, 1122]), "0Mu9InQx6z4ZiCZM/7HXi2WMhOg="),
        (("1.2.3.4", "5.6.7.8", 6, [1122, 3344]), "wCb3OG7yAFWelaUydu0D+125CLM="),
        (("1.2.3.4", "5.6.7.8", 132, [1122, 3344]), "EKt4MsxuyaE6mL+hmrEkQ9csDD8="),
        (("1.2.3.4", "5.6.7.8", 1, [8, 0]), "crodRHL2FEsHjbv3UkRrfbs4bZ0="),
        (("5.6.7.8", "1.2.3.4", 1, [0, 0]), "crodRHL2FEsHjbv3UkRrfbs4bZ0="),
        (("1.2.3.4", "5.6.7.8", 1, [11, 0]), "f/YiSyWqczrTgfUCZlBUnvHRcPk="),
        (("1.2.3.4", "5.6.7.8", 46, [1122, 3344]), "ikv3kmf89luf73WPz1jOs49S768="),
        // Published: TCP, UDP, SCTP, and RSVP, which has no ports.
        (("66.35.250.204", "128.232.110.120", 6, [80, 34855]), "LQU9qZlK+B5F3KDmev6m5PMibrg="),
        (("192.168.1.52", "8.8.8.8", 17, [54585, 53]), "d/FP5EW3wiY1vCndhwleRRKHowQ="),
        (("192.168.170.8", "192.168.170.56", 132, [7, 7]), "MP2EtRCAUIZvTw6MxJHLV7N7JDs="),
        (("10.1.12.2", "10.1.12.1", 46, [0, 0]), "KHlLkgoJW7ifUTyTSgyVfkFHzKw="),
        (
            ("2001:470:e5bf:dead:4957:2174:e82c:4887", "2607:f8b0:400c:c03::1a", 6, [63943, 25]),
            "/qFaeAR+gFe1KYjMzVDsMv+wgU4=",
        ),
        // ICMP: echo and its reply, time exceeded.
        (("192.168.0.89", "192.168.0.1", 1, [8, 0]), "X0snYXpgwiv9TZtqg64sgzUn6Dk="),
        (("192.168.0.1", "192.168.0.89", 1, [0, 0]), "X0snYXpgwiv9TZtqg64sgzUn6Dk="),
        (("10.0.0.1", "10.0.0.2", 1, [11, 0]), "YHxtAirCG//0OzkcVAukqKQN9xM="),
        // ICMPv6: neighbours, an echo and its reply, routers, errors.
        ((NEAR, FAR, 58, [135, 0]), "dGHyGvjMfljg6Bppwm3bg0LO8TY="),
        ((FAR, NEAR, 58, [136, 0]), "dGHyGvjMfljg6Bppwm3bg0LO8TY="),
        ((FAR, NEAR, 58, [135, 0]), "zavyT/cezQr1fmImYCwYnMXbgck="),
        ((HOST, "3ffe:501:0:1001::2", 58, [128, 0]), "+TW+HtLHvV1xnGhV1lv7XoJrqQg="),
        (("3ffe:501:0:1001::2", HOST, 58, [129, 0]), "+TW+HtLHvV1xnGhV1lv7XoJrqQg="),
        ((NEAR, "ff02::2", 58, [133, 0]), "hO+sN4H+MG5MY/8hIrXPqc4ZQz0="),
        ((FAR, "ff02::1", 58, [134, 0]), "pkvHqCL88/tg1k4cPigmZXUtL00="),
        (("3ffe:501:1800:2345::2", HOST, 58, [3, 0]), "2ObVBgIn28oZvibYZhZMBgh7WdQ="),
        (("3ffe:501:410:0:2c0:dfff:fe47:33e", HOST, 58, [1, 4]), "hLZd0XGWojozrvxqE0dWB1iM6R0="),
    ] {
        let (src, dst, protocol, numbers) = flow;
        let [src, dst] = [src, dst].map(|text: &str| text.parse().expect("an address"));
        let packet = ip_packet(src, dst, protocol, numbers);
        let capture = pcap(LITTLE, MICROSECONDS, RAW, &[(1, 0, &packet)]);
        let run = |option| Run::piped(&capture, usize::MAX, &[option, "-", "--community-id"]);
        let rows = run("--csv").stdout;
        let lines: Vec<&str> = rows.lines().collect();
        assert_eq!(lines[0], format!("{HEADER},community_id"));
        assert!(lines[1].ends_with(&format!(",1:{id}")), "{flow:?} {id}: {rows}");
        if [1, 58].contains(&protocol) {
            let report = Run::piped(&capture, usize::MAX, &[]);
            let line = report.stdout.lines().find(|line| line.contains(" > ")).expect("a flow");
            assert!(line.contains(&format!("{dst} icmp")), "no port: {line}");
        }
        let in_json = Record::all(&run("--json"))[0].community_id.clone();
        assert_eq!(in_json, Some(format!("1:{id}")));
    }
}

/// Addresses of the published vectors.
const NEAR: &str = "fe80::200:86ff:fe05:80da";
const FAR: &str = "fe80::260:97ff:fe07:69ea";
const HOST: &str = "3ffe:507:0:1:200:86ff:fe05:80da";
