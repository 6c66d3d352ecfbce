//! Memory and descriptors: what cannot be had is an error before the first packet, and no abort
//! afterwards.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use capture::data::{
    ETHERNET, LITTLE, MICROSECONDS, compressed, gzip, pcap, small, udp, xz, zstd_of_window,
};

use super::Record;
use crate::run::{Run, example};

#[test]
fn memory_that_cannot_be_had_is_an_error_with_numbers() {
    let limited = |kilobytes: u32, arguments: &[&str]| {
        let script = format!("ulimit -v {kilobytes}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).arg(example()).args(arguments);
        Run::new(command.output().expect("there is a shell"))
    };
    // 300 GB in 200 MB.
    let run = limited(200_000, &["--capacity", "1000000000"]);
    run.assert_refused("--capacity 1000000000: needs about 280008388608 bytes, and about ");
    let run = limited(200_000, &["--max-memory", "1G"]);
    run.assert_refused("--max-memory 1G: only about ");
    // The default is reduced instead, and all flows are still metered.
    let run = limited(100_000, &[]);
    assert_eq!((run.code, run.count("were left at the end")), (Some(0), 2598), "{run:?}");
    for (arguments, words) in [
        (["--max-memory", "1000"], "--max-memory 1000: must be more than 8400896 bytes"),
        (["--max-memory", "9X"], "--max-memory 9X: not a number of bytes"),
        (["--max-memory", "99999999999G"], "--max-memory 99999999999G: too many bytes"),
    ] {
        Run::with(&arguments.map(OsStr::new)).assert_refused(words);
    }
}

/// A small file whose decoder needs much memory.
#[test]
fn a_decoder_has_a_quarter_of_the_memory() {
    let plain = small(LITTLE, MICROSECONDS);
    let run = |bytes: &[u8], memory| {
        let run = Run::piped(bytes, usize::MAX, &["--max-memory", memory]);
        assert!(matches!(run.code, Some(0 | 2)), "{run:?}");
        run
    };
    for (bytes, enough, too_few) in [
        (xz(&plain, 9), "270M", "250M"),
        (zstd_of_window(&plain, 26), "256M", "255M"),
        (zstd_of_window(&plain, 27), "512M", "511M"),
    ] {
        assert_eq!(run(&bytes, enough).code, Some(0), "{enough}");
        run(&bytes, too_few).assert_refused("requires too much memory for decoding");
    }
    // Formats of small blocks are read with any memory.
    for (name, bytes) in compressed(&plain) {
        assert_eq!(run(&bytes, "20M").code, Some(0), "{name}");
    }
    run(&gzip(&plain), "16M").assert_refused("--max-memory 16M: must be more than ");
    // More than any memory is used for.
    let huge = zstd_of_window(&plain, 28);
    Run::piped(&huge, usize::MAX, &[]).assert_refused("requires too much memory for decoding");
}

/// A million flows in 100 MB: evicted ones are written, and so are those left at the end.
#[test]
#[cfg(target_os = "linux")]
fn a_memory_limit_is_kept_and_loses_nothing() {
    let frames: Vec<Vec<u8>> = (0..1_000_000_u32)
        .map(|number| {
            let mut frame = udp(1000, 53, 0);
            let source = capture::data::IP_AT + 12;
            frame[source..source + 4].copy_from_slice(&(0x0a00_0000 + number).to_be_bytes());
            frame
        })
        .collect();
    let records: Vec<_> = frames.iter().map(|frame| (1, 0, &frame[..])).collect();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a_memory_limit.pcap");
    fs::write(&path, pcap(LITTLE, MICROSECONDS, ETHERNET, &records)).expect("it can be written");
    let script = "exec \"$0\" \"$@\" --max-memory 100M --csv /dev/null";
    let run = |script: &str| {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).arg(example()).arg(&path);
        Run::new(command.output().expect("there is a shell"))
    };
    // The program itself needs some megabytes of address space.
    for limit in ["", "ulimit -v 120000; "] {
        let run = run(&format!("{limit}{script}"));
        assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
        assert_eq!(run.count("records, "), 1_000_000);
        let (evicted, left) = (run.count("were evicted"), run.count("were left at the end"));
        assert_eq!(evicted + left, 1_000_000);
        assert!((200_000..600_000).contains(&left), "{left}");
        assert!(run.count("bytes of memory") < 100 << 20, "{run:?}");
    }
}

/// Writes captures of one flow each, from the second 1 to the second 100.
#[cfg(unix)]
fn captures(folder: &str, count: u16) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the build folder can be written");
    let capture = |number: u16| {
        let frame = udp(number + 1, 53, 1000);
        let records: Vec<_> = (1..=100).map(|second| (second, 0, &frame[..])).collect();
        let path = folder.join(format!("{number}.pcap"));
        fs::write(&path, pcap(LITTLE, MICROSECONDS, ETHERNET, &records)).expect("it is written");
        path
    };
    (0..count).map(capture).collect()
}

/// Captures that overlap in time, with fewer descriptors than captures. The files that can stay
/// open depend on the limit; without any, each is opened again for each read.
#[test]
#[cfg(unix)]
fn few_descriptors_are_enough_for_many_captures() {
    const FILES: u16 = 50;
    let names = captures("few descriptors", FILES);
    let csv = names[0].with_file_name("flows.csv");
    for limit in ["ulimit -n 12", "ulimit -n 24", "ulimit -S -n 12"] {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{limit}; exec \"$0\" \"$@\"")).arg(example()).args(&names);
        command.arg("--csv").arg(&csv).arg("--overwrite").args(["--json", "-"]);
        let run = Run::new(command.output().expect("there is a shell"));
        assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{limit}: {run:?}");
        let records = Record::all(&run);
        assert_eq!(records.len(), usize::from(FILES), "{limit}");
        assert!(records.iter().all(|record| record.packets() == [100, 0]), "{limit}: {run:?}");
    }
}

/// Captures that are removed before the time of their packets.
#[test]
#[cfg(unix)]
fn captures_that_cannot_be_opened_again_are_reported_in_one_line() {
    let names = captures("removed captures", 5);
    let pipe = names[0].with_file_name("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("there is `mkfifo`");
    assert!(made.success());
    let mut command = Command::new(example());
    command.args(&names).arg(&pipe).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the example can be run");
    // Its reader opens it after the other captures.
    let mut file = fs::OpenOptions::new().write(true).open(&pipe).expect("it has a reader");
    names.iter().for_each(|name| fs::remove_file(name).expect("it was written"));
    let frame = udp(1, 53, 0);
    let bytes = pcap(LITTLE, MICROSECONDS, ETHERNET, &[(0, 1, &frame)]);
    file.write_all(&bytes).expect("it is read");
    drop(file);
    let run = Run::new(child.wait_with_output().expect("it ends"));
    assert_eq!((run.code, run.count("packets, ")), (Some(2), 1), "{run:?}");
    let line = run.errors()[0];
    assert!(line.starts_with("flow_cache: 5 captures are skipped, such as: "), "{run:?}");
    let named = |name: &&PathBuf| line.contains(&format!("{} cannot be read", name.display()));
    assert_eq!((names.iter().filter(named).count(), run.errors().len()), (3, 2), "{run:?}");
}
