//! Packets of a network interface.

use std::fs;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use capture::data::{ETHERNET, IP_AT, LITTLE, MICROSECONDS, announce, pcap, tcp6, udp};

use super::Record;
use super::signals::{LiveRun, PATIENCE};
use crate::run::Run;

/// Returns whether a process has a packet socket that receives the packets of one interface.
fn listens(process: u32) -> bool {
    let list = format!("/proc/{process}/net/packet");
    let sockets = fs::read_to_string(list).unwrap_or_default();
    let inode = |line: &str| {
        // The index of the interface, whether it is received from, and last the inode.
        let fields: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let is_running = fields.get(4)? != "0" && fields.get(5)? == "1";
        fields.last().filter(|_| is_running).cloned()
    };
    let inodes: Vec<String> = sockets.lines().filter_map(inode).collect();
    let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    files.flatten().filter_map(|file| fs::read_link(file.path()).ok()).any(|target| {
        let target = target.to_string_lossy();
        let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        inode.is_some_and(|inode| inodes.iter().any(|own| own == inode))
    })
}

/// Waits until a run listens; `None` if it cannot, after announcing that for `test`.
pub(super) fn listening(test: &str, mut run: LiveRun) -> Option<LiveRun> {
    let start = Instant::now();
    while !listens(run.id()) {
        assert!(start.elapsed() < PATIENCE, "it opens no packet socket");
        if run.has_ended() {
            let run = run.end();
            assert_eq!((run.code, run.errors().len()), (Some(2), 1), "{run:?}");
            let reasons = ["needs libpcap", "ermission", "not permitted"];
            assert!(reasons.iter().any(|reason| run.stderr.contains(reason)), "{run:?}");
            announce(test, format_args!("SKIPPED: {}", run.stderr.trim()));
            return None;
        }
        thread::sleep(Duration::from_millis(10));
    }
    Some(run)
}

/// Meters the loopback interface while `exchange` sends packets.
fn metered(test: &str, arguments: &[&str], exchange: impl FnOnce()) -> Option<Run> {
    let arguments = [&["--interface", "lo", "--json", "-"], arguments].concat();
    let run = listening(test, LiveRun::with(&arguments))?;
    exchange();
    run.signal("INT");
    Some(run.end())
}

#[test]
fn packets_of_an_interface_are_metered_once() {
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("there is a port"));
    let addresses = sockets.each_ref().map(|socket| socket.local_addr().expect("it is bound"));
    let [one, other] = &sockets;
    let send = |from: &UdpSocket, to: usize, bytes| {
        assert_eq!(from.send_to(bytes, addresses[to]).expect("it is sent"), bytes.len());
    };
    let long = [0; 9000];
    let exchange = || {
        (0..4).for_each(|_| send(one, 1, b"query"));
        send(other, 0, &long);
    };
    const TEST: &str = "packets_of_an_interface_are_metered_once";
    let Some(run) = metered(TEST, &["--filter", "udp"], exchange) else { return };
    assert_eq!(run.code, Some(130), "{run:?}");
    let ports = addresses.map(|address| address.port());
    let records = Record::all(&run);
    let ours: Vec<_> =
        records.iter().filter(|record| [record.sport, record.dport] == ports).collect();
    let [record] = ours[..] else { panic!("not one record: {run:?}") };
    assert_eq!(record.packets(), [4, 1], "{run:?}");
    let bytes = [&record.forward, &record.reverse].map(|half| half.as_ref().map(|h| h.ip_bytes));
    assert_eq!(bytes, [Some(4 * (28 + 5)), Some(28 + 9000)]);
}

#[test]
fn an_interface_that_cannot_be_read_is_refused() {
    let run = Run::with(&["--interface".as_ref(), "no_such_one".as_ref()]);
    let words = if run.stderr.contains("needs libpcap") { "needs libpcap" } else { "no_such_one" };
    run.assert_refused(words);
    let both = ["-", "--interface", "lo"].map(std::ffi::OsStr::new);
    Run::with(&both).assert_refused("cannot be merged");
    for (names, words) in [
        (&["lo", "eth0", "lo"][..], "--interface lo is given twice"),
        (&["lo", "any"], "--interface any has the packets of all interfaces"),
        (&["any", "any"], "--interface any has the packets of all interfaces"),
        (&[""], "--interface needs the name of an interface"),
    ] {
        let arguments = names.iter().flat_map(|name| ["--interface", name]);
        let arguments: Vec<_> = arguments.map(std::ffi::OsStr::new).collect();
        Run::with(&arguments).assert_refused(words);
    }
}

/// The expression of a filter, on a capture.
#[test]
fn a_filter_passes_packets_of_captures() {
    let mut cooked = vec![0; 16];
    cooked[14] = 8;
    cooked.extend(&udp(3, 53, 0)[IP_AT..]);
    let raw = udp(4, 53, 0)[IP_AT..].to_vec();
    let of_ethernet = [udp(1, 53, 0), udp(2, 54, 0), tcp6(5, 443), vec![0xff; 60]];
    let of_ethernet = of_ethernet.each_ref().map(|frame| (1, 0, &frame[..]));
    for (link, records, filter, ports) in [
        (ETHERNET, &of_ethernet[..], "udp port 53", &[1][..]),
        (ETHERNET, &of_ethernet, "ip6 or udp dst port 54", &[2, 5]),
        (ETHERNET, &of_ethernet, "icmp", &[]),
        (113, &[(1, 0, &cooked)], "udp port 53", &[3]),
        (101, &[(1, 0, &raw)], "udp port 53", &[4]),
        (101, &[(1, 0, &raw)], "tcp", &[]),
    ] {
        let capture = pcap(LITTLE, MICROSECONDS, link, records);
        let run = Run::piped(&capture, usize::MAX, &["--json", "-", "--filter", filter]);
        if run.stderr.contains("needs libpcap") {
            return announce(
                "a_filter_passes_packets_of_captures",
                format_args!("SKIPPED: {}", run.stderr.trim()),
            );
        }
        assert_eq!(run.code, Some(0), "{run:?}");
        let mut found: Vec<u16> = Record::all(&run).iter().map(|record| record.sport).collect();
        found.sort_unstable();
        assert_eq!(found, ports, "{filter} on {link}");
        assert_eq!(run.count("packets, "), ports.len() as u64, "others are not counted");
    }
    let wrong = Run::with(&["--filter", "port tcp"].map(std::ffi::OsStr::new));
    wrong.assert_refused("--filter port tcp: ");
}
