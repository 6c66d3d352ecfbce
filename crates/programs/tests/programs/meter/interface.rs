//! Packets of a network interface.

use std::fs;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use capture::data::announce;

use super::Record;
use super::signals::{LiveRun, PATIENCE};
use crate::run::Run;

/// Returns whether a process has a packet socket that receives the packets of one interface.
fn listens(process: u32) -> bool {
    let sockets = fs::read_to_string("/proc/net/packet").unwrap_or_default();
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

/// Meters the loopback interface while `exchange` sends packets; `None` if that is not possible,
/// after announcing it for `test`.
fn metered(test: &str, exchange: impl FnOnce()) -> Option<Run> {
    let mut run = LiveRun::with(&["--interface", "lo", "--json", "-"]);
    let start = Instant::now();
    while !listens(run.id()) {
        assert!(start.elapsed() < PATIENCE, "it opens no packet socket");
        if run.has_ended() {
            let run = run.end();
            assert_eq!((run.code, run.errors().len()), (Some(2), 1), "{run:?}");
            let reasons = ["--features interface", "not permitted", "Permission denied"];
            assert!(reasons.iter().any(|reason| run.stderr.contains(reason)), "{run:?}");
            announce(test, format_args!("SKIPPED: {}", run.stderr.trim()));
            return None;
        }
        thread::sleep(Duration::from_millis(10));
    }
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
    let Some(run) = metered("packets_of_an_interface_are_metered_once", exchange) else { return };
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
    Run::with(&["--interface".as_ref(), "no_such_one".as_ref()]).assert_refused("no_such_one");
    let both = ["-", "--interface", "lo"].map(std::ffi::OsStr::new);
    Run::with(&both).assert_refused("cannot be merged");
}
