//! The scheduler and its parts: invalid input, states, bounds; its simulator compared with a
//! reference model; and random calls, with the invariants checked after each step.

mod bounds;
mod claims;
mod liveness;
mod parts;
mod pipeline;
mod share;
mod stages;

use core::time::Duration;
use model::cases;

use flowtable::Timestamp;
use flowtable::papers::schedule::share::{Order, ProportionalShare, ShareError};
use flowtable::papers::schedule::simulator::{Flow, Simulation};
use flowtable::papers::schedule::{
    Budget, Occupancy, Overhead, Policy, ScheduleError, Scheduler, State, Thread, ThreadConfig,
    Throttle, Turn,
};
use model::schedule::{Expected, FlowModel, Rule, SimulationModel};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros)
}

fn throttle(percent: u32, slice: u64) -> Throttle {
    Throttle::new(us(3), Overhead::from_ppm(10_000 * percent).unwrap(), us(slice)).unwrap()
}

fn policy(rule: Rule) -> Policy {
    match rule {
        Rule::Packets(limit) => Policy::Budget(Budget::packets(limit as u32)),
        Rule::Slice(slice) => Policy::Budget(Budget { slice: us(slice), ..Budget::UNTIL_EMPTY }),
        Rule::Throttle(percent, slice, true) => Policy::Throttle(throttle(percent as u32, slice)),
        Rule::Throttle(percent, slice, false) => {
            Policy::Throttle(throttle(percent as u32, slice).with_strict_thresholds())
        }
    }
}

/// Shares of threads by WF²Q+.
fn shares(threads: usize, whole: u32) -> ProportionalShare {
    ProportionalShare::new(threads, whole, Order::Wf2qPlus).unwrap()
}

fn config() -> ProptestConfig {
    ProptestConfig::with_cases(cases(200, 1))
}

// The simulator and its reference model.

fn rule() -> impl Strategy<Value = Rule> {
    prop_oneof![
        (1..70_u64).prop_map(Rule::Packets),
        (1..400_u64).prop_map(Rule::Slice),
        (1..60_u64, 0..100_u64, any::<bool>()).prop_map(|(percent, more, is_capped)| {
            Rule::Throttle(percent, 300_u64.div_ceil(percent) + more, is_capped)
        }),
    ]
}

fn flow_model() -> impl Strategy<Value = FlowModel> {
    // Periods of whole microseconds, and shares whose factors are exact.
    let period = select(&[10, 20, 50, 64, 100, 125, 200, 500, 1000][..]);
    let phase = prop_oneof![Just(0), 0..300_u64];
    let timeout = prop_oneof![2 => Just(0), 1 => 1..2000_u64];
    let share = select(&[1_u64, 2, 3, 4, 5, 6, 10, 12, 15, 20][..]);
    (period, phase, 1..40_u64, timeout, share, 1..140_u64).prop_map(
        |(period, phase, cost, timeout, share, buffers)| FlowModel {
            period,
            phase,
            cost,
            timeout,
            share,
            buffers,
        },
    )
}

fn flow(model: &FlowModel) -> Flow {
    let rate = 1_000_000 / model.period;
    Flow {
        timeout: (model.timeout > 0).then(|| us(model.timeout)),
        buffers: model.buffers as u32,
        phase: us(model.phase),
        ..Flow::new(rate as u32, us(model.cost), model.share as u32)
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_simulator_equals_its_reference_model(
        rule in rule(),
        flows in vec(flow_model(), 1..10),
        is_by_start in any::<bool>(),
    ) {
        let order = if is_by_start { Order::StartTime } else { Order::Wf2qPlus };
        let model = SimulationModel {
            rule,
            expected: Expected::Queued,
            is_by_start,
            is_lower_first: false,
            switch: 3,
            whole: 200,
            end: 8_000,
        };
        let expected = model.run(&flows);
        let flows: Vec<Flow> = flows.iter().map(flow).collect();
        let (policy, switch, duration) = (policy(rule), us(3), us(8_000));
        let simulation =
            Simulation { flows: &flows, policy, switch, whole: 200, duration, order };
        let outcome = simulation.run().unwrap();
        prop_assert_eq!(outcome.account.processing, us(expected.processing));
        prop_assert_eq!(outcome.account.switching, us(expected.switching));
        prop_assert_eq!(outcome.idle, us(expected.idle));
        for (index, flow) in outcome.flows.iter().enumerate() {
            prop_assert_eq!(flow.dropped, expected.dropped[index]);
            prop_assert_eq!(u64::from(flow.longest_queue), expected.longest[index]);
            prop_assert_eq!(flow.forwarded, expected.forwarded[index]);
        }
    }

    #[test]
    fn invariants_hold_after_any_calls(
        rule in rule(),
        steps in vec(step(), 1..200),
    ) {
        Caller::new(rule).run(&steps);
    }
}

// Random calls.

#[derive(Clone, Debug)]
enum Step {
    Add { share: u32, cost: u64, timeout: Option<u64>, buffers: u32, is_polled: bool },
    SetTimeout(Index, Option<u64>),
    Remove(Index),
    SetOccupancy(Index, Occupancy),
    Wait(u64),
    Next,
    Finish(Index, u64, Occupancy),
    SetPolicy(Rule),
    SetCost(Index, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let thread = any::<Index>;
    let occupancy = || {
        let room = prop_oneof![1 => 0..30_u32, 2 => Just(u32::MAX)];
        (0..70_u32, room).prop_map(|(queued, room)| Occupancy { queued, free: room })
    };
    let timeout = || prop_oneof![Just(None), (0..400_u64).prop_map(Some)];
    prop_oneof![
        2 => (0..40_u32, 0..30_u64, timeout(), 0..100_u32, any::<bool>()).prop_map(
            |(share, cost, timeout, buffers, is_polled)| {
                Step::Add { share, cost, timeout, buffers, is_polled }
            }
        ),
        2 => (thread(), timeout()).prop_map(|(thread, timeout)| Step::SetTimeout(thread, timeout)),
        1 => thread().prop_map(Step::Remove),
        10 => (thread(), occupancy())
            .prop_map(|(thread, occupancy)| Step::SetOccupancy(thread, occupancy)),
        4 => (0..200_u64).prop_map(Step::Wait),
        6 => Just(Step::Next),
        7 => (thread(), 0..300_u64, occupancy())
            .prop_map(|(turn, run, occupancy)| Step::Finish(turn, run, occupancy)),
        1 => rule().prop_map(Step::SetPolicy),
        1 => (thread(), 0..30_u64).prop_map(|(thread, cost)| Step::SetCost(thread, cost)),
    ]
}

/// A caller that records the occupancies which it has reported to the scheduler.
struct Caller {
    scheduler: Scheduler,
    now: u64,
    /// By thread index: the reported occupancy, the time since when there is work, the timeout, and
    /// whether only that makes it active.
    reported: Vec<(Occupancy, Option<u64>, Option<u64>, bool)>,
    given: Vec<Thread>,
    turns: Vec<Turn>,
}

impl Caller {
    fn new(rule: Rule) -> Self {
        let scheduler = Scheduler::new(shares(6, 200), us(3), policy(rule)).unwrap();
        Self { scheduler, now: 0, reported: vec![], given: vec![], turns: vec![] }
    }

    fn run(&mut self, steps: &[Step]) {
        let allocated = self.scheduler.allocation_size();
        for step in steps {
            self.step(step);
            assert_eq!(self.scheduler.validate(), Ok(()), "after {step:?}");
            for turn in &self.turns {
                assert_eq!(self.scheduler.state(turn.thread), Some(State::Running));
            }
        }
        assert_eq!(self.scheduler.allocation_size(), allocated);
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Add { share, cost, timeout, buffers, is_polled } => {
                let config = ThreadConfig {
                    timeout: timeout.map(us),
                    buffers: buffers.div_ceil(2).min(25),
                    is_polled: *is_polled,
                    ..ThreadConfig::new(*share, us(*cost))
                };
                // A polled thread is due at once by default.
                let timeout = timeout.or(is_polled.then_some(0));
                let Ok(thread) = self.scheduler.add(config) else { return };
                self.reported
                    .resize(self.reported.len().max(thread.index() + 1), Default::default());
                self.reported[thread.index()] = (Occupancy::default(), None, timeout, *is_polled);
                if !self.given.contains(&thread) {
                    self.given.push(thread);
                }
            }
            Step::Wait(micros) => self.now += micros,
            Step::Next => self.next(),
            Step::SetPolicy(rule) => self.scheduler.set_policy(policy(*rule)),
            Step::Finish(index, run, occupancy) if !self.turns.is_empty() => {
                let turn = self.turns.swap_remove(index.index(self.turns.len()));
                let thread = turn.thread;
                self.now += run;
                self.scheduler.finish(turn, us(*run), *occupancy, at(self.now)).unwrap();
                self.record(thread, *occupancy, true);
            }
            _ if self.given.is_empty() => {}
            Step::Finish(..) => {}
            Step::Remove(index) => {
                let _refused = self.scheduler.remove(*index.get(&self.given));
            }
            Step::SetTimeout(index, timeout) => {
                let thread = *index.get(&self.given);
                if self.scheduler.set_timeout(thread, timeout.map(us)).is_ok() {
                    self.reported[thread.index()].2 = *timeout;
                }
            }
            Step::SetCost(index, cost) => {
                let _refused = self.scheduler.set_cost(*index.get(&self.given), us(*cost));
            }
            Step::SetOccupancy(index, occupancy) => {
                let thread = *index.get(&self.given);
                let running = self.turns.iter().any(|turn| turn.thread == thread);
                if self.scheduler.set_occupancy(thread, *occupancy, at(self.now)).is_ok()
                    && !running
                {
                    self.record(thread, *occupancy, false);
                }
            }
        }
    }

    fn record(&mut self, thread: Thread, occupancy: Occupancy, restart: bool) {
        let reported = &mut self.reported[thread.index()];
        let works = |it: Occupancy| it.queued > 0 && it.free > 0;
        // The timeout of a polled thread begins with the end of its last turn.
        let is_kept = !restart && (reported.3 || works(reported.0));
        let is_first = !restart && reported.1.is_none() && !works(occupancy);
        let since = reported.1.filter(|_| is_kept).or(Some(self.now).filter(|_| !is_first));
        (reported.0, reported.1) = (occupancy, since);
    }

    fn next(&mut self) {
        let wake = self.scheduler.wake_at();
        let Some(turn) = self.scheduler.next(at(self.now)) else {
            assert!(self.scheduler.wake_at().is_none_or(|wake| wake > at(self.now)), "{wake:?}");
            return self.assert_none_eligible();
        };
        let (occupancy, since, timeout, is_polled) = self.reported[turn.thread.index()];
        let threshold = self.scheduler.threshold(turn.thread).unwrap();
        let works = occupancy.queued > 0 && occupancy.free > 0;
        let late = since.zip(timeout).is_some_and(|(since, timeout)| since + timeout <= self.now);
        let enough = !is_polled && occupancy.queued >= threshold && occupancy.free >= threshold;
        assert!(works && (enough || late), "{occupancy:?} of {threshold}, {since:?}");
        self.turns.push(turn);
    }

    fn assert_none_eligible(&self) {
        for thread in &self.given {
            let (occupancy, since, timeout, is_polled) = self.reported[thread.index()];
            let state = self.scheduler.state(*thread);
            let Some(threshold) = self.scheduler.threshold(*thread) else { continue };
            let enough = !is_polled && occupancy.queued.min(occupancy.free) >= threshold;
            let late = since.zip(timeout).is_some_and(|(since, after)| since + after <= self.now);
            let works = occupancy.queued > 0 && occupancy.free > 0;
            let could = state != Some(State::Running) && works && (enough || late);
            assert!(!could, "{thread:?} {state:?}: {occupancy:?} of {threshold}, since {since:?}");
        }
    }
}

// States.

fn scheduler(policy: Policy) -> Scheduler {
    Scheduler::new(shares(4, 100), us(3), policy).unwrap()
}

#[test]
fn a_thread_goes_through_its_states() {
    let mut scheduler = scheduler(Policy::Throttle(throttle(10, 30)));
    let config = ThreadConfig { timeout: Some(us(500)), ..ThreadConfig::new(10, us(10)) };
    let thread = scheduler.add(config).unwrap();
    let state = |scheduler: &Scheduler| scheduler.state(thread).unwrap();
    assert_eq!((state(&scheduler), scheduler.threshold(thread)), (State::Idle, Some(3)));
    scheduler.set_occupancy(thread, Occupancy::queued(1), at(100)).unwrap();
    assert_eq!((state(&scheduler), scheduler.wake_at()), (State::Eligible, Some(at(600))));
    scheduler.set_occupancy(thread, Occupancy::queued(2), at(300)).unwrap();
    assert!(scheduler.next(at(599)).is_none());
    assert_eq!(scheduler.wake_at(), Some(at(600)), "the timeout begins with the first packet");
    let turn = scheduler.next(at(600)).unwrap();
    assert_eq!((state(&scheduler), scheduler.wake_at()), (State::Running, None));
    scheduler.finish(turn, us(10), Occupancy::queued(2), at(613)).unwrap();
    assert_eq!((state(&scheduler), scheduler.wake_at()), (State::Eligible, Some(at(1113))));
    scheduler.set_occupancy(thread, Occupancy::queued(3), at(620)).unwrap();
    let other = scheduler.add(ThreadConfig::new(10, us(10))).unwrap();
    scheduler.set_occupancy(other, Occupancy::queued(3), at(620)).unwrap();
    let turn = scheduler.next(at(620)).unwrap();
    assert_eq!((turn.thread, state(&scheduler)), (other, State::Active));
    scheduler.finish(turn, us(30), Occupancy::queued(0), at(653)).unwrap();
    scheduler.set_occupancy(thread, Occupancy::default(), at(654)).unwrap();
    assert_eq!((state(&scheduler), scheduler.next(at(5000))), (State::Idle, None));
    assert_eq!(scheduler.wake_at(), None);
}

#[test]
fn a_full_output_queue_stops_a_thread_until_slots_are_free() {
    let mut scheduler = scheduler(Policy::Throttle(throttle(10, 30)));
    let thread = scheduler.add(ThreadConfig::new(10, us(10))).unwrap();
    let set_room = |scheduler: &mut Scheduler, room| {
        scheduler.set_occupancy(thread, Occupancy { queued: 9, free: room }, at(0)).unwrap();
        (scheduler.state(thread).unwrap(), scheduler.next(at(0)).is_some())
    };
    assert_eq!(set_room(&mut scheduler, 0), (State::Idle, false));
    assert_eq!(set_room(&mut scheduler, 2), (State::Eligible, false));
    assert_eq!(set_room(&mut scheduler, 3), (State::Eligible, true));
}

#[test]
fn an_active_thread_whose_output_fills_waits_again() {
    let mut scheduler = scheduler(Policy::Budget(Budget::packets(4)));
    let [a, b] = [10, 10].map(|share| scheduler.add(ThreadConfig::new(share, us(10))).unwrap());
    for thread in [a, b] {
        scheduler.set_occupancy(thread, Occupancy { queued: 4, free: 4 }, at(0)).unwrap();
    }
    let turn = scheduler.next(at(0)).unwrap();
    assert_eq!((turn.thread, scheduler.state(a)), (b, Some(State::Active)));
    // Both write to one queue.
    scheduler.set_occupancy(a, Occupancy { queued: 4, free: 0 }, at(40)).unwrap();
    scheduler.finish(turn, us(40), Occupancy { queued: 0, free: 0 }, at(43)).unwrap();
    assert_eq!((scheduler.next(at(43)), scheduler.state(a)), (None, Some(State::Idle)));
    scheduler.set_occupancy(a, Occupancy { queued: 4, free: 1 }, at(50)).unwrap();
    assert_eq!(scheduler.next(at(50)).map(|turn| turn.thread), Some(a));
}

#[test]
fn a_policy_and_a_cost_change_thresholds_at_once() {
    let mut scheduler = scheduler(Policy::Throttle(throttle(10, 30)));
    let thread = scheduler.add(ThreadConfig::new(10, us(1))).unwrap();
    scheduler.set_occupancy(thread, Occupancy::queued(10), at(0)).unwrap();
    assert_eq!((scheduler.threshold(thread), scheduler.next(at(0))), (Some(30), None));
    scheduler.set_cost(thread, us(3)).unwrap();
    assert_eq!(scheduler.threshold(thread), Some(10));
    scheduler.set_policy(Policy::Throttle(throttle(5, 60)));
    assert_eq!((scheduler.threshold(thread), scheduler.next(at(0))), (Some(20), None));
    scheduler.set_policy(Policy::Budget(Budget::packets(2)));
    let turn = scheduler.next(at(0)).unwrap();
    assert!(turn.budget.allows_more(1, us(3)) && !turn.budget.allows_more(2, us(6)));
}

#[cfg(target_pointer_width = "64")]
#[test]
fn memory_is_as_documented() {
    let policy = Policy::Budget(Budget::UNTIL_EMPTY);
    let scheduler = Scheduler::new(shares(1000, 100), us(3), policy).unwrap();
    assert_eq!(scheduler.allocation_size(), 276 * 1000);
}

#[test]
fn a_reused_index_has_no_old_state() {
    let mut scheduler = scheduler(Policy::Budget(Budget::UNTIL_EMPTY));
    let config = ThreadConfig { timeout: Some(us(5)), ..ThreadConfig::new(60, us(1)) };
    let old = scheduler.add(config).unwrap();
    scheduler.set_occupancy(old, Occupancy::queued(5), at(0)).unwrap();
    scheduler.remove(old).unwrap();
    assert_eq!((scheduler.state(old), scheduler.wake_at()), (None, None));
    assert!(scheduler.set_occupancy(old, Occupancy::queued(5), at(0)).is_err());
    assert_eq!(scheduler.add(config), Ok(old));
    assert_eq!((scheduler.state(old), scheduler.next(at(9))), (Some(State::Idle), None));
    assert_eq!(scheduler.validate(), Ok(()));
}

#[test]
fn invalid_input_is_refused_and_changes_nothing() {
    let policy = Policy::Budget(Budget::packets(1));
    let mut used = shares(2, 100);
    used.add(1).unwrap();
    let refused = Scheduler::new(used, us(1), policy).map(drop);
    assert_eq!(refused, Err(ScheduleError::SharesInUse));
    // Shares that are used no more: the index of the next thread would not be 0.
    let mut used = shares(2, 100);
    let threads = [used.add(1).unwrap(), used.add(1).unwrap()];
    threads.into_iter().rev().for_each(|thread| used.remove(thread).unwrap());
    let refused = Scheduler::new(used, us(1), policy).map(drop);
    assert_eq!(refused, Err(ScheduleError::SharesInUse));
    let mut one = Scheduler::new(shares(2, 100), us(1), policy).unwrap();
    assert_eq!(one.add(ThreadConfig::new(1, us(0))), Err(ScheduleError::NoCost));
    let config = ThreadConfig::new(60, us(1));
    assert_eq!(one.add(ThreadConfig { buffers: 0, ..config }), Err(ScheduleError::Buffers));
    let thread = one.add(config).unwrap();
    assert_eq!(one.add(config), Err(ScheduleError::Share(ShareError::Oversubscribed { left: 40 })));
    assert_eq!(one.set_cost(thread, us(0)), Err(ScheduleError::NoCost));
    one.set_occupancy(thread, Occupancy::queued(1), at(0)).unwrap();
    let turn = one.next(at(0)).unwrap();
    assert_eq!(one.remove(thread), Err(ScheduleError::Share(ShareError::Running)));
    // A turn of another scheduler, which has no thread or one that does not run.
    for threads in [0, 1] {
        let mut other = Scheduler::new(shares(2, 100), us(1), policy).unwrap();
        if threads == 1 {
            other.add(config).unwrap();
        }
        let finished = other.finish(foreign_turn(), us(1), Occupancy::queued(0), at(1));
        let error = if threads == 0 { ShareError::NoThread } else { ShareError::NotRunning };
        assert_eq!(finished, Err(error.into()));
        assert_eq!((other.account().turns, other.validate()), (0, Ok(())));
    }
    one.finish(turn, us(1), Occupancy::queued(0), at(1)).unwrap();
}

fn foreign_turn() -> Turn {
    let mut scheduler = scheduler(Policy::Budget(Budget::packets(1)));
    let thread = scheduler.add(ThreadConfig::new(10, us(10))).unwrap();
    scheduler.set_occupancy(thread, Occupancy::queued(1), at(0)).unwrap();
    scheduler.next(at(0)).unwrap()
}

#[test]
fn turns_without_measured_time_do_not_starve_others() {
    let mut scheduler = scheduler(Policy::Budget(Budget::packets(1)));
    let threads = [10, 1].map(|cost| scheduler.add(ThreadConfig::new(50, us(cost))).unwrap());
    for thread in threads {
        scheduler.set_occupancy(thread, Occupancy::queued(1000), at(0)).unwrap();
    }
    let mut turns = [0; 2];
    for _ in 0..1100 {
        let turn = scheduler.next(at(0)).unwrap();
        turns[turn.thread.index()] += 1;
        scheduler.finish(turn, us(0), Occupancy::queued(1000), at(0)).unwrap();
    }
    assert_eq!(turns, [100, 1000]);
}

#[test]
fn a_turn_is_finished_once() {
    let policy = Policy::Budget(Budget::packets(1));
    let [mut one, mut other] = [scheduler(policy), scheduler(policy)];
    let thread = one.add(ThreadConfig::new(50, us(10))).unwrap();
    _ = other.add(ThreadConfig::new(50, us(10))).unwrap();
    one.set_occupancy(thread, Occupancy::queued(5), at(0)).unwrap();
    let turn = one.next(at(0)).unwrap();
    let finish =
        |scheduler: &mut Scheduler| scheduler.finish(turn, us(10), Occupancy::queued(4), at(10));
    let not_running = Err(ShareError::NotRunning.into());
    assert_eq!(finish(&mut other), not_running);
    assert_eq!(other.account().turns, 0);
    assert_eq!((one.state(thread), one.next(at(10))), (Some(State::Running), None));
    assert_eq!(finish(&mut one), Ok(()));
    assert_eq!(finish(&mut one), not_running);
    one.validate().unwrap();
    assert_eq!(one.next(at(20)).map(|turn| turn.thread), Some(thread));
}
