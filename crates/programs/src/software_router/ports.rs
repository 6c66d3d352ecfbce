//! Ports and routes of the router.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use flowtable::RouteTable;

/// A port of the router, named after the network that it connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    Inside,
    Outside,
    Proxies,
}

impl Port {
    pub const ALL: [Self; 3] = [Self::Inside, Self::Outside, Self::Proxies];

    /// Returns the Ethernet header towards the next hop.
    pub fn ethernet(self, is_v4: bool) -> [u8; 14] {
        let (hop, kind) = (self as u8, if is_v4 { [0x08, 0x00] } else { [0x86, 0xdd] });
        [2, 0, 0, 0, 1, hop, 2, 0, 0, 0, 2, hop, kind[0], kind[1]]
    }
}

/// The routing tables: private networks and some documentation networks are inside, proxies have
/// their port, multicast has no route, all other addresses are outside.
#[derive(Clone, Debug)]
pub struct Routes {
    v4: RouteTable<Ipv4Addr, Port>,
    v6: RouteTable<Ipv6Addr, Port>,
}

const V4: [(&str, Port); 10] = [
    ("0.0.0.0/1", Port::Outside),
    ("128.0.0.0/2", Port::Outside),
    ("192.0.0.0/3", Port::Outside),
    ("10.0.0.0/8", Port::Inside),
    ("100.64.0.0/10", Port::Inside),
    ("172.16.0.0/12", Port::Inside),
    ("192.168.0.0/16", Port::Inside),
    ("192.0.2.0/24", Port::Inside),
    ("169.254.0.0/16", Port::Inside),
    ("198.18.0.0/15", Port::Proxies),
];

const V6: [(&str, Port); 4] = [
    ("2000::/3", Port::Outside),
    ("fc00::/7", Port::Inside),
    ("2001:db8:1::/48", Port::Inside),
    ("2001:db8:3::/48", Port::Proxies),
];

impl Default for Routes {
    fn default() -> Self {
        let (mut v4, mut v6) = (RouteTable::new(), RouteTable::new());
        for (prefix, port) in V4 {
            v4.insert(prefix.parse().expect("a prefix"), port);
        }
        for (prefix, port) in V6 {
            v6.insert(prefix.parse().expect("a prefix"), port);
        }
        Self { v4, v6 }
    }
}

impl Routes {
    pub fn lookup(&self, address: IpAddr) -> Option<Port> {
        match address {
            IpAddr::V4(v4) => self.v4.lookup(&v4).map(|(_, port)| *port),
            IpAddr::V6(v6) => self.v6.lookup(&v6).map(|(_, port)| *port),
        }
    }
}
