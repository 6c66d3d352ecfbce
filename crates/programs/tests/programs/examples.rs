//! All examples as programs: equal command lines, and equal messages for equal errors.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use capture::data::{self, ETHERNET, LITTLE, MICROSECONDS, pcap};

use crate::binary;

/// An example, and its command line.
#[derive(Clone, Copy, Debug)]
struct Example {
    name: &'static str,
    /// Whether it reads a capture.
    reads_capture: bool,
    /// Options for a short run.
    options: &'static [&'static str],
    /// An option that requires a value, and an invalid value.
    wrong: Option<[&'static str; 2]>,
}

const EXAMPLES: [Example; 7] = [
    Example {
        name: "flow_cache",
        reads_capture: true,
        options: &["--top", "5"],
        wrong: Some(["--idle", "0"]),
    },
    Example {
        name: "tcp_demux",
        reads_capture: true,
        options: &["--connections", "20"],
        wrong: Some(["--connections", "20001"]),
    },
    Example {
        name: "software_router",
        reads_capture: true,
        options: &[],
        wrong: Some(["--load", "0"]),
    },
    Example {
        name: "shared_reader",
        reads_capture: true,
        options: &["--seconds", "0.1", "--flows", "10"],
        wrong: Some(["--threads", "0"]),
    },
    Example { name: "route_lookup", reads_capture: false, options: &[], wrong: None },
    Example {
        name: "ephemeral_services",
        reads_capture: false,
        options: &["--rounds", "2"],
        wrong: Some(["--receivers", "0"]),
    },
    Example { name: "ftp", reads_capture: false, options: &[], wrong: None },
];

/// Iterates over the examples that exist with the features of this test.
fn examples() -> impl Iterator<Item = Example> {
    let all = EXAMPLES.into_iter();
    all.filter(|example| cfg!(feature = "concurrent") || example.name != "shared_reader")
}

/// Returns the path of a small capture.
fn small() -> String {
    static SMALL: LazyLock<String> = LazyLock::new(|| {
        let frame = data::udp(1000, 53, 9);
        let capture = pcap(LITTLE, MICROSECONDS, ETHERNET, &[(1, 0, &frame), (2, 0, &frame)]);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("small_for_examples.pcap");
        fs::write(&path, capture).expect("the build folder can be written");
        name(&path)
    });
    SMALL.clone()
}

fn name(path: &Path) -> String {
    path.to_str().expect("the build folder has a name in UTF-8").to_owned()
}

impl Example {
    /// Returns arguments for a short run.
    fn arguments(self) -> Vec<String> {
        let mut arguments: Vec<String> = self.options.iter().map(ToString::to_string).collect();
        if self.name == "software_router" {
            arguments.push(small());
        }
        arguments
    }

    fn command(self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let binary = binary::of_example(self.name).unwrap_or_else(|why| panic!("{why}"));
        let mut command = Command::new(binary);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    fn run(self, arguments: &[impl AsRef<OsStr>]) -> (Option<i32>, String, String) {
        let Output { status, stdout, stderr } =
            self.command(arguments).output().expect("the example can be run");
        let [stdout, stderr] =
            [stdout, stderr].map(|bytes| String::from_utf8(bytes).expect("examples print UTF-8"));
        (status.code(), stdout, stderr)
    }

    /// Asserts that it reports an error in one line, and nothing else.
    fn is_refused(self, arguments: &[&str], words: &str) {
        let (code, stdout, stderr) = self.run(arguments);
        let name = self.name;
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{name} {arguments:?}: {stderr}");
        let begins = stderr.starts_with(&format!("{name}: "));
        let is_line = stderr.lines().count() == 1 && stderr.ends_with('\n');
        let is_right = begins && is_line && stderr.contains(words);
        assert!(is_right, "{name} {arguments:?}: no {words:?} in {stderr}");
    }
}

/// Returns an empty folder of this name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the build folder can be written");
    folder
}

#[test]
fn help_has_one_layout() {
    for example in examples() {
        let (code, help, stderr) = example.run(&["--help"]);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{}", example.name);
        assert_eq!(help, example.run(&["-h"]).1);
        let lines: Vec<&str> = help.lines().collect();
        assert!(lines[0].ends_with('.') && lines[1].is_empty(), "{help}");
        assert!(lines[2].starts_with(&format!("Usage: {} [", example.name)), "{help}");
        assert!(lines[2].ends_with(" [OPTION]..."), "{help}");
        assert_eq!(lines[2].contains(" [CAPTURE | -] "), example.reads_capture, "{help}");
        assert!(lines.iter().all(|line| line.len() <= 80), "{help}");
        let options = lines.iter().filter(|line| line.starts_with("    --") && line.len() > 24);
        for option in options.filter(|line| !line.contains('|')) {
            assert!(option[22..].starts_with("  "), "{option}");
        }
        for words in ["\n    --quiet, -q  ", "\n    --help, -h  ", "\n\nExits with 0; with 1 if "] {
            assert!(help.contains(words), "{words:?} in {help}");
        }
    }
}

#[test]
fn wrong_arguments_are_refused_in_one_line() {
    let list = "(--help lists the options)";
    for example in examples() {
        example.is_refused(&["--loud"], &format!("invalid option '--loud' {list}"));
        example.is_refused(&["-x"], &format!("invalid option '-x' {list}"));
        example.is_refused(&["--quiet=3"], "unexpected argument for option '--quiet'");
        if let Some([option, value]) = example.wrong {
            example.is_refused(&[option], &format!("missing argument for option '{option}'"));
            example.is_refused(&[option, value], &format!("{option} {value}: "));
            example.is_refused(&[option, "much"], &format!("{option} much: "));
        }
        // The meter reads several captures.
        if example.reads_capture && example.name != "flow_cache" {
            example.is_refused(&["a.pcap", "b.pcap"], "unexpected argument \"b.pcap\"");
        }
    }
}

#[test]
fn what_cannot_be_read_is_refused_in_one_line() {
    let folder = folder("what_cannot_be_read");
    let (empty, text) = (folder.join("empty"), folder.join("text"));
    File::create(&empty).expect("the folder can be written");
    fs::write(&text, "this is no capture").expect("the folder can be written");
    let (directory, empty, text) = (name(&folder), name(&empty), name(&text));
    let has_no_input = |example: &Example| ["ephemeral_services", "ftp"].contains(&example.name);
    for example in examples().filter(|example| !has_no_input(example)) {
        example.is_refused(&["there/is/none"], "there/is/none cannot be read: ");
        if cfg!(unix) {
            example.is_refused(&[&directory], &format!("{directory} cannot be read: "));
        }
        let nothing = if example.reads_capture { "is empty" } else { "has no route" };
        example.is_refused(&[&empty], &format!("{empty} {nothing}"));
        let no_input = if example.reads_capture { &["-"][..] } else { &["-", "10.0.0.1"] };
        example.is_refused(no_input, &format!("standard input {nothing}"));
        if example.reads_capture {
            example.is_refused(&[&text], "is no capture");
            continue;
        }
        // A line that is no route is named and skipped; then there is none.
        let (code, stdout, stderr) = example.run(&[&text]);
        let lines: Vec<&str> = stderr.lines().collect();
        assert_eq!((code, stdout.as_str(), lines.len()), (Some(2), "", 2), "{stderr}");
        assert!(lines[0].contains(", line 1: this: ") && lines[1].ends_with("has no route"));
    }
}

#[test]
fn a_closed_pipe_is_no_failure() {
    for example in examples() {
        let mut command = example.command(&example.arguments());
        // Without --quiet, an example that ends before the pipe is closed may print its report to
        // standard error.
        command.arg("--quiet").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the example can be run");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the example ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*stderr), (Some(0), ""), "{}", example.name);
        // Again, after one line was read.
        let mut child = command.spawn().expect("the example can be run");
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        stdout.read_line(&mut line).expect("it prints something");
        drop(stdout);
        let output = child.wait_with_output().expect("the example ends");
        assert_eq!(output.status.code(), Some(0), "{}: {line}", example.name);
    }
}

/// The device behaves like a full disk.
#[test]
#[cfg(target_os = "linux")]
fn results_that_cannot_be_written_are_a_failure() {
    for example in examples() {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let output = example.command(&example.arguments()).stdout(full).output();
        let output = output.expect("the example can be run");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{}: {stderr}", example.name);
        let words = format!("{}: the results cannot be written: ", example.name);
        assert!(stderr.contains(&words), "{stderr}");
    }
}

/// Lines that are not text, or too long, are faults like any other.
#[test]
fn lines_without_an_address_are_skipped_and_counted() {
    let lines = [&b"10.1.2.3\nten\n\xff\xfe\n"[..], &[b'1'; 10_000], b"\n192.0.2.1\n"].concat();
    let path = folder("lines_without_an_address").join("lines");
    fs::write(&path, lines).expect("the folder can be written");
    let example = examples().find(|example| example.name == "route_lookup").expect("it is one");
    let input = File::open(path).expect("it was written");
    let output = example.command(&["-", "--quiet"]).stdin(input).output();
    let output = output.expect("the example can be run");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let asked: Vec<_> = stdout.lines().map(|line| line.split(' ').next().unwrap_or(line)).collect();
    assert_eq!(asked, ["10.1.2.3", "192.0.2.1"]);
    let stderr = [
        "standard input, line 2: \"ten\" is no address",
        "standard input, line 3: not text",
        "standard input, line 4: 4096 bytes and no end of the line",
        "3 lines were no addresses",
    ]
    .map(|line| format!("route_lookup: {line}\n"))
    .concat();
    assert_eq!(String::from_utf8_lossy(&output.stderr), stderr);
}

/// A capture that is cut in its first packet is reported as cut before it is reported as empty.
#[test]
fn the_end_of_a_capture_is_reported_first() {
    let frame = data::udp(1000, 53, 9);
    let capture = pcap(LITTLE, MICROSECONDS, ETHERNET, &[(1, 0, &frame)]);
    let path = folder("the_end_of_a_capture").join("cut.pcap");
    fs::write(&path, &capture[..24 + 16 + 14]).expect("the folder can be written");
    for (example, nothing) in
        [("tcp_demux", "segment of TCP"), ("software_router", "IP packet to forward")]
    {
        let example = examples().find(|other| other.name == example).expect("it is one");
        let (code, stdout, stderr) = example.run(&[&path]);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
        let lines: Vec<&str> = stderr.lines().collect();
        assert!(lines.len() == 2 && lines[0].contains("cut after packet 0"), "{stderr}");
        assert!(lines[1].contains(nothing), "{stderr}");
    }
}

#[test]
fn without_a_terminal_there_is_no_bar() {
    for example in examples() {
        let mut arguments = example.arguments();
        let (code, _, stderr) = example.run(&arguments);
        assert!(code == Some(0) && !stderr.contains('\x1b'), "{stderr}");
        arguments.push("--quiet".to_owned());
        let (code, stdout, stderr) = example.run(&arguments);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{}", example.name);
        assert!(!stdout.is_empty() && !stdout.contains('\x1b'), "{}: {stdout}", example.name);
    }
}

/// A terminal, created by `script`, shows a bar, which is cleared at the end.
#[test]
#[cfg(target_os = "linux")]
fn a_terminal_shows_a_bar_and_keeps_the_results() {
    let has_no_bar = |example: &Example| ["ftp", "route_lookup"].contains(&example.name);
    for example in examples().filter(|example| !has_no_bar(example)) {
        let binary = binary::of_example(example.name).unwrap_or_else(|why| panic!("{why}"));
        let called = format!("'{}' '{}'", binary.display(), example.arguments().join("' '"));
        for (quiet, has_bar) in [("", true), (" --quiet", false)] {
            let mut command = Command::new("script");
            command.args(["-qec", &(called.clone() + quiet), "/dev/null"]).stdin(Stdio::null());
            let Ok(output) = command.output() else {
                let why =
                    format_args!("SKIPPED: there is no program `script`, which creates terminals");
                return data::announce("a_terminal_shows_a_bar", why);
            };
            let shown = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(0), "{called}: {shown}");
            assert_eq!(shown.contains('\x1b'), has_bar, "{called}{quiet}: {shown}");
            // The results follow the last escape sequence.
            let results = shown.rsplit('\x1b').next().unwrap_or_default();
            assert!(results.lines().count() > 5, "{called}{quiet}: {shown}");
        }
    }
}

#[test]
fn packets_that_cannot_be_used_are_a_failure_after_the_results() {
    let folder = folder("packets_that_cannot_be_used");
    let segment = data::segment(true, "S");
    let foreign = |ether_type: [u8; 2]| [b"ddddddssssss", &ether_type[..], &[0; 60]].concat();
    let (unknown, arp) = (foreign([0x88, 0xb5]), foreign([0x08, 0x06]));
    let capture = |link, others: &[&[u8]]| {
        let frames = [&segment[..], &segment[..]].into_iter().chain(others.iter().copied());
        let records: Vec<_> = (0..).zip(frames).map(|(at, frame)| (at, 0, frame)).collect();
        pcap(LITTLE, MICROSECONDS, link, &records)
    };
    let many = |frame: &'static [u8]| vec![frame; 20];
    let (unknown, arp): (&[u8], &[u8]) = (unknown.leak(), arp.leak());
    let mut damaged = capture(ETHERNET, &[]);
    damaged.extend([0xff; 100]);
    damaged.extend(&capture(ETHERNET, &many(arp))[24..]);
    for (name, bytes, code, words) in [
        ("known", capture(ETHERNET, &many(arp)), 0, ""),
        ("few", capture(ETHERNET, &[unknown]), 0, ""),
        ("many", capture(ETHERNET, &many(unknown)), 2, "packets of protocols that are not"),
        ("damaged", damaged, 2, "damaged: packets are missing"),
    ] {
        let path = folder.join(name);
        fs::write(&path, bytes).expect("the folder can be written");
        for example in examples().filter(|example| example.reads_capture) {
            let short = ["--seconds", "0.1"].iter().filter(|_| example.name == "shared_reader");
            let path = self::name(&path);
            let arguments: Vec<&str> =
                core::iter::once(path.as_str()).chain(short.copied()).collect();
            let (found, stdout, stderr) = example.run(&arguments);
            assert_eq!(found, Some(code), "{} {name}: {stderr}", example.name);
            assert!(
                stderr.contains(words) && !stdout.is_empty(),
                "{} {name}: {stderr}",
                example.name
            );
        }
    }
}
