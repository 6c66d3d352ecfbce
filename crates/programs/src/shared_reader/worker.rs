//! The worker threads, which look flows up.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use flowtable::concurrent::Pinned;
use flowtable::{ConcurrentMap, FlowKey};

use super::{BURST, Feed, FlowState, Flows, Packet};

/// Counts of a worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub packets: u64,
    /// Packets whose flow was found, and their bytes.
    pub hits: u64,
    pub hit_bytes: u64,
    /// Packets without a flow: queued for the control thread, or dropped since its queue was full.
    pub queued: u64,
    pub dropped: u64,
    pub elapsed: Duration,
}

/// Processes packets until `stop` is set.
pub(crate) fn work(
    flows: &Flows,
    feed: &Feed<'_>,
    control: &SyncSender<Packet>,
    stop: &AtomicBool,
) -> Tally {
    let (start, mut tally) = (Instant::now(), Tally::default());
    let mut pin = flows.pin();
    while !stop.load(Ordering::Relaxed) {
        for burst in feed.take() {
            // The results of the last burst may be reclaimed: a held pin retains garbage.
            pin.repin();
            tally.burst(&pin, &burst, control);
        }
    }
    tally.elapsed = start.elapsed();
    tally
}

impl Tally {
    fn burst(
        &mut self,
        pin: &Pinned<'_, ConcurrentMap<FlowKey, FlowState>>,
        burst: &[Packet; BURST],
        control: &SyncSender<Packet>,
    ) {
        let keys = burst.each_ref().map(|packet| packet.key);
        let mut found = [None; BURST];
        pin.get_batch(&keys, flowtable::write_to(&mut found));
        self.packets += BURST as u64;
        for (packet, flow) in burst.iter().zip(found) {
            match flow {
                Some(flow) => {
                    flow.count(packet);
                    self.hits += 1;
                    self.hit_bytes += packet.bytes;
                }
                // A worker never waits for the control thread.
                None => match control.try_send(*packet) {
                    Ok(()) => self.queued += 1,
                    Err(_) => self.dropped += 1,
                },
            }
        }
    }
}
