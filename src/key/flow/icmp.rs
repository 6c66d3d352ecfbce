//! Keys of ICMP messages.
//!
//! ```text
//!                         sport              dport
//!     query              │ identifier       │ type of the query, 0 │
//!     its answer         │ type of query, 0 │ identifier           │   the reversed key
//!     any other message  │ 0                │ type, code           │
//! ```
//!
//! So a query and its answer are one flow, and each error, redirect or advertisement belongs to a
//! flow of its type and code. NetFlow, nfdump and softflowd also write `type * 256 + code` as the
//! `dport`; the identifier keeps sessions of queries apart, as RFC 5508 and Linux do.

use core::net::IpAddr;

use super::FlowKey;

/// Protocol number of ICMP for IPv4.
const ICMP: u8 = 1;

/// Protocol number of ICMP for IPv6.
const ICMP_V6: u8 = 58;

/// The types of a query with an identifier, and of its answer.
struct Exchange {
    query: u8,
    answer: u8,
}

/// Echo, timestamp, information, address mask, domain name (RFC 1788), extended echo.
const EXCHANGES: [Exchange; 6] = [
    Exchange { query: 8, answer: 0 },
    Exchange { query: 13, answer: 14 },
    Exchange { query: 15, answer: 16 },
    Exchange { query: 17, answer: 18 },
    Exchange { query: 37, answer: 38 },
    Exchange { query: 42, answer: 43 },
];

/// Echo, node information (RFC 4620, whose Qtype is where others have the identifier), home agent
/// discovery and mobile prefixes (RFC 6275), extended echo.
const EXCHANGES_V6: [Exchange; 5] = [
    Exchange { query: 128, answer: 129 },
    Exchange { query: 139, answer: 140 },
    Exchange { query: 144, answer: 145 },
    Exchange { query: 146, answer: 147 },
    Exchange { query: 160, answer: 161 },
];

impl FlowKey {
    /// Creates the key of an ICMP message of this type and code, in the direction of the message;
    /// `None` if the addresses are of different IP versions.
    ///
    /// `identifier` is the 16-bit field behind the checksum. It counts only for queries and answers
    /// that have one: echo, timestamp, information, address mask, domain name, node information,
    /// home agent discovery, mobile prefixes and extended echo. The key of an answer is the
    /// reversed key of its query. Any other message, such as an error, has a key of its type and
    /// code. For the flow that an error quotes, look up the key of the quoted packet:
    /// [`FlowCache::find_quoted`](crate::FlowCache::find_quoted).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::FlowKey;
    /// use std::net::IpAddr;
    ///
    /// let [host, server]: [IpAddr; 2] = ["192.0.2.1".parse()?, "198.51.100.2".parse()?];
    /// let ping = FlowKey::icmp(host, server, 8, 0, 7).unwrap();
    /// let pong = FlowKey::icmp(server, host, 0, 0, 7).unwrap();
    /// assert_eq!(ping.reversed(), pong);
    /// assert_eq!((ping.sport(), ping.dport()), (7, 8 << 8));
    /// // A ping of another identifier, and an error, are flows of their own.
    /// assert_ne!(FlowKey::icmp(host, server, 8, 0, 9), Some(ping));
    /// let unreachable = FlowKey::icmp(host, server, 3, 3, 0).unwrap();
    /// assert_eq!(unreachable.to_string(), "192.0.2.1:0 > 198.51.100.2:771 proto 1");
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    #[must_use]
    pub fn icmp(src: IpAddr, dst: IpAddr, kind: u8, code: u8, identifier: u16) -> Option<Self> {
        let (protocol, exchanges) = match src {
            IpAddr::V4(_) => (ICMP, &EXCHANGES[..]),
            IpAddr::V6(_) => (ICMP_V6, &EXCHANGES_V6[..]),
        };
        let [sport, dport] = ports(exchanges, kind, code, identifier);
        Self::new(src, dst, sport, dport, protocol)
    }
}

fn ports(exchanges: &[Exchange], kind: u8, code: u8, identifier: u16) -> [u16; 2] {
    for Exchange { query, answer } in exchanges {
        let of_query = u16::from_be_bytes([*query, 0]);
        if kind == *query {
            return [identifier, of_query];
        }
        if kind == *answer {
            return [of_query, identifier];
        }
    }
    [0, u16::from_be_bytes([kind, code])]
}
