//! What is promised of turns: how long they are, how much they switch, how soon they come.

use flowtable::schedule::simulator::{Flow, Simulation};
use flowtable::schedule::{Budget, Occupancy, Policy, Scheduler, Thread, ThreadConfig};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{at, config, throttle, us};

fn flow() -> impl Strategy<Value = Flow> {
    let rate = prop_oneof![1_000..40_000_u32, 50_000..200_000_u32];
    (rate, 1..40_u64, 1..15_u32, 0..500_u64).prop_map(|(rate, cost, share, phase)| {
        Flow::new(rate, us(cost), share).with_phase(us(phase)).with_buffers(400)
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_turn_is_a_timeslice_and_a_packet_at_most(
        flows in vec(flow(), 1..12),
        slice in 1..500_u64,
        limit in 1..50_u32,
    ) {
        let policy = Policy::Budget(Budget::both(limit, us(slice)));
        let (switch, duration) = (us(3), us(10_000));
        let outcome =
            Simulation { flows: &flows, policy, switch, whole: 200, duration }.run().unwrap();
        for (flow, outcome) in flows.iter().zip(&outcome.flows) {
            prop_assert!(outcome.longest_run < us(slice) + flow.cost);
            prop_assert!(outcome.longest_run <= flow.cost * limit);
            prop_assert!(outcome.forwarded + outcome.dropped <= outcome.arrived);
            prop_assert!(outcome.turns <= outcome.forwarded);
        }
    }

    #[test]
    fn switching_is_no_more_than_the_throttle_allows(
        flows in vec(flow(), 1..12),
        percent in 2..60_u32,
        more in 0..50_u64,
    ) {
        let slice = 300_u64.div_ceil(percent.into()) + more;
        let policy = Policy::Throttle(throttle(percent, slice).with_strict_thresholds());
        let (switch, duration) = (us(3), us(10_000));
        let outcome =
            Simulation { flows: &flows, policy, switch, whole: 200, duration }.run().unwrap();
        // The end of time may cut the last turn short.
        let switching = outcome.account.switching.saturating_sub(switch);
        let allowed = outcome.account.processing * percent / 100;
        prop_assert!(switching <= allowed, "{switching:?} of {allowed:?}");
    }

    #[test]
    fn a_privileged_thread_waits_for_its_timeout_and_its_share(
        others in vec((1..40_u64, 1..12_u32), 1..8),
        (cost, share, timeout, gap) in (1..40_u64, 1..20_u32, 1..2000_u64, 0..3000_u64),
        slice in 30..400_u64,
    ) {
        let policy = Policy::Throttle(throttle(10, slice));
        let mut scheduler = Scheduler::new(9, 200, us(3), policy).unwrap();
        let privileged = ThreadConfig::new(share, us(cost)).with_timeout(us(timeout));
        let privileged = scheduler.add(privileged).unwrap();
        // The others always have more to do than a slice can hold.
        let mut runs = vec![];
        for (cost, share) in others {
            let thread = scheduler.add(ThreadConfig::new(share, us(cost))).unwrap();
            scheduler.set_occupancy(thread, Occupancy::queued(1000), at(0)).unwrap();
            runs.push(slice.div_ceil(cost) * cost);
        }
        let mut router = Busy { scheduler, privileged, runs, now: 0 };
        for _ in 0..20 {
            router.works_until(router.now + gap);
            let (processing, time) = router.waits_with_one_packet(cost, timeout);
            // Its packet at its share, and whoever runs; rounded up.
            let at_share = (cost * 200).div_ceil(share.into());
            let bound = at_share + router.runs.iter().max().unwrap();
            prop_assert!(processing <= bound, "{processing} of {bound}");
            let shortest = router.runs.iter().min().unwrap();
            prop_assert!(time <= bound + 3 * (bound / shortest + 1), "{time}");
        }
    }
}

/// A router with one privileged thread, which is idle mostly.
struct Busy {
    scheduler: Scheduler,
    privileged: Thread,
    /// How long the turns of the other threads are.
    runs: Vec<u64>,
    now: u64,
}

impl Busy {
    fn works_until(&mut self, end: u64) {
        while self.now < end {
            let turn = self.scheduler.next(at(self.now)).expect("there is always something to do");
            let run = self.runs[turn.thread().index() - 1];
            self.now += 3 + run;
            self.scheduler.finish(turn, us(run), Occupancy::queued(1000), at(self.now)).unwrap();
        }
    }

    /// A packet comes for the privileged thread. Returns how much processing, and how much time, was between the end of
    /// the timeout and its turn, and does it.
    fn waits_with_one_packet(&mut self, cost: u64, timeout: u64) -> (u64, u64) {
        let late = self.now + timeout;
        // A threshold of one is reached at once.
        let counts_from =
            if self.scheduler.threshold(self.privileged) == Some(1) { self.now } else { late };
        self.scheduler.set_occupancy(self.privileged, Occupancy::queued(1), at(self.now)).unwrap();
        let mut between = 0;
        loop {
            let turn = self.scheduler.next(at(self.now)).expect("there is always something to do");
            if turn.thread() == self.privileged {
                let waited = self.now.saturating_sub(counts_from);
                assert!(self.now >= counts_from);
                self.now += 3 + cost;
                let empty = Occupancy::queued(0);
                self.scheduler.finish(turn, us(cost), empty, at(self.now)).unwrap();
                return (between, waited);
            }
            let run = self.runs[turn.thread().index() - 1];
            // Of the turn in which the timeout ended only what was after it counts.
            let (begun, ended) = (self.now + 3, self.now + 3 + run);
            between += ended.saturating_sub(counts_from.max(begun).min(ended));
            self.now = ended;
            self.scheduler.finish(turn, us(run), Occupancy::queued(1000), at(ended)).unwrap();
        }
    }
}

/// However small its share, and however others come and go, a thread with a packet has its turn.
#[test]
fn nobody_starves() {
    let mut scheduler =
        Scheduler::new(5, 1000, us(1), Policy::Budget(Budget::slice(us(100)))).unwrap();
    let small = scheduler.add(ThreadConfig::new(1, us(5))).unwrap();
    let large = [333; 3].map(|share| scheduler.add(ThreadConfig::new(share, us(1))).unwrap());
    let mut waited = 0_u64;
    let mut turns = 0;
    for thread in large {
        scheduler.set_occupancy(thread, Occupancy::queued(500), at(0)).unwrap();
    }
    scheduler.set_occupancy(small, Occupancy::queued(1), at(0)).unwrap();
    for step in 0..20_000 {
        let now = at(100 * step);
        let turn = scheduler.next(now).unwrap();
        if turn.thread() == small {
            // 5 µs at a thousandth, and one turn of another thread.
            assert!(waited <= 5_000 + 100, "{waited}");
            (waited, turns) = (0, turns + 1);
            scheduler.finish(turn, us(5), Occupancy::queued(1), now).unwrap();
        } else {
            // Each of them is idle for a moment after each turn, and comes back at once.
            let thread = turn.thread();
            scheduler.finish(turn, us(100), Occupancy::queued(0), now).unwrap();
            scheduler.set_occupancy(thread, Occupancy::queued(500), now).unwrap();
            waited += 100;
        }
    }
    assert!(turns > 350, "{turns}");
}
