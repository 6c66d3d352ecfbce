//! Random stacks of headers, composed from the inside out, and the packets that are read in them.

use capture::{Frame, Packet, Ports, Tunnels, Vlans, packets};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A header between Ethernet and IP.
#[derive(Clone, Copy, Debug)]
enum Layer {
    /// An ether type, and a VLAN ID.
    Vlan(u16, u16),
    /// An ether type, and the number of bytes up to the next type.
    Tag(u16, usize),
    /// An ether type, and the number of bytes up to an Ethernet header.
    Carrier(u16, usize),
    /// Labels, and a control word or none, before an Ethernet header.
    PseudoWire {
        labels: usize,
        has_control_word: bool,
    },
    Snap,
}

/// A tunnel in an IP packet.
#[derive(Clone, Copy, Debug)]
enum Tunnel {
    IpInIp,
    GreIp,
    GreEthernet,
    Vxlan,
    Geneve,
}

impl Tunnel {
    /// Returns whether its content is an Ethernet frame.
    const fn has_ethernet(self) -> bool {
        matches!(self, Self::GreEthernet | Self::Vxlan | Self::Geneve)
    }
}

/// An IP packet with the headers before it, and the tunnel in which the next level is.
#[derive(Clone, Debug)]
struct Level {
    layers: Vec<Layer>,
    is_v6: bool,
    tunnel: Tunnel,
}

fn layer() -> impl Strategy<Value = Layer> {
    prop_oneof![
        (select(vec![0x8100, 0x88a8, 0x9100, 0x9200, 0x9300, 0x893b]), 0..4096_u16)
            .prop_map(|(ether_type, id)| Layer::Vlan(ether_type, id)),
        select(vec![(0x8926, 4), (0x893f, 6), (0x8909, 6), (0x892f, 4), (0xdada, 6)])
            .prop_map(|(ether_type, length)| Layer::Tag(ether_type, length)),
        select(vec![(0x88e7, 4), (0x8903, 2), (0x22f3, 6), (0x6558, 0)])
            .prop_map(|(ether_type, length)| Layer::Carrier(ether_type, length)),
        (1..4_usize, any::<bool>())
            .prop_map(|(labels, has_control_word)| Layer::PseudoWire { labels, has_control_word }),
        Just(Layer::Snap),
    ]
}

fn level() -> impl Strategy<Value = Level> {
    let tunnel = select(vec![
        Tunnel::IpInIp,
        Tunnel::GreIp,
        Tunnel::GreEthernet,
        Tunnel::Vxlan,
        Tunnel::Geneve,
    ]);
    (vec(layer(), 0..5), any::<bool>(), tunnel).prop_map(|(layers, is_v6, tunnel)| Level {
        layers,
        is_v6,
        tunnel,
    })
}

const ADDRESSES: &[u8; 12] = b"\x02ddddd\x02sssss";

/// Encodes headers before a packet, and returns the ether type that announces them.
fn typed(layers: &[Layer], ip_type: u16, ip: &[u8]) -> (u16, Vec<u8>) {
    let Some((first, rest)) = layers.split_first() else { return (ip_type, ip.to_vec()) };
    let (next, inner) = typed(rest, ip_type, ip);
    let with_type = [&next.to_be_bytes()[..], &inner].concat();
    match *first {
        Layer::Vlan(ether_type, id) => (ether_type, [&id.to_be_bytes(), &with_type[..]].concat()),
        Layer::Tag(ether_type, length) => (ether_type, [&vec![0; length][..], &with_type].concat()),
        Layer::Carrier(ether_type, length) => {
            (ether_type, [&vec![0; length][..], ADDRESSES, &with_type].concat())
        }
        Layer::PseudoWire { labels, has_control_word } => {
            let mut stack = [0, 1, 0, 64].repeat(labels);
            stack[4 * labels - 2] = 1;
            let control_word = [0; 4];
            let control_word = if has_control_word { &control_word[..] } else { &[] };
            (0x8847, [&stack[..], control_word, ADDRESSES, &with_type].concat())
        }
        Layer::Snap => {
            let frame = [b"\xaa\xaa\x03\x00\x00\x00", &with_type[..]].concat();
            (frame.len() as u16, frame)
        }
    }
}

/// Returns the VLAN IDs behind the last Ethernet header.
fn vlans(layers: &[Layer]) -> Vlans {
    let is_ethernet =
        |layer: &Layer| matches!(layer, Layer::Carrier(..) | Layer::PseudoWire { .. });
    let begin = layers.iter().rposition(is_ethernet).map_or(0, |last| last + 1);
    let ids = layers[begin..].iter().filter_map(|layer| match layer {
        Layer::Vlan(_, id) => Some(*id),
        _ => None,
    });
    let mut ids = ids.filter(|id| *id > 0);
    Vlans { outer: ids.next().unwrap_or(0), inner: ids.next().unwrap_or(0) }
}

/// Encodes an IP packet of the level with this number.
fn ip(number: u8, is_v6: bool, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u16;
    if is_v6 {
        let mut ip = [&[0x60, 0, 0, 0], &length.to_be_bytes()[..], &[protocol, 64]].concat();
        ip.extend([&[0xfd; 15][..], &[number], &[0xfe; 15], &[number]].concat());
        return [&ip, payload].concat();
    }
    let mut ip = [&[0x45, 0], &(20 + length).to_be_bytes()[..], &[0, 1, 0, 0]].concat();
    ip.extend([64, protocol, 0, 0, 10, 0, 0, number, 10, 1, 1, number]);
    let words = ip.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    [&ip, payload].concat()
}

const fn ip_type(is_v6: bool) -> u16 {
    if is_v6 { 0x86dd } else { 0x0800 }
}

/// A stack, and the length of the IP packet of each level, the outermost first.
struct Stack {
    frame: Vec<u8>,
    lengths: Vec<usize>,
}

/// Composes a frame; the innermost packet is a segment with these ports, and padding follows.
fn compose(levels: &[Level], ports: [u16; 2], padding: usize) -> Stack {
    let mut segment = [ports[0].to_be_bytes(), ports[1].to_be_bytes()].concat();
    segment.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 0, 0, 0, 0, 0, 0, 9, 9]);
    let (mut protocol, mut payload) = (6, segment);
    let mut lengths = vec![];
    for (number, level) in levels.iter().enumerate().rev() {
        let packet = ip(number as u8, level.is_v6, protocol, &payload);
        lengths.insert(0, packet.len());
        let around = number.checked_sub(1).map(|outer| levels[outer].tunnel);
        let ip_type = ip_type(level.is_v6);
        let ethernet = || {
            let (ether_type, rest) = typed(&level.layers, ip_type, &packet);
            [ADDRESSES, &ether_type.to_be_bytes()[..], &rest].concat()
        };
        let in_udp = |port: u16, front: &[u8]| {
            let content = [front, &ethernet()].concat();
            let header = [port, port, 8 + content.len() as u16, 0].map(u16::to_be_bytes);
            [&header.concat(), &content[..]].concat()
        };
        (protocol, payload) = match around {
            None => return Stack { frame: [ethernet(), vec![0x5a; padding]].concat(), lengths },
            Some(Tunnel::IpInIp) => (if level.is_v6 { 41 } else { 4 }, packet),
            Some(Tunnel::GreIp) => (47, [&[0, 0], &ip_type.to_be_bytes()[..], &packet].concat()),
            Some(Tunnel::GreEthernet) => (47, [b"\x20\x00\x65\x58kkkk", &ethernet()[..]].concat()),
            Some(Tunnel::Vxlan) => (17, in_udp(4789, b"\x08\0\0\0\0\0\x2a\0")),
            Some(Tunnel::Geneve) => (17, in_udp(6081, b"\0\0\x65\x58\0\0\x2a\0")),
        };
    }
    unreachable!("the outermost level ends the loop")
}

fn read(frame: &[u8], length: usize, tunnels: Tunnels) -> Option<Packet> {
    let frame = Frame { time_ns: 1, link: 1, wire_len: frame.len() as u32, data: &frame[..length] };
    let mut packets = packets(&frame, tunnels);
    let packet = packets.next().expect("there is one");
    assert!(packets.next().is_none());
    packet.ok()
}

/// Returns the number of the level whose addresses a packet has.
fn number(packet: &Packet) -> usize {
    let last = |address: std::net::IpAddr| match address {
        std::net::IpAddr::V4(address) => address.octets()[3],
        std::net::IpAddr::V6(address) => address.octets()[15],
    };
    assert_eq!(last(packet.key.src()), last(packet.key.dst()));
    last(packet.key.src()).into()
}

fn check(levels: &[Level], ports: [u16; 2], padding: usize, cut: usize) {
    let Stack { frame, lengths } = compose(levels, ports, padding);
    let last = levels.len() - 1;
    for (tunnels, expected) in
        [(Tunnels::Outer, 0), (Tunnels::One, last.min(1)), (Tunnels::All, last)]
    {
        let packet = read(&frame, frame.len(), tunnels).expect("it is IP");
        assert_eq!((number(&packet), usize::from(packet.depth)), (expected, expected));
        assert_eq!((packet.bytes, packet.is_overlong), (lengths[expected] as u64, false));
        let own = (0..=expected)
            .rev()
            .find(|&number| number == 0 || levels[number - 1].tunnel.has_ethernet());
        assert_eq!(packet.vlans, vlans(&levels[own.unwrap_or(0)].layers));
        if expected == last {
            assert_eq!([packet.key.sport(), packet.key.dport()], ports);
            assert_eq!(
                (packet.flags.map(|flags| flags.0), packet.ports),
                (Some(0x10), Ports::Read)
            );
        }
        // A cut frame has the same packet, without the fields that are cut, one of the tunnels
        // around it, or none.
        let Some(packet) = read(&frame, cut.min(frame.len()), tunnels) else { continue };
        let number = number(&packet);
        assert!(number <= expected && packet.bytes == lengths[number] as u64);
        let has_ports = packet.ports == Ports::Read && number == last;
        assert!(!has_ports || [packet.key.sport(), packet.key.dport()] == ports);
    }
}

proptest! {
    #[test]
    fn stacks_are_read_as_they_were_composed(
        levels in vec(level(), 1..4),
        ports in any::<[u16; 2]>(),
        padding in 0..40_usize,
        cut in 0..400_usize,
    ) {
        check(&levels, ports, padding, cut);
    }
}
