//! The one thread that writes: it puts new flows in and takes silent ones out.

use core::iter::once;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Instant;

use flowtable::concurrent::Pinned;
use flowtable::{DefaultHashBuilder, FlowKey};

use super::{Ended, Feed, FlowState, Flows, Latency, Packet};

/// What the control thread has done.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pub insertions: Latency,
    pub removals: Latency,
    /// Packets whose flow was there when their turn came: an earlier one had brought it.
    pub late: u64,
    /// Bytes of those, and of the first packets of flows.
    pub bytes: u64,
    /// Packets whose flow the map did not take: too much garbage.
    pub refused: u64,
    /// The most garbage that was there between two rounds.
    pub most_garbage: usize,
}

/// The control thread's work, a bounded amount at a time.
pub struct Control<'a> {
    flows: &'a Flows,
    pin: Pinned<'a, FlowKey, FlowState, DefaultHashBuilder>,
    ended: &'a Arc<Ended>,
    timeout_ns: u64,
    /// All flows, each with the time to look at it, in that order.
    watched: VecDeque<(u64, FlowKey)>,
    written: Written,
}

impl<'a> Control<'a> {
    /// New packets that are taken in one round, and flows that are looked at in one.
    pub const ROUND: usize = 256;
    /// So long it waits for a packet before it looks at flows: not longer, since its pin keeps
    /// garbage.
    const WAIT: Duration = Duration::from_micros(200);
    /// So long it waits at the end for what was removed to be dropped.
    const FINAL_WAIT: Duration = Duration::from_secs(10);

    pub fn new(flows: &'a Flows, ended: &'a Arc<Ended>, timeout: Duration) -> Self {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let (pin, written) = (flows.pin(), Written::default());
        Self { flows, pin, ended, timeout_ns, watched: VecDeque::new(), written }
    }

    /// Takes packets and ages flows for so long.
    pub fn serve(&mut self, queue: &Receiver<Packet>, feed: &Feed<'_>, time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time {
            let first = queue.recv_timeout(Self::WAIT).ok();
            let packets = first.into_iter().chain(queue.try_iter());
            self.round(packets.take(Self::ROUND), feed.now());
        }
    }

    /// Takes what is still on its way, until all workers have ended.
    pub fn finish(&mut self, queue: Receiver<Packet>, feed: &Feed<'_>) {
        for packet in queue {
            self.round(once(packet), feed.now());
        }
    }

    /// One round, at this time.
    pub fn round(&mut self, packets: impl Iterator<Item = Packet>, now: u64) {
        for packet in packets {
            self.take(&packet, now);
        }
        self.age(now);
        let garbage = self.flows.garbage();
        self.written.most_garbage = self.written.most_garbage.max(garbage);
        self.pin.repin();
    }

    /// Counts a packet, in a new flow if there is none yet.
    fn take(&mut self, packet: &Packet, now: u64) {
        if let Some(flow) = self.pin.get(&packet.key) {
            // Until a worker finds the flow, it hands over each of its packets.
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

    /// Looks at the flows whose time has come, and removes those that are silent.
    ///
    /// Each is looked at twice in the length of the timeout, so it ends after half of it more at
    /// the latest, as long as a round's share suffices. Workers may wake it up meanwhile: their
    /// packets are counted in it, and the next one brings it back.
    fn age(&mut self, now: u64) {
        let next = self.watched.iter().take(Self::ROUND);
        let count = next.take_while(|(at, _)| *at <= now).count();
        let keys: Vec<FlowKey> = self.watched.drain(..count).map(|(_, key)| key).collect();
        let mut found = vec![None; count];
        self.pin.get_batch(&keys, &mut found);
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

    /// Has all that was removed dropped, now that no worker can see it, and says what was done.
    pub fn end(mut self) -> Written {
        let start = Instant::now();
        while start.elapsed() < Self::FINAL_WAIT {
            self.pin.repin();
            // Before it is asked for: the map counts garbage that has been handed over.
            self.pin.flush();
            if self.flows.garbage() == 0 {
                break;
            }
            thread::yield_now();
        }
        self.written
    }
}
