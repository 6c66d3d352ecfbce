//! A subject of the comparison: a demultiplexer that replays the script.

use flowtable::demux::{
    Arrival, BsdList, ConnectionId, Demux, Found, MoveToFront, SendReceive, Sequent,
    SequentMoveToFront, TrashDemux,
};
use flowtable::{DefaultHashBuilder, FlowKey};

use super::watch::Watch;
use super::{Event, Examined, Pcb, Script, Tally};

/// A demultiplexer with its current PCBs.
pub struct Subject {
    pub name: &'static str,
    player: Box<dyn Play>,
}

impl Subject {
    /// The maximum number of PCBs that a replay may examine: a second of work, or a few if they
    /// are not in the CPU's caches. Structures beyond are left out.
    pub const MOST_EXAMINED: u64 = 250_000_000;

    /// Returns all demultiplexers whose work is bounded, with the PCBs that exist before the first
    /// event, and the names of the others.
    pub fn all(script: &Script) -> (Vec<Self>, Vec<&'static str>) {
        let capacity = script.ids.len() as u32;
        // Runs over the same segments have the same counts.
        let seeded = DefaultHashBuilder::with_seed(1993);
        let (mut subjects, mut left_out) = (Vec::new(), Vec::new());
        let mut add =
            |name, chains: u64, subject: &dyn Fn() -> Self| match script.open_sum / 2 / chains
                <= Self::MOST_EXAMINED
            {
                true => subjects.push(subject()),
                false => left_out.push(name),
            };
        add("BsdList", 1, &|| Self::by_name("BsdList", BsdList::new(), script));
        add("MoveToFront", 1, &|| Self::by_name("MoveToFront", MoveToFront::new(), script));
        add("SendReceive", 1, &|| Self::by_name("SendReceive", SendReceive::new(), script));
        add("Sequent", 19, &|| {
            Self::by_name("Sequent", Sequent::with_chains(19).expect("there is memory"), script)
        });
        add("SequentMoveToFront", 19, &|| {
            Self::by_name(
                "SequentMoveToFront",
                SequentMoveToFront::with_chains(19).expect("there is memory"),
                script,
            )
        });
        add("ConnectionId", u64::MAX, &|| {
            let ids = ConnectionId::new(capacity);
            Self::new("ConnectionId", ids, |script| &script.ids, script)
        });
        add("TrashDemux", u64::MAX, &|| {
            Self::by_name("TrashDemux", TrashDemux::with_hasher(seeded.clone()), script)
        });
        (subjects, left_out)
    }

    /// Creates a subject that finds connections by their keys.
    pub fn by_name(
        name: &'static str,
        demux: impl Demux<Pcb, FlowKey> + 'static,
        script: &Script,
    ) -> Self {
        Self::new(name, demux, |script| &script.keys, script)
    }

    fn new<K: Copy + 'static>(
        name: &'static str,
        demux: impl Demux<Pcb, K> + 'static,
        keys: fn(&Script) -> &[K],
        script: &Script,
    ) -> Self {
        let mut player = Player { demux, keys };
        player.insert_all(script, &script.open_before);
        Self { name, player: Box::new(player) }
    }

    /// Replays the whole script, and counts.
    pub fn count(&mut self, script: &Script) -> Tally {
        self.player.count(script)
    }

    /// Replays the counted events of the script. Returns the sum of the PCBs found, which is
    /// [`Script::sum`] if they are right.
    pub fn run(&mut self, script: &Script) -> u64 {
        self.player.run(script)
    }

    /// Restores the PCBs that exist before the first event, after the last one.
    pub fn rewind(&mut self, script: &Script) {
        self.player.rewind(script);
    }
}

/// The methods of players with any type of key.
trait Play {
    fn count(&mut self, script: &Script) -> Tally;
    fn run(&mut self, script: &Script) -> u64;
    fn rewind(&mut self, script: &Script);
}

/// A demultiplexer, and the type of its keys.
///
/// Generic, so that calls of its methods are static.
struct Player<K, D> {
    demux: D,
    keys: fn(&Script) -> &[K],
}

impl<K: Copy, D: Demux<Pcb, K>> Player<K, D> {
    fn play(&mut self, script: &Script, events: &[Event], watch: &mut impl Watch) {
        let keys = (self.keys)(script);
        for event in events {
            match *event {
                Event::Arrives { id, arrival, .. } => {
                    let found = self.demux.lookup(&keys[id as usize], arrival);
                    watch.arrived(event, found);
                }
                Event::Sent(id) => self.demux.sent(&keys[id as usize]),
                Event::Opens(id) => {
                    let pcb = Pcb { id, segments: 0 };
                    let done = self.demux.insert(keys[id as usize], pcb);
                    watch.opened(id, done.is_ok());
                }
                Event::Closes(id) => {
                    let pcb = self.demux.remove(&keys[id as usize]);
                    watch.closed(script.pcb(id), pcb.ok());
                }
            }
        }
    }

    fn insert_all(&mut self, script: &Script, ids: &[u32]) {
        for &id in ids {
            let pcb = Pcb { id, segments: 0 };
            // A refused PCB is detected by lookups.
            let _ = self.demux.insert((self.keys)(script)[id as usize], pcb);
        }
    }
}

impl<K: Copy, D: Demux<Pcb, K>> Play for Player<K, D> {
    fn count(&mut self, script: &Script) -> Tally {
        let (warm_up, mut tally) = (script.events.len() - script.counted().len(), Tally::default());
        self.play(script, &script.events[..warm_up], &mut tally);
        tally.examined = Examined::default();
        self.play(script, script.counted(), &mut tally);
        for &id in &script.open_after {
            let key = &(self.keys)(script)[id as usize];
            let pcb = self.demux.lookup(key, Arrival::Data).pcb;
            tally.closed(script.pcb(id), pcb.copied());
        }
        tally.ended(script.open_after.len(), self.demux.len());
        tally
    }

    fn run(&mut self, script: &Script) -> u64 {
        let mut sum = Sum(0);
        self.play(script, script.counted(), &mut sum);
        sum.0
    }

    fn rewind(&mut self, script: &Script) {
        for &id in &script.to_close {
            let _ = self.demux.remove(&(self.keys)(script)[id as usize]);
        }
        self.insert_all(script, &script.to_open);
    }
}

/// The observer of timed replays: only adds up the PCBs found.
struct Sum(u64);

impl Watch for Sum {
    #[inline]
    fn arrived(&mut self, _: &Event, found: Found<'_, Pcb>) {
        if let Some(pcb) = found.pcb {
            pcb.segments += 1;
            self.0 = self.0.wrapping_add(Script::share(pcb.id));
        }
    }

    fn opened(&mut self, _: u32, _: bool) {}

    fn closed(&mut self, _: Pcb, _: Option<Pcb>) {}
}
