//! The thirteen flows of the simulation in the paper, and the settings of its scheduler.

use core::time::Duration;

use flowtable::papers::schedule::share::Order;
use flowtable::papers::schedule::simulator::{Flow, Outcome, Simulation};
use flowtable::papers::schedule::{Budget, Overhead, Policy, Throttle};

pub const fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

pub const SWITCH: Duration = us(3);
pub const DURATION: Duration = us(100_000);
/// The sum of all shares, in half percents.
pub const WHOLE: u32 = 200;
/// Costs of a packet of flow 13, in microseconds.
pub const COSTS: [u64; 3] = [3, 10, 30];

/// Packets per second, µs per packet, timeout in µs (0: none), share. Without flow 13.
const FLOWS: [(u32, u64, u64, u32); 12] = [
    (5_000, 1, 0, 1),
    (10_000, 1, 0, 2),
    (20_000, 1, 0, 4),
    (5_000, 3, 0, 3),
    (10_000, 3, 0, 6),
    (20_000, 3, 0, 12),
    (5_000, 3, 2000, 3),
    (10_000, 3, 1000, 6),
    (20_000, 3, 500, 12),
    (5_000, 10, 0, 10),
    (10_000, 10, 0, 20),
    (20_000, 10, 0, 40),
];

/// All thirteen flows in the order of the paper. The last one exceeds its share.
pub fn flows(cost_13: u64) -> Vec<Flow> {
    let flow = |(rate, cost, timeout, share): (u32, u64, u64, u32)| {
        let timeout = (timeout > 0).then(|| us(timeout));
        Flow { timeout, ..Flow::new(rate, us(cost), share) }
    };
    let mut flows: Vec<Flow> = FLOWS.into_iter().map(flow).collect();
    flows.push(Flow::new(100_000, us(cost_13), 6));
    flows
}

pub fn run(flows: &[Flow], policy: Policy) -> Outcome {
    run_in(Order::default(), flows, policy)
}

pub fn run_in(order: Order, flows: &[Flow], policy: Policy) -> Outcome {
    simulation(order, flows, policy).run().expect("the paper's flows are right")
}

pub fn simulation(order: Order, flows: &[Flow], policy: Policy) -> Simulation<'_> {
    Simulation { flows, policy, switch: SWITCH, whole: WHOLE, duration: DURATION, order }
}

pub const LIMITS: [u32; 5] = [1, 8, 16, 32, 64];
pub const SLICES: [u64; 5] = [30, 150, 300, 500, 1000];
/// Overhead in percent, timeslice in µs.
pub const THROTTLES: [(u32, u64); 5] = [(30, 10), (20, 15), (10, 30), (5, 60), (2, 150)];

pub fn packets(limit: u32) -> Policy {
    Policy::Budget(Budget::packets(limit))
}

pub fn slice(micros: u64) -> Policy {
    Policy::Budget(Budget { slice: us(micros), ..Budget::UNTIL_EMPTY })
}

/// A throttle with the thresholds of the paper.
pub fn throttle((percent, micros): (u32, u64)) -> Policy {
    Policy::Throttle(capped((percent, micros)).with_strict_thresholds())
}

/// A throttle with the thresholds of the crate.
pub fn capped((percent, micros): (u32, u64)) -> Throttle {
    let overhead = Overhead::from_ppm(10_000 * percent).expect("it is not zero");
    Throttle::new(SWITCH, overhead, us(micros)).expect("the slice makes up for a switch")
}
