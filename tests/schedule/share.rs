//! Proportional shares against a naive twin that scans all threads, with the invariants checked after each step; and
//! what is promised of shares, whatever the threads do.

use flowtable::schedule::share::{ProportionalShare, ShareError, Thread};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// A thread of the twin.
#[derive(Clone, Copy, Debug)]
struct Known {
    share: u32,
    start: u128,
    finish: u128,
    doing: Doing,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    Nothing,
    /// It waits, and expects to run for so long.
    Waits(u64),
    Runs,
}

/// Scans all threads for each question.
#[derive(Debug)]
struct Twin {
    whole: u32,
    capacity: usize,
    now: u128,
    threads: Vec<Option<Known>>,
    /// The numbers of threads that were removed, the last one at the end.
    removed: Vec<usize>,
}

const SCALE: u128 = 720_720;

impl Twin {
    fn new(capacity: usize, whole: u32) -> Self {
        Self { whole, capacity, now: 0, threads: vec![], removed: vec![] }
    }

    fn after(&self, known: &Known, run: u64) -> u128 {
        let (whole, share) = (u128::from(self.whole), u128::from(known.share));
        // To the nearest integer.
        known.start + u128::from(run) * ((2 * SCALE * whole + share) / (2 * share))
    }

    fn add(&mut self, share: u32) -> Result<usize, ShareError> {
        let claimed: u32 = self.threads.iter().flatten().map(|known| known.share).sum();
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
        let known = Known { share, start: 0, finish: 0, doing: Doing::Nothing };
        let number = self.removed.pop().unwrap_or(self.threads.len());
        self.threads.resize(self.threads.len().max(number + 1), None);
        self.threads[number] = Some(known);
        Ok(number)
    }

    fn get(&mut self, number: usize) -> Result<&mut Known, ShareError> {
        self.threads.get_mut(number).and_then(Option::as_mut).ok_or(ShareError::NoThread)
    }

    fn remove(&mut self, number: usize) -> Result<(), ShareError> {
        if self.get(number)?.doing == Doing::Runs {
            return Err(ShareError::Running);
        }
        self.threads[number] = None;
        self.removed.push(number);
        Ok(())
    }

    fn activate(&mut self, number: usize, expected: u64) -> Result<(), ShareError> {
        let now = self.now;
        let known = self.get(number)?;
        if known.doing != Doing::Nothing {
            return Err(ShareError::NotIdle);
        }
        known.start = known.finish.max(now);
        known.doing = Doing::Waits(expected);
        Ok(())
    }

    fn change(&mut self, number: usize, to: Doing) -> Result<(), ShareError> {
        let known = self.get(number)?;
        if !matches!(known.doing, Doing::Waits(_)) {
            return Err(ShareError::NotActive);
        }
        known.doing = to;
        Ok(())
    }

    fn pick(&mut self) -> Option<usize> {
        let waits = |(number, known): (usize, &Option<Known>)| match known.as_ref()? {
            known @ Known { doing: Doing::Waits(expected), .. } => {
                Some((known.start, self.after(known, *expected), number))
            }
            _ => None,
        };
        let waiting: Vec<_> = self.threads.iter().enumerate().filter_map(waits).collect();
        self.now = self.now.max(*waiting.iter().map(|(start, _, _)| start).min()?);
        let eligible = waiting.iter().filter(|(start, _, _)| *start <= self.now);
        let first = eligible.min_by_key(|(_, finish, number)| (*finish, usize::MAX - number));
        let number = first?.2;
        self.get(number).ok()?.doing = Doing::Runs;
        Some(number)
    }

    fn charge(&mut self, number: usize, run: u64, more: Option<u64>) -> Result<(), ShareError> {
        let known = *self.get(number)?;
        if known.doing != Doing::Runs {
            return Err(ShareError::NotRunning);
        }
        // None is taken for one.
        let run = run.max(1);
        let finish = self.after(&known, run);
        let doing = more.map_or(Doing::Nothing, Doing::Waits);
        *self.get(number)? = Known { start: finish, finish, doing, ..known };
        self.now += SCALE * u128::from(run);
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add(u32),
    Remove(Index),
    Activate(Index, u64),
    Expect(Index, u64),
    Deactivate(Index),
    Pick,
    Charge(Index, u64, Option<u64>),
}

fn run_length() -> impl Strategy<Value = u64> {
    // Equal ones often, so that there are ties.
    prop_oneof![4 => 1..4_u64, 4 => (1..10_u64).prop_map(|tens| 10 * tens), 1 => 0..100_000_u64]
}

fn step() -> impl Strategy<Value = Step> {
    let thread = any::<Index>;
    let more = || prop_oneof![1 => Just(None), 3 => run_length().prop_map(Some)];
    prop_oneof![
        3 => (0..30_u32).prop_map(Step::Add),
        1 => thread().prop_map(Step::Remove),
        8 => (thread(), run_length()).prop_map(|(thread, run)| Step::Activate(thread, run)),
        4 => (thread(), run_length()).prop_map(|(thread, run)| Step::Expect(thread, run)),
        1 => thread().prop_map(Step::Deactivate),
        10 => Just(Step::Pick),
        12 => (thread(), run_length(), more())
            .prop_map(|(thread, run, more)| Step::Charge(thread, run, more)),
    ]
}

/// Both do each step, and say the same.
fn compare(capacity: usize, whole: u32, steps: &[Step]) {
    let mut shares = ProportionalShare::new(capacity, whole).unwrap();
    let mut twin = Twin::new(capacity, whole);
    let allocated = shares.allocation_size();
    // All that were ever given, those included that were removed.
    let mut given: Vec<Thread> = vec![];
    let mut running: Vec<Thread> = vec![];
    for step in steps {
        match step {
            Step::Add(share) => {
                let thread = shares.add(*share);
                assert_eq!(thread.map(Thread::index), twin.add(*share));
                given.extend(thread.ok().filter(|thread| !given.contains(thread)));
            }
            Step::Pick => {
                let thread = shares.pick();
                assert_eq!(thread.map(Thread::index), twin.pick());
                running.extend(thread);
            }
            // Mostly one that runs.
            Step::Charge(index, run, more) if !running.is_empty() => {
                let thread = running.swap_remove(index.index(running.len()));
                let charged = shares.charge(thread, *run, *more);
                assert_eq!(charged, twin.charge(thread.index(), *run, *more));
                assert_eq!(charged, Ok(()));
            }
            _ if given.is_empty() => {}
            Step::Remove(index) => {
                let thread = *index.get(&given);
                assert_eq!(shares.remove(thread), twin.remove(thread.index()));
            }
            Step::Activate(index, run) => {
                let thread = *index.get(&given);
                assert_eq!(shares.activate(thread, *run), twin.activate(thread.index(), *run));
            }
            Step::Expect(index, run) => {
                let thread = *index.get(&given);
                let expected = twin.change(thread.index(), Doing::Waits(*run));
                assert_eq!(shares.set_expected_run(thread, *run), expected);
            }
            Step::Deactivate(index) => {
                let thread = *index.get(&given);
                let expected = twin.change(thread.index(), Doing::Nothing);
                assert_eq!(shares.deactivate(thread), expected);
            }
            Step::Charge(index, run, more) => {
                let thread = *index.get(&given);
                let expected = twin.charge(thread.index(), *run, *more);
                assert_eq!(shares.charge(thread, *run, *more), expected);
            }
        }
        assert_eq!(shares.validate(), Ok(()), "after {step:?}");
        let known = twin.threads.iter().flatten();
        assert_eq!(shares.len(), known.clone().count());
        assert_eq!(whole - shares.unclaimed(), known.map(|known| known.share).sum::<u32>());
    }
    assert_eq!(shares.allocation_size(), allocated);
}

/// A thread that always has work, or one that sometimes has none.
#[derive(Clone, Debug)]
struct Habit {
    share: u32,
    /// How long its runs are, in turn.
    runs: Vec<u64>,
    /// Whether it has no work after each of these runs.
    pauses: Vec<bool>,
}

fn habit(always: bool) -> impl Strategy<Value = Habit> {
    let pauses =
        if always { vec(Just(false), 1).boxed() } else { vec(any::<bool>(), 1..6).boxed() };
    (1..40_u32, vec(1..200_u64, 1..6), pauses).prop_map(|(share, runs, pauses)| Habit {
        share,
        runs,
        pauses,
    })
}

/// What is done, in each step, by each thread. Who pauses comes back after three steps.
fn live(whole: u32, habits: &[Habit], steps: usize) -> Vec<Vec<u64>> {
    let mut shares = ProportionalShare::new(habits.len(), whole).unwrap();
    let threads: Vec<Thread> =
        habits.iter().map(|habit| shares.add(habit.share).unwrap()).collect();
    let mut turns = vec![0; habits.len()];
    let run = |thread: Thread, turns: &[usize]| {
        let runs = &habits[thread.index()].runs;
        runs[turns[thread.index()] % runs.len()]
    };
    let mut back = vec![];
    for thread in threads {
        shares.activate(thread, run(thread, &turns)).unwrap();
    }
    let mut done = vec![vec![0; habits.len()]];
    for step in 0..steps {
        back.retain(|&(at, thread)| {
            if at == step {
                shares.activate(thread, run(thread, &turns)).unwrap();
            }
            at != step
        });
        let mut work = done.last().unwrap().clone();
        if let Some(next) = shares.pick() {
            let length = run(next, &turns);
            work[next.index()] += length;
            turns[next.index()] += 1;
            let pauses = &habits[next.index()].pauses;
            let more = !pauses[turns[next.index()] % pauses.len()];
            shares.charge(next, length, more.then(|| run(next, &turns))).unwrap();
            back.extend((!more).then_some((step + 3, next)));
        }
        done.push(work);
    }
    done
}

fn longest(habits: &[Habit], but: usize) -> u64 {
    let others = habits.iter().enumerate().filter(|(index, _)| *index != but);
    others.flat_map(|(_, habit)| &habit.runs).copied().max().unwrap_or(0)
}

/// As many cases as the environment says, or else what takes a second or two.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig::with_cases(cases.unwrap_or(300))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn it_does_what_its_twin_does(
        capacity in 1..12_usize,
        whole in prop_oneof![Just(100_u32), 1..300_u32, Just(u32::MAX)],
        steps in vec(step(), 1..250),
    ) {
        compare(capacity, whole, &steps);
    }

    #[test]
    fn whoever_always_has_work_gets_his_share(
        first in habit(true),
        others in vec(habit(false), 0..8),
        free in 0..20_u32,
    ) {
        let habits: Vec<Habit> = [first].into_iter().chain(others).collect();
        let whole = habits.iter().map(|habit| habit.share).sum::<u32>() + free;
        let share = f64::from(habits[0].share) / f64::from(whole);
        let bound = (habits[0].runs.iter().max().unwrap() + longest(&habits, 0)) as f64;
        let done = live(whole, &habits, 400);
        // From any moment on.
        for (from, begin) in done.iter().enumerate().step_by(37) {
            for end in &done[from..] {
                let work = (end[0] - begin[0]) as f64;
                let all = (end.iter().sum::<u64>() - begin.iter().sum::<u64>()) as f64;
                // One bound behind at the end, one ahead at the beginning.
                let slack = if from == 0 { bound } else { 2.0 * bound };
                prop_assert!(work >= share * all - slack, "{work} of {all}, share {share}");
            }
        }
    }

    #[test]
    fn nobody_gets_more_than_his_share_when_all_have_work(habits in vec(habit(true), 2..8)) {
        let whole = habits.iter().map(|habit| habit.share).sum::<u32>();
        for work in live(whole, &habits, 400) {
            let all = work.iter().sum::<u64>() as f64;
            for (habit, work) in habits.iter().zip(work) {
                let share = f64::from(habit.share) / f64::from(whole);
                let run = *habit.runs.iter().max().unwrap() as f64;
                prop_assert!(work as f64 <= share * all + run, "{work} of {all}, share {share}");
            }
        }
    }

    #[test]
    fn an_idle_thread_does_not_save_up(idle in 1..400_usize, share in 1..99_u32, run in 1..50_u64) {
        let mut shares = ProportionalShare::new(2, 100).unwrap();
        let (sleeper, worker) = (shares.add(share).unwrap(), shares.add(100 - share).unwrap());
        shares.activate(worker, run).unwrap();
        for _ in 0..idle {
            prop_assert_eq!(shares.pick(), Some(worker));
            shares.charge(worker, run, Some(run)).unwrap();
        }
        shares.activate(sleeper, run).unwrap();
        let mut work = 0;
        for turn in 1..=300_u64 {
            let next = shares.pick().unwrap();
            work += if next == sleeper { run } else { 0 };
            shares.charge(next, run, Some(run)).unwrap();
            // What the worker did beyond its share is lost to nobody: it pays for its last runs only.
            let due = turn * run * u64::from(share);
            prop_assert!(100 * work <= due + 200 * run + 100 * run * 100 / u64::from(100 - share));
        }
    }
}

#[test]
fn the_excess_is_divided_by_share() {
    // A quarter is nobody's, and half is that of a thread without work.
    let mut shares = ProportionalShare::new(3, 80).unwrap();
    let [_, small, large] = [40, 5, 15].map(|share| shares.add(share).unwrap());
    shares.activate(small, 7).unwrap();
    shares.activate(large, 7).unwrap();
    let mut turns = [0; 3];
    for _ in 0..400 {
        let next = shares.pick().unwrap();
        turns[next.index()] += 1;
        shares.charge(next, 7, Some(7)).unwrap();
    }
    assert_eq!(turns, [0, 100, 300]);
}

#[test]
fn the_higher_number_wins_ties() {
    let mut shares = ProportionalShare::new(9, 90).unwrap();
    let threads = [10; 9].map(|share| shares.add(share).unwrap());
    for thread in threads {
        shares.activate(thread, 3).unwrap();
    }
    let order: Vec<Thread> = std::iter::from_fn(|| shares.pick()).collect();
    assert!(order.iter().rev().eq(threads.iter()));
}

#[test]
fn factors_are_rounded_to_the_nearest_integer() {
    // 37 % is 1947891.9 units of virtual time for a unit of work. Rounded down both would finish at once, and the
    // higher number would be first.
    let mut shares = ProportionalShare::new(2, 100).unwrap();
    let [half, odd] = [50, 37].map(|share| shares.add(share).unwrap());
    shares.activate(half, 1_947_891).unwrap();
    shares.activate(odd, 1_441_440).unwrap();
    assert_eq!([shares.pick(), shares.pick()], [Some(half), Some(odd)]);
}

#[test]
fn bad_input_is_refused_and_changes_nothing() {
    let new = |capacity, whole| ProportionalShare::new(capacity, whole).map(drop);
    assert_eq!(new(0, 100), Err(ShareError::Empty));
    assert_eq!(new(1, 0), Err(ShareError::Empty));
    assert_eq!(new(u32::MAX as usize, 1), Err(ShareError::TooManyThreads));
    let mut shares = ProportionalShare::new(2, 100).unwrap();
    assert_eq!(shares.add(0), Err(ShareError::NoShare));
    assert_eq!(shares.add(101), Err(ShareError::Oversubscribed { left: 100 }));
    let (a, b) = (shares.add(60).unwrap(), shares.add(30).unwrap());
    assert_eq!(shares.add(11), Err(ShareError::Oversubscribed { left: 10 }));
    assert_eq!(shares.add(10), Err(ShareError::Full));
    assert_eq!((shares.share(a), shares.share(b), shares.unclaimed()), (Some(60), Some(30), 10));
    for error in [shares.set_expected_run(a, 1), shares.deactivate(a)] {
        assert_eq!(error, Err(ShareError::NotActive));
    }
    assert_eq!(shares.charge(a, 1, None), Err(ShareError::NotRunning));
    shares.activate(a, 1).unwrap();
    assert_eq!(shares.activate(a, 1), Err(ShareError::NotIdle));
    assert_eq!(shares.pick(), Some(a));
    assert_eq!(shares.remove(a), Err(ShareError::Running));
    assert_eq!(shares.activate(a, 1), Err(ShareError::NotIdle));
    shares.charge(a, 1, Some(1)).unwrap();
    assert!(shares.is_active(a));
    shares.remove(a).unwrap();
    assert_eq!((shares.remove(a), shares.pick()), (Err(ShareError::NoThread), None));
    assert_eq!((shares.share(a), shares.unclaimed(), shares.len()), (None, 70, 1));
}

#[test]
fn the_end_of_virtual_time_is_no_panic() {
    let mut shares = ProportionalShare::new(2, u32::MAX).unwrap();
    let [a, b] = [1, 1].map(|share| shares.add(share).unwrap());
    for thread in [a, b] {
        shares.activate(thread, u64::MAX).unwrap();
    }
    for _ in 0..20_000 {
        let next = shares.pick().unwrap();
        shares.charge(next, u64::MAX, Some(u64::MAX)).unwrap();
        assert_eq!(shares.validate(), Ok(()));
    }
}

/// A clock that does not move gives nobody all the turns.
#[test]
fn runs_of_nothing_starve_nobody() {
    let mut shares = ProportionalShare::new(2, 100).unwrap();
    let threads = [50, 50].map(|share| shares.add(share).unwrap());
    for thread in threads {
        shares.activate(thread, 1).unwrap();
    }
    let mut turns = [0; 2];
    for _ in 0..1000 {
        let next = shares.pick().unwrap();
        turns[next.index()] += 1;
        shares.charge(next, 0, Some(1)).unwrap();
    }
    assert_eq!(turns, [500, 500]);
}

/// Who expects far too much is behind by one run of each of the others at most, for however long it goes on.
#[test]
fn expectations_cost_order_and_no_shares() {
    const RUN: u64 = 1000;
    for others in [1, 10, 100] {
        let mut shares = ProportionalShare::new(101, 2 * others).unwrap();
        let boastful = shares.add(others).unwrap();
        shares.activate(boastful, 1 << 40).unwrap();
        for _ in 0..others {
            let thread = shares.add(1).unwrap();
            shares.activate(thread, RUN).unwrap();
        }
        let (mut work, mut all) = (0, 0);
        for _ in 0..200 * others {
            let next = shares.pick().unwrap();
            let is_it = next == boastful;
            shares.charge(next, RUN, Some(if is_it { 1 << 40 } else { RUN })).unwrap();
            work += if is_it { RUN } else { 0 };
            all += RUN;
            let behind = (all / 2).saturating_sub(work);
            assert!(behind <= u64::from(others + 1) * RUN, "{behind} of {all}");
        }
    }
}
