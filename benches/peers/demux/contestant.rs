//! A contestant: a table of PCBs, and the loops that measure it, compiled for that table alone.

use std::hint::black_box;
use std::time::Instant;

use super::segments::{Client, Order};
use crate::entrant::{Enters, Entrant, Timed};

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

/// A table whose type is not known to who makes it work.
pub(crate) trait Work {
    /// How many of the segments of a round it gets, if it may examine so many PCBs.
    fn share(&self, n: usize, segments: usize, pcbs: usize) -> usize;

    fn fill(&mut self, clients: &[Client]);

    /// Takes all out, then puts all in again, in these two orders.
    fn renew(&mut self, out: &[Client], back: &[Client]);

    fn run(&mut self, order: Order, segments: &[Client]) -> Timed;

    /// PCBs examined for a segment, if it counts.
    fn examine(&mut self, segments: &[Client]) -> Option<f64>;
}

pub(crate) type Contestant = Entrant<dyn Work>;

/// A table, and how many lists it has; none if it does not search.
pub(crate) struct Lists<T>(pub(crate) usize, pub(crate) T);

impl<T: Table + 'static> Enters<dyn Work> for Lists<T> {
    fn enter(self) -> Box<dyn Work> {
        Box::new(self)
    }
}

impl<T: Table> Work for Lists<T> {
    fn share(&self, n: usize, segments: usize, pcbs: usize) -> usize {
        let length = (n / 2).checked_div(self.0).unwrap_or(0) + 1;
        (pcbs / length).clamp(LEAST, segments)
    }

    fn fill(&mut self, clients: &[Client]) {
        for client in clients {
            self.1.insert(client, Pcb { id: client.id, segments: 0 });
        }
    }

    fn renew(&mut self, out: &[Client], back: &[Client]) {
        for client in out {
            self.1.remove(client).expect("the client is there");
        }
        self.fill(back);
    }

    fn run(&mut self, order: Order, segments: &[Client]) -> Timed {
        let start = Instant::now();
        let sum = black_box(match order {
            Order::Random | Order::Trains => receive(&mut self.1, segments),
            Order::Dependent => receive_dependent(&mut self.1, segments),
        });
        Timed::new(start.elapsed(), segments.len(), sum)
    }

    fn examine(&mut self, segments: &[Client]) -> Option<f64> {
        let each = segments.iter().map(|client| self.1.examined(client).map(u64::from));
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
