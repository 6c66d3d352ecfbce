//! Files and times: damages, compression, old formats, wrong clocks, routes.

use super::{Case, check};

const CASES: &[Case] = &[
    // A file header in the stream, a wrong time before the damage, a boot in 1970.
    Case {
        folder: "06",
        file: "cat.pcap",
        made_by: Some(&[]),
        packets: Some(200..=200),
        ..Case::OF
    },
    Case {
        folder: "06",
        file: "glitch.pcap",
        made_by: Some(&[]),
        code: 2,
        packets: Some(99..=100),
        ..Case::OF
    },
    Case {
        folder: "06",
        file: "boot.pcap",
        made_by: Some(&[]),
        code: 2,
        packets: Some(99..=100),
        ..Case::OF
    },
    Case {
        folder: "06",
        file: "control.pcap",
        made_by: Some(&[]),
        code: 2,
        packets: Some(100..=100),
        ..Case::OF
    },
    // 1 MiB of heads of blocks of 16 MiB; and 4 MiB of heads of records, each of 256 KiB.
    Case {
        folder: "07",
        file: "ng.pcapng.gz",
        made_by: Some(&["1024"]),
        seconds: 60,
        code: 2,
        packets: Some(1..=1),
        ..Case::OF
    },
    Case {
        folder: "07",
        file: "p.pcap.gz",
        made_by: Some(&["4096"]),
        code: 2,
        packets: Some(1..=2),
        ..Case::OF
    },
    Case {
        folder: "09",
        file: "two-clocks.pcapng.gz",
        options: &["--timeouts", "meter"],
        packets: Some(900..=900),
        counts: &[("were idle", 530..=550)],
        words: &["the packets have several clocks"],
        ..Case::OF
    },
    Case {
        folder: "10",
        file: "ng-unpadded-total.pcapng",
        packets: Some(3..=3),
        flows: &["192.0.2.1,198.51.100.2,17,1000,53,3,108"],
        ..Case::OF
    },
    Case { folder: "18", file: "gz-trailing-zeros.pcap.gz", packets: Some(5..=5), ..Case::OF },
    Case {
        folder: "20",
        file: "sorted-by-flow.pcap",
        options: &["--timeouts", "meter"],
        packets: Some(80..=80),
        counts: &[("packets out of order by more than 10 s", 57..=57)],
        words: &["the captures are not in order of time"],
        ..Case::OF
    },
    Case {
        folder: "24",
        file: "ng-spb-epb-mix.pcapng",
        flows: &["192.0.2.1,198.51.100.2,17,1000,53,3,108,1700000000000000000,1700000001000000000"],
        ..Case::OF
    },
    Case { folder: "25", file: "pcap-v2.2-cut.pcap", packets: Some(3..=3), ..Case::OF },
    Case { folder: "25", file: "pcap-v2.3-cut.pcap", packets: Some(3..=3), ..Case::OF },
];

#[test]
fn files_and_times() {
    check("cases::files", CASES);
}
