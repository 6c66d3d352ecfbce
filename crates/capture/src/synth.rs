//! Generated traffic of a small site, deterministic for a seed.
//!
//! TCP connections of both IP versions from handshake to FIN or RST, some of them on VLANs; DNS,
//! pings, ARP, fragmented datagrams, and frames that are too short for a flow. Longer frames are
//! truncated to 128 bytes, as in a capture of headers.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{
    ArpHardwareId, ArpOperation, ArpPacket, EtherType, IpFragOffset, IpHeaders, IpNumber,
    Ipv4Header, PacketBuilder, PacketBuilderStep, TcpHeader, VlanId,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Maximum captured length of a frame.
const SNAP_LEN: usize = 128;
const CONNECTIONS: usize = 600;
const QUERIES: usize = 1500;
const PINGS: usize = 300;
const DATAGRAMS: usize = 200;
const STRAYS: usize = 100;

/// 2026-01-01, and the time span in which conversations begin.
const START_NS: u64 = 1_767_225_600_000_000_000;
const SPAN_NS: u64 = 60_000_000_000;

const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SERVER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const HOP_LIMIT: u8 = 64;
/// The source of payloads: a full segment.
const ZEROS: [u8; 1448] = [0; 1448];

/// Returns a pcap file with generated traffic.
pub fn capture(seed: u64) -> Vec<u8> {
    let mut site = Site { random: StdRng::seed_from_u64(seed), frames: Vec::new() };
    for _ in 0..CONNECTIONS {
        site.connection();
    }
    for _ in 0..QUERIES {
        site.query();
    }
    for _ in 0..PINGS {
        site.ping();
    }
    for _ in 0..DATAGRAMS {
        site.fragments();
    }
    for _ in 0..STRAYS {
        site.stray();
    }
    site.frames.sort_by_key(|frame| frame.time_ns);
    file(&site.frames)
}

struct Site {
    random: StdRng,
    frames: Vec<MadeFrame>,
}

struct MadeFrame {
    time_ns: u64,
    wire_len: u32,
    bytes: Vec<u8>,
}

/// Two hosts that communicate.
#[derive(Clone, Copy)]
struct Pair {
    client: IpAddr,
    server: IpAddr,
    vlan: Option<VlanId>,
}

impl Pair {
    /// Returns the headers before the transport layer, in one direction.
    fn headers(&self, from_client: bool) -> PacketBuilderStep<IpHeaders> {
        let (macs, ips) = match from_client {
            true => ((CLIENT_MAC, SERVER_MAC), (self.client, self.server)),
            false => ((SERVER_MAC, CLIENT_MAC), (self.server, self.client)),
        };
        let ethernet = PacketBuilder::ethernet2(macs.0, macs.1);
        match (ips, self.vlan) {
            ((IpAddr::V4(src), IpAddr::V4(dst)), None) => {
                ethernet.ipv4(src.octets(), dst.octets(), HOP_LIMIT)
            }
            ((IpAddr::V4(src), IpAddr::V4(dst)), Some(vlan)) => {
                ethernet.single_vlan(vlan).ipv4(src.octets(), dst.octets(), HOP_LIMIT)
            }
            ((src, dst), None) => ethernet.ipv6(v6(src).octets(), v6(dst).octets(), HOP_LIMIT),
            ((src, dst), Some(vlan)) => {
                ethernet.single_vlan(vlan).ipv6(v6(src).octets(), v6(dst).octets(), HOP_LIMIT)
            }
        }
    }
}

fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// The state of a TCP connection.
struct TcpState {
    pair: Pair,
    port: u16,
    service: u16,
    time_ns: u64,
    /// Next sequence numbers of the client and of the server.
    next: [u32; 2],
}

impl Site {
    fn pair(&mut self) -> Pair {
        let (client, server) = (self.random.random_range(1..200), self.random.random_range(1..20));
        let vlan = self
            .random
            .random_bool(0.2)
            .then(|| VlanId::try_new(self.random.random_range(10..14)).expect("below 4096"));
        let site_v6 = |net, host: u8| Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, host.into());
        let (client, server) = match self.random.random_bool(0.3) {
            true => (site_v6(1, client).into(), site_v6(2, server).into()),
            false => (
                Ipv4Addr::new(192, 0, 2, client).into(),
                Ipv4Addr::new(198, 51, 100, server).into(),
            ),
        };
        Pair { client, server, vlan }
    }

    fn start_ns(&mut self) -> u64 {
        START_NS + self.random.random_range(0..SPAN_NS)
    }

    fn ephemeral_port(&mut self) -> u16 {
        self.random.random_range(32_768..=60_999)
    }

    fn add(&mut self, time_ns: u64, mut bytes: Vec<u8>) {
        let wire_len = bytes.len() as u32;
        bytes.truncate(SNAP_LEN);
        self.frames.push(MadeFrame { time_ns, wire_len, bytes });
    }

    /// Adds a segment of one side, some time after the previous one; `flags` changes its flags from
    /// ACK.
    fn segment(&mut self, tcp: &mut TcpState, client: bool, len: usize, flags: fn(&mut TcpHeader)) {
        tcp.time_ns += self.random.random_range(20_000..5_000_000);
        let [mine, other] = if client { [0, 1] } else { [1, 0] };
        let (src, dst) = if client { (tcp.port, tcp.service) } else { (tcp.service, tcp.port) };
        let mut header = TcpHeader::new(src, dst, tcp.next[mine], 64_240);
        header.ack = true;
        header.acknowledgment_number = tcp.next[other];
        flags(&mut header);
        let counted = len as u32 + u32::from(header.syn) + u32::from(header.fin);
        tcp.next[mine] = tcp.next[mine].wrapping_add(counted);
        let packet = tcp.pair.headers(client).tcp_header(header);
        let mut bytes = Vec::with_capacity(packet.size(len));
        packet.write(&mut bytes, &ZEROS[..len]).expect("writing to a vector succeeds");
        self.add(tcp.time_ns, bytes);
    }

    /// Adds a connection: handshake, requests with answers, and an end by FIN, by RST, or outside
    /// of the capture.
    fn connection(&mut self) {
        let tcp = &mut TcpState {
            pair: self.pair(),
            port: self.ephemeral_port(),
            service: [22, 80, 443, 443, 5432][self.random.random_range(0..5)],
            time_ns: self.start_ns(),
            next: [self.random.random(), self.random.random()],
        };
        self.segment(tcp, true, 0, |header| (header.syn, header.ack) = (true, false));
        self.segment(tcp, false, 0, |header| header.syn = true);
        self.segment(tcp, true, 0, |_| {});
        // Most are short, few are long.
        let requests = (40.0 * self.random.random::<f64>().powi(3)) as usize + 1;
        for _ in 0..requests {
            let request = self.random.random_range(20..600);
            self.segment(tcp, true, request, |header| header.psh = true);
            for _ in 0..self.random.random_range(1..6) {
                self.segment(tcp, false, ZEROS.len(), |_| {});
                self.segment(tcp, true, 0, |_| {});
            }
        }
        match self.random.random_range(0..10) {
            0 => {}
            1 => self.segment(tcp, true, 0, |header| header.rst = true),
            _ => {
                self.segment(tcp, true, 0, |header| header.fin = true);
                self.segment(tcp, false, 0, |header| header.fin = true);
                self.segment(tcp, true, 0, |_| {});
            }
        }
    }

    fn datagram(&mut self, pair: Pair, client: bool, ports: [u16; 2], time_ns: u64, len: usize) {
        let packet = pair.headers(client).udp(ports[0], ports[1]);
        let mut bytes = Vec::with_capacity(packet.size(len));
        packet.write(&mut bytes, &ZEROS[..len]).expect("writing to a vector succeeds");
        self.add(time_ns, bytes);
    }

    /// Adds a DNS query, mostly with its answer.
    fn query(&mut self) {
        let (pair, port, time_ns) = (self.pair(), self.ephemeral_port(), self.start_ns());
        let (asked, answered) =
            (self.random.random_range(30..70), self.random.random_range(50..400));
        self.datagram(pair, true, [port, 53], time_ns, asked);
        if self.random.random_bool(0.95) {
            self.datagram(pair, false, [53, port], time_ns + 900_000, answered);
        }
    }

    /// Adds an echo request and its reply.
    fn ping(&mut self) {
        let (pair, time_ns) = (self.pair(), self.start_ns());
        for (client, delay_ns) in [(true, 0), (false, 400_000)] {
            let headers = pair.headers(client);
            let packet = match (pair.client.is_ipv4(), client) {
                (true, true) => headers.icmpv4_echo_request(1, 1),
                (true, false) => headers.icmpv4_echo_reply(1, 1),
                (false, _) => return self.ping_v6(pair, time_ns),
            };
            let mut bytes = Vec::with_capacity(packet.size(56));
            packet.write(&mut bytes, &ZEROS[..56]).expect("writing to a vector succeeds");
            self.add(time_ns + delay_ns, bytes);
        }
    }

    fn ping_v6(&mut self, pair: Pair, time_ns: u64) {
        let request = pair.headers(true).icmpv6_echo_request(1, 1);
        let reply = pair.headers(false).icmpv6_echo_reply(1, 1);
        for (packet, delay_ns) in [(request, 0), (reply, 400_000)] {
            let mut bytes = Vec::with_capacity(packet.size(56));
            packet.write(&mut bytes, &ZEROS[..56]).expect("writing to a vector succeeds");
            self.add(time_ns + delay_ns, bytes);
        }
    }

    /// Adds an IPv4 datagram in three fragments, of which the first has the ports.
    fn fragments(&mut self) {
        const PIECE: u16 = 1440;
        let [src, dst] = [[192, 0, 2, 9], [198, 51, 100, 9]];
        let (time_ns, port) = (self.start_ns(), self.ephemeral_port());
        let identification = self.random.random();
        for index in 0..3_u16 {
            // The builder writes the length.
            let mut header = Ipv4Header::new(0, HOP_LIMIT, IpNumber::UDP, src, dst)
                .expect("a payload of 0 bytes fits");
            header.identification = identification;
            header.more_fragments = index < 2;
            header.fragment_offset =
                IpFragOffset::try_new(index * PIECE / 8).expect("below 8192 units of 8 bytes");
            let headers = PacketBuilder::ethernet2(CLIENT_MAC, SERVER_MAC)
                .ip(IpHeaders::Ipv4(header, Default::default()));
            let mut bytes = Vec::new();
            let written = match index {
                0 => headers.udp(port, 2049).write(&mut bytes, &ZEROS[8..PIECE.into()]),
                _ => headers.write(&mut bytes, IpNumber::UDP, &ZEROS[..PIECE.into()]),
            };
            written.expect("writing to a vector succeeds");
            self.add(time_ns + u64::from(index) * 12_000, bytes);
        }
    }

    /// Adds a frame without a flow: ARP, or a truncated packet.
    fn stray(&mut self) {
        let time_ns = self.start_ns();
        if self.random.random_bool(0.5) {
            let question = ArpPacket::new(
                ArpHardwareId::ETHERNET,
                EtherType::IPV4,
                ArpOperation::REQUEST,
                &CLIENT_MAC,
                &[192, 0, 2, 1],
                &[0; 6],
                &[192, 0, 2, 2],
            );
            let packet = PacketBuilder::ethernet2(CLIENT_MAC, [0xff; 6])
                .arp(question.expect("addresses of equal lengths"));
            let mut bytes = Vec::new();
            packet.write(&mut bytes).expect("writing to a vector succeeds");
            return self.add(time_ns, bytes);
        }
        let headers = self.pair().headers(true).udp(1, 2);
        let mut bytes = Vec::new();
        headers.write(&mut bytes, &ZEROS[..64]).expect("writing to a vector succeeds");
        let wire_len = bytes.len() as u32;
        bytes.truncate(self.random.random_range(0..30));
        self.frames.push(MadeFrame { time_ns, wire_len, bytes });
    }
}

/// Returns a pcap of Ethernet frames with times in microseconds.
fn file(frames: &[MadeFrame]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, SNAP_LEN as u32, 1] {
        out.extend(u32::to_le_bytes(word));
    }
    for frame in frames {
        let seconds = (frame.time_ns / 1_000_000_000) as u32;
        let microseconds = (frame.time_ns % 1_000_000_000 / 1000) as u32;
        for word in [seconds, microseconds, frame.bytes.len() as u32, frame.wire_len] {
            out.extend(u32::to_le_bytes(word));
        }
        out.extend(&frame.bytes);
    }
    out
}
