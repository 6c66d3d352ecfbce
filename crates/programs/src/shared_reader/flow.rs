//! The state of a flow, and where its sums go.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use super::Packet;

/// What changes with each packet, without a lock and without a new entry.
///
/// Relaxed throughout: the counters say nothing about other memory.
#[derive(Debug)]
pub struct FlowState {
    packets: AtomicU64,
    bytes: AtomicU64,
    last_seen: AtomicU64,
    ended: Arc<Ended>,
}

impl FlowState {
    /// Without packets yet. What it has counted in the end is added to `ended`.
    pub fn new(ended: &Arc<Ended>) -> Self {
        let zero = AtomicU64::default;
        Self { packets: zero(), bytes: zero(), last_seen: zero(), ended: Arc::clone(ended) }
    }

    pub fn count(&self, packet: &Packet) {
        self.packets.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(packet.bytes, Ordering::Relaxed);
        // Workers get on at different speeds: the last to write need not have the latest packet.
        self.last_seen.fetch_max(packet.time_ns, Ordering::Relaxed);
    }

    /// Time of its latest packet.
    pub fn last_seen(&self) -> u64 {
        self.last_seen.load(Ordering::Relaxed)
    }
}

/// Here nobody can find the flow any more: a meter would make its record now.
impl Drop for FlowState {
    fn drop(&mut self) {
        let (packets, bytes) = (*self.packets.get_mut(), *self.bytes.get_mut());
        // One without packets never got into the map.
        if packets > 0 {
            self.ended.flows.fetch_add(1, Ordering::Relaxed);
            self.ended.packets.fetch_add(packets, Ordering::Relaxed);
            self.ended.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// What flows have counted that were dropped.
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

/// The same at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub flows: u64,
    pub packets: u64,
    pub bytes: u64,
}
