//! Structures that hear the same traffic, and how many PCBs each of them examines.

use std::net::Ipv4Addr;

use flowtable::demux::{
    Arrival, BsdList, ChainsError, ConnectionId, Demux, Found, MoveToFront, NotFound, Refused,
    SendReceive, Sequent, SequentMoveToFront, TrashDemux,
};
use flowtable::{DefaultHashBuilder, FourTuple};

use super::balanced::Balanced;
use super::setup::Segment;
use super::tpca::{Event, Happening, name};

/// Seed of the hashes.
const SEED: u64 = 1993;

/// A structure, and what it has examined so far.
pub struct Contestant {
    pub name: String,
    pub demux: Box<dyn Demux<u32>>,
    pub entries: Tally,
    pub acks: Tally,
}

impl Contestant {
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

    /// Chains of equal length, as in the paper's analysis.
    pub fn sequent(chains: usize) -> Result<Self, ChainsError> {
        let demux = Sequent::with_chains_and_hasher(chains, Balanced)?;
        Ok(Self::new(format!("Sequent, {chains} chains"), demux))
    }

    /// Chains by the default hash.
    pub fn sequent_hashed(chains: usize) -> Result<Self, ChainsError> {
        let hasher = DefaultHashBuilder::with_seed(SEED);
        let demux = Sequent::with_chains_and_hasher(chains, hasher)?;
        Ok(Self::new(format!("Sequent, {chains} chains, default hash"), demux))
    }

    /// Chains of equal length that move to the front.
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

    /// Every structure that there is.
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

    /// Puts the PCB of each user in.
    pub fn fill(&mut self, users: u32) {
        for user in 0..users {
            let refused = self.demux.insert(name(user), user).err();
            assert_eq!(refused, None, "{}: names differ", self.name);
        }
    }

    /// Tells the structure what happens, and counts what it examines for that.
    pub fn hear(&mut self, event: Event) {
        let key = name(event.user);
        match event.what {
            Happening::Sends => self.demux.sent(&key),
            Happening::Arrives(arrival) => {
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

    /// What the paper counts for a packet of Sequent's: no probe in vain for an acknowledgement. Entries and
    /// acknowledgements have equal weight.
    pub fn sequent_as_the_paper(&self) -> f64 {
        (self.entries.mean() + self.acks.mean_without_probes()) / 2.0
    }
}

/// How many PCBs were examined for some packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub packets: u64,
    pub examined: u64,
    /// Packets for which one PCB was examined: the remembered one, or the first of a list.
    pub hits: u64,
}

impl Tally {
    pub fn add(&mut self, examined: u32) {
        self.packets += 1;
        self.examined += u64::from(examined);
        self.hits += u64::from(examined == 1);
    }

    /// PCBs examined for a packet.
    pub fn mean(&self) -> f64 {
        self.examined as f64 / self.packets as f64
    }

    /// PCBs in front of the one that is found, for a packet.
    pub fn ahead(&self) -> f64 {
        self.mean() - 1.0
    }

    /// PCBs examined for a packet, without remembered ones that were asked in vain.
    pub fn mean_without_probes(&self) -> f64 {
        self.mean() - (1.0 - self.hit_ratio())
    }

    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.packets as f64
    }
}

/// Lets all hear the same traffic, and counts from the second `warm_up` to the second `end`.
pub fn listen(
    contestants: &mut [Contestant],
    users: u32,
    traffic: impl Iterator<Item = Event>,
    warm_up: f64,
    end: f64,
) {
    for contestant in &mut *contestants {
        contestant.fill(users);
    }
    let mut warm = false;
    for event in traffic.take_while(|event| event.time < end) {
        if !warm && event.time >= warm_up {
            warm = true;
            for contestant in &mut *contestants {
                (contestant.entries, contestant.acks) = Default::default();
            }
        }
        for contestant in &mut *contestants {
            contestant.hear(event);
        }
    }
}

/// Sets connections up where all thirteen packets are looked for, as the paper counts them: at a host that talks
/// to itself.
pub fn set_up_all(demux: &mut dyn Demux<u32>, segments: &[Segment]) -> Tally {
    let mut tally = Tally::default();
    for segment in segments {
        tally.add(arrive(demux, *segment));
    }
    tally
}

/// Sets connections up at the server: seven packets arrive, six are sent.
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

/// PCBs examined for a packet. For a SYN it is in vain, and then there is a PCB.
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

/// A `ConnectionId` where packets have names: the number of the host is the ID.
struct ByNumber(ConnectionId<u32>);

fn number(key: &FourTuple<Ipv4Addr>) -> u32 {
    key.src.to_bits() - name(0).src.to_bits()
}

impl Demux<u32> for ByNumber {
    fn insert(&mut self, key: FourTuple<Ipv4Addr>, pcb: u32) -> Result<(), Refused<u32>> {
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
