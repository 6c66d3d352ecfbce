//! Headers: link layers, tags, lengths, ICMP, tunnels.

use super::{Case, check};

const CASES: &[Case] = &[Case {
    folder: "12",
    file: "eompls-cw.pcap",
    flows: &["192.0.2.1,198.51.100.2,17,1000,53,1,36"],
    ..Case::OF
}];

#[test]
fn headers() {
    check("cases::headers", CASES);
}
