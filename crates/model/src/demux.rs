//! Demultiplexers compared with their reference models after every operation.

pub mod lists;

use core::fmt::Debug;
use core::hash::{BuildHasher, Hash};

use flowtable::demux::{
    Arrival, BsdList, Demux, DemuxError, MoveToFront, NotFound, RejectedPcb, SendReceive, Sequent,
    SequentMoveToFront, TrashDemux,
};

use self::lists::{DemuxModels, Rule};

/// A demultiplexer and its reference model.
pub struct CheckedDemux<K> {
    name: &'static str,
    ours: Box<dyn Demux<u32, K>>,
    model: DemuxModels<K, u32>,
    /// Why a name is refused, other than for being in use.
    refuses: fn(&K) -> Option<DemuxError>,
    now: u32,
}

impl<K: Clone + Debug + PartialEq> CheckedDemux<K> {
    pub fn new(
        name: &'static str,
        ours: impl Demux<u32, K> + 'static,
        model: DemuxModels<K, u32>,
    ) -> Self {
        Self { name, ours: Box::new(ours), model, refuses: |_| None, now: 0 }
    }

    /// Expects some names to be refused.
    pub fn that_refuses(self, refuses: fn(&K) -> Option<DemuxError>) -> Self {
        Self { refuses, ..self }
    }

    /// Returns a new PCB.
    fn fresh(&mut self) -> u32 {
        self.now += 1;
        self.now
    }

    pub fn insert(&mut self, key: &K) {
        let pcb = self.fresh();
        let refused = |reason| move |refused| RejectedPcb { refused, reason };
        let theirs = match (self.refuses)(key) {
            Some(reason) => Err(refused(reason)(pcb)),
            None => self.model.of(key).insert(key.clone(), pcb).map_err(refused(DemuxError::InUse)),
        };
        assert_eq!(self.ours.insert(key.clone(), pcb), theirs, "{}", self.name);
    }

    /// Looks a PCB up and changes it.
    pub fn lookup(&mut self, key: &K, arrival: Arrival) {
        let new = self.fresh();
        let (theirs, examined) = self.model.of(key).lookup(key, arrival);
        let found = self.ours.lookup(key, arrival);
        assert_eq!(found.pcb, theirs, "{}", self.name);
        assert!(
            examined.contains(&found.examined),
            "{}: {} examined, not {examined:?}",
            self.name,
            found.examined
        );
        found.pcb.into_iter().chain(theirs).for_each(|pcb| *pcb = new);
    }

    pub fn sent(&mut self, key: &K) {
        self.ours.sent(key);
        self.model.of(key).sent(key);
    }

    pub fn remove(&mut self, key: &K) {
        let theirs = self.model.of(key).remove(key).ok_or(NotFound);
        assert_eq!(self.ours.remove(key), theirs, "{}", self.name);
    }

    /// Removes a connection and inserts it again.
    pub fn again(&mut self, key: &K) {
        self.remove(key);
        self.insert(key);
    }

    /// Does what a stack does for an exchange: receives data, sends, receives the acknowledgement.
    pub fn exchange(&mut self, key: &K) {
        self.lookup(key, Arrival::Data);
        self.sent(key);
        self.lookup(key, Arrival::Ack);
    }

    pub fn check(&self) {
        assert_eq!(self.ours.len(), self.model.len(), "{}", self.name);
        assert_eq!(self.ours.is_empty(), self.model.is_empty(), "{}", self.name);
        self.ours.validate().expect(self.name);
    }
}

/// The chain of a name, which depends on both halves of the hash.
fn choose<K: Hash>(
    hasher: impl BuildHasher + 'static,
    chains: usize,
) -> impl Fn(&K) -> usize + 'static {
    move |key| {
        let hash = hasher.hash_one(key);
        (hash as u32 ^ (hash >> 32) as u32) as usize % chains
    }
}

/// All demultiplexers but [`ConnectionId`](flowtable::demux::ConnectionId).
pub fn all<K, S>(hasher: S, chains: usize) -> Vec<CheckedDemux<K>>
where
    K: Clone + Debug + Eq + Hash + 'static,
    S: BuildHasher + Copy + 'static,
{
    let chosen = |rule| DemuxModels::many(rule, chains, choose(hasher, chains));
    let sequent =
        Sequent::with_chains_and_hasher(chains, hasher).expect("the number of chains is positive");
    let to_front = SequentMoveToFront::with_chains_and_hasher(chains, hasher).expect("as above");
    // A single chain is a list, for any hash.
    let list =
        Sequent::with_chains_and_hasher(1, hasher).expect("the number of chains is positive");
    let list_to_front = SequentMoveToFront::with_chains_and_hasher(1, hasher).expect("as above");
    let one = DemuxModels::one;
    vec![
        CheckedDemux::new("BsdList", BsdList::new(), one(Rule::BsdList)),
        CheckedDemux::new("MoveToFront", MoveToFront::new(), one(Rule::MoveToFront)),
        CheckedDemux::new("SendReceive", SendReceive::new(), one(Rule::SendReceive)),
        CheckedDemux::new("Sequent", sequent, chosen(Rule::BsdList)),
        CheckedDemux::new("SequentMoveToFront", to_front, chosen(Rule::MoveToFront)),
        CheckedDemux::new("Sequent of one chain", list, one(Rule::BsdList)),
        CheckedDemux::new("SequentMoveToFront of one chain", list_to_front, one(Rule::MoveToFront)),
        CheckedDemux::new("TrashDemux", TrashDemux::with_hasher(hasher), one(Rule::TrashDemux)),
    ]
}
