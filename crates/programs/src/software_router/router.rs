//! The router: a pipeline, and what it works on.

use core::time::Duration;

use flowtable::Timestamp;
use flowtable::papers::schedule::pipeline::{
    Device, Input, LinkShare, Output, Path, Pipeline, Polling, Reading,
};
use flowtable::papers::schedule::share::{Order, ProportionalShare};
use flowtable::papers::schedule::{QueueEstimator, longest_sleep};

use super::cards::RING;
use super::device::{Cards, Frame};
use super::job::QUEUE_LEN;
use super::{Costs, Datagram, Function, Job, Outcome, PathId, Plan, Port, Traffic};

/// A router with real packets and a simulated clock: each step takes its configured cost.
pub struct Router<'a> {
    plan: Plan,
    costs: &'a Costs,
    traffic: &'a Traffic,
    rate: u64,
    pipeline: Pipeline<Datagram>,
}

impl<'a> Router<'a> {
    /// Creates a router for traffic at `rate` packets per second.
    pub fn new(plan: Plan, costs: &'a Costs, traffic: &'a Traffic, rate: u64) -> Self {
        let policy = plan.policy(costs).expect("slices are long enough");
        let switch = Duration::from_nanos(costs.switch);
        let shares = |threads, whole| {
            ProportionalShare::new(threads, whole, Order::Wf2qPlus).expect("there is memory")
        };
        let mut pipeline =
            Pipeline::new(shares(Job::COUNT, Job::WHOLE), switch, policy).expect("there is memory");
        for port in Port::ALL {
            // The functions have equal shares of a link.
            let functions = Function::ALL.len();
            let link = shares(functions, functions as u32);
            let output = Output { thread: Job::Write(port).config(costs), link };
            pipeline.add_output(output).expect("shares are below the whole");
        }
        for id in PathId::all() {
            let thread = Job::Forward(id).config(costs);
            let output = Some(LinkShare { output: id.port as usize, share: 1 });
            let path = Path { thread, capacity: QUEUE_LEN, output };
            pipeline.add_path(path).expect("shares are below the whole");
        }
        // At four times its capacity, it sleeps no longer than a ring takes to fill.
        let sleep = longest_sleep(RING, 4 * costs.capacity(traffic)).max(switch);
        let polling = match plan {
            Plan::Interrupts | Plan::Throttle(_) => Polling::Notified,
            // Polls of single packets are too small for an estimate.
            Plan::Batch(_) | Plan::Slice(_) => {
                QueueEstimator::new(plan.poll(), sleep).map_or(Polling::Always, Polling::Estimated)
            }
        };
        for port in Port::ALL {
            let thread = Job::Read(port).config(costs);
            let input = Input { thread, polling, only_path: None };
            pipeline.add_input(input).expect("shares are below the whole");
        }
        Self { plan, costs, traffic, rate, pipeline }
    }

    /// Runs while packets arrive, and passes the sent frames to `sink`.
    pub fn run(mut self, sink: impl FnMut(Frame)) -> Outcome {
        let mut cards = Cards::new(self.costs, self.traffic, self.rate, sink);
        let mut outcome = Outcome::new(self.plan, cards.duration_ns);
        loop {
            cards.pass(0);
            if cards.now_ns >= cards.duration_ns {
                return self.finished(outcome, &cards);
            }
            if self.plan == Plan::Interrupts && self.interrupt(&mut cards, &mut outcome) {
                continue;
            }
            self.pipeline.update(&cards);
            match self.pipeline.next(cards.now()) {
                Some(turn) => {
                    cards.pass(self.costs.switch);
                    self.pipeline.run(turn, &mut cards).expect("the turn is of this pipeline");
                }
                None => {
                    let wake = self.pipeline.scheduler().wake_at().map(Timestamp::as_nanos);
                    let events = cards.next_event_ns().chain(wake);
                    let next = events.filter(|&time_ns| time_ns > cards.now_ns).min();
                    cards.now_ns = next.unwrap_or(cards.duration_ns).min(cards.duration_ns);
                }
            }
        }
    }

    /// Handles the next interrupt: reads a packet. Returns false if there is none.
    fn interrupt<S: FnMut(Frame)>(
        &mut self,
        cards: &mut Cards<'_, S>,
        outcome: &mut Outcome,
    ) -> bool {
        let rings = cards.rings.each_ref().map(|ring| ring.len());
        // The fullest ring first. No ring waits for long.
        let Some((port, 1..)) = rings.into_iter().enumerate().max_by_key(|(_, len)| *len) else {
            return false;
        };
        cards.pass(self.costs.switch);
        if let Reading::Packet { path, packet } = cards.read(port) {
            // The queue counts drops.
            _ = self.pipeline.enqueue(path, packet, cards.now());
        }
        outcome.account.processing += Duration::from_nanos(self.costs.input);
        outcome.account.switching += Duration::from_nanos(self.costs.switch);
        outcome.account.turns += 1;
        true
    }

    fn finished<S>(self, mut outcome: Outcome, cards: &Cards<'_, S>) -> Outcome {
        for id in PathId::all() {
            let path = self.pipeline.path(id.index());
            let mut tally = cards.tallies[id.index()];
            tally.input_drops = path.input.dropped;
            tally.queued = (path.input.len() + path.output.len()) as u64;
            tally.longest_input = path.input.longest;
            tally.longest_output = path.output.longest;
            let function = &mut outcome.functions[id.function as usize];
            *function = *function + tally;
        }
        let account = self.pipeline.scheduler().account();
        outcome.account.processing += account.processing;
        outcome.account.switching += account.switching;
        outcome.account.turns += account.turns;
        outcome.offered = cards.next as u64;
        outcome.unclassified = cards.unclassified;
        outcome.empty_polls = cards.empty_polls;
        for ring in &cards.rings {
            outcome.card_drops += ring.dropped;
            outcome.unread += ring.len() as u64;
        }
        outcome
    }
}
