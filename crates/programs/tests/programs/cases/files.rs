//! Files and times: damages, compression, old formats, wrong clocks, routes.

use super::{Case, check};

const CASES: &[Case] = &[
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
        folder: "20",
        file: "sorted-by-flow.pcap",
        options: &["--timeouts", "meter"],
        packets: Some(80..=80),
        counts: &[("packets out of order by more than 10 s", 57..=57)],
        words: &["the captures are not in order of time"],
        ..Case::OF
    },
];

#[test]
fn files_and_times() {
    check("cases::files", CASES);
}
