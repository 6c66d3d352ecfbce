//! The services: depth, complaints, counts and maximum.

use flowtable::papers::esp::{EspPacket, Instruction, Locations, Operation, Relation};
use rand::Rng;

use super::network::{Network, identity};
use super::tree::Tree;

/// The most hops to a receiver, found by COMPARE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Depth {
    pub truth: u64,
    pub found: u64,
    /// Rounds with the true result.
    pub right: u32,
    /// Mean number of answers at the source per round.
    pub received: f64,
}

/// Results of complaints: receivers that miss a packet complain, and COUNT lets one complaint
/// through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Complaints {
    /// Packets that did not arrive below some router.
    pub missed: u32,
    /// Missed packets that were reported to the source.
    pub reported: u32,
    /// Receivers that missed one.
    pub by: u64,
    /// Complaints that arrived at the source.
    pub received: u64,
    /// Maximum number of complaints that arrived in one exchange.
    pub most_received: u64,
    /// Number of exchanges in which all of these receivers complained.
    pub attempts: u32,
}

/// Results of the rounds of one query for a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub truth: u64,
    pub right: u32,
    pub too_small: u32,
    pub too_large: u32,
    /// Rounds without an answer at the source.
    pub unanswered: u32,
    /// Rounds with an error bit in a packet at the source, with or without an answer.
    pub warned: u32,
    /// The largest answer.
    pub largest: Option<u64>,
}

impl Tally {
    fn new(truth: u64) -> Self {
        Self { truth, ..Self::default() }
    }

    /// Adds a round. The source takes the first of several answers.
    fn add(&mut self, received: &[EspPacket], value: impl Fn(&Instruction) -> Option<u64>) {
        self.warned += u32::from(received.iter().any(|packet| packet.error));
        let answers = received.iter().filter(|packet| !packet.error);
        let answer = answers.filter_map(|packet| value(&packet.instruction)).next();
        self.largest = self.largest.max(answer);
        let Some(answer) = answer else { return self.unanswered += 1 };
        self.right += u32::from(answer == self.truth);
        self.too_small += u32::from(answer < self.truth);
        self.too_large += u32::from(answer > self.truth);
    }
}

/// The services of a network. Each computation draws its tags at random.
pub struct Services<'a> {
    pub network: &'a mut Network,
    pub rounds: u32,
    /// Called at the end of each round.
    pub on_round_end: &'a dyn Fn(),
}

impl Services<'_> {
    /// The robust instructions tolerate duplicates, so each of their packets is sent twice.
    const COPIES: u32 = 2;

    /// The value of a receiver, such as its reception quality.
    pub fn value_of(receiver: usize) -> u64 {
        receiver as u64 * 7919 % 1009
    }

    fn packet(&mut self, instruction: Instruction) -> EspPacket {
        EspPacket::new(Locations::CENTRE, self.network.rng.random(), instruction)
    }

    fn tags<const N: usize>(&mut self) -> [u64; N] {
        self.network.rng.random()
    }

    /// Finds the depth of the tree: each receiver sends its number of hops, and COMPARE forwards
    /// only values greater than all before.
    pub fn depth(&mut self) -> Depth {
        let (truth, mut found, mut right, mut received) = (self.network.tree.depth(), 0, 0, 0);
        for _ in 0..self.rounds {
            let [tag] = self.tags();
            let relation = Relation::Greater;
            let packet = self.packet(Instruction::Compare { tag, relation, value: 0 });
            let answer = |receiver, tree: &Tree| {
                let value = tree.hops(receiver);
                Some(EspPacket {
                    instruction: Instruction::Compare { tag, relation, value },
                    ..packet
                })
            };
            let arrived = self.network.exchange(1, answer);
            received += arrived.len();
            let values = arrived.iter().filter_map(|packet| match packet.instruction {
                Instruction::Compare { value, .. } => Some(value),
                _ => None,
            });
            let deepest = values.max().unwrap_or(0);
            right += u32::from(deepest == truth);
            found = deepest.max(found);
            (self.on_round_end)();
        }
        Depth { truth, found, right, received: received as f64 / f64::from(self.rounds) }
    }

    /// Runs complaints: in each round all receivers below some router miss a packet. They complain
    /// until the source is notified, at most `attempts` times.
    pub fn complaints(&mut self, attempts: u32) -> Complaints {
        let mut complaints = Complaints::default();
        for _ in 0..self.rounds {
            let (router, missed) = self.missed();
            complaints.missed += 1;
            complaints.by += missed;
            for _ in 0..attempts {
                // A repeated complaint needs another tag: a router that dropped the first one drops
                // its copies, too.
                let [tag] = self.tags();
                let packet = self.packet(Instruction::Count { tag, threshold: 1 });
                let answer = |receiver, tree: &Tree| {
                    tree.above(receiver).any(|above| above == router).then_some(packet)
                };
                let received = self.network.exchange(1, answer).len() as u64;
                complaints.attempts += 1;
                complaints.received += received;
                complaints.most_received = complaints.most_received.max(received);
                if received > 0 {
                    complaints.reported += 1;
                    break;
                }
            }
            (self.on_round_end)();
        }
        complaints
    }

    /// Returns a router with receivers below it, and their number.
    fn missed(&mut self) -> (usize, u64) {
        loop {
            let router = self.network.rng.random_range(0..self.network.tree.routers);
            let tree = &self.network.tree;
            let is_below = |receiver: &usize| tree.above(*receiver).any(|above| above == router);
            let below = tree.receivers().filter(is_below).count();
            if below > 0 {
                return (router, below as u64);
            }
        }
    }

    /// Counts receivers by COUNT and COLLECT, which count each duplicate as another receiver.
    pub fn plain_count(&mut self) -> Tally {
        let mut tally = Tally::new(self.network.tree.receivers().len() as u64);
        for _ in 0..self.rounds {
            let [count, result] = self.tags();
            let here = self.packet(Instruction::Count { tag: count, threshold: 1 });
            let instruction =
                Instruction::Collect { count, result, operation: Operation::Sum, value: 1 };
            let one = self.packet(instruction);
            self.network.exchange(1, |_, _| Some(here));
            let received = self.network.exchange(1, |_, _| Some(one));
            tally.add(&received, |instruction| match instruction {
                Instruction::Collect { value, .. } => Some(*value),
                _ => None,
            });
            (self.on_round_end)();
        }
        tally
    }

    /// Computes the number of receivers and their largest value, by RCHILD and RCOLLECT: children
    /// are announced once, and queried twice.
    pub fn robust_count_and_max(&mut self) -> [Tally; 2] {
        let receivers = self.network.tree.receivers();
        let largest = receivers.clone().map(Self::value_of).max().unwrap_or(0);
        let mut tallies = [receivers.len() as u64, largest].map(Tally::new);
        for _ in 0..self.rounds {
            let [computation, children] = self.tags();
            let announce = move |receiver: usize, _: &Tree| {
                let instruction = Instruction::RChild { children, child: identity(receiver) };
                Some(EspPacket::new(Locations::CENTRE, computation, instruction))
            };
            self.network.exchange(Self::COPIES, announce);
            for (tally, operation) in tallies.iter_mut().zip([Operation::Sum, Operation::Max]) {
                let [reported, result] = self.tags();
                let report = move |receiver: usize, _: &Tree| {
                    let instruction = Instruction::RCollect {
                        children,
                        reported,
                        result,
                        operation,
                        child: identity(receiver),
                        value: if operation == Operation::Sum {
                            1
                        } else {
                            Self::value_of(receiver)
                        },
                    };
                    Some(EspPacket::new(Locations::CENTRE, computation, instruction))
                };
                let received = self.network.exchange(Self::COPIES, report);
                tally.add(&received, |instruction| match instruction {
                    Instruction::RCollect { value, .. } => Some(*value),
                    _ => None,
                });
            }
            (self.on_round_end)();
        }
        tallies
    }
}
