//! Demultiplexers beside their naive twins: every step is taken on both, and compared.
#![allow(dead_code, reason = "not every test needs all")]

use core::fmt::Debug;
use core::hash::{BuildHasher, Hash};

use flowtable::demux::{
    Arrival, BsdList, Demux, MoveToFront, NotFound, Refusal, Refused, SendReceive, Sequent,
    SequentMoveToFront, TrashDemux,
};

use super::linear_demux::{LinearDemuxes, Rule};

/// A demultiplexer and its twin.
pub(crate) struct Pair<K> {
    name: &'static str,
    ours: Box<dyn Demux<u32, K>>,
    twin: LinearDemuxes<K, u32>,
    /// What a name is refused for, if it is not for being there.
    refuses: fn(&K) -> Option<Refusal>,
    now: u32,
}

impl<K: Clone + Debug + PartialEq> Pair<K> {
    pub(crate) fn new(
        name: &'static str,
        ours: impl Demux<u32, K> + 'static,
        twin: LinearDemuxes<K, u32>,
    ) -> Self {
        Self { name, ours: Box::new(ours), twin, refuses: |_| None, now: 0 }
    }

    /// One that does not take all names.
    pub(crate) fn that_refuses(self, refuses: fn(&K) -> Option<Refusal>) -> Self {
        Self { refuses, ..self }
    }

    /// A PCB that has not been there.
    fn fresh(&mut self) -> u32 {
        self.now += 1;
        self.now
    }

    pub(crate) fn insert(&mut self, key: &K) {
        let pcb = self.fresh();
        let refused = |why| move |given| Refused { given, why };
        let theirs = match (self.refuses)(key) {
            Some(why) => Err(refused(why)(pcb)),
            None => self.twin.of(key).insert(key.clone(), pcb).map_err(refused(Refusal::InUse)),
        };
        assert_eq!(self.ours.insert(key.clone(), pcb), theirs, "{}", self.name);
    }

    /// Finds the PCB, and changes it.
    pub(crate) fn lookup(&mut self, key: &K, arrival: Arrival) {
        let new = self.fresh();
        let (theirs, examined) = self.twin.of(key).lookup(key, arrival);
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

    pub(crate) fn sent(&mut self, key: &K) {
        self.ours.sent(key);
        self.twin.of(key).sent(key);
    }

    pub(crate) fn remove(&mut self, key: &K) {
        let theirs = self.twin.of(key).remove(key).ok_or(NotFound);
        assert_eq!(self.ours.remove(key), theirs, "{}", self.name);
    }

    /// Takes a connection down and sets it up again.
    pub(crate) fn again(&mut self, key: &K) {
        self.remove(key);
        self.insert(key);
    }

    /// What a stack does for an exchange: receives, answers, gets the acknowledgement.
    pub(crate) fn exchange(&mut self, key: &K) {
        self.lookup(key, Arrival::Data);
        self.sent(key);
        self.lookup(key, Arrival::Ack);
    }

    pub(crate) fn check(&self) {
        assert_eq!(self.ours.len(), self.twin.len(), "{}", self.name);
        assert_eq!(self.ours.is_empty(), self.twin.len() == 0, "{}", self.name);
        self.ours.validate().expect(self.name);
    }
}

/// The chain of a name: both halves of the hash have a say.
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
pub(crate) fn pairs<K, S>(hasher: S, chains: usize) -> Vec<Pair<K>>
where
    K: Clone + Debug + Eq + Hash + 'static,
    S: BuildHasher + Copy + 'static,
{
    let chosen = |rule| LinearDemuxes::many(rule, chains, choose(hasher, chains));
    let sequent = Sequent::with_chains_and_hasher(chains, hasher).expect("there are some");
    let to_front = SequentMoveToFront::with_chains_and_hasher(chains, hasher).expect("as above");
    // Whatever the hash, one chain is one list.
    let list = Sequent::with_chains_and_hasher(1, hasher).expect("there is one");
    let list_to_front = SequentMoveToFront::with_chains_and_hasher(1, hasher).expect("as above");
    let one = LinearDemuxes::one;
    vec![
        Pair::new("BsdList", BsdList::new(), one(Rule::BsdList)),
        Pair::new("MoveToFront", MoveToFront::new(), one(Rule::MoveToFront)),
        Pair::new("SendReceive", SendReceive::new(), one(Rule::SendReceive)),
        Pair::new("Sequent", sequent, chosen(Rule::BsdList)),
        Pair::new("SequentMoveToFront", to_front, chosen(Rule::MoveToFront)),
        Pair::new("Sequent of one chain", list, one(Rule::BsdList)),
        Pair::new("SequentMoveToFront of one chain", list_to_front, one(Rule::MoveToFront)),
        Pair::new("TrashDemux", TrashDemux::with_hasher(hasher), one(Rule::TrashDemux)),
    ]
}
