//! A contestant: a table of PCBs, and the loops that measure it, compiled for that table alone.

use std::hint::black_box;
use std::time::Instant;

use super::segments::{Client, Order};

/// The least that a list is asked in a round, however long it is.
const LEAST: usize = 128;

/// What is kept of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pcb {
    /// The client's, so that it can be seen whose PCB was found.
    pub(crate) id: u32,
    pub(crate) segments: u32,
}

/// What a table has to be able to do.
pub(crate) trait Table {
    fn insert(&mut self, client: &Client, pcb: Pcb);
    fn remove(&mut self, client: &Client) -> Option<Pcb>;
    fn find(&mut self, client: &Client) -> Option<&mut Pcb>;

    /// PCBs examined to find this one, if the table counts.
    fn examined(&mut self, client: &Client) -> Option<u32>;
}

/// Nanoseconds for each segment, and the sum of the clients that were found.
#[derive(Clone)]
pub(crate) struct Timed {
    pub(crate) ns: f64,
    pub(crate) sum: u64,
}

/// A table whose type is not known to who makes it work.
pub(crate) trait Contestant {
    fn name(&self) -> &'static str;

    /// The name of the structure, if it is one of ours.
    fn structure(&self) -> Option<&'static str>;

    /// How many of the segments of a round it gets, if it may examine so many PCBs.
    fn share(&self, n: usize, segments: usize, pcbs: usize) -> usize;

    fn fill(&mut self, clients: &[Client]);

    /// Takes all out, then puts all in again, in these two orders.
    fn renew(&mut self, out: &[Client], back: &[Client]);

    fn run(&mut self, order: Order, segments: &[Client]) -> Timed;

    /// PCBs examined for a segment, if it counts.
    fn examine(&mut self, segments: &[Client]) -> Option<f64>;
}

struct Entrant<T> {
    name: &'static str,
    structure: Option<&'static str>,
    /// Lists that it has; none if it does not search.
    lists: usize,
    table: T,
}

/// One of ours.
pub(crate) fn ours<T: Table + 'static>(
    structure: &'static str,
    name: &'static str,
    lists: usize,
    table: T,
) -> Box<dyn Contestant> {
    Box::new(Entrant { name, structure: Some(structure), lists, table })
}

pub(crate) fn peer<T: Table + 'static>(
    name: &'static str,
    lists: usize,
    table: T,
) -> Box<dyn Contestant> {
    Box::new(Entrant { name, structure: None, lists, table })
}

impl<T: Table> Contestant for Entrant<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn structure(&self) -> Option<&'static str> {
        self.structure
    }

    fn share(&self, n: usize, segments: usize, pcbs: usize) -> usize {
        let length = (n / 2).checked_div(self.lists).unwrap_or(0) + 1;
        (pcbs / length).clamp(LEAST, segments)
    }

    fn fill(&mut self, clients: &[Client]) {
        for client in clients {
            self.table.insert(client, Pcb { id: client.id, segments: 0 });
        }
    }

    fn renew(&mut self, out: &[Client], back: &[Client]) {
        for client in out {
            self.table.remove(client).expect("the client is there");
        }
        self.fill(back);
    }

    fn run(&mut self, order: Order, segments: &[Client]) -> Timed {
        let start = Instant::now();
        let sum = black_box(match order {
            Order::Random | Order::Trains => receive(&mut self.table, segments),
            Order::Dependent => receive_dependent(&mut self.table, segments),
        });
        Timed { ns: start.elapsed().as_nanos() as f64 / segments.len() as f64, sum }
    }

    fn examine(&mut self, segments: &[Client]) -> Option<f64> {
        let each = segments.iter().map(|client| self.table.examined(client).map(u64::from));
        Some(each.sum::<Option<u64>>()? as f64 / segments.len() as f64)
    }
}

#[inline(never)]
fn receive<T: Table>(table: &mut T, segments: &[Client]) -> u64 {
    let mut sum = 0;
    for client in segments {
        if let Some(pcb) = table.find(client) {
            pcb.segments = pcb.segments.wrapping_add(1);
            sum += u64::from(pcb.id);
        }
    }
    sum
}

/// Clients have small numbers, so it is always the segment behind; but the machine cannot know before
/// it has the PCB. Nothing overlaps.
#[inline(never)]
fn receive_dependent<T: Table>(table: &mut T, segments: &[Client]) -> u64 {
    let (mut at, mut sum) = (0, 0);
    while let Some(client) = segments.get(at) {
        let pcb = table.find(client).expect("the client is there");
        pcb.segments = pcb.segments.wrapping_add(1);
        sum += u64::from(pcb.id);
        at += 1 + (pcb.id >> 31) as usize;
    }
    sum
}
