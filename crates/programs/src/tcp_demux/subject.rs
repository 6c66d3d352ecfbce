//! A demultiplexer that plays the script.

use flowtable::FlowKey;
use flowtable::demux::{
    Arrival, BsdList, ConnectionId, Demux, Found, MoveToFront, SendReceive, Sequent,
    SequentMoveToFront, TrashDemux,
};

use super::{Event, Examined, Script, Tally};

/// What is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pcb {
    /// The number of its connection.
    pub id: u32,
    /// Segments for which it was found.
    pub segments: u64,
}

/// A variant, and the PCBs that it has at the moment.
pub struct Subject {
    pub name: &'static str,
    player: Box<dyn Play>,
}

impl Subject {
    /// All variants, with the PCBs that there are before the first event.
    pub fn all(script: &Script) -> Vec<Self> {
        let capacity = script.ids.len() as u32;
        vec![
            Self::by_name("BsdList", BsdList::new(), script),
            Self::by_name("MoveToFront", MoveToFront::new(), script),
            Self::by_name("SendReceive", SendReceive::new(), script),
            Self::by_name("Sequent", Sequent::new(), script),
            Self::by_name("SequentMoveToFront", SequentMoveToFront::new(), script),
            Self::new("ConnectionId", ConnectionId::new(capacity), |script| &script.ids, script),
            Self::by_name("TrashDemux", TrashDemux::new(), script),
        ]
    }

    /// One that finds connections by their names.
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

    /// Plays all of the script, and counts.
    pub fn count(&mut self, script: &Script) -> Tally {
        self.player.count(script)
    }

    /// Plays what counts of the script. The sum of what it found is [`Script::sum`] if it found the
    /// right PCBs.
    pub fn run(&mut self, script: &Script) -> u64 {
        self.player.run(script)
    }

    /// After the last event, gets the PCBs that there are before the first one.
    pub fn rewind(&mut self, script: &Script) {
        self.player.rewind(script);
    }
}

/// The methods of all players, whatever their keys.
trait Play {
    fn count(&mut self, script: &Script) -> Tally;
    fn run(&mut self, script: &Script) -> u64;
    fn rewind(&mut self, script: &Script);
}

/// A demultiplexer, and what it knows connections by.
///
/// Its type is known here, so that a call of its methods costs no more than it does elsewhere.
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
            // One that is not taken will be missed.
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

/// Who looks on while a script is played.
pub(crate) trait Watch {
    /// A segment has found this.
    fn arrived(&mut self, event: &Event, found: Found<'_, Pcb>);

    /// The PCB of this connection was put in, or was not.
    fn opened(&mut self, id: u32, is_inserted: bool);

    /// This PCB was taken out; `right` is what it should be.
    fn closed(&mut self, right: Pcb, pcb: Option<Pcb>);
}

/// Adds up what is found, and does no more, since it is timed.
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
