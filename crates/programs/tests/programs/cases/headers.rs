//! Headers: link layers, tags, lengths, ICMP, tunnels.

use super::{Case, check};

/// A case whose capture has one flow.
const fn flow(folder: &'static str, file: &'static str, flows: &'static [&'static str]) -> Case {
    Case { folder, file, flows, ..Case::OF }
}

/// A case whose capture has one datagram.
const fn datagram(folder: &'static str, file: &'static str) -> Case {
    flow(folder, file, &["192.0.2.1,198.51.100.2,17,1000,53,1,36"])
}

const CASES: &[Case] = &[
    flow("01", "jumbo-v6-hbh.pcap", &["2001:db8::1,2001:db8::2,6,1000,80,1,70000"]),
    flow("01", "bigtcp-v6-nohbh.pcap", &["2001:db8::1,2001:db8::2,6,1000,80,1,70000"]),
    flow("01", "bigtcp-v6-vlan.pcap", &["2001:db8::1,2001:db8::2,6,1000,80,1,70000"]),
    flow("01", "tso-v4-len0.pcap", &["192.0.2.1,198.51.100.2,6,1000,80,1,2016"]),
    flow("05", "v4-udp-no-payload-padded.pcap", &["192.0.2.1,198.51.100.2,17,0,0,1,20"]),
    flow("05", "v6-udp-plen4-padded.pcap", &["2001:db8::1,2001:db8::2,17,0,0,1,42"]),
    flow("05", "v6-ext-beyond-plen.pcap", &["2001:db8::1,2001:db8::2,17,0,0,1,48"]),
    flow("05", "v4-tiny-first-frag.pcap", &["192.0.2.1,198.51.100.2,17,0,0,1,22"]),
    flow("05", "v4-later-frag-padded.pcap", &["192.0.2.1,198.51.100.2,17,0,0,1,28"]),
    datagram("11", "cisco-cmd.pcap"),
    datagram("11", "etag-8021br.pcap"),
    datagram("11", "fabricpath.pcap"),
    datagram("11", "hsr.pcap"),
    datagram("11", "isl.pcap"),
    datagram("11", "llc-sap06.pcap"),
    datagram("11", "macsec-noenc.pcap"),
    datagram("11", "nsh-ip.pcap"),
    datagram("11", "qinq-9300-8100.pcap"),
    datagram("11", "snap-bridge-tunnel.pcap"),
    datagram("11", "trill.pcap"),
    datagram("11", "vntag.pcap"),
    datagram("12", "eompls-cw.pcap"),
    datagram("12", "eompls-nocw-mac00.pcap"),
    datagram("12", "eompls-nocw-mac02.pcap"),
    datagram("12", "eompls-nocw-mac4x.pcap"),
    datagram("12", "eompls-nocw-macaa.pcap"),
    datagram("12", "eompls-nocw-macff.pcap"),
    datagram("13", "atm-rfc1483.pcap"),
    datagram("13", "dsa-brcm-prepend.pcap"),
    datagram("13", "dsa-brcm.pcap"),
    datagram("13", "dsa-dsa.pcap"),
    datagram("13", "dsa-edsa.pcap"),
    datagram("13", "erf-in-pcap.pcap"),
    datagram("13", "nflog-be.pcap"),
    datagram("13", "wifi-avs.pcap"),
    datagram("13", "wifi-datapad.pcap"),
    datagram("13", "wifi-htc.pcap"),
    flow("13", "wifi-amsdu.pcap", &["192.0.2.1,198.51.100.2,17,1000,53,2,72"]),
    Case {
        folder: "05",
        file: "v4-tcp-short-padded.pcap",
        options: &["--json", "/dev/stderr"],
        flows: &["192.0.2.1,198.51.100.2,6,1000,80,1,32"],
        words: &["\"class\":\"unreplied\"", "\"tcp_flags\":\"........\""],
        ..Case::OF
    },
    Case {
        folder: "05",
        file: "forged-rst-by-padding.pcap",
        options: &["--timeouts", "meter", "--top", "0"],
        packets: Some(6..=6),
        words: &["1 record, 0 of them"],
        ..Case::OF
    },
    Case {
        folder: "05",
        file: "tiny-fragment-padding-flags.pcap",
        options: &["--timeouts", "meter", "--top", "0"],
        words: &["1 record, 0 of them"],
        ..Case::OF
    },
    Case {
        folder: "08",
        file: "icmp-mixed.pcap",
        // The rows of a key are added up here: the number of flows is in the report.
        words: &["4 flows, each of both directions", "5 rows"],
        ..Case::OF
    },
    Case {
        folder: "08",
        file: "icmp6-types.pcap",
        words: &["2 flows, each of both directions"],
        ..Case::OF
    },
    Case {
        folder: "19",
        file: "v4-totlen-lie.pcap",
        flows: &["192.0.2.1,198.51.100.2,17,1000,53,1,36"],
        words: &["1 malformed packet: 1 longer than their frames"],
        ..Case::OF
    },
    Case {
        folder: "19",
        file: "v4-totlen-19.pcap",
        words: &["0 IP packets", "1 with a total length below the IPv4 header"],
        ..Case::OF
    },
    Case {
        folder: "23",
        file: "tunnel-erspan2.pcap",
        options: &["--inside", "one"],
        flows: &["192.0.2.1,198.51.100.2,17,1000,53,1,36"],
        ..Case::OF
    },
    Case {
        folder: "23",
        file: "tunnel-gre.pcap",
        options: &["--inside", "one"],
        flows: &["192.0.2.1,198.51.100.2,17,1000,53,1,36"],
        ..Case::OF
    },
    Case {
        folder: "23",
        file: "tunnel-gtpu.pcap",
        options: &["--inside", "one"],
        flows: &["192.0.2.1,198.51.100.2,17,1000,53,1,36"],
        ..Case::OF
    },
    Case {
        folder: "23",
        file: "tunnel-vxlan.pcap",
        options: &["--inside", "one"],
        flows: &["192.0.2.1,198.51.100.2,17,1000,53,1,36"],
        ..Case::OF
    },
    Case {
        folder: "23",
        file: "tunnel-ipip-6in4.pcap",
        options: &["--inside", "all"],
        flows: &["2001:db8::1,2001:db8::2,17,1000,53,1,56"],
        ..Case::OF
    },
    flow("23", "tunnel-gre.pcap", &["10.0.0.1,10.0.0.2,47,0,0,1,60"]),
    Case {
        folder: "23",
        file: "vlan-same-tuple.pcap",
        options: &["--vlan"],
        words: &["2 flows, each of both directions", ",10\n", ",20\n"],
        ..Case::OF
    },
    flow("23", "vlan-same-tuple.pcap", &["192.0.2.1,198.51.100.2,17,1000,53,2,72"]),
];

#[test]
fn headers() {
    check("cases::headers", CASES);
}
