//! The pipeline makes progress: without timeouts, with queues of any size, with full paths, after
//! lost turns, and in the order of expected runs.

use std::collections::VecDeque;
use std::time::Duration;

use flowtable::Timestamp;
use flowtable::papers::schedule::pipeline::{
    Device, Input, LinkShare, Output, Path, Pipeline, Polling, Reading,
};
use flowtable::papers::schedule::share::ProportionalShare;
use flowtable::papers::schedule::{Budget, Policy, QueueEstimator, State, Thread, ThreadConfig};
use model::schedule::Rule;
use proptest::collection::vec;
use proptest::prelude::*;

use super::pipeline::{CARD, Net, Packet, SWITCH, Setup, build, run, setup, two_paths};
use super::{config, shares, throttle, us};

/// An empty pipeline with turns of 16 packets.
fn pipeline(shares: ProportionalShare, switch: Duration) -> Pipeline<Packet> {
    Pipeline::new(shares, switch, Policy::Budget(Budget::packets(16))).unwrap()
}

/// A path whose function consumes all packets.
fn path(thread: ThreadConfig, capacity: usize) -> Path {
    Path { thread, capacity, output: None }
}

// Liveness without timeouts.

/// The first threads of a pipeline.
fn threads(number: usize) -> Vec<Thread> {
    let mut shares = shares(number, number as u32);
    (0..number).map(|_| shares.add(1).unwrap()).collect()
}

/// Whether all waiting packets are fewer than the thresholds of the threads that they wait for.
fn is_quiet(setup: &Setup, pipeline: &Pipeline<Packet>, net: &Net) -> bool {
    let of_outputs = (0..setup.outputs).map(|output| {
        let has_it = |at: &usize| setup.paths[*at].output == Some(output);
        let paths = (0..setup.paths.len()).filter(has_it);
        paths.map(|at| pipeline.path(at).output.len()).sum()
    });
    let of_paths = (0..setup.paths.len()).map(|at| pipeline.path(at).input.len());
    let of_inputs = net.cards.iter().map(VecDeque::len);
    let mut waiting = of_outputs.chain(of_paths).chain(of_inputs).zip(threads(12)).enumerate();
    waiting.all(|(at, (packets, thread))| {
        let input = at.checked_sub(setup.outputs + setup.paths.len());
        let polls = input.is_some_and(|input| setup.inputs[input].0 < 2);
        let threshold = pipeline.scheduler().threshold(thread).unwrap() as usize;
        packets < if polls { 1 } else { threshold }
    })
}

proptest! {
    #![proptest_config(config())]

    /// Guarantee 5 of the schedule, for any sizes of queues: no two threads wait for each other.
    #[test]
    fn no_threads_of_a_pipeline_wait_for_each_other(
        mut setup in setup(),
        arrivals in vec((0..3_usize, 0..4_usize, 1..1500_u64, 0..30_u64), 1..200),
    ) {
        if let Rule::Throttle(.., is_capped) = &mut setup.rule {
            *is_capped = true;
        }
        let (mut pipeline, mut net) = build(&setup, None);
        for (card, path, length, pause) in arrivals {
            let card = card % setup.inputs.len();
            let path = setup.inputs[card].1.unwrap_or(path % setup.paths.len());
            net.arrive(card, Some(path), length);
            pipeline.update(&net);
            net.now += pause;
            run(&mut pipeline, &mut net, 4);
        }
        for _ in 0..2000 {
            if is_quiet(&setup, &pipeline, &net) {
                break;
            }
            run(&mut pipeline, &mut net, 20);
            let wake = pipeline.scheduler().wake_at();
            let wake = wake.map_or(0, |wake| wake.as_nanos().div_ceil(1000));
            net.now = wake.max(net.now + 1);
        }
        prop_assert!(is_quiet(&setup, &pipeline, &net), "packets wait for ever");
    }
}

/// A throttle of 30 packets, and a path of 16 slots, or one of four.
#[test]
fn an_output_does_not_wait_for_more_packets_than_fit() {
    for paths in [1, 4] {
        let policy = Policy::Throttle(throttle(10, 30));
        let mut pipeline = Pipeline::new(shares(8, 80), us(SWITCH), policy).unwrap();
        let thread = ThreadConfig::new(10, us(1));
        pipeline.add_output(Output { thread, link: shares(4, 4) }).unwrap();
        let output = Some(LinkShare { output: 0, share: 1 });
        for _ in 0..paths {
            pipeline.add_path(Path { thread, capacity: 16, output }).unwrap();
        }
        let mut net = Net::new(0, paths, 1);
        for number in 0..800 {
            pipeline.enqueue(0, (0, number, 1), net.at()).unwrap();
            run(&mut pipeline, &mut net, 20);
        }
        assert!(net.written[0].len() > 800 - 16, "{}", net.written[0].len());
    }
}

/// Guarantee 3 of the schedule: the thread of a card waits if its path has fewer free slots than
/// its threshold.
#[test]
fn an_input_waits_for_as_many_slots_as_packets() {
    let mut pipeline = two_paths(Policy::Throttle(throttle(10, 30)));
    let thread = ThreadConfig::new(10, us(1));
    pipeline.add_path(path(ThreadConfig::new(10, us(100)), 16)).unwrap();
    let input = Input { thread, polling: Polling::Notified, only_path: Some(2) };
    let card = pipeline.add_input(input).unwrap();
    assert_eq!(pipeline.scheduler().threshold(threads(5)[4]), Some(8), "half of the slots");
    let mut net = Net::new(1, 3, 1);
    (0..8).for_each(|_| net.arrive(card, Some(2), 1));
    pipeline.update(&net);
    for number in 0..9 {
        pipeline.enqueue(2, (2, number, 1), net.at()).unwrap();
    }
    let turn = pipeline.next(net.at()).expect("the path has packets");
    assert_eq!(turn.thread.index(), 3);
    assert_eq!(pipeline.next(net.at()), None, "the card has too few slots");
}

// Polls that fill the only path.

#[test]
fn a_poll_that_fills_its_path_does_not_sleep_longer() {
    let mut pipeline = pipeline(shares(2, 20), us(0));
    let thread = ThreadConfig::new(10, us(1));
    pipeline.add_path(path(thread, 3)).unwrap();
    let estimator = QueueEstimator::new(16, us(430)).unwrap();
    let input = Input { thread, polling: Polling::Estimated(estimator), only_path: Some(0) };
    let card = pipeline.add_input(input).unwrap();
    let mut net = Net::new(1, 1, 1);
    for _ in 0..2000 {
        // More packets than the processor can read and forward.
        (0..CARD).for_each(|_| net.arrive(card, Some(0), 1));
        run(&mut pipeline, &mut net, 2);
        let wake = pipeline.scheduler().wake_at();
        net.now = wake.map_or(net.now, |wake| net.now.max(wake.as_nanos() / 1000));
    }
    assert_eq!(pipeline.sleep(card), us(0));
    // A poll of three packets for each turn of the path, with a switch before both.
    assert!(net.received[0].len() > 5000, "{}", net.received[0].len());
}

#[test]
fn the_sleep_of_a_port_begins_with_the_end_of_its_poll() {
    let mut pipeline = pipeline(shares(2, 20), us(1));
    let thread = ThreadConfig::new(10, us(1));
    pipeline.add_path(path(thread, 1)).unwrap();
    let estimator = QueueEstimator::new(4, us(400)).unwrap();
    let input = Input { thread, polling: Polling::Estimated(estimator), only_path: Some(0) };
    let card = pipeline.add_input(input).unwrap();
    let mut net = Net::new(1, 1, 1);
    // Nothing arrives: the port sleeps longest.
    for _ in 0..40 {
        run(&mut pipeline, &mut net, 1);
        let wake = pipeline.scheduler().wake_at();
        net.now = wake.map_or(net.now, |wake| wake.as_nanos().div_ceil(1000));
    }
    let polled = net.empty_polls;
    run(&mut pipeline, &mut net, 1);
    let (end, sleep) = (net.at(), pipeline.sleep(card));
    assert_eq!((net.empty_polls, sleep), (polled + 1, us(400)));
    // In between its path is full, and empty again.
    net.now += 100;
    pipeline.enqueue(0, (0, 1, 1), net.at()).unwrap();
    assert_eq!(pipeline.scheduler().wake_at(), None);
    run(&mut pipeline, &mut net, 1);
    assert_eq!((pipeline.scheduler().wake_at(), net.received[0].len()), (Some(end + sleep), 1));
}

// Lost turns.

/// A device whose function panics at a packet, once.
struct Failing(Net, Option<u32>);

impl Device for Failing {
    type Packet = Packet;

    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn read(&mut self, input: usize) -> Reading<Packet> {
        self.0.read(input)
    }

    fn forward(&mut self, path: usize, packet: Packet) -> Option<Packet> {
        assert!(self.1.take_if(|number| *number == packet.1).is_none(), "a bad packet");
        self.0.forward(path, packet)
    }

    fn write(&mut self, output: usize, path: usize, packet: Packet) {
        let is_bad = self.1.take_if(|number| *number == packet.1 + 100).is_some();
        assert!(!is_bad, "a bad packet");
        self.0.write(output, path, packet);
    }

    fn length(&self, packet: &Packet) -> u64 {
        self.0.length(packet)
    }
}

/// Runs all turns. Turns in which the device panics are run again.
fn run_in_spite_of_panics(pipeline: &mut Pipeline<Packet>, device: &mut Failing) {
    while let Some(turn) = pipeline.next(device.now()) {
        let run = std::panic::AssertUnwindSafe(|| pipeline.run(turn, device));
        if std::panic::catch_unwind(run).is_err() {
            assert_eq!(pipeline.scheduler().state(turn.thread), Some(State::Running));
            assert_eq!(pipeline.validate(), Ok(()));
            pipeline.run(turn, device).unwrap();
        }
        assert_eq!(pipeline.validate(), Ok(()));
    }
}

#[test]
fn a_panic_of_the_device_loses_one_packet() {
    // The function panics, or the link does, or none.
    for (bad, expected) in [(Some(3), 5), (Some(103), 5), (None, 6)] {
        let mut pipeline = two_paths(Policy::Budget(Budget::packets(4)));
        let mut device = Failing(Net::new(0, 2, 1), bad);
        for number in 1..=6 {
            pipeline.enqueue(0, (0, number, 1), device.now()).unwrap();
        }
        run_in_spite_of_panics(&mut pipeline, &mut device);
        assert_eq!(device.0.written[0].len(), expected, "{bad:?}");
        assert!(device.0.written[0].is_sorted());
    }
}

// Expected runs.

/// The index of the thread that has the next turn, which is run.
fn next_thread(pipeline: &mut Pipeline<Packet>, net: &mut Net) -> usize {
    let turn = pipeline.next(net.at()).expect("there are packets");
    let index = turn.thread.index();
    pipeline.run(turn, net).unwrap();
    index
}

#[test]
fn the_budget_of_a_path_shortens_its_expected_run() {
    let mut pipeline = pipeline(shares(2, 100), us(1));
    let thread = |cost| ThreadConfig::new(50, us(cost));
    let single = ThreadConfig { budget: Budget::packets(1), ..thread(10) };
    pipeline.add_path(path(single, 16)).unwrap();
    pipeline.add_path(path(thread(30), 16)).unwrap();
    let mut net = Net::new(0, 2, 0);
    net.costs.1 = vec![10, 30];
    (0..10).for_each(|number| pipeline.enqueue(0, (0, number, 1), net.at()).unwrap());
    pipeline.enqueue(1, (1, 0, 1), net.at()).unwrap();
    // A packet of 10 us, and not ten, before one of 30 us.
    assert_eq!(next_thread(&mut pipeline, &mut net), 0);
    assert_eq!(net.received[0], [0]);
}

#[test]
fn a_port_that_polls_always_is_expected_to_read_as_in_its_last_poll() {
    let mut pipeline = pipeline(shares(3, 100), us(1));
    for _ in 0..2 {
        pipeline.add_path(path(ThreadConfig::new(25, us(1)), 16)).unwrap();
    }
    let thread = ThreadConfig::new(50, us(1));
    let input = Input { thread, polling: Polling::Always, only_path: None };
    let card = pipeline.add_input(input).unwrap();
    let mut net = Net::new(1, 2, 0);
    (0..32).for_each(|_| net.arrive(card, None, 1));
    assert_eq!((next_thread(&mut pipeline, &mut net), net.read), (2, 16));
    (0..16).for_each(|number| pipeline.enqueue(0, (0, number, 1), net.at()).unwrap());
    assert_eq!(next_thread(&mut pipeline, &mut net), 0);
    // Now the card is due, with 16 packets at half of the processor, and a path with four at a
    // quarter: it ends earlier.
    (0..4).for_each(|number| pipeline.enqueue(1, (1, number, 1), net.at()).unwrap());
    assert_eq!(next_thread(&mut pipeline, &mut net), 1);
    assert_eq!((next_thread(&mut pipeline, &mut net), net.read), (2, 32));
}
