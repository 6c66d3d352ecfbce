//! The control thread, the only writer: inserts new flows and removes silent ones.

use core::iter::once;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Instant;

use flowtable::concurrent::Pinned;
use flowtable::{ConcurrentMap, FlowKey};

use super::{Ended, Feed, FlowState, Flows, Latency, Packet};

/// Counts of the control thread.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pub insertions: Latency,
    pub removals: Latency,
    /// Packets whose flow an earlier packet in the queue has inserted.
    pub late: u64,
    /// Bytes of those, and of the first packets of flows.
    pub bytes: u64,
    /// Packets whose flow the map refused: too much garbage.
    pub refused: u64,
    /// Maximum garbage between two rounds.
    pub most_garbage: usize,
}

/// The control thread's work, in bounded steps.
pub struct Control<'a> {
    flows: &'a Flows,
    pin: Pinned<'a, ConcurrentMap<FlowKey, FlowState>>,
    ended: &'a Arc<Ended>,
    timeout_ns: u64,
    /// All flows, by the time of their next check.
    watched: VecDeque<(u64, FlowKey)>,
    written: Written,
}

impl<'a> Control<'a> {
    /// Maximum number of new packets, and of checked flows, per round.
    pub const ROUND: usize = 256;
    /// Time to wait for a packet before flows are checked. Short, since the pin of the thread
    /// retains garbage.
    const WAIT: Duration = Duration::from_micros(200);
    /// Time to wait at the end for removed entries to be dropped.
    const FINAL_WAIT: Duration = Duration::from_secs(10);

    pub fn new(flows: &'a Flows, ended: &'a Arc<Ended>, timeout: Duration) -> Self {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let (pin, written) = (flows.pin(), Written::default());
        Self { flows, pin, ended, timeout_ns, watched: VecDeque::new(), written }
    }

    /// Processes packets and expires flows for `time`.
    pub fn serve(&mut self, queue: &Receiver<Packet>, feed: &Feed<'_>, time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time {
            let first = queue.recv_timeout(Self::WAIT).ok();
            let packets = first.into_iter().chain(queue.try_iter());
            self.round(packets.take(Self::ROUND), feed.now());
        }
    }

    /// Processes the remaining packets, until all workers have ended.
    pub fn finish(&mut self, queue: Receiver<Packet>, feed: &Feed<'_>) {
        for packet in queue {
            self.round(once(packet), feed.now());
        }
    }

    /// Runs one round at time `now`.
    pub fn round(&mut self, packets: impl Iterator<Item = Packet>, now: u64) {
        for packet in packets {
            self.take(&packet, now);
        }
        self.age(now);
        let garbage = self.flows.garbage();
        self.written.most_garbage = self.written.most_garbage.max(garbage);
        self.pin.repin();
    }

    /// Counts a packet, and inserts its flow if necessary.
    fn take(&mut self, packet: &Packet, now: u64) {
        if let Some(flow) = self.pin.get(&packet.key) {
            // Until a worker finds the flow, it queues each of its packets.
            flow.count(packet);
            self.written.late += 1;
            self.written.bytes += packet.bytes;
            return;
        }
        let flow = FlowState::new(self.ended);
        let start = Instant::now();
        let inserted = self.pin.get_or_insert(packet.key, flow);
        let elapsed = start.elapsed();
        let Ok(flow) = inserted else {
            self.written.refused += 1;
            return;
        };
        flow.count(packet);
        self.written.insertions.add(elapsed);
        self.written.bytes += packet.bytes;
        self.watched.push_back((now.saturating_add(self.timeout_ns / 2), packet.key));
    }

    /// Checks the flows that are due, and removes silent ones.
    ///
    /// Each flow is checked twice per timeout, so it ends at most half a timeout late, if the bound
    /// of a round suffices. Workers may count packets in a flow that is being removed; the next
    /// packet inserts it again.
    fn age(&mut self, now: u64) {
        let next = self.watched.iter().take(Self::ROUND);
        let count = next.take_while(|(at, _)| *at <= now).count();
        let keys: Vec<FlowKey> = self.watched.drain(..count).map(|(_, key)| key).collect();
        let mut found = vec![None; count];
        self.pin.get_batch(&keys, flowtable::write_to(&mut found));
        for (key, flow) in keys.into_iter().zip(found) {
            if flow.is_some_and(|flow| now.saturating_sub(flow.last_seen()) < self.timeout_ns) {
                self.watched.push_back((now.saturating_add(self.timeout_ns / 2), key));
                continue;
            }
            let start = Instant::now();
            let removed = self.pin.remove(&key).is_some();
            let elapsed = start.elapsed();
            if removed {
                self.written.removals.add(elapsed);
            }
        }
    }

    /// Waits until all removed flows are dropped, since no worker can see them, and returns the
    /// counts.
    pub fn end(mut self) -> Written {
        let start = Instant::now();
        while start.elapsed() < Self::FINAL_WAIT {
            self.pin.repin();
            // First, since the map counts only garbage that was flushed.
            self.pin.flush();
            if self.flows.garbage() == 0 {
                break;
            }
            thread::yield_now();
        }
        self.written
    }
}
