//! Memory: what cannot be had is an error before the first packet, and no abort afterwards.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use capture::data::{ETHERNET, LITTLE, MICROSECONDS, pcap, udp};

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
    run.assert_refused("--max-memory 1073741824: only about ");
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
