//! The packets of an FTP session, with connections that are expected and others that are not.

use std::net::{Ipv4Addr, SocketAddrV4};

use flowtable::TcpFlags;

use super::firewall::CONTROL;
use super::segment::Segment;

/// A packet of the session.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The time of the packet, in seconds.
    pub at: u64,
    pub segment: Segment<'static>,
}

/// The end of the session, in seconds: the timeout of a closed connection has passed.
pub const END: u64 = 200;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);

const ACK: TcpFlags = TcpFlags::ACK;
const SYN: TcpFlags = TcpFlags::SYN;
const SYN_ACK: TcpFlags = TcpFlags(SYN.0 | ACK.0);

/// A passive transfer and an active one, an announcement that expires, wrong ones, and the end.
pub const PACKETS: [Step; 19] = [
    of_client(0, 40_000, CONTROL, SYN, ""),
    of_server(0, CONTROL, 40_000, SYN_ACK, ""),
    of_client(0, 40_000, CONTROL, ACK, "PASV\r\n"),
    of_server(1, CONTROL, 40_000, ACK, "227 Passive (10,1,0,1,195,80)\r\n"),
    of_client(2, 40_001, 50_000, SYN, ""),
    of_server(2, 50_000, 40_001, SYN_ACK, ""),
    of_client(2, 40_001, 50_000, ACK, ""),
    // The announcement was for one connection.
    of_client(3, 40_002, 50_000, SYN, ""),
    of_client(4, 40_000, CONTROL, ACK, "PORT 10,0,0,1,156,67\r\n"),
    of_server(5, 20, 40_003, SYN, ""),
    // There is no announcement of this port.
    of_server(6, 20, 40_009, SYN, ""),
    of_client(7, 40_000, CONTROL, ACK, "PORT 10,0,0,1,156,68\r\n"),
    // A minute has passed.
    of_server(67, 20, 40_004, SYN, ""),
    of_client(68, 40_000, CONTROL, ACK, "PORT 1,2,3\r\n"),
    of_client(68, 40_000, CONTROL, ACK, "PORT 10,0,0,1,256,1\r\n"),
    of_client(68, 40_000, CONTROL, ACK, "PORT 10,0,0,1,156,6"),
    of_client(68, 40_000, CONTROL, ACK, "PORT 10,0,0,9,156,69\r\n"),
    of_client(68, 40_000, CONTROL, ACK, "PORT 10,0,0,1,0,22\r\n"),
    of_client(69, 40_000, CONTROL, TcpFlags::RST, ""),
];

const fn of_client(at: u64, sport: u16, dport: u16, flags: TcpFlags, text: &'static str) -> Step {
    let (from, to) = (SocketAddrV4::new(CLIENT, sport), SocketAddrV4::new(SERVER, dport));
    Step { at, segment: Segment::new(from, to, flags, text.as_bytes()) }
}

const fn of_server(at: u64, sport: u16, dport: u16, flags: TcpFlags, text: &'static str) -> Step {
    let (from, to) = (SocketAddrV4::new(SERVER, sport), SocketAddrV4::new(CLIENT, dport));
    Step { at, segment: Segment::new(from, to, flags, text.as_bytes()) }
}
