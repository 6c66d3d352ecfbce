//! Two threads with a queue between them: one waits for packets, the other for free slots.

use flowtable::Timestamp;
use flowtable::papers::schedule::{
    Occupancy, Policy, Scheduler, SwitchingPath, Thread, ThreadConfig, Throttle, Turn,
};
use proptest::prelude::*;

use super::{config, shares, throttle, us};

const SWITCH: u64 = 3;

/// A router of one path, with a thread that forwards and a thread that writes.
struct Pipeline {
    scheduler: Scheduler,
    path: SwitchingPath<u32>,
    forwards: Thread,
    writes: Thread,
    /// Microseconds per packet of each thread.
    costs: [u64; 2],
    now: u64,
    sent: u64,
}

impl Pipeline {
    fn new(throttle: Throttle, slots: [u32; 2], costs: [u64; 2]) -> Self {
        let policy = Policy::Throttle(throttle);
        let mut scheduler = Scheduler::new(shares(2, 100), us(SWITCH), policy).unwrap();
        let [input, output] = slots;
        let path = SwitchingPath::new(input as usize, output as usize, us(costs[0])).unwrap();
        let config = |cost, slots: u32| ThreadConfig {
            buffers: slots.div_ceil(2),
            ..ThreadConfig::new(50, us(cost))
        };
        let forwards = config(costs[0], input.min(output));
        let writes = config(costs[1], output);
        let [forwards, writes] = [forwards, writes].map(|it| scheduler.add(it).unwrap());
        Self { scheduler, path, forwards, writes, costs, now: 0, sent: 0 }
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_micros(self.now)
    }

    fn written(&self) -> Occupancy {
        Occupancy::queued(self.path.output.len() as u32)
    }

    fn arrive(&mut self) {
        _ = self.path.input.push(0);
        let (occupancy, now) = (self.path.occupancy(), self.at());
        self.scheduler.set_occupancy(self.forwards, occupancy, now).unwrap();
    }

    fn forward(&mut self, turn: Turn) {
        let cost = us(self.costs[0]);
        let packets = self.path.run(&turn, Some, |packets| cost * packets);
        self.now += SWITCH + self.costs[0] * u64::from(packets);
        let (occupancy, now) = (self.path.occupancy(), self.at());
        self.scheduler.finish(turn, cost * packets, occupancy, now).unwrap();
        self.scheduler.set_occupancy(self.writes, self.written(), now).unwrap();
    }

    fn write(&mut self, turn: Turn) {
        let (mut packets, cost) = (0, us(self.costs[1]));
        while self.path.output.pop().is_some() {
            packets += 1;
            if !turn.budget.allows_more(packets, cost * packets) {
                break;
            }
        }
        self.sent += u64::from(packets);
        self.now += SWITCH + self.costs[1] * u64::from(packets);
        let (occupancy, now) = (self.written(), self.at());
        self.scheduler.finish(turn, cost * packets, occupancy, now).unwrap();
        self.scheduler.set_occupancy(self.forwards, self.path.occupancy(), now).unwrap();
    }

    /// Runs turns until no thread may run.
    fn run(&mut self) {
        while let Some(turn) = self.scheduler.next(self.at()) {
            if turn.thread == self.forwards { self.forward(turn) } else { self.write(turn) }
        }
    }
}

proptest! {
    #![proptest_config(config())]

    /// For any sizes and costs, each stage is left with fewer packets than its threshold, and all
    /// others are sent.
    #[test]
    fn two_threads_never_wait_for_each_other(
        percent in prop_oneof![1..6_u32, 1..40_u32],
        slots in [1..200_u32, 1..200_u32],
        costs in [1..12_u64, 1..12_u64],
        burst in 1..20_u64,
    ) {
        let throttle = throttle(percent, 300_u64.div_ceil(percent.into()));
        let mut pipeline = Pipeline::new(throttle, slots, costs);
        let mut arrived = 0;
        for _ in 0..300 {
            for _ in 0..burst {
                pipeline.arrive();
                arrived += 1;
            }
            pipeline.now += 1;
            pipeline.run();
        }
        let lost = pipeline.path.input.dropped;
        let left = pipeline.path.input.len() + pipeline.path.output.len();
        prop_assert_eq!(arrived, pipeline.sent + lost + left as u64);
        // A waiting thread has less than its threshold, and none waits for slots.
        let thresholds = [pipeline.forwards, pipeline.writes]
            .map(|thread| pipeline.scheduler.threshold(thread).unwrap() as usize);
        let occupancy = pipeline.path.occupancy();
        prop_assert!(pipeline.path.input.len() < thresholds[0], "{occupancy:?}");
        prop_assert!(pipeline.path.output.len() < thresholds[1], "{occupancy:?}");
    }
}
