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

/// A run of `route_lookup` with the addresses of the case.
const ROUTES: Case = Case {
    folder: "17",
    example: "route_lookup",
    options: &["10.1.2.3", "2001:db8::1", "192.0.2.9"],
    ..Case::OF
};

const V4: &str = "10.1.2.3 10.1.0.0/16 AS4";
const V6: &str = "2001:db8::1 2001:db8::/32 AS5";
const DOCUMENTATION: &str = "192.0.2.9 192.0.2.0/24 AS70";

const ROUTE_CASES: &[Case] = &[
    Case { file: "mrt-v2.mrt", words: &[V4, V6, DOCUMENTATION], ..ROUTES },
    Case { file: "mrt-v2.mrt.bz2", words: &[V4, V6, DOCUMENTATION], ..ROUTES },
    Case {
        file: "mrt-bad-record.mrt",
        code: 2,
        words: &["record 3: a prefix of 208 bits", "10.1.2.3 10.0.0.0/8 AS3", V6],
        ..ROUTES
    },
    Case { file: "mrt-cut.mrt", code: 2, words: &[V4, "ends inside a record"], ..ROUTES },
    Case { file: "mrt-v1.mrt", words: &["10.1.2.3 10.0.0.0/8 AS"], ..ROUTES },
    Case { file: "mrt-bgp4mp-first.mrt", words: &["10.1.2.3 10.0.0.0/8"], ..ROUTES },
    Case {
        file: "routes-bare.txt",
        words: &["10.1.2.3 10.0.0.0/8 x", "2001:db8::1 2001:db8::1/128"],
        ..ROUTES
    },
    Case { file: "routes-bom.txt", words: &["10.1.2.3 10.0.0.0/8 a"], ..ROUTES },
    Case {
        file: "routes-csv.txt",
        words: &["10.1.2.3 10.0.0.0/8 AS65000", "192.0.2.9 192.0.2.0/24 AS65001"],
        ..ROUTES
    },
    Case {
        file: "routes-default.txt",
        words: &["10.1.2.3 10.0.0.0/8 via", "192.0.2.9 0.0.0.0/0 via 10.0.0.1 dev eth0"],
        ..ROUTES
    },
    Case {
        file: "routes-host.txt",
        words: &["10.1.2.3 10.0.0.0/8 a", "192.0.2.9 192.0.2.0/24 b"],
        ..ROUTES
    },
    Case { file: "routes-mask.txt", words: &["10.1.2.3 10.0.0.0/8 a"], ..ROUTES },
    Case {
        file: "routes-spamhaus.txt",
        options: &["1.10.16.1"],
        words: &["1.10.16.1 1.10.16.0/20"],
        ..ROUTES
    },
    Case { folder: "18", file: "routes-zeros.txt.gz", words: &[" routes in "], ..ROUTES },
];

#[test]
fn files_and_times() {
    check("cases::files", CASES);
}

#[test]
fn routes() {
    check("cases::routes", ROUTE_CASES);
}
