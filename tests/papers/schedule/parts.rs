//! The parts of the scheduler: throttle, adaptive overhead, estimator, queues and paths.

use core::time::Duration;

use flowtable::papers::schedule::{
    Adaptive, BoundedQueue, Budget, Demand, EstimatorError, Inadmissible, Occupancy, Overhead,
    Policy, QueueEstimator, Reservation, ScheduleError, Scheduler, SwitchingPath, Thread,
    ThreadConfig, Throttle, ThrottleError, longest_sleep,
};
use flowtable::{FlowKey, TrashMap};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{at, shares, throttle, us};

#[test]
fn overheads_are_parts_per_million() {
    assert_eq!(Overhead::from_ppm(0), None);
    assert_eq!(Overhead::from_ppm(u32::MAX).unwrap().ppm(), u32::MAX);
    assert_eq!(Overhead::from_ppm(1).unwrap().efficiency(), 1e6 / 1_000_001.0);
    assert_eq!(Overhead::from_ppm(1_000_000).unwrap().efficiency(), 0.5);
}

#[test]
fn formula_1_is_enforced() {
    for (percent, needed) in [(30, 10_000), (20, 15_000), (7, 42_858), (1, 300_000)] {
        let overhead = Overhead::from_ppm(10_000 * percent).unwrap();
        let new = |nanos| Throttle::new(us(3), overhead, Duration::from_nanos(nanos));
        let slice = new(needed).unwrap().slice();
        assert_eq!(slice.as_nanos(), u128::from(needed));
        let needed = Duration::from_nanos(needed);
        assert_eq!(new(0), Err(ThrottleError::ShortSlice { needed }));
        assert!(new(needed.as_nanos() as u64 - 1).is_err());
    }
    let overhead = Overhead::from_ppm(100_000).unwrap();
    assert_eq!(Throttle::new(us(0), overhead, us(30)), Err(ThrottleError::NoSwitch));
    let tiny = Overhead::from_ppm(1).unwrap();
    assert!(Throttle::new(Duration::MAX, tiny, us(30)).is_err());
    assert!(Throttle::new(us(3), tiny, Duration::MAX).is_ok());
}

#[test]
fn thresholds_round_up_and_are_capped() {
    let ten = throttle(10, 30);
    for (cost, expected) in [(1, 30), (7, 5), (10, 3), (30, 1), (31, 1), (5000, 1)] {
        assert_eq!(ten.threshold(us(cost), 128), expected, "{cost} us");
    }
    assert_eq!(ten.threshold(us(1), 29), 29);
    assert_eq!(ten.with_strict_thresholds().threshold(us(1), 29), 30);
    assert_eq!(ten.threshold(us(1), 0), 1);
    assert_eq!(ten.threshold(us(0), u32::MAX), 30_000, "counted as a nanosecond");
    // A batch of lookups: 40 ns for a batch, 25 ns for a lookup.
    let nanos = Duration::from_nanos;
    let lookups =
        Throttle::new(nanos(40), Overhead::from_ppm(100_000).unwrap(), nanos(400)).unwrap();
    assert_eq!(lookups.threshold(nanos(25), u32::MAX), 16);
}

const FLOW: Demand =
    Demand { packets_per_second: 10_000, cost: Duration::from_micros(10), buffers: 128 };

#[test]
fn the_largest_overhead_that_meets_the_demand_is_chosen() {
    let adaptive = Adaptive::new(us(3), us(1000)).unwrap();
    for (flows, ppm) in [(1, 1_000_000), (5, 1_000_000), (6, 666_666), (8, 250_000), (9, 111_111)] {
        let throttle = adaptive.plan(&vec![FLOW; flows]).unwrap();
        assert_eq!(throttle.overhead().ppm(), ppm, "{flows} flows");
        // The demand with its switching fits into a second; with a millionth more it does not.
        let demanded = flows as f64 / 10.0;
        assert!(demanded * (1.0 + f64::from(ppm) / 1e6) <= 1.0);
        assert!(ppm == 1_000_000 || demanded * (1.0 + f64::from(ppm + 1) / 1e6) > 1.0);
        assert!(throttle.slice().as_secs_f64() >= 3e-6 / (f64::from(ppm) / 1e6));
    }
    assert_eq!(adaptive.plan(&[]).unwrap().overhead().ppm(), 1_000_000);
}

#[test]
fn a_flow_that_does_not_fit_is_not_admitted() {
    let adaptive = Adaptive::new(us(3), us(100)).unwrap();
    let plan_with = |newcomer| adaptive.plan(&[[FLOW; 9].as_slice(), &[newcomer]].concat());
    let overload = Inadmissible::Overload { demanded: 1_000_000_000 };
    assert_eq!(plan_with(FLOW), Err(overload));
    assert_eq!(adaptive.plan(&[FLOW; 10]), Err(overload));
    let small = Demand { packets_per_second: 5_000, ..FLOW };
    assert!(plan_with(small).is_ok());
    // 98 %: a switch of 3 µs needs turns of 147 µs.
    let smaller = Demand { packets_per_second: 8_000, ..FLOW };
    let needed = Duration::from_nanos(147_002);
    assert_eq!(plan_with(smaller), Err(Inadmissible::LongSlice { needed }));
    // At 95 % a flow of 1 µs needs 58 buffers.
    let short = |buffers| Demand { packets_per_second: 50_000, cost: us(1), buffers };
    assert!(plan_with(short(58)).is_ok());
    // A flow without demand does not constrain others.
    let silent = Demand { packets_per_second: 0, cost: Duration::from_nanos(1), buffers: 1 };
    assert!(plan_with(silent).is_ok());
    let error = Inadmissible::Buffers { flow: 9, needed: 58 };
    assert_eq!(plan_with(short(57)), Err(error));
    let endless = Demand { packets_per_second: u64::MAX, cost: Duration::MAX, buffers: 1 };
    let demanded = u64::MAX;
    assert_eq!(adaptive.plan(&[endless; 2]), Err(Inadmissible::Overload { demanded }));
    assert_eq!(Adaptive::new(us(0), us(1)), Err(ThrottleError::NoSwitch));
    let needed = us(2);
    assert_eq!(Adaptive::new(us(2), us(1)), Err(ThrottleError::ShortSlice { needed }));
}

/// A leaky bucket: as many packets as the reservation allows in each interval.
struct Bucket {
    level: u64,
    depth: u64,
}

proptest! {
    /// Rates and slots are the least that suffice, and a queue of these slots, served at this rate,
    /// holds all packets that arrive as promised.
    #[test]
    fn a_reservation_holds_bursts_at_the_average_rate(
        bits_per_second in 0..3_000_000u64,
        burst in 0..20_000u32,
        (average_packet, smallest_packet) in (1..1500u32, 1..200u32),
        cost in 1..100u64,
        arrivals in vec((0..400u64, 0..500u64), 1..100),
    ) {
        let cost = us(cost);
        let reservation =
            Reservation { bits_per_second, burst, average_packet, smallest_packet, cost };
        let demand = reservation.demand();
        let rate = demand.packets_per_second;
        let suffices = |packets: u64| 8 * packets * u64::from(average_packet) >= bits_per_second;
        prop_assert!(suffices(rate) && (rate == 0 || !suffices(rate - 1)));
        let holds = |slots: u64| slots * u64::from(smallest_packet) >= u64::from(burst);
        // Half of the slots are buffers.
        let most = 2 * u64::from(demand.buffers);
        let slots = if most > 1 && holds(most - 1) { most - 1 } else { most };
        prop_assert!(slots >= 1 && holds(slots) && (slots == 1 || !holds(slots - 1)));
        let used = |share: u32| u128::from(share) * 1_000_000_000;
        let needed = u128::from(rate) * cost.as_nanos() * 1000;
        let share = demand.share(1000);
        prop_assert!(used(share) >= needed && (share == 0 || used(share - 1) < needed));

        // Time in tenths of the service of a packet.
        let mut queue = BoundedQueue::new(slots as usize).unwrap();
        let (mut bucket, mut served) = (Bucket { level: 0, depth: 10 * slots }, 0);
        for (pause, wanted) in arrivals {
            for _ in 0..pause {
                bucket.level = bucket.level.saturating_sub(1);
                served = if queue.is_empty() { 0 } else { served + 1 };
                if served == 10 {
                    queue.pop();
                    served = 0;
                }
            }
            let allowed = ((bucket.depth - bucket.level) / 10).min(wanted);
            bucket.level += 10 * allowed;
            for packet in 0..allowed {
                prop_assert_eq!(queue.push(packet), Ok(()));
            }
        }
    }
}

#[test]
fn an_estimator_converges_to_a_sleep_with_polls_in_range() {
    let longest = longest_sleep(64, 148_800);
    // A poll takes 10 µs; packets arrive at these rates.
    for (rate, in_range) in [(0, false), (20_000, true), (60_000, true), (148_800, true)] {
        let mut port = QueueEstimator::new(16, longest).unwrap();
        let (mut card, mut lost, mut polls, mut in_polls) = (0.0_f64, 0.0, 0_u32, 0_u32);
        for poll in 0..2000 {
            let time = port.sleep() + us(10);
            card += f64::from(rate) * time.as_secs_f64();
            lost += (card - 66.0).max(0.0);
            card = card.min(66.0);
            let read = (card as u32).min(16);
            card -= f64::from(read);
            port.polled(read);
            if poll >= 1000 {
                polls += 1;
                in_polls += read;
            }
        }
        let average = f64::from(in_polls) / f64::from(polls);
        assert_eq!((3.0..=13.0).contains(&average), in_range, "{rate}: {average}");
        assert_eq!(lost, 0.0, "{rate}");
        assert_eq!(port.sleep() == longest, rate <= 20_000, "{rate}");
    }
}

#[test]
fn an_estimator_averages_with_a_gain_of_an_eighth() {
    let mut port = QueueEstimator::new(16, us(430)).unwrap();
    assert_eq!(port.average(), 8.0);
    port.polled(16);
    assert_eq!(port.average(), 9.0);
    port.polled(100); // a poll reads 16 at most
    assert_eq!(port.average(), 9.875);
    for _ in 0..200 {
        port.polled(0);
    }
    assert_eq!((port.average(), port.sleep()), (0.0, us(430)));
    for _ in 0..200 {
        port.polled(16);
    }
    assert!(port.average() > 15.9 && port.sleep().is_zero());
}

/// For any batch and range: empty polls lead to the longest sleep, full ones to none.
#[test]
fn estimators_reach_both_extremes() {
    for batch in [4, 5, 7, 16, 1000] {
        let port = QueueEstimator::new(batch, us(430)).unwrap();
        let ranges = [(1, 1), (1, batch - 1), (batch - 1, batch - 1)];
        let ranged = ranges.map(|(low, high)| port.with_range(low, high).unwrap());
        for mut port in ranged.into_iter().chain([port]) {
            (0..200).for_each(|_| _ = port.polled(0));
            assert_eq!(port.sleep(), us(430), "{port:?}");
            (0..200).for_each(|_| _ = port.polled(batch));
            assert_eq!(port.sleep(), us(0), "{port:?}");
        }
    }
}

#[test]
fn invalid_estimators_are_refused() {
    let new = |batch, longest| QueueEstimator::new(batch, us(longest));
    assert_eq!(new(3, 430), Err(EstimatorError::SmallBatch));
    assert_eq!(new(16, 0), Err(EstimatorError::Sleep));
    let port = new(16, 430).unwrap();
    assert_eq!(port.with_range(5, 4), Err(EstimatorError::Range));
    assert_eq!(port.with_range(4, 16), Err(EstimatorError::Range));
    assert_eq!(port.with_range(0, 4), Err(EstimatorError::Range));
    // The shortest sleep is 1/64 of the longest, which is reached.
    let mut doubling = new(16, 400).unwrap();
    let sleeps: Vec<Duration> =
        (0..20).map(|_| doubling.polled(0)).filter(|it| !it.is_zero()).collect();
    let shortest = Duration::from_nanos(6250);
    assert_eq!(sleeps[..8], [1, 2, 4, 8, 16, 32, 64, 64].map(|times| shortest * times));
    assert_eq!(longest_sleep(64, 0), Duration::from_nanos(u64::MAX));
}

#[test]
fn queues_are_bounded() {
    for capacity in [0, u32::MAX as usize] {
        assert!(matches!(BoundedQueue::<u64>::new(capacity), Err(ScheduleError::Buffers)));
    }
    assert!(matches!(SwitchingPath::<u8>::new(1, 1, us(0)), Err(ScheduleError::NoCost)));
    let mut queue = BoundedQueue::new(3).unwrap();
    for packet in 0..10 {
        assert_eq!(queue.push(packet), if packet < 3 { Ok(()) } else { Err(packet) });
    }
    assert_eq!((queue.len(), queue.front(), queue.dropped, queue.longest), (3, Some(&0), 7, 3));
    assert_eq!((queue.pop(), queue.len()), (Some(0), 2));
    assert_eq!(queue.push(10), Ok(()));
    assert!(std::iter::from_fn(|| queue.pop()).eq([1, 2, 10]) && queue.is_empty());
    assert_eq!((queue.dropped, queue.longest, queue.capacity()), (7, 3, 3));
}

#[test]
fn a_path_stops_when_its_output_is_full() {
    let policy = Policy::Budget(Budget::UNTIL_EMPTY);
    let mut scheduler = Scheduler::new(shares(1, 100), us(1), policy).unwrap();
    let mut path: SwitchingPath<u32, String> = SwitchingPath::new(8, 3, us(2)).unwrap();
    let thread = scheduler.add(ThreadConfig::new(100, path.cost())).unwrap();
    for packet in 0..8 {
        path.input.push(packet).unwrap();
    }
    assert_eq!(path.input.push(8), Err(8));
    scheduler.set_occupancy(thread, path.occupancy(), at(0)).unwrap();
    let turn = scheduler.next(at(0)).unwrap();
    // Every second packet is consumed.
    let forward = |packet: u32| (packet % 2 == 0).then(|| packet.to_string());
    assert_eq!(path.run(&turn, forward, |packets| us(2) * packets), 5);
    assert_eq!(path.occupancy(), Occupancy { queued: 3, free: 0 });
    scheduler.finish(turn, us(10), path.occupancy(), at(11)).unwrap();
    assert_eq!(scheduler.next(at(11)), None);
    assert_eq!(path.output.pop().as_deref(), Some("0"));
    scheduler.set_occupancy(thread, path.occupancy(), at(12)).unwrap();
    let turn = scheduler.next(at(12)).unwrap();
    assert_eq!(path.run(&turn, forward, |packets| us(2) * packets), 2);
    assert_eq!((path.input.dropped, path.output.longest), (1, 3));
    assert!(std::iter::from_fn(|| path.output.pop()).eq(["2", "4", "6"]));
}

#[test]
fn a_path_measures_the_cost_of_its_packets() {
    let mut path: SwitchingPath<()> = SwitchingPath::new(1, 1, us(1)).unwrap();
    assert_eq!(path.update_cost(0, us(100)), us(1));
    for _ in 0..100 {
        path.update_cost(4, us(40));
    }
    assert_eq!(path.cost(), us(10));
    // From any start it converges to the measured cost.
    for (from, to) in [(24, 31), (8, 15), (7, 1), (100, 107), (1, u64::MAX >> 8)] {
        let (from, to) = (Duration::from_nanos(from), Duration::from_nanos(to));
        let mut path: SwitchingPath<()> = SwitchingPath::new(1, 1, from).unwrap();
        (0..1000).for_each(|_| _ = path.update_cost(1, to));
        assert!(
            path.cost().abs_diff(to) <= to / 1_000_000,
            "{from:?} to {to:?}: {:?}",
            path.cost()
        );
    }
    for _ in 0..200 {
        path.update_cost(u32::MAX, us(0));
    }
    assert_eq!(path.cost(), Duration::from_nanos(1));
    path.update_cost(1, Duration::MAX);
    assert!(path.cost() > us(1_000_000));
}

/// Paths and their scheduler.
struct Router {
    scheduler: Scheduler,
    paths: Vec<SwitchingPath<(u16, u32)>>,
    /// The packets that left the paths: flow and number.
    sent: Vec<(u16, u32)>,
    now: u64,
}

impl Router {
    /// Runs one turn. Returns `false` if no thread may run.
    fn turn(&mut self) -> bool {
        let Some(turn) = self.scheduler.next(at(self.now)) else { return false };
        let path = &mut self.paths[turn.thread.index()];
        let cost = path.cost();
        let packets = path.run(&turn, Some, |packets| cost * packets);
        assert!(packets > 0);
        self.now += 3 + (cost * packets).as_micros() as u64;
        self.sent.extend(std::iter::from_fn(|| path.output.pop()));
        let occupancy = path.occupancy();
        self.scheduler.finish(turn, cost * packets, occupancy, at(self.now)).unwrap();
        true
    }
}

/// Packets are classified by their flow; each path forwards its own in order, without loss or
/// duplication.
#[test]
fn packets_of_flows_go_through_their_paths() {
    const FLOWS: u16 = 40;
    let policy = Policy::Throttle(throttle(20, 15));
    let mut scheduler = Scheduler::new(shares(4, 100), us(3), policy).unwrap();
    let paths: Vec<SwitchingPath<_>> =
        (1..=4).map(|cost| SwitchingPath::new(16, 16, us(cost)).unwrap()).collect();
    let mut add = |path: &SwitchingPath<_>| {
        let (timeout, buffers) = (Some(us(300)), 16);
        scheduler
            .add(ThreadConfig { timeout, buffers, ..ThreadConfig::new(25, path.cost()) })
            .unwrap()
    };
    let threads: Vec<Thread> = paths.iter().map(&mut add).collect();
    let [here, there] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
    let flow = |port| FlowKey::new(here, there, port, 443, 6).unwrap();
    let classes: TrashMap<FlowKey, Thread> =
        (0..FLOWS).map(|port| (flow(port), threads[usize::from(port) % 4])).collect();

    let mut router = Router { scheduler, paths, sent: vec![], now: 0 };
    let (mut accepted, mut refused) = (vec![], 0);
    for number in 0..5_000_u32 {
        let port = (number.wrapping_mul(2_654_435_761) >> 16) as u16 % FLOWS;
        let thread = *classes.get(&flow(port)).unwrap();
        let path = &mut router.paths[thread.index()];
        match path.input.push((port, number)) {
            Ok(()) => accepted.push((port, number)),
            Err(back) => {
                assert_eq!(back, (port, number));
                refused += 1;
            }
        }
        let occupancy = path.occupancy();
        router.scheduler.set_occupancy(thread, occupancy, at(router.now)).unwrap();
        router.now += 2;
        // Threads run after every eighth packet.
        while number % 8 == 0 && router.turn() {}
    }
    loop {
        while router.turn() {}
        let Some(wake) = router.scheduler.wake_at() else { break };
        router.now = wake.as_nanos() / 1000;
    }
    // Each path keeps the order of its packets.
    for path in 0..4 {
        let of_path = |packet: &&(u16, u32)| packet.0 % 4 == path;
        assert!(router.sent.iter().filter(of_path).eq(accepted.iter().filter(of_path)));
    }
    assert_eq!(router.paths.iter().map(|path| path.input.dropped).sum::<u64>(), refused);
    assert_eq!(router.sent.len() as u64 + refused, 5_000);
    assert!(refused > 0 && router.sent.len() > 1_000, "{refused} refused");
}
