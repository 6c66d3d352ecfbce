//! The demultiplexers as the paper tells them, in plain vectors: the twins of `flowtable::demux`.
//!
//! Every PCB that a search comes by is counted here anew.
#![allow(dead_code, reason = "not every test needs all")]

use core::ops::RangeInclusive;

use flowtable::demux::Arrival;

/// How PCBs are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The one found last is asked first.
    BsdList,
    /// What is found goes to the front.
    MoveToFront,
    /// The one found last and the one sent on last are asked first.
    SendReceive,
    /// The name is the place.
    ConnectionId,
    /// By a hash: how many PCBs have parts of it in common is not known here.
    TrashDemux,
}

/// One list of PCBs.
#[derive(Clone, Debug)]
pub(crate) struct LinearDemux<K, T> {
    rule: Rule,
    /// As a search comes by them.
    pub(crate) pcbs: Vec<(K, T)>,
    received: Option<K>,
    sent: Option<K>,
}

impl<K: Clone + PartialEq, T> LinearDemux<K, T> {
    pub(crate) const fn new(rule: Rule) -> Self {
        Self { rule, pcbs: vec![], received: None, sent: None }
    }

    fn position(&self, key: &K) -> Option<usize> {
        self.pcbs.iter().position(|(name, _)| name == key)
    }

    pub(crate) fn insert(&mut self, key: K, pcb: T) -> Result<(), T> {
        if self.position(&key).is_some() {
            return Err(pcb);
        }
        self.pcbs.insert(0, (key, pcb));
        Ok(())
    }

    /// The names that are remembered, in the order in which they are asked.
    fn remembered(&self, arrival: Arrival) -> Vec<K> {
        let names = match (self.rule, arrival) {
            (Rule::BsdList, _) => [&self.received, &None],
            (Rule::SendReceive, Arrival::Data) => [&self.received, &self.sent],
            (Rule::SendReceive, Arrival::Ack) => [&self.sent, &self.received],
            _ => [&None, &None],
        };
        let mut names: Vec<K> = names.into_iter().flatten().cloned().collect();
        names.dedup();
        names
    }

    /// The PCB, and how many may be examined.
    pub(crate) fn lookup(
        &mut self,
        key: &K,
        arrival: Arrival,
    ) -> (Option<&mut T>, RangeInclusive<u32>) {
        let remembered = self.remembered(arrival);
        let asked = remembered.iter().position(|name| name == key);
        let (listed, count) = (self.position(key), self.pcbs.len());
        let examined = match (self.rule, asked, listed) {
            (Rule::ConnectionId, ..) => usize::from(listed.is_some()),
            (_, Some(before), _) => before + 1,
            (_, None, Some(before)) => remembered.len() + before + 1,
            (_, None, None) => remembered.len() + count,
        } as u32;
        let examined = match self.rule {
            Rule::TrashDemux => u32::from(listed.is_some())..=count as u32,
            _ => examined..=examined,
        };
        let Some(mut at) = listed else { return (None, examined) };
        self.received = Some(key.clone());
        if self.rule == Rule::MoveToFront {
            self.pcbs[..=at].rotate_right(1);
            at = 0;
        }
        (Some(&mut self.pcbs[at].1), examined)
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<T> {
        let (_, pcb) = self.pcbs.remove(self.position(key)?);
        for remembered in [&mut self.received, &mut self.sent] {
            remembered.take_if(|name| name == key);
        }
        Some(pcb)
    }

    pub(crate) fn sent(&mut self, key: &K) {
        if self.position(key).is_some() {
            self.sent = Some(key.clone());
        }
    }
}

/// Lists, of which a name has one.
pub(crate) struct LinearDemuxes<K, T> {
    pub(crate) lists: Vec<LinearDemux<K, T>>,
    /// Gives the list of a name.
    choose: Box<dyn Fn(&K) -> usize>,
}

impl<K: Clone + PartialEq, T> LinearDemuxes<K, T> {
    /// A single list.
    pub(crate) fn one(rule: Rule) -> Self {
        Self::many(rule, 1, |_| 0)
    }

    pub(crate) fn many(rule: Rule, lists: usize, choose: impl Fn(&K) -> usize + 'static) -> Self {
        let lists = (0..lists).map(|_| LinearDemux::new(rule)).collect();
        Self { lists, choose: Box::new(choose) }
    }

    /// The list of a name.
    pub(crate) fn of(&mut self, key: &K) -> &mut LinearDemux<K, T> {
        &mut self.lists[(self.choose)(key)]
    }

    pub(crate) fn len(&self) -> usize {
        self.lists.iter().map(|list| list.pcbs.len()).sum()
    }
}
