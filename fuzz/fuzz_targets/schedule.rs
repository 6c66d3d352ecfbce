//! A `Pipeline` with any paths, budgets, throttles and shares: invariants after each turn, and each
//! packet counted once.
#![no_main]

use std::collections::VecDeque;
use std::time::Duration;

use arbitrary::Arbitrary;
use flowtable::Timestamp;
use flowtable::papers::schedule::pipeline::{
    Device, Input, LinkShare, Output, Path, Pipeline, Polling, Reading,
};
use flowtable::papers::schedule::share::{Order, ProportionalShare};
use flowtable::papers::schedule::{
    Budget, Overhead, Policy, QueueEstimator, ThreadConfig, Throttle,
};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Setup {
    is_by_start: bool,
    policy: Limit,
    /// Capacity, cost, share, whether it has an output.
    paths: Vec<(u8, u8, u8, bool)>,
    /// How it polls, and the only path.
    inputs: Vec<(u8, Option<u8>)>,
    ops: Vec<Op>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Limit {
    Packets(u8),
    Slice(u8),
    Throttle(u8),
}

#[derive(Arbitrary, Debug)]
enum Op {
    Arrive { card: u8, path: u8, length: u16 },
    Enqueue { path: u8, length: u16 },
    Wait(u8),
    Room(u8),
    Turn,
    SetPolicy(Limit),
}

const SWITCH: u64 = 3;

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn policy(limit: Limit) -> Policy {
    match limit {
        Limit::Packets(most) => Policy::Budget(Budget::packets(most.into())),
        Limit::Slice(micros) => {
            Policy::Budget(Budget { slice: us(micros.into()), ..Budget::UNTIL_EMPTY })
        }
        Limit::Throttle(percent) => {
            let overhead = Overhead::from_ppm(10_000 * (1 + u32::from(percent))).expect("above 0");
            Policy::Throttle(Throttle::new(us(SWITCH), overhead, us(300)).expect("it is long"))
        }
    }
}

/// A packet: its path and its length.
type Packet = (usize, u64);

#[derive(Default)]
struct Net {
    now: u64,
    cards: Vec<VecDeque<Packet>>,
    costs: Vec<u64>,
    room: u32,
    /// Packets read or enqueued, processed by a function, and written.
    counts: [u64; 3],
}

impl Device for Net {
    type Packet = Packet;

    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.now)
    }

    fn read(&mut self, input: usize) -> Reading<Packet> {
        let Some(packet) = self.cards[input].pop_front() else { return Reading::Empty };
        self.now += 1;
        self.counts[0] += 1;
        Reading::Packet { path: packet.0, packet }
    }

    fn forward(&mut self, path: usize, packet: Packet) -> Option<Packet> {
        assert_eq!(packet.0, path);
        self.now += self.costs[path];
        self.counts[1] += 1;
        Some(packet)
    }

    fn write(&mut self, _: usize, path: usize, packet: Packet) {
        assert!(packet.0 == path && self.room > 0);
        self.room -= 1;
        self.counts[2] += 1;
    }

    fn waiting(&self, input: usize) -> u32 {
        self.cards[input].len() as u32
    }

    fn room(&self, _: usize) -> u32 {
        self.room
    }

    fn length(&self, packet: &Packet) -> u64 {
        packet.1
    }
}

fuzz_target!(|setup: Setup| {
    let order = if setup.is_by_start { Order::StartTime } else { Order::Wf2qPlus };
    let shares = |threads| ProportionalShare::new(threads, 1000, order).expect("memory");
    let mut pipeline: Pipeline<Packet> =
        Pipeline::new(shares(16), us(SWITCH), policy(setup.policy)).expect("memory");
    let output = Output { thread: ThreadConfig::new(10, us(1)), link: shares(8) };
    let output = pipeline.add_output(output).expect("the first thread");
    let mut net = Net { room: 4, ..Net::default() };
    let mut has_output = vec![];
    for &(capacity, cost, share, leads) in setup.paths.iter().take(6) {
        let thread = ThreadConfig::new(share.into(), us(cost.into()));
        let output = leads.then_some(LinkShare { output, share: share.into() });
        if pipeline.add_path(Path { thread, capacity: capacity.into(), output }).is_ok() {
            net.costs.push(cost.into());
            has_output.push(leads);
        }
        assert_eq!(pipeline.validate(), Ok(()));
    }
    let paths = has_output.len();
    if paths == 0 {
        return;
    }
    let mut only = vec![];
    for &(polling, path) in setup.inputs.iter().take(4) {
        let path = path.map(|path| usize::from(path) % paths);
        let polling = match polling % 3 {
            0 => Polling::Always,
            1 => Polling::Estimated(QueueEstimator::new(16, us(100)).expect("both are large")),
            _ => Polling::Notified,
        };
        let thread = ThreadConfig::new(10, us(1));
        let input = Input { thread, polling, only_path: path };
        if pipeline.add_input(input).is_ok() {
            net.cards.push(VecDeque::new());
            only.push(path);
        }
    }
    for op in setup.ops {
        match op {
            Op::Arrive { card, path, length } if !only.is_empty() => {
                let card = usize::from(card) % only.len();
                let path = only[card].unwrap_or(usize::from(path) % paths);
                net.cards[card].push_back((path, length.into()));
                pipeline.update(&net);
            }
            Op::Arrive { .. } => {}
            Op::Enqueue { path, length } => {
                let path = usize::from(path) % paths;
                net.counts[0] += 1;
                let _counted = pipeline.enqueue(path, (path, length.into()), net.now());
            }
            Op::Wait(micros) => net.now += u64::from(micros),
            Op::Room(packets) => {
                net.room += u32::from(packets);
                pipeline.update(&net);
            }
            Op::SetPolicy(limit) => pipeline.set_policy(policy(limit)),
            Op::Turn => {
                if let Some(turn) = pipeline.next(net.now()) {
                    net.now += SWITCH;
                    pipeline.run(turn, &mut net).expect("it is of this pipeline");
                }
            }
        }
        assert_eq!(pipeline.validate(), Ok(()));
        let sum = |of: &dyn Fn(usize) -> u64| (0..paths).map(of).sum::<u64>();
        let waits = sum(&|path| {
            let input = &pipeline.path(path).input;
            input.len() as u64 + input.dropped
        });
        assert_eq!(net.counts[0], net.counts[1] + waits);
        let queued = sum(&|path| pipeline.path(path).output.len() as u64);
        if has_output.iter().all(|leads| *leads) {
            assert_eq!(net.counts[1], net.counts[2] + queued);
        }
    }
});
