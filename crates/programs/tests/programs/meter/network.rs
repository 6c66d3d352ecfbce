//! Runs in a network namespace of their own, which only root can create: addresses, MTUs and
//! interfaces that change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use capture::data::{ETHERNET, LITTLE, MICROSECONDS, announce, pcap, udp};

use super::interface::listening;
use super::signals::{LiveRun, wait_for};
use crate::run::Run;

/// Another process, which ends with the test.
struct Helper(Child);

impl Helper {
    fn new(command: &[&str]) -> Self {
        let mut process = Command::new(command[0]);
        process.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null());
        Self(process.spawn().expect("the program can be run"))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A network namespace with a pair of interfaces, v0 in it and v1 in another one.
struct Network {
    /// A process in the namespace of v0, which the namespace lasts as long as.
    holder: Helper,
    peer: Helper,
}

/// Returns the output of a command in the namespaces of a process, after it has succeeded.
fn inside(process: u32, command: &[&str]) -> Option<String> {
    let target = process.to_string();
    let output = Command::new("nsenter").args(["-n", "-t", &target]).args(command).output();
    let Output { status, stdout, .. } = output.ok()?;
    status.success().then(|| String::from_utf8_lossy(&stdout).into_owned())
}

impl Network {
    /// Creates it; `None` if that is not possible, after announcing it for `test`.
    fn new(test: &str, mtu: u32) -> Option<Self> {
        if Command::new("python3").arg("--version").output().is_err() {
            announce(test, format_args!("SKIPPED: there is no program `python3`"));
            return None;
        }
        let can_create = Command::new("unshare").args(["-n", "true"]).output();
        if !can_create.is_ok_and(|output| output.status.success()) {
            announce(test, format_args!("SKIPPED: no network namespace can be created"));
            return None;
        }
        let new = || Helper::new(&["unshare", "-n", "sleep", "600"]);
        let network = Self { holder: new(), peer: new() };
        // The namespaces are those of the processes after a moment.
        thread::sleep(Duration::from_millis(300));
        let [here, there] = [network.holder.0.id(), network.peer.0.id()];
        let peer = there.to_string();
        let mtu = mtu.to_string();
        let is_made =
            ["ip", "link", "add", "v0", "mtu", &mtu, "type", "veth", "peer", "name", "v1"];
        let made = inside(here, &[&is_made[..], &["mtu", &mtu, "netns", &peer]].concat())
            .and_then(|_| inside(here, &["ip", "addr", "add", "10.77.0.1/24", "dev", "v0"]))
            .and_then(|_| inside(here, &["ip", "link", "set", "v0", "up"]))
            .and_then(|_| inside(there, &["ip", "addr", "add", "10.77.0.2/24", "dev", "v1"]))
            .and_then(|_| inside(there, &["ip", "link", "set", "v1", "up"]));
        if made.is_none() {
            announce(test, format_args!("SKIPPED: no pair of interfaces can be created"));
        }
        made.map(|_| network)
    }

    /// Runs a command in the namespace of v0.
    fn run(&self, command: &[&str]) {
        assert!(inside(self.holder.0.id(), command).is_some(), "{command:?}");
    }

    /// Starts the example in the namespace of v0.
    fn meter(&self, arguments: &[&str]) -> LiveRun {
        let target = self.holder.0.id().to_string();
        LiveRun::within(&["nsenter", "-n", "-t", &target], arguments)
    }

    /// Starts a collector at v1, which writes its datagrams to a file.
    fn collector(&self, file: &Path) -> Helper {
        let script = "import socket,sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('10.77.0.2', 4739))
print('listens', file=open(sys.argv[1], 'a'), flush=True)
while True:
    data, peer = s.recvfrom(65536)
    print(len(data), peer[0], data[16:18].hex(), file=open(sys.argv[1], 'a'), flush=True)";
        let target = self.peer.0.id().to_string();
        let name = file.to_str().expect("a name in UTF-8");
        let collector =
            Helper::new(&["nsenter", "-n", "-t", &target, "python3", "-c", script, name]);
        wait_for(file, "listens");
        collector
    }
}

fn place(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path
}

/// Returns a capture, without its header, of flows of one packet at successive seconds.
fn flows(first: u16, count: u16) -> Vec<u8> {
    let frames: Vec<_> = (first..first + count).map(|port| (port, udp(port, 53, 0))).collect();
    let second = |port: u16| 1_700_000_000 + u32::from(port);
    let records: Vec<_> =
        frames.iter().map(|(port, frame)| (second(*port), 0, &frame[..])).collect();
    pcap(LITTLE, MICROSECONDS, ETHERNET, &records)[24..].to_vec()
}

fn header() -> Vec<u8> {
    pcap(LITTLE, MICROSECONDS, ETHERNET, &[])
}

#[test]
fn a_change_of_the_address_does_not_end_the_export() {
    const TEST: &str = "a_change_of_the_address_does_not_end_the_export";
    let Some(network) = Network::new(TEST, 1500) else { return };
    let file = place("address changes");
    let _collector = network.collector(&file);
    let mut run = network.meter(&["-", "--idle", "1", "--ipfix", "10.77.0.2:4739"]);
    run.write(&header());
    run.write(&flows(1, 100));
    wait_for(&file, "10.77.0.1 0100");
    // No message is on its way while there is no address.
    thread::sleep(Duration::from_secs(3));
    network.run(&["ip", "addr", "del", "10.77.0.1/24", "dev", "v0"]);
    network.run(&["ip", "addr", "add", "10.77.0.5/24", "dev", "v0"]);
    run.write(&flows(200, 100));
    // Templates first: it is another session.
    wait_for(&file, "10.77.0.5 0002");
    wait_for(&file, "10.77.0.5 0100");
    run.wait_for_error("another socket was opened");
    run.signal("TERM");
    let run = run.end();
    assert_eq!(run.errors().len(), 2, "{run:?}");
    assert_eq!(run.code, Some(143), "nothing is lost: {run:?}");
}

#[test]
fn an_address_that_is_gone_is_reported_and_tried_again() {
    const TEST: &str = "an_address_that_is_gone_is_reported_and_tried_again";
    let Some(network) = Network::new(TEST, 1500) else { return };
    let file = place("address is gone");
    let _collector = network.collector(&file);
    let mut run = network.meter(&["-", "--idle", "1", "--ipfix", "10.77.0.2:4739"]);
    run.write(&header());
    run.write(&flows(1, 100));
    wait_for(&file, "10.77.0.1 0100");
    network.run(&["ip", "addr", "del", "10.77.0.1/24", "dev", "v0"]);
    run.write(&flows(200, 100));
    run.wait_for_error("10.77.0.2:4739 is not reached: Network is unreachable");
    run.signal("USR1");
    run.wait_for_error("10.77.0.2:4739 did not receive");
    network.run(&["ip", "addr", "add", "10.77.0.6/24", "dev", "v0"]);
    thread::sleep(Duration::from_millis(1200));
    run.write(&flows(400, 100));
    wait_for(&file, "10.77.0.6 0100");
    run.signal("TERM");
    let run = run.end();
    assert_eq!(run.code, Some(1), "messages are lost: {run:?}");
}

/// Messages are not longer than the interface takes in one packet.
#[test]
fn messages_fit_into_the_packets_of_the_interface() {
    for (mtu, most) in [(700, 672), (1280, 1232), (9000, 1232)] {
        const TEST: &str = "messages_fit_into_the_packets_of_the_interface";
        let Some(network) = Network::new(TEST, mtu) else { return };
        let file = place(&format!("messages for {mtu}"));
        let _collector = network.collector(&file);
        let mut run = network.meter(&["-", "--ipfix", "10.77.0.2:4739"]);
        run.write(&header());
        run.write(&flows(1, 200));
        wait_for(&file, " 0002");
        run.signal("INT");
        let run: Run = run.end();
        assert_eq!(run.code, Some(130), "{run:?}");
        thread::sleep(Duration::from_millis(300));
        let text = fs::read_to_string(&file).expect("it was written");
        let length = |line: &str| line.split(' ').next()?.parse::<usize>().ok();
        let longest = text.lines().filter_map(length).max().expect("there are some");
        assert!((most - 100..=most).contains(&longest), "{mtu}: {longest}");
    }
}

/// An interface goes down, is removed, and comes back; another one of the same run goes on.
#[test]
fn an_interface_may_go_down_and_up() {
    const TEST: &str = "an_interface_may_go_down_and_up";
    let Some(network) = Network::new(TEST, 1500) else { return };
    let file = place("interface down and up.csv");
    let name = file.to_str().expect("a name in UTF-8");
    network.run(&["ip", "link", "set", "lo", "up"]);
    let arguments = ["--interface", "v0", "--interface", "lo", "--filter", "udp port 5000"];
    let outputs = ["--idle", "1", "--csv", name];
    let run = network.meter(&[&arguments[..], &outputs].concat());
    let Some(run) = listening(TEST, run) else { return };
    let send = |process: u32, address: &str| {
        let send = format!("echo hello > /dev/udp/{address}/5000");
        // The kernel needs a moment for addresses of an interface that has come up.
        for _ in 0..50 {
            if inside(process, &["bash", "-c", &send]).is_some() {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
        panic!("no packet can be sent to {address}");
    };
    let (here, there) = (network.holder.0.id(), network.peer.0.id());
    send(there, "10.77.0.1");
    wait_for(&file, "10.77.0.2,10.77.0.1,17,");
    network.run(&["ip", "link", "set", "v0", "down"]);
    run.wait_for_error("interface v0 is down");
    send(here, "127.0.0.1");
    wait_for(&file, "127.0.0.1,127.0.0.1,17,");
    network.run(&["ip", "link", "set", "v0", "up"]);
    run.wait_for_error("interface v0 is up again");
    network.run(&["ip", "addr", "replace", "10.77.0.3/24", "dev", "v0"]);
    send(there, "10.77.0.3");
    wait_for(&file, "10.77.0.2,10.77.0.3,17,");
    network.run(&["ip", "link", "del", "v0"]);
    run.wait_for_error("it is opened again when that is possible");
    let peer = there.to_string();
    network.run(&["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", &peer]);
    network.run(&["ip", "addr", "add", "10.77.0.4/24", "dev", "v0"]);
    network.run(&["ip", "link", "set", "v0", "up"]);
    assert!(inside(there, &["ip", "addr", "add", "10.77.0.2/24", "dev", "v1"]).is_some());
    assert!(inside(there, &["ip", "link", "set", "v1", "up"]).is_some());
    thread::sleep(Duration::from_secs(3));
    send(there, "10.77.0.4");
    wait_for(&file, "10.77.0.2,10.77.0.4,17,");
    run.signal("TERM");
    let run = run.end();
    assert_eq!(run.code, Some(143), "{run:?}");
}
