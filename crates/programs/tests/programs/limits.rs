//! Limits of the other example programs: large captures, and threads that cannot be had.

use capture::data::{ETHERNET, IP_AT, LITTLE, MICROSECONDS, pcap, segment};

use crate::binary::of_example;

/// Connections whose number is too large for lists: they would examine PCBs for minutes.
#[test]
fn the_work_of_lists_is_bounded() {
    let example = of_example("tcp_demux").unwrap_or_else(|why| panic!("{why}"));
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("work_of_lists.pcap");
    let run = |connections: u32| {
        let frames: Vec<Vec<u8>> = (0..connections)
            .flat_map(|number| {
                let [_, a, b, c] = number.to_be_bytes();
                [(true, "S"), (false, "SA"), (true, "A")].map(|(from_client, flags)| {
                    let mut frame = segment(from_client, flags);
                    let client = IP_AT + if from_client { 12 } else { 16 };
                    frame[client..client + 4].copy_from_slice(&[10, a, b, c]);
                    frame
                })
            })
            .collect();
        let records: Vec<_> = frames.iter().map(|frame| (1, 0, &frame[..])).collect();
        let bytes = pcap(LITTLE, MICROSECONDS, ETHERNET, &records);
        std::fs::write(&path, bytes).expect("the build folder can be written");
        let output = std::process::Command::new(&example).arg(&path).output();
        let output = output.expect("the example can be run");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it prints UTF-8")
    };
    let report = run(100_000);
    for name in ["BsdList", "MoveToFront", "SendReceive"] {
        let line = report.lines().find(|line| line.starts_with(&format!("{name} ")));
        assert!(line.is_some_and(|line| line.contains("left out")), "{report}");
    }
    assert!(report.contains("\nTrashDemux") && report.contains("same PCBs"), "{report}");
    assert!(!run(2000).contains("left out"));
}

/// One worker gets a stack of 200 MB of address space, and the next one does not. With the usual
/// stacks hardly anything may be left, and a thread that has started without memory for its signals
/// is aborted by the standard library.
#[test]
#[cfg(all(target_os = "linux", feature = "concurrent"))]
fn threads_that_cannot_be_had_are_an_error() {
    let example = of_example("shared_reader").unwrap_or_else(|why| panic!("{why}"));
    let limited = "ulimit -v 600000; exec \"$0\" --threads 1000 --seconds 1";
    let output = std::process::Command::new("sh")
        .args(["-c", limited])
        .arg(example)
        .env("RUST_MIN_STACK", "200000000")
        .output();
    let run = crate::run::Run::new(output.expect("there is a shell"));
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
    assert!(run.stderr.starts_with("shared_reader: --threads 1000: "), "{run:?}");
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
}
