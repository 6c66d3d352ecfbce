//! Community ID of a flow: a hash that other tools compute, too, equal for both directions.
//!
//! Specification: <https://github.com/corelight/community-id-spec>.

use community_id::calculate_community_id;

use super::record::{HalfRecord, is_icmp, ports};

/// The protocols that have ports in the specification: TCP, UDP, SCTP.
const HAVE_PORTS: [u8; 3] = [6, 17, 132];

/// Returns the ID of the flow of which this is a direction.
pub(crate) fn of(half: &HalfRecord) -> String {
    /// The seed that all tools have by default.
    const SEED: u16 = 0;
    let HalfRecord { key, counters, .. } = half;
    let ports = match counters.icmp {
        Some(icmp) if is_icmp(key) => Some(icmp.to_be_bytes().map(u16::from)),
        _ if HAVE_PORTS.contains(&key.protocol()) => Some(ports(key)),
        _ => None,
    };
    let [sport, dport] = [0, 1].map(|at| ports.map(|ports| ports[at]));
    let protocol = key.protocol();
    let id = calculate_community_id(SEED, key.src(), key.dst(), sport, dport, protocol, false);
    // An error is that of ICMP in a packet of the other IP version.
    id.unwrap_or_default()
}
