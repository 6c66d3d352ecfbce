//! Bounds of turns: their length, their switching overhead, and the waiting time before them.

use flowtable::papers::schedule::share::Order;
use flowtable::papers::schedule::simulator::{Flow, Simulation};
use flowtable::papers::schedule::{Budget, Occupancy, Policy, Scheduler, Thread, ThreadConfig};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{at, config, shares, throttle, us};

fn flow() -> impl Strategy<Value = Flow> {
    let rate = prop_oneof![1_000..40_000_u32, 50_000..200_000_u32];
    (rate, 1..40_u64, 1..15_u32, 0..500_u64).prop_map(|(rate, cost, share, phase)| Flow {
        phase: us(phase),
        buffers: 400,
        ..Flow::new(rate, us(cost), share)
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_turn_takes_at_most_a_timeslice_and_one_packet(
        flows in vec(flow(), 1..12),
        slice in 1..500_u64,
        limit in 1..50_u32,
    ) {
        let policy = Policy::Budget(Budget { packets: limit, slice: us(slice) });
        let (switch, duration, order) = (us(3), us(10_000), Order::default());
        let simulation =
            Simulation { flows: &flows, policy, switch, whole: 200, duration, order };
        let outcome = simulation.run().unwrap();
        for (flow, outcome) in flows.iter().zip(&outcome.flows) {
            prop_assert!(outcome.longest_run < us(slice) + flow.cost);
            prop_assert!(outcome.longest_run <= flow.cost * limit);
            prop_assert!(outcome.forwarded + outcome.dropped <= outcome.arrived);
            prop_assert!(outcome.turns <= outcome.forwarded);
        }
    }

    #[test]
    fn switching_stays_below_the_limit_of_the_throttle(
        flows in vec(flow(), 1..12),
        percent in 2..60_u32,
        more in 0..50_u64,
    ) {
        let slice = 300_u64.div_ceil(percent.into()) + more;
        let policy = Policy::Throttle(throttle(percent, slice).with_strict_thresholds());
        let (switch, duration, order) = (us(3), us(10_000), Order::default());
        let simulation =
            Simulation { flows: &flows, policy, switch, whole: 200, duration, order };
        let outcome = simulation.run().unwrap();
        // The end of the simulation may truncate the last turn.
        let switching = outcome.account.switching.saturating_sub(switch);
        let allowed = outcome.account.processing * percent / 100;
        prop_assert!(switching <= allowed, "{switching:?} of {allowed:?}");
    }

    #[test]
    fn the_wait_of_a_privileged_thread_is_bounded_by_timeout_and_share(
        others in vec((1..40_u64, 1..12_u32), 1..8),
        (cost, share, timeout, gap) in (1..40_u64, 1..20_u32, 1..2000_u64, 0..3000_u64),
        slice in 30..400_u64,
    ) {
        let policy = Policy::Throttle(throttle(10, slice));
        let mut scheduler = Scheduler::new(shares(9, 200), us(3), policy).unwrap();
        let privileged =
            ThreadConfig { timeout: Some(us(timeout)), ..ThreadConfig::new(share, us(cost)) };
        let privileged = scheduler.add(privileged).unwrap();
        // The others always have more work than fits into a slice.
        let mut runs = vec![];
        for (cost, share) in others {
            let thread = scheduler.add(ThreadConfig::new(share, us(cost))).unwrap();
            scheduler.set_occupancy(thread, Occupancy::queued(1000), at(0)).unwrap();
            runs.push(slice.div_ceil(cost) * cost);
        }
        let mut router = Router { scheduler, privileged, runs, now: 0 };
        for _ in 0..20 {
            router.work_until(router.now + gap);
            let (processing, time) = router.serve_one_packet(cost, timeout);
            // Its packet at its share, and one turn of another thread; rounded up.
            let at_share = (cost * 200).div_ceil(share.into());
            let bound = at_share + router.runs.iter().max().unwrap();
            prop_assert!(processing <= bound, "{processing} of {bound}");
            let shortest = router.runs.iter().min().unwrap();
            prop_assert!(time <= bound + 3 * (bound / shortest + 1), "{time}");
        }
    }
}

/// A router with one privileged thread, which is mostly idle.
struct Router {
    scheduler: Scheduler,
    privileged: Thread,
    /// The lengths of the turns of the other threads.
    runs: Vec<u64>,
    now: u64,
}

impl Router {
    fn work_until(&mut self, end: u64) {
        while self.now < end {
            let turn =
                self.scheduler.next(at(self.now)).expect("the other threads always have work");
            let run = self.runs[turn.thread.index() - 1];
            self.now += 3 + run;
            self.scheduler.finish(turn, us(run), Occupancy::queued(1000), at(self.now)).unwrap();
        }
    }

    /// A packet arrives for the privileged thread. Runs threads until its turn has ended, and
    /// returns the processing and the time between the end of the timeout and the turn.
    fn serve_one_packet(&mut self, cost: u64, timeout: u64) -> (u64, u64) {
        let late = self.now + timeout;
        // A threshold of one is reached at once.
        let counts_from =
            if self.scheduler.threshold(self.privileged) == Some(1) { self.now } else { late };
        self.scheduler.set_occupancy(self.privileged, Occupancy::queued(1), at(self.now)).unwrap();
        let mut between = 0;
        loop {
            let turn =
                self.scheduler.next(at(self.now)).expect("the other threads always have work");
            if turn.thread == self.privileged {
                let waited = self.now.saturating_sub(counts_from);
                assert!(self.now >= counts_from);
                self.now += 3 + cost;
                let empty = Occupancy::queued(0);
                self.scheduler.finish(turn, us(cost), empty, at(self.now)).unwrap();
                return (between, waited);
            }
            let run = self.runs[turn.thread.index() - 1];
            // Only the part of a turn after the timeout counts.
            let (begun, ended) = (self.now + 3, self.now + 3 + run);
            between += ended.saturating_sub(counts_from.max(begun).min(ended));
            self.now = ended;
            self.scheduler.finish(turn, us(run), Occupancy::queued(1000), at(ended)).unwrap();
        }
    }
}

/// A thread with a small share gets its turns while others become idle and active again.
#[test]
fn no_thread_starves() {
    let policy = Policy::Budget(Budget { slice: us(100), ..Budget::UNTIL_EMPTY });
    let mut scheduler = Scheduler::new(shares(5, 1000), us(1), policy).unwrap();
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
        if turn.thread == small {
            // 5 µs at a thousandth, and one turn of another thread.
            assert!(waited <= 5_000 + 100, "{waited}");
            (waited, turns) = (0, turns + 1);
            scheduler.finish(turn, us(5), Occupancy::queued(1), now).unwrap();
        } else {
            // Each of them becomes idle after its turn, and active again at once.
            let thread = turn.thread;
            scheduler.finish(turn, us(100), Occupancy::queued(0), now).unwrap();
            scheduler.set_occupancy(thread, Occupancy::queued(500), now).unwrap();
            waited += 100;
        }
    }
    assert!(turns > 350, "{turns}");
}
