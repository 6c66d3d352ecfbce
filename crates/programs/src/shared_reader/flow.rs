//! The state of a flow, and the sums over dropped flows.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use super::Packet;

/// Counters of a flow, updated without a lock and without replacing the entry.
///
/// Relaxed throughout: the counters publish no other memory.
#[derive(Debug)]
pub struct FlowState {
    packets: AtomicU64,
    bytes: AtomicU64,
    last_seen: AtomicU64,
    ended: Arc<Ended>,
}

impl FlowState {
    /// Creates a flow without packets, whose counts are added to `ended` when it is dropped.
    pub fn new(ended: &Arc<Ended>) -> Self {
        let zero = AtomicU64::default;
        Self { packets: zero(), bytes: zero(), last_seen: zero(), ended: Arc::clone(ended) }
    }

    pub fn count(&self, packet: &Packet) {
        self.packets.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(packet.bytes, Ordering::Relaxed);
        // Workers run at different speeds: the last writer need not have the latest packet.
        self.last_seen.fetch_max(packet.time_ns, Ordering::Relaxed);
    }

    /// Returns the time of its latest packet.
    pub fn last_seen(&self) -> u64 {
        self.last_seen.load(Ordering::Relaxed)
    }
}

/// The flow is no longer reachable: a meter would export its record here.
impl Drop for FlowState {
    fn drop(&mut self) {
        let (packets, bytes) = (*self.packets.get_mut(), *self.bytes.get_mut());
        // A flow without packets was never in the map.
        if packets > 0 {
            self.ended.flows.fetch_add(1, Ordering::Relaxed);
            self.ended.packets.fetch_add(packets, Ordering::Relaxed);
            self.ended.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// Sums over the flows that were dropped.
#[derive(Debug, Default)]
pub struct Ended {
    flows: AtomicU64,
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Ended {
    pub fn sums(&self) -> Sums {
        let [flows, packets, bytes] =
            [&self.flows, &self.packets, &self.bytes].map(|sum| sum.load(Ordering::Relaxed));
        Sums { flows, packets, bytes }
    }
}

/// A snapshot of [`Ended`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub flows: u64,
    pub packets: u64,
    pub bytes: u64,
}
