//! The pipeline with random devices: no packet is lost without being counted, packets of a path
//! stay in order, links are shared, and ports sleep as their estimators determine.

use std::collections::VecDeque;

use core::time::Duration;

use flowtable::Timestamp;
use flowtable::papers::schedule::pipeline::{
    Device, Input, LinkShare, Output, Path, Pipeline, Polling, Reading,
};
use flowtable::papers::schedule::share::{Order, ProportionalShare, ShareError};
use flowtable::papers::schedule::{Budget, Policy, QueueEstimator, ScheduleError, ThreadConfig};
use model::schedule::Rule;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{config, policy, rule, shares, throttle, us};

pub(super) const SWITCH: u64 = 3;
pub(super) const CARD: usize = 32;

/// A packet: its path, its number on the path, and its length.
pub(super) type Packet = (usize, u32, u64);

/// Whether a function refuses a packet, by its number: one in `one_in`, or none if that is 0.
fn is_refused(number: u32, one_in: u32) -> bool {
    one_in > 0 && number % one_in == 0
}

/// Cards, functions and links with constant costs.
#[derive(Default)]
pub(super) struct Net {
    pub(super) now: u64,
    /// The packets of each card: path and length, or no path.
    pub(super) cards: Vec<VecDeque<Option<(usize, u64)>>>,
    /// Microseconds to read, to forward by path, and to write.
    pub(super) costs: (u64, Vec<u64>, u64),
    /// By path: one in this many packets is refused; 0 for none.
    refuses: Vec<u32>,
    /// By output: the room of its link.
    pub(super) room: Vec<u32>,
    pub(super) numbers: Vec<u32>,
    pub(super) read: u32,
    discarded: u32,
    refused: u32,
    /// By path, the packets that its function has received, and its written ones.
    pub(super) received: Vec<Vec<u32>>,
    pub(super) written: Vec<Vec<Packet>>,
    pub(super) empty_polls: u32,
}

impl Net {
    pub(super) fn new(cards: usize, paths: usize, outputs: usize) -> Self {
        Self {
            cards: vec![VecDeque::new(); cards],
            costs: (1, vec![1; paths], 1),
            refuses: vec![0; paths],
            room: vec![u32::MAX; outputs],
            numbers: vec![0; paths],
            received: vec![vec![]; paths],
            written: vec![vec![]; paths],
            ..Self::default()
        }
    }

    pub(super) fn at(&self) -> Timestamp {
        Timestamp::from_micros(self.now)
    }

    /// A packet arrives at a card, for a path or for none.
    pub(super) fn arrive(&mut self, card: usize, path: Option<usize>, length: u64) {
        if self.cards[card].len() < CARD {
            self.cards[card].push_back(path.map(|path| (path, length)));
        }
    }
}

impl Device for Net {
    type Packet = Packet;

    fn now(&self) -> Timestamp {
        self.at()
    }

    fn read(&mut self, input: usize) -> Reading<Packet> {
        let Some(packet) = self.cards[input].pop_front() else { return Reading::Empty };
        self.now += self.costs.0;
        self.read += 1;
        match packet {
            Some((path, length)) => {
                self.numbers[path] += 1;
                Reading::Packet { path, packet: (path, self.numbers[path], length) }
            }
            None => {
                self.discarded += 1;
                Reading::Discarded
            }
        }
    }

    fn forward(&mut self, path: usize, packet: Packet) -> Option<Packet> {
        assert_eq!(packet.0, path);
        self.now += self.costs.1[path];
        self.received[path].push(packet.1);
        let is_refused = is_refused(packet.1, self.refuses[path]);
        self.refused += u32::from(is_refused);
        (!is_refused).then_some(packet)
    }

    fn write(&mut self, output: usize, path: usize, packet: Packet) {
        assert!(self.room[output] > 0 && packet.0 == path);
        self.now += self.costs.2;
        self.room[output] = self.room[output].saturating_sub(1);
        self.written[path].push(packet);
    }

    fn empty_poll(&mut self, _: usize) -> Duration {
        self.now += 1;
        self.empty_polls += 1;
        us(SWITCH)
    }

    fn waiting(&self, input: usize) -> u32 {
        self.cards[input].len() as u32
    }

    fn room(&self, output: usize) -> u32 {
        self.room[output]
    }

    fn length(&self, packet: &Packet) -> u64 {
        packet.2
    }
}

/// Runs turns until none is due. Returns their number.
pub(super) fn run(pipeline: &mut Pipeline<Packet>, net: &mut Net, most: u32) -> u32 {
    let is_due = |turns: &u32| *turns < most;
    let mut turns = 0;
    while is_due(&turns) {
        let Some(turn) = pipeline.next(net.at()) else { break };
        net.now += SWITCH;
        pipeline.run(turn, net).unwrap();
        assert_eq!(pipeline.validate(), Ok(()));
        turns += 1;
    }
    turns
}

#[derive(Clone, Debug)]
pub(super) struct PathSetup {
    pub(super) output: Option<usize>,
    capacity: usize,
    cost: u64,
    budget: u32,
    refuses: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) rule: Rule,
    is_by_start: bool,
    pub(super) outputs: usize,
    pub(super) paths: Vec<PathSetup>,
    /// By input: how it polls, and its only path.
    pub(super) inputs: Vec<(u8, Option<usize>)>,
}

pub(super) fn setup() -> impl Strategy<Value = Setup> {
    let path = (0..3_usize, 1..40_usize, 1..20_u64, 1..9_u32, 0..5_u32).prop_map(
        |(output, capacity, cost, budget, refuses)| PathSetup {
            output: output.checked_sub(1),
            capacity,
            cost,
            budget,
            refuses,
        },
    );
    let input = (0..3_u8, prop_oneof![Just(None), (0..4_usize).prop_map(Some)]);
    (rule(), any::<bool>(), vec(path, 1..5), vec(input, 1..4)).prop_map(
        |(rule, is_by_start, paths, mut inputs)| {
            for (_, only) in &mut inputs {
                *only = only.map(|path| path % paths.len());
            }
            Setup { rule, is_by_start, outputs: 2, paths, inputs }
        },
    )
}

/// Builds a pipeline whose threads have this timeout, if any. Outputs are its first threads, then
/// paths, then inputs.
pub(super) fn build(setup: &Setup, timeout: Option<Duration>) -> (Pipeline<Packet>, Net) {
    let order = if setup.is_by_start { Order::StartTime } else { Order::Wf2qPlus };
    let mut net = Net::new(setup.inputs.len(), setup.paths.len(), setup.outputs);
    let shares = |threads, whole| ProportionalShare::new(threads, whole, order).unwrap();
    let mut pipeline = Pipeline::new(shares(12, 120), us(SWITCH), policy(setup.rule)).unwrap();
    let thread = |cost| ThreadConfig { timeout, ..ThreadConfig::new(10, us(cost)) };
    for _ in 0..setup.outputs {
        pipeline.add_output(Output { thread: thread(1), link: shares(4, 4) }).unwrap();
    }
    for (at, path) in setup.paths.iter().enumerate() {
        let thread = ThreadConfig { budget: Budget::packets(path.budget), ..thread(path.cost) };
        let output = path.output.map(|output| LinkShare { output, share: 1 });
        let added = pipeline.add_path(Path { thread, capacity: path.capacity, output });
        assert_eq!(added, Ok(at));
        net.costs.1[at] = path.cost;
        net.refuses[at] = path.refuses;
    }
    for (polling, only_path) in &setup.inputs {
        let polling = match polling {
            0 => Polling::Always,
            1 => Polling::Estimated(QueueEstimator::new(CARD as u32, us(200)).unwrap()),
            _ => Polling::Notified,
        };
        let thread = ThreadConfig { buffers: CARD as u32, ..thread(1) };
        pipeline.add_input(Input { thread, polling, only_path: *only_path }).unwrap();
    }
    (pipeline, net)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn packets_are_counted_once_and_stay_in_order(
        setup in setup(),
        arrivals in vec((0..3_usize, prop_oneof![1 => Just(None), 6 => (0..4_usize).prop_map(Some)],
                         1..1500_u64, 0..30_u64), 1..150),
    ) {
        let (mut pipeline, mut net) = build(&setup, Some(us(100)));
        for (card, path, length, pause) in arrivals {
            let card = card % setup.inputs.len();
            let only = setup.inputs[card].1;
            let path = path.map(|path| only.unwrap_or(path % setup.paths.len()));
            net.arrive(card, path, length);
            pipeline.update(&net);
            net.now += pause;
            run(&mut pipeline, &mut net, 20);
        }
        // Each port is polled again, each timeout expires, and all queues are emptied.
        let is_empty = |pipeline: &Pipeline<Packet>, net: &Net| {
            let paths = (0..setup.paths.len()).map(|at| pipeline.path(at));
            let mut queues = paths.flat_map(|path| [&path.input, &path.output]);
            queues.all(|queue| queue.is_empty()) && net.cards.iter().all(VecDeque::is_empty)
        };
        for _ in 0..2000 {
            if is_empty(&pipeline, &net) {
                break;
            }
            run(&mut pipeline, &mut net, 20);
            let wake = pipeline.scheduler().wake_at();
            let wake = wake.map_or(0, |wake| wake.as_nanos().div_ceil(1000));
            net.now = wake.max(net.now + 1);
        }
        prop_assert!(is_empty(&pipeline, &net), "all is forwarded in the end");
        let dropped = |at: usize| pipeline.path(at).input.dropped as u32;
        let received = net.received.iter().map(Vec::len).sum::<usize>() as u32;
        let drops = (0..setup.paths.len()).map(dropped).sum::<u32>();
        prop_assert_eq!(net.read, net.discarded + drops + received);
        let outputs = setup.paths.iter().map(|path| path.output);
        for (at, output) in outputs.enumerate() {
            let written: Vec<u32> = net.written[at].iter().map(|packet| packet.1).collect();
            prop_assert!(net.received[at].is_sorted() && written.is_sorted());
            let refuses = net.refuses[at];
            let sent = |number: &&u32| !is_refused(**number, refuses);
            let expected: Vec<u32> = net.received[at].iter().filter(sent).copied().collect();
            prop_assert_eq!(written, if output.is_some() { expected } else { vec![] });
            // Cards whose only path this is wait for room.
            if setup.inputs.iter().all(|(_, only)| only.is_some()) {
                prop_assert_eq!(dropped(at), 0);
            }
        }
    }
}

/// A pipeline of one path for each of two lengths of packets, and one link.
pub(super) fn two_paths(policy: Policy) -> Pipeline<Packet> {
    let mut pipeline = Pipeline::new(shares(8, 80), us(SWITCH), policy).unwrap();
    let thread = ThreadConfig::new(10, us(1));
    pipeline.add_output(Output { thread, link: shares(2, 4) }).unwrap();
    for share in [1, 3] {
        let output = Some(LinkShare { output: 0, share });
        pipeline.add_path(Path { thread, capacity: 128, output }).unwrap();
    }
    pipeline
}

#[test]
fn a_link_is_shared_by_length() {
    let mut pipeline = two_paths(Policy::Budget(Budget::packets(16)));
    let mut net = Net::new(0, 2, 1);
    net.room[0] = 0;
    pipeline.update(&net);
    for number in 0..128 {
        for (path, length) in [(0, 1500), (1, 100)] {
            pipeline.enqueue(path, (path, number, length), net.at()).unwrap();
        }
    }
    run(&mut pipeline, &mut net, 100);
    assert_eq!(net.written.concat(), [], "the link has no room");
    // Room for some: three bytes of the second path for one of the first.
    net.room[0] = 92;
    pipeline.update(&net);
    run(&mut pipeline, &mut net, 100);
    let bytes = |path: usize| net.written[path].iter().map(|packet| packet.2).sum::<u64>();
    assert_eq!((bytes(0), bytes(1)), (3000, 9000));
}

/// Section 4.2: under a throttle the sleep of a port is the time in which a threshold of packets
/// arrives.
#[test]
fn the_estimator_aims_at_the_threshold() {
    let ports = |policy| {
        let mut pipeline = two_paths(policy);
        // At most the time in which the card fills.
        let estimator = QueueEstimator::new(CARD as u32, us(600)).unwrap();
        let estimator = estimator.with_range(2, 4).unwrap();
        let thread = ThreadConfig::new(10, us(1));
        let polling = Polling::Estimated(estimator);
        let input = Input { thread, polling, only_path: Some(0) };
        let card = pipeline.add_input(input).unwrap();
        let mut net = Net::new(1, 2, 1);
        // A packet in 20 µs.
        let (mut turns, mut polls) = (0, 0);
        for _ in 0..4000 {
            net.arrive(card, Some(0), 1);
            let read = net.read;
            let end = net.now + 20;
            turns += run(&mut pipeline, &mut net, 5);
            polls += u32::from(net.read > read);
            net.now = net.now.max(end);
        }
        assert!(turns > polls && net.read > 3900, "{}", net.read);
        (f64::from(net.read) / f64::from(polls), pipeline.sleep(card))
    };
    let (plain, short) = ports(Policy::Budget(Budget::packets(16)));
    // 3 µs of switching are 20 % of 15 packets of 1 µs.
    let (throttled, long) = ports(Policy::Throttle(throttle(20, 60)));
    // In the shortest timeslice a poll cannot read more than that. Then it loses no packets.
    let (_, short_too) = ports(Policy::Throttle(throttle(20, 15)));
    assert!(short_too < us(600), "{short_too:?}");
    assert!(plain < 6.0 && throttled > 12.0, "{plain} and {throttled} packets in a poll");
    assert!(short < us(160) && long > us(200), "{short:?} and {long:?}");
}

#[test]
fn a_port_that_polls_always_finds_nothing_and_pays() {
    let mut pipeline = two_paths(Policy::Budget(Budget::packets(16)));
    let thread = ThreadConfig::new(10, us(1));
    let input = Input { thread, polling: Polling::Always, only_path: None };
    pipeline.add_input(input).unwrap();
    let mut net = Net::new(1, 2, 1);
    assert_eq!(run(&mut pipeline, &mut net, 10), 10);
    assert_eq!((net.empty_polls, net.read), (10, 0));
    // A microsecond of polling each time. The switch is charged to its share, and booked once.
    let account = pipeline.scheduler().account();
    assert_eq!((account.processing, account.turns), (us(10), 10));
}

#[test]
fn what_a_pipeline_refuses_changes_nothing() {
    let mut pipeline = two_paths(Policy::Budget(Budget::packets(16)));
    let thread = ThreadConfig::new(10, us(1));
    let path = |thread, capacity| Path { thread, capacity, output: None };
    let output = Some(LinkShare { output: 0, share: 1 });
    let refused = pipeline.add_path(Path { output, ..path(thread, 8) });
    let share = |left| Err(ScheduleError::Share(ShareError::Oversubscribed { left }));
    assert_eq!(refused, share(0), "the link has no share left");
    assert_eq!(pipeline.add_path(path(ThreadConfig::new(51, us(1)), 8)), share(50));
    assert_eq!(pipeline.add_path(path(thread, 0)), Err(ScheduleError::Buffers));
    let free = ThreadConfig::new(10, us(0));
    assert_eq!(pipeline.add_path(path(free, 8)), Err(ScheduleError::NoCost));
    assert_eq!(pipeline.add_path(path(thread, 8)), Ok(2));
    assert_eq!(pipeline.validate(), Ok(()));
    // A turn of another scheduler.
    let mut other = two_paths(Policy::Budget(Budget::packets(16)));
    let mut net = Net::new(0, 3, 1);
    other.enqueue(0, (0, 0, 1), net.at()).unwrap();
    let turn = other.next(net.at()).unwrap();
    pipeline.enqueue(0, (0, 1, 1), net.at()).unwrap();
    assert_eq!(pipeline.run(turn, &mut net), Err(ShareError::NotRunning.into()));
    assert_eq!((net.received[0].len(), pipeline.path(0).input.len()), (0, 1), "nothing was run");
    assert_eq!(other.run(turn, &mut net), Ok(1));
    // A link that has or had queues, which belong to no path.
    let mut link = shares(2, 2);
    let queue = link.add(1).unwrap();
    let refused = pipeline.add_output(Output { thread, link: link.clone() });
    assert_eq!(refused, Err(ScheduleError::SharesInUse));
    link.remove(queue).unwrap();
    let refused = pipeline.add_output(Output { thread, link });
    assert_eq!(refused, Err(ScheduleError::SharesInUse));
}
