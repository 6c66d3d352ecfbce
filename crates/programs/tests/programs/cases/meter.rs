//! The meter: the flows of TCP connections.

use super::{Case, check};

/// Packets of one connection, or of one attempt, whose segments come late or again.
const ONE_FLOW: Case = Case {
    folder: "22",
    options: &["--timeouts", "meter"],
    words: &["1 flow, of both directions", "in 2 rows"],
    ..Case::OF
};

const CASES: &[Case] = &[
    // The last FIN is retransmitted 6.6 s after the segment before it.
    Case {
        file: "fin-retrans-late.pcap",
        flows: &[
            "192.0.2.1,198.51.100.2,6,40000,80,5,200",
            "198.51.100.2,192.0.2.1,6,80,40000,3,120",
        ],
        ..ONE_FLOW
    },
    Case {
        file: "refused-retries.pcap",
        flows: &[
            "192.0.2.1,198.51.100.2,6,40000,80,3,120",
            "198.51.100.2,192.0.2.1,6,80,40000,3,120",
        ],
        ..ONE_FLOW
    },
    // The connection before it was not closed in the capture.
    Case {
        file: "syn-on-established.pcap",
        flows: &[
            "192.0.2.1,198.51.100.2,6,40000,80,4,160",
            "198.51.100.2,192.0.2.1,6,80,40000,2,80",
        ],
        ..ONE_FLOW
    },
    // Hosts that sent nothing have no rows.
    Case {
        folder: "22",
        file: "synack-only-backscatter.pcap",
        options: &["--timeouts", "meter"],
        flows: &[
            "198.51.100.2,192.0.2.1,6,80,40000,1,40",
            "198.51.100.2,192.0.2.1,6,80,40001,1,40",
            "198.51.100.2,192.0.2.1,6,80,40002,1,40",
        ],
        words: &["3 flows, each of both directions", "in 3 rows"],
        ..Case::OF
    },
];

#[test]
fn meter() {
    check("cases::meter", CASES);
}
