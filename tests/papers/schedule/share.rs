//! Proportional shares compared with a reference model that scans all threads, with the invariants
//! checked after each step; and the guarantees of shares for any behaviour of the threads.

use flowtable::papers::schedule::share::{Order, ProportionalShare, ShareError, Thread};
use model::cases;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::shares;

/// A thread of the reference model.
#[derive(Clone, Copy, Debug)]
struct ModelThread {
    share: u32,
    start: u128,
    finish: u128,
    activity: Activity,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Activity {
    Idle,
    /// It is active with this expected run.
    Waits(u64),
    Runs,
}

/// A reference model: each operation scans all threads.
#[derive(Debug)]
struct Model {
    order: Order,
    whole: u32,
    capacity: usize,
    now: u128,
    /// The latest finish of all runs.
    latest: u128,
    threads: Vec<Option<ModelThread>>,
    /// The indices of removed threads, the last one at the end.
    removed: Vec<usize>,
}

const SCALE: u128 = 720_720;

impl Model {
    fn new(capacity: usize, whole: u32, order: Order) -> Self {
        Self { order, whole, capacity, now: 0, latest: 0, threads: vec![], removed: vec![] }
    }

    fn after(&self, thread: &ModelThread, run: u64) -> u128 {
        let (whole, share) = (u128::from(self.whole), u128::from(thread.share));
        // To the nearest integer.
        thread.start + u128::from(run) * ((2 * SCALE * whole + share) / (2 * share))
    }

    fn add(&mut self, share: u32) -> Result<usize, ShareError> {
        let claimed: u32 = self.threads.iter().flatten().map(|thread| thread.share).sum();
        let left = self.whole - claimed;
        if share == 0 {
            return Err(ShareError::NoShare);
        }
        if share > left {
            return Err(ShareError::Oversubscribed { left });
        }
        if self.threads.iter().flatten().count() == self.capacity {
            return Err(ShareError::Full);
        }
        let thread = ModelThread { share, start: 0, finish: 0, activity: Activity::Idle };
        let number = self.removed.pop().unwrap_or(self.threads.len());
        self.threads.resize(self.threads.len().max(number + 1), None);
        self.threads[number] = Some(thread);
        Ok(number)
    }

    fn get(&mut self, number: usize) -> Result<&mut ModelThread, ShareError> {
        self.threads.get_mut(number).and_then(Option::as_mut).ok_or(ShareError::NoThread)
    }

    fn remove(&mut self, number: usize) -> Result<(), ShareError> {
        if self.get(number)?.activity == Activity::Runs {
            return Err(ShareError::Running);
        }
        self.threads[number] = None;
        self.removed.push(number);
        Ok(())
    }

    fn set_work(&mut self, number: usize, expected: Option<u64>) -> Result<(), ShareError> {
        let now = self.now;
        let thread = self.get(number)?;
        match thread.activity {
            Activity::Runs => return Err(ShareError::Running),
            Activity::Idle if expected.is_some() => thread.start = thread.finish.max(now),
            _ => {}
        }
        thread.activity = expected.map_or(Activity::Idle, Activity::Waits);
        Ok(())
    }

    fn pick(&mut self) -> Option<usize> {
        let waits = |(number, thread): (usize, &Option<ModelThread>)| match thread.as_ref()? {
            thread @ ModelThread { activity: Activity::Waits(expected), .. } => {
                Some((thread.start, self.after(thread, *expected), number))
            }
            _ => None,
        };
        let waiting: Vec<_> = self.threads.iter().enumerate().filter_map(waits).collect();
        let Some(least) = waiting.iter().map(|(start, _, _)| *start).min() else {
            let mut threads = self.threads.iter().flatten();
            let is_idle = threads.all(|thread| thread.activity == Activity::Idle);
            if is_idle && self.order == Order::StartTime {
                self.now = self.now.max(self.latest);
            }
            return None;
        };
        self.now = self.now.max(least);
        let eligible = waiting.iter().filter(|(start, _, _)| match self.order {
            Order::Wf2qPlus => *start <= self.now,
            Order::StartTime => *start == least,
        });
        let first = eligible.min_by_key(|(_, finish, number)| {
            let tag = if self.order == Order::StartTime { 0 } else { *finish };
            (tag, usize::MAX - number)
        });
        let number = first?.2;
        self.get(number).ok()?.activity = Activity::Runs;
        Some(number)
    }

    fn charge(&mut self, number: usize, run: u64, more: Option<u64>) -> Result<(), ShareError> {
        let thread = *self.get(number)?;
        if thread.activity != Activity::Runs {
            return Err(ShareError::NotRunning);
        }
        // A run of zero counts as one.
        let run = run.max(1);
        let finish = self.after(&thread, run);
        let activity = more.map_or(Activity::Idle, Activity::Waits);
        *self.get(number)? = ModelThread { start: finish, finish, activity, ..thread };
        match self.order {
            Order::Wf2qPlus => self.now += SCALE * u128::from(run),
            Order::StartTime => self.latest = self.latest.max(finish),
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add(u32),
    Remove(Index),
    SetWork(Index, Option<u64>),
    Pick,
    Charge(Index, u64, Option<u64>),
}

fn run_length() -> impl Strategy<Value = u64> {
    // Often equal, so that there are ties.
    prop_oneof![4 => 1..4_u64, 4 => (1..10_u64).prop_map(|tens| 10 * tens), 1 => 0..100_000_u64]
}

fn step() -> impl Strategy<Value = Step> {
    let thread = any::<Index>;
    let more = || prop_oneof![1 => Just(None), 3 => run_length().prop_map(Some)];
    prop_oneof![
        3 => (0..30_u32).prop_map(Step::Add),
        1 => thread().prop_map(Step::Remove),
        12 => (thread(), run_length()).prop_map(|(thread, run)| Step::SetWork(thread, Some(run))),
        1 => thread().prop_map(|thread| Step::SetWork(thread, None)),
        10 => Just(Step::Pick),
        12 => (thread(), run_length(), more())
            .prop_map(|(thread, run, more)| Step::Charge(thread, run, more)),
    ]
}

/// Applies each step to both and compares the results.
fn compare(capacity: usize, whole: u32, order: Order, steps: &[Step]) {
    let mut shares = ProportionalShare::new(capacity, whole, order).unwrap();
    let mut model = Model::new(capacity, whole, order);
    // All threads ever added, including removed ones.
    let mut given: Vec<Thread> = vec![];
    let mut running: Vec<Thread> = vec![];
    for step in steps {
        match step {
            Step::Add(share) => {
                let thread = shares.add(*share);
                assert_eq!(thread.map(Thread::index), model.add(*share));
                given.extend(thread.ok().filter(|thread| !given.contains(thread)));
            }
            Step::Pick => {
                let thread = shares.pick();
                assert_eq!(thread.map(Thread::index), model.pick());
                running.extend(thread);
            }
            // Mostly a running thread.
            Step::Charge(index, run, more) if !running.is_empty() => {
                let thread = running.swap_remove(index.index(running.len()));
                let charged = shares.charge(thread, *run, *more);
                assert_eq!(charged, model.charge(thread.index(), *run, *more));
                assert_eq!(charged, Ok(()));
            }
            _ if given.is_empty() => {}
            Step::Remove(index) => {
                let thread = *index.get(&given);
                assert_eq!(shares.remove(thread), model.remove(thread.index()));
            }
            Step::SetWork(index, run) => {
                let thread = *index.get(&given);
                assert_eq!(shares.set_work(thread, *run), model.set_work(thread.index(), *run));
            }
            Step::Charge(index, run, more) => {
                let thread = *index.get(&given);
                let expected = model.charge(thread.index(), *run, *more);
                assert_eq!(shares.charge(thread, *run, *more), expected);
            }
        }
        assert_eq!(shares.validate(), Ok(()), "after {step:?}");
        let thread = model.threads.iter().flatten();
        let claimed = thread.map(|thread| thread.share).sum::<u32>();
        let left = whole - claimed;
        if let Some(more) = left.checked_add(1) {
            let refused = shares.add(more);
            assert_eq!(refused, Err(ShareError::Oversubscribed { left }));
        }
    }
}

/// The behaviour of a thread that always has work, or sometimes has none.
#[derive(Clone, Debug)]
struct Workload {
    share: u32,
    /// The lengths of its runs, repeated cyclically.
    runs: Vec<u64>,
    /// Whether it becomes idle after each of these runs, repeated cyclically.
    pauses: Vec<bool>,
}

fn workload(always: bool) -> impl Strategy<Value = Workload> {
    let pauses =
        if always { vec(Just(false), 1).boxed() } else { vec(any::<bool>(), 1..6).boxed() };
    (1..40_u32, vec(1..200_u64, 1..6), pauses).prop_map(|(share, runs, pauses)| Workload {
        share,
        runs,
        pauses,
    })
}

/// The work done by each thread before each step. An idle thread becomes active after three steps.
fn simulate(order: Order, whole: u32, workloads: &[Workload], steps: usize) -> Vec<Vec<u64>> {
    let mut shares = ProportionalShare::new(workloads.len(), whole, order).unwrap();
    let threads: Vec<Thread> =
        workloads.iter().map(|workload| shares.add(workload.share).unwrap()).collect();
    let mut turns = vec![0; workloads.len()];
    let run = |thread: Thread, turns: &[usize]| {
        let runs = &workloads[thread.index()].runs;
        runs[turns[thread.index()] % runs.len()]
    };
    let mut back = vec![];
    for thread in threads {
        shares.set_work(thread, Some(run(thread, &turns))).unwrap();
    }
    let mut done = vec![vec![0; workloads.len()]];
    for step in 0..steps {
        back.retain(|&(at, thread)| {
            if at == step {
                shares.set_work(thread, Some(run(thread, &turns))).unwrap();
            }
            at != step
        });
        let mut work = done.last().unwrap().clone();
        if let Some(next) = shares.pick() {
            let length = run(next, &turns);
            work[next.index()] += length;
            turns[next.index()] += 1;
            let pauses = &workloads[next.index()].pauses;
            let more = !pauses[turns[next.index()] % pauses.len()];
            shares.charge(next, length, more.then(|| run(next, &turns))).unwrap();
            back.extend((!more).then_some((step + 3, next)));
        }
        done.push(work);
    }
    done
}

fn longest(workloads: &[Workload], but: usize) -> u64 {
    let others = workloads.iter().enumerate().filter(|(index, _)| *index != but);
    others.flat_map(|(_, workload)| &workload.runs).copied().max().unwrap_or(0)
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Wf2qPlus), Just(Order::StartTime)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(300, 1)))]

    #[test]
    fn shares_equal_their_reference_model(
        capacity in 1..12_usize,
        whole in prop_oneof![Just(100_u32), 1..300_u32, Just(u32::MAX)],
        order in order(),
        steps in vec(step(), 1..250),
    ) {
        compare(capacity, whole, order, &steps);
    }

    #[test]
    fn a_thread_that_always_has_work_gets_its_share(
        first in workload(true),
        others in vec(workload(false), 0..8),
        free in 0..20_u32,
    ) {
        let workloads: Vec<Workload> = [first].into_iter().chain(others).collect();
        let whole = workloads.iter().map(|workload| workload.share).sum::<u32>() + free;
        let share = f64::from(workloads[0].share) / f64::from(whole);
        let bound = (workloads[0].runs.iter().max().unwrap() + longest(&workloads, 0)) as f64;
        let done = simulate(Order::Wf2qPlus, whole, &workloads, 400);
        // From any step on.
        for (from, begin) in done.iter().enumerate().step_by(37) {
            for end in &done[from..] {
                let work = (end[0] - begin[0]) as f64;
                let all = (end.iter().sum::<u64>() - begin.iter().sum::<u64>()) as f64;
                // One bound of lag at the end, and one of lead at the beginning.
                let slack = if from == 0 { bound } else { 2.0 * bound };
                prop_assert!(work >= share * all - slack, "{work} of {all}, share {share}");
            }
        }
    }

    #[test]
    fn no_thread_exceeds_its_share_when_all_have_work(workloads in vec(workload(true), 2..8)) {
        let whole = workloads.iter().map(|workload| workload.share).sum::<u32>();
        for work in simulate(Order::Wf2qPlus, whole, &workloads, 400) {
            let all = work.iter().sum::<u64>() as f64;
            for (workload, work) in workloads.iter().zip(work) {
                let share = f64::from(workload.share) / f64::from(whole);
                let run = *workload.runs.iter().max().unwrap() as f64;
                prop_assert!(work as f64 <= share * all + run, "{work} of {all}, share {share}");
            }
        }
    }

    /// Theorem 1 of start-time fair queueing: while two threads have work, their work by their
    /// shares differs by at most a longest run of each, from any step on.
    #[test]
    fn by_starts_two_threads_with_work_stay_close(
        first in workload(true),
        second in workload(true),
        others in vec(workload(false), 0..7),
        free in 0..20_u32,
    ) {
        let workloads: Vec<Workload> = [first, second].into_iter().chain(others).collect();
        let whole = workloads.iter().map(|workload| workload.share).sum::<u32>() + free;
        let done = simulate(Order::StartTime, whole, &workloads, 400);
        // In exact fractions: all is multiplied by both shares.
        let by_share = |thread: usize, work: u64| work * u64::from(workloads[1 - thread].share);
        let longest = |thread: usize| *workloads[thread].runs.iter().max().unwrap();
        let bound = by_share(0, longest(0)) + by_share(1, longest(1));
        for (from, begin) in done.iter().enumerate().step_by(23) {
            for end in &done[from..] {
                let [a, b] = [0, 1].map(|thread| by_share(thread, end[thread] - begin[thread]));
                prop_assert!(a.abs_diff(b) <= bound, "{a} and {b}: {bound}");
            }
        }
    }

    /// Theorem 2: a thread with work gets what a CPU of its share does, less a longest run, and
    /// less its share of a longest run of each thread; from any step on.
    #[test]
    fn by_starts_a_thread_that_always_has_work_gets_its_share(
        first in workload(true),
        others in vec(workload(false), 0..8),
        free in 0..20_u32,
    ) {
        let workloads: Vec<Workload> = [first].into_iter().chain(others).collect();
        let whole = workloads.iter().map(|workload| workload.share).sum::<u32>() + free;
        let longest = |workload: &Workload| *workload.runs.iter().max().unwrap();
        let [share, whole] = [workloads[0].share, whole].map(u64::from);
        let bound = share * workloads.iter().map(longest).sum::<u64>()
            + whole * longest(&workloads[0]);
        let done = simulate(Order::StartTime, whole as u32, &workloads, 400);
        for (from, begin) in done.iter().enumerate().step_by(37) {
            let all = |work: &[u64]| work.iter().sum::<u64>();
            for end in &done[from..] {
                let fluid = share * (all(end) - all(begin));
                let work = whole * (end[0] - begin[0]);
                prop_assert!(work + bound >= fluid, "{work} of {fluid}: {bound}");
            }
        }
    }

    #[test]
    fn an_idle_thread_accumulates_no_credit(
        order in order(),
        idle in 1..400_usize,
        share in 1..99_u32,
        run in 1..50_u64,
    ) {
        let mut shares = ProportionalShare::new(2, 100, order).unwrap();
        let (sleeper, worker) = (shares.add(share).unwrap(), shares.add(100 - share).unwrap());
        shares.set_work(worker, Some(run)).unwrap();
        for _ in 0..idle {
            prop_assert_eq!(shares.pick(), Some(worker));
            shares.charge(worker, run, Some(run)).unwrap();
        }
        shares.set_work(sleeper, Some(run)).unwrap();
        let mut work = 0;
        for turn in 1..=300_u64 {
            let next = shares.pick().unwrap();
            work += if next == sleeper { run } else { 0 };
            shares.charge(next, run, Some(run)).unwrap();
            // The worker is charged for its last runs only, not for the excess before.
            let due = turn * run * u64::from(share);
            prop_assert!(100 * work <= due + 200 * run + 100 * run * 100 / u64::from(100 - share));
        }
    }
}

#[test]
fn the_excess_is_divided_by_share() {
    // Of the whole, a quarter is unclaimed, and half belongs to an idle thread.
    let mut shares = shares(3, 80);
    let [_, small, large] = [40, 5, 15].map(|share| shares.add(share).unwrap());
    shares.set_work(small, Some(7)).unwrap();
    shares.set_work(large, Some(7)).unwrap();
    let mut turns = [0; 3];
    for _ in 0..400 {
        let next = shares.pick().unwrap();
        turns[next.index()] += 1;
        shares.charge(next, 7, Some(7)).unwrap();
    }
    assert_eq!(turns, [0, 100, 300]);
}

#[test]
fn the_higher_index_wins_ties() {
    let mut shares = shares(9, 90);
    let threads = [10; 9].map(|share| shares.add(share).unwrap());
    for thread in threads {
        shares.set_work(thread, Some(3)).unwrap();
    }
    let order: Vec<Thread> = std::iter::from_fn(|| shares.pick()).collect();
    assert!(order.iter().rev().eq(threads.iter()));
}

#[test]
fn factors_are_rounded_to_the_nearest_integer() {
    // 37 % is 1947891.9 units of virtual time for a unit of work. Rounded down, both would finish
    // at the same time, and the higher index would be first.
    let mut shares = shares(2, 100);
    let [half, odd] = [50, 37].map(|share| shares.add(share).unwrap());
    shares.set_work(half, Some(1_947_891)).unwrap();
    shares.set_work(odd, Some(1_441_440)).unwrap();
    assert_eq!([shares.pick(), shares.pick()], [Some(half), Some(odd)]);
}

#[test]
fn invalid_input_is_refused_and_changes_nothing() {
    let new = |capacity, whole| ProportionalShare::new(capacity, whole, Order::Wf2qPlus).map(drop);
    assert_eq!(new(0, 100), Err(ShareError::Empty));
    assert_eq!(new(1, 0), Err(ShareError::Empty));
    assert_eq!(new(u32::MAX as usize, 1), Err(ShareError::TooManyThreads));
    let mut shares = shares(2, 100);
    assert_eq!(shares.add(0), Err(ShareError::NoShare));
    assert_eq!(shares.add(101), Err(ShareError::Oversubscribed { left: 100 }));
    let (a, b) = (shares.add(60).unwrap(), shares.add(30).unwrap());
    assert_eq!(shares.add(11), Err(ShareError::Oversubscribed { left: 10 }));
    assert_eq!(shares.add(10), Err(ShareError::Full));
    assert_eq!(shares.set_work(a, None), Ok(()));
    assert_eq!(shares.charge(a, 1, None), Err(ShareError::NotRunning));
    shares.set_work(a, Some(1)).unwrap();
    assert_eq!(shares.pick(), Some(a));
    assert_eq!(shares.remove(a), Err(ShareError::Running));
    for work in [Some(1), None] {
        assert_eq!(shares.set_work(a, work), Err(ShareError::Running));
    }
    shares.charge(a, 1, Some(1)).unwrap();
    shares.remove(a).unwrap();
    assert_eq!((shares.remove(a), shares.pick()), (Err(ShareError::NoThread), None));
    assert_eq!(shares.add(71), Err(ShareError::Oversubscribed { left: 70 }));
    assert_eq!((shares.add(70), shares.remove(b)), (Ok(a), Ok(())));
}

#[test]
fn overflow_of_virtual_time_does_not_panic() {
    let mut shares = shares(2, u32::MAX);
    let [a, b] = [1, 1].map(|share| shares.add(share).unwrap());
    for thread in [a, b] {
        shares.set_work(thread, Some(u64::MAX)).unwrap();
    }
    for _ in 0..20_000 {
        let next = shares.pick().unwrap();
        shares.charge(next, u64::MAX, Some(u64::MAX)).unwrap();
        assert_eq!(shares.validate(), Ok(()));
    }
}

/// With a clock that stands still, turns alternate.
#[test]
fn runs_of_zero_length_do_not_starve_others() {
    let mut shares = shares(2, 100);
    let threads = [50, 50].map(|share| shares.add(share).unwrap());
    for thread in threads {
        shares.set_work(thread, Some(1)).unwrap();
    }
    let mut turns = [0; 2];
    for _ in 0..1000 {
        let next = shares.pick().unwrap();
        turns[next.index()] += 1;
        shares.charge(next, 0, Some(1)).unwrap();
    }
    assert_eq!(turns, [500, 500]);
}

/// A thread with far too long expected runs lags by at most one run of each of the others, at any
/// time.
#[test]
fn wrong_expectations_affect_order_but_not_shares() {
    const RUN: u64 = 1000;
    for others in [1, 10, 100] {
        let mut shares = shares(101, 2 * others);
        let overestimated = shares.add(others).unwrap();
        shares.set_work(overestimated, Some(1 << 40)).unwrap();
        for _ in 0..others {
            let thread = shares.add(1).unwrap();
            shares.set_work(thread, Some(RUN)).unwrap();
        }
        let (mut work, mut all) = (0, 0);
        for _ in 0..200 * others {
            let next = shares.pick().unwrap();
            let is_it = next == overestimated;
            shares.charge(next, RUN, Some(if is_it { 1 << 40 } else { RUN })).unwrap();
            work += if is_it { RUN } else { 0 };
            all += RUN;
            let lag = (all / 2).saturating_sub(work);
            assert!(lag <= u64::from(others + 1) * RUN, "{lag} of {all}");
        }
    }
}
