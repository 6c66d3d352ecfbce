//! Demultiplexers under the same traffic, and the number of PCBs that each examines.

use std::net::Ipv4Addr;

use flowtable::demux::{
    Arrival, BsdList, ChainsError, ConnectionId, Demux, Found, MoveToFront, NotFound, RejectedPcb,
    SendReceive, Sequent, SequentMoveToFront, TrashDemux,
};
use flowtable::{DefaultHashBuilder, FourTuple};

use super::balanced_hash::Balanced;
use super::setup::Segment;
use super::tpca::{Event, EventKind, name};

/// Seed of the hashes.
const SEED: u64 = 1993;

/// A demultiplexer and the PCBs it has examined.
pub struct Subject {
    pub name: String,
    pub demux: Box<dyn Demux<u32>>,
    pub entries: Tally,
    pub acks: Tally,
}

impl Subject {
    pub fn new(name: impl Into<String>, demux: impl Demux<u32> + 'static) -> Self {
        let demux = Box::new(demux);
        Self { name: name.into(), demux, entries: Tally::default(), acks: Tally::default() }
    }

    pub fn bsd() -> Self {
        Self::new("BsdList", BsdList::new())
    }

    pub fn move_to_front() -> Self {
        Self::new("MoveToFront", MoveToFront::new())
    }

    pub fn send_receive() -> Self {
        Self::new("SendReceive", SendReceive::new())
    }

    /// Chains of equal length, as in the analysis of the paper.
    pub fn sequent(chains: usize) -> Result<Self, ChainsError> {
        let demux = Sequent::with_chains_and_hasher(chains, Balanced)?;
        Ok(Self::new(format!("Sequent, {chains} chains"), demux))
    }

    /// Chains chosen by the default hash.
    pub fn sequent_hashed(chains: usize) -> Result<Self, ChainsError> {
        let hasher = DefaultHashBuilder::with_seed(SEED);
        let demux = Sequent::with_chains_and_hasher(chains, hasher)?;
        Ok(Self::new(format!("Sequent, {chains} chains, default hash"), demux))
    }

    /// Move-to-front chains of equal length.
    pub fn sequent_move_to_front(chains: usize) -> Result<Self, ChainsError> {
        let demux = SequentMoveToFront::with_chains_and_hasher(chains, Balanced)?;
        Ok(Self::new(format!("SequentMoveToFront, {chains} chains"), demux))
    }

    pub fn connection_id(users: u32) -> Self {
        Self::new("ConnectionId", ByNumber(ConnectionId::new(users)))
    }

    pub fn trash() -> Self {
        let hasher = DefaultHashBuilder::with_seed(SEED);
        Self::new("TrashDemux", TrashDemux::with_hasher(hasher))
    }

    /// Every demultiplexer of the crate.
    pub fn all(users: u32) -> Result<Vec<Self>, ChainsError> {
        Ok(vec![
            Self::bsd(),
            Self::send_receive(),
            Self::move_to_front(),
            Self::sequent(19)?,
            Self::sequent_hashed(19)?,
            Self::sequent(51)?,
            Self::sequent(100)?,
            Self::sequent_move_to_front(19)?,
            Self::trash(),
            Self::connection_id(users),
        ])
    }

    /// Inserts a PCB for each user.
    pub fn fill(&mut self, users: u32) {
        for user in 0..users {
            let refused = self.demux.insert(name(user), user).err();
            assert_eq!(refused, None, "{}: names differ", self.name);
        }
    }

    /// Applies an event and counts the PCBs examined.
    pub fn apply(&mut self, event: Event) {
        let key = name(event.user);
        match event.kind {
            EventKind::Sends => self.demux.sent(&key),
            EventKind::Arrives(arrival) => {
                let found = self.demux.lookup(&key, arrival);
                assert_eq!(found.pcb, Some(&mut { event.user }), "{}", self.name);
                let tally = match arrival {
                    Arrival::Data => &mut self.entries,
                    Arrival::Ack => &mut self.acks,
                };
                tally.add(found.examined);
            }
        }
    }

    /// Entries and acknowledgements together.
    pub fn packets(&self) -> Tally {
        Tally {
            packets: self.entries.packets + self.acks.packets,
            examined: self.entries.examined + self.acks.examined,
            hits: self.entries.hits + self.acks.hits,
        }
    }

    /// Mean cost by the count of the paper for Sequent, in which an acknowledgement that misses the
    /// cached PCB is not charged for the probe. Entries and acknowledgements have equal weight.
    pub fn sequent_paper_mean(&self) -> f64 {
        (self.entries.mean() + self.acks.mean_without_probes()) / 2.0
    }
}

/// PCBs examined over a number of packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub packets: u64,
    pub examined: u64,
    /// Packets for which one PCB was examined: the cached one, or the head of a list.
    pub hits: u64,
}

impl Tally {
    pub fn add(&mut self, examined: u32) {
        self.packets += 1;
        self.examined += u64::from(examined);
        self.hits += u64::from(examined == 1);
    }

    /// PCBs examined per packet.
    pub fn mean(&self) -> f64 {
        self.examined as f64 / self.packets as f64
    }

    /// PCBs ahead of the match, per packet.
    pub fn ahead(&self) -> f64 {
        self.mean() - 1.0
    }

    /// PCBs examined per packet, without the probes of cached PCBs that missed.
    pub fn mean_without_probes(&self) -> f64 {
        self.mean() - (1.0 - self.hit_ratio())
    }

    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.packets as f64
    }
}

/// Runs all subjects on the same traffic, and counts between the times `warm_up` and `end`, in
/// seconds.
pub fn run_all(
    subjects: &mut [Subject],
    users: u32,
    traffic: impl Iterator<Item = Event>,
    warm_up: f64,
    end: f64,
) {
    for subject in &mut *subjects {
        subject.fill(users);
    }
    let mut warm = false;
    for event in traffic.take_while(|event| event.time < end) {
        if !warm && event.time >= warm_up {
            warm = true;
            for subject in &mut *subjects {
                (subject.entries, subject.acks) = Default::default();
            }
        }
        for subject in &mut *subjects {
            subject.apply(event);
        }
    }
}

/// Sets up connections with a lookup for each of the thirteen packets, as the paper counts them:
/// client and server on one host.
pub fn set_up_all(demux: &mut dyn Demux<u32>, segments: &[Segment]) -> Tally {
    let mut tally = Tally::default();
    for segment in segments {
        tally.add(arrive(demux, *segment));
    }
    tally
}

/// Sets up connections at the server, which receives seven packets and sends six.
pub fn set_up_server(demux: &mut dyn Demux<u32>, segments: &[Segment]) -> Tally {
    let mut tally = Tally::default();
    for segment in segments {
        if segment.is_for_server() {
            tally.add(arrive(demux, *segment));
        } else {
            demux.sent(&name(segment.connection));
        }
    }
    tally
}

/// Looks up the PCB of a packet and returns the number examined. A SYN misses, and then inserts a
/// PCB.
fn arrive(demux: &mut dyn Demux<u32>, segment: Segment) -> u32 {
    let key = name(segment.connection);
    let found = demux.lookup(&key, segment.arrival());
    assert_eq!(found.pcb.is_none(), segment.is_syn(), "connection {}", segment.connection);
    let examined = found.examined;
    if segment.is_syn() {
        let refused = demux.insert(key, segment.connection).err();
        assert_eq!(refused, None, "names differ");
    }
    examined
}

/// A `ConnectionId` addressed by four-tuples: the ID is the host number.
struct ByNumber(ConnectionId<u32>);

fn number(key: &FourTuple<Ipv4Addr>) -> u32 {
    key.src.to_bits() - name(0).src.to_bits()
}

impl Demux<u32> for ByNumber {
    fn insert(&mut self, key: FourTuple<Ipv4Addr>, pcb: u32) -> Result<(), RejectedPcb<u32>> {
        self.0.insert(number(&key), pcb)
    }

    fn lookup(&mut self, key: &FourTuple<Ipv4Addr>, arrival: Arrival) -> Found<'_, u32> {
        self.0.lookup(&number(key), arrival)
    }

    fn remove(&mut self, key: &FourTuple<Ipv4Addr>) -> Result<u32, NotFound> {
        self.0.remove(&number(key))
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}
