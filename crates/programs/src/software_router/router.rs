//! The router: ports, paths and their queues, and the scheduler of their CPU.

use core::time::Duration;

use flowtable::Timestamp;
use flowtable::schedule::{Scheduler, SwitchingPath, Thread, Turn, longest_sleep};

use super::cards::{Receiver, Sender};
use super::job::QUEUE_LEN;
use super::{
    Classifier, Costs, Datagram, Forwarder, Job, Outcome, PathId, PathTally, Plan, Port, Traffic,
};

/// A frame that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Index of the packet.
    pub index: u32,
    pub port: Port,
    pub bytes: Vec<u8>,
}

/// A router with real packets and a simulated clock: each step takes its configured cost.
pub struct Router<'a> {
    pub(crate) plan: Plan,
    pub(crate) costs: &'a Costs,
    pub(crate) traffic: &'a Traffic,
    pub(crate) duration_ns: u64,
    pub(crate) now_ns: u64,
    /// Index of the next packet to arrive.
    pub(crate) next: usize,
    pub(crate) receivers: [Receiver; Port::ALL.len()],
    pub(crate) classifier: Classifier,
    pub(crate) forwarder: Forwarder,
    /// By path index.
    pub(crate) paths: Vec<SwitchingPath<Datagram>>,
    pub(crate) tallies: Vec<PathTally>,
    pub(crate) senders: [Sender; Port::ALL.len()],
    pub(crate) scheduler: Scheduler,
    /// By thread index.
    pub(crate) jobs: Vec<Job>,
    /// By job index.
    pub(crate) threads: Vec<Thread>,
    pub(crate) outcome: Outcome,
}

impl<'a> Router<'a> {
    /// Creates a router for traffic at `rate` packets per second.
    pub fn new(plan: Plan, costs: &'a Costs, traffic: &'a Traffic, rate: u64) -> Self {
        let policy = plan.policy(costs).expect("slices are long enough");
        let jobs: Vec<Job> = Job::all().collect();
        let switch = Duration::from_nanos(costs.switch);
        let mut scheduler =
            Scheduler::new(jobs.len(), Job::WHOLE, switch, policy).expect("there is memory");
        let add = |job: &Job| scheduler.add(job.config(costs)).expect("shares are below the whole");
        let threads = jobs.iter().map(add).collect();
        let path = |id| SwitchingPath::new(QUEUE_LEN, QUEUE_LEN, Job::Forward(id).cost(costs));
        let paths = PathId::all().map(|id| path(id).expect("the capacity is positive")).collect();
        // At four times its capacity, it sleeps no longer than a ring takes to fill.
        let sleep = longest_sleep(Receiver::RING, 4 * traffic.capacity(costs)).max(switch);
        let duration_ns = traffic.duration_ns(rate);
        Self {
            plan,
            costs,
            traffic,
            duration_ns,
            now_ns: 0,
            next: 0,
            receivers: Port::ALL.map(|_| Receiver::new(plan.poll(), sleep)),
            classifier: Classifier::default(),
            forwarder: Forwarder::default(),
            paths,
            tallies: vec![PathTally::default(); PathId::COUNT],
            senders: Default::default(),
            scheduler,
            jobs,
            threads,
            outcome: Outcome::new(plan, duration_ns),
        }
    }

    /// Runs while packets arrive, and passes the sent frames to `sink`.
    pub fn run(mut self, mut sink: impl FnMut(Frame)) -> Outcome {
        loop {
            self.arrive();
            if self.now_ns >= self.duration_ns {
                return self.finished();
            }
            if self.plan == Plan::Interrupts {
                if self.interrupt() {
                    continue;
                }
            } else {
                self.check_rings();
            }
            match self.scheduler.next(self.now()) {
                Some(turn) => self.take_turn(turn, &mut sink),
                None => self.now_ns = self.next_event_ns(),
            }
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.now_ns)
    }

    /// Moves arrived packets into the rings, and lets the links take packets.
    pub(crate) fn arrive(&mut self) {
        let until_ns = self.now_ns.min(self.duration_ns);
        while let Some(time_ns) = self.traffic.time_ns(self.next, self.duration_ns) {
            if time_ns > until_ns {
                break;
            }
            let port = self.traffic.packets[self.next].port;
            // The ring counts drops.
            _ = self.receivers[port as usize].ring.push(self.next as u32);
            self.next += 1;
        }
        for port in Port::ALL {
            let sender = &mut self.senders[port as usize];
            let had = sender.free();
            sender.advance(self.now_ns);
            if sender.free() > had {
                self.report_occupancy(Job::Write(port));
            }
        }
    }

    /// Handles the next interrupt: reads a packet. Returns false if there is none.
    fn interrupt(&mut self) -> bool {
        let rings = self.receivers.iter().map(|receiver| receiver.ring.len());
        // The fullest ring first. No ring waits for long.
        let Some((port, 1..)) = Port::ALL.into_iter().zip(rings).max_by_key(|(_, len)| *len) else {
            return false;
        };
        self.now_ns += self.costs.switch;
        self.arrive();
        self.read(port);
        self.now_ns += self.costs.input;
        self.outcome.account.processing += Duration::from_nanos(self.costs.input);
        self.outcome.account.switching += Duration::from_nanos(self.costs.switch);
        self.outcome.account.turns += 1;
        true
    }

    /// Updates the scheduler about the rings that are due.
    fn check_rings(&mut self) {
        for port in Port::ALL {
            if self.receivers[port as usize].is_due(self.now_ns) {
                self.report_occupancy(Job::Read(port));
            }
        }
    }

    /// Returns the time of the next event.
    fn next_event_ns(&self) -> u64 {
        let looks = self.receivers.iter().filter_map(|receiver| receiver.poll_at_ns);
        let departures = self.senders.iter().filter_map(Sender::next_departure_ns);
        let timeout = self.scheduler.wake_at().map(Timestamp::as_nanos);
        let arrival = self.traffic.time_ns(self.next, self.duration_ns);
        let later = looks.chain(departures).chain(timeout).chain(arrival);
        let first = later.filter(|&time_ns| time_ns > self.now_ns).min();
        first.unwrap_or(self.duration_ns).min(self.duration_ns)
    }

    /// Runs a switch and the turn after it.
    fn take_turn(&mut self, turn: Turn, sink: &mut impl FnMut(Frame)) {
        let job = self.jobs[turn.thread().index()];
        self.now_ns += self.costs.switch;
        self.arrive();
        let begun_ns = self.now_ns;
        match job {
            Job::Read(port) => self.poll(port, &turn),
            Job::Forward(id) => self.forward(id, &turn),
            Job::Write(port) => self.write(port, &turn, sink),
        }
        self.arrive();
        let processing = Duration::from_nanos(self.now_ns - begun_ns);
        let (occupancy, now) = (self.occupancy(job), self.now());
        let finished = self.scheduler.finish(turn, processing, occupancy, now);
        finished.expect("the turn is this scheduler's");
    }

    fn finished(mut self) -> Outcome {
        for id in PathId::all() {
            let (path, tally) = (&self.paths[id.index()], &mut self.tallies[id.index()]);
            tally.input_drops = path.input().dropped();
            tally.queued = (path.input().len() + path.output().len()) as u64;
            tally.longest_input = path.input().longest();
            tally.longest_output = path.output().longest();
            let function = &mut self.outcome.functions[id.function as usize];
            *function = *function + *tally;
        }
        let account = self.scheduler.account();
        self.outcome.account.processing += account.processing;
        self.outcome.account.switching += account.switching;
        self.outcome.account.turns += account.turns;
        self.outcome.offered = self.next as u64;
        for Receiver { ring, .. } in &self.receivers {
            self.outcome.card_drops += ring.dropped();
            self.outcome.unread += ring.len() as u64;
        }
        self.outcome
    }
}
