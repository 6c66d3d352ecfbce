//! Reference models of the demultiplexers: the lists of the paper in plain vectors.
//!
//! The PCBs that a search examines are counted independently of `flowtable::demux`.

use core::ops::RangeInclusive;

use flowtable::demux::Arrival;

/// The strategy of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The PCB found last is examined first.
    BsdList,
    /// The PCB that is found moves to the front.
    MoveToFront,
    /// The PCB found last and the one sent on last are examined first.
    SendReceive,
    /// The name is the index.
    ConnectionId,
    /// By a hash: the model does not predict how many PCBs share a part of it.
    TrashDemux,
}

/// One list of PCBs.
#[derive(Clone, Debug)]
pub struct DemuxModel<K, T> {
    rule: Rule,
    /// In the order of the search.
    pub pcbs: Vec<(K, T)>,
    received: Option<K>,
    sent: Option<K>,
}

impl<K: Clone + PartialEq, T> DemuxModel<K, T> {
    pub const fn new(rule: Rule) -> Self {
        Self { rule, pcbs: vec![], received: None, sent: None }
    }

    fn position(&self, key: &K) -> Option<usize> {
        self.pcbs.iter().position(|(name, _)| name == key)
    }

    pub fn insert(&mut self, key: K, pcb: T) -> Result<(), T> {
        if self.position(&key).is_some() {
            return Err(pcb);
        }
        self.pcbs.insert(0, (key, pcb));
        Ok(())
    }

    /// The cached names, in the order in which they are examined.
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

    /// The PCB, and the range of the number of PCBs examined.
    pub fn lookup(&mut self, key: &K, arrival: Arrival) -> (Option<&mut T>, RangeInclusive<u32>) {
        let remembered = self.remembered(arrival);
        let cached = remembered.iter().position(|name| name == key);
        let (listed, count) = (self.position(key), self.pcbs.len());
        let examined = match (self.rule, cached, listed) {
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

    pub fn remove(&mut self, key: &K) -> Option<T> {
        let (_, pcb) = self.pcbs.remove(self.position(key)?);
        for remembered in [&mut self.received, &mut self.sent] {
            remembered.take_if(|name| name == key);
        }
        Some(pcb)
    }

    pub fn sent(&mut self, key: &K) {
        if self.position(key).is_some() {
            self.sent = Some(key.clone());
        }
    }
}

/// The lists of a demultiplexer; a hash of the name selects one.
pub struct DemuxModels<K, T> {
    pub lists: Vec<DemuxModel<K, T>>,
    /// Selects the list of a name.
    choose: Box<dyn Fn(&K) -> usize>,
}

impl<K: Clone + PartialEq, T> DemuxModels<K, T> {
    /// A single list.
    pub fn one(rule: Rule) -> Self {
        Self::many(rule, 1, |_| 0)
    }

    pub fn many(rule: Rule, lists: usize, choose: impl Fn(&K) -> usize + 'static) -> Self {
        let lists = (0..lists).map(|_| DemuxModel::new(rule)).collect();
        Self { lists, choose: Box::new(choose) }
    }

    /// The list of a name.
    pub fn of(&mut self, key: &K) -> &mut DemuxModel<K, T> {
        &mut self.lists[(self.choose)(key)]
    }

    pub fn len(&self) -> usize {
        self.lists.iter().map(|list| list.pcbs.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
