//! A label table with its reference model, which keeps every label ever allocated.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use flowtable::Timestamp;
use flowtable::papers::threaded::{Hop, InsertError, Label, Labels, NoLabel, Stale, Table};

/// A table and the model that checks it.
#[derive(Debug)]
pub struct CheckedTable {
    table: Table<u8>,
    live: BTreeMap<u8, (Label, Option<Hop>)>,
    /// Free rows, and the times they were freed.
    free: VecDeque<(u32, u64)>,
    /// How often each row was freed.
    freed: Vec<u32>,
    /// All labels allocated, their destinations, and how often their rows had been freed before.
    allocated: Vec<(Label, u8, u32)>,
    capacity: u32,
    hold_down: u64,
    start: u8,
    now: u64,
}

/// An operation on the table and the model. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Insert(u8, Option<Hop>),
    Set(u8, Option<Hop>),
    Remove(u8),
    Wait(u8),
    /// Inserts and removes the destination repeatedly.
    Churn(u8, u16),
    /// Forwards a packet with an arbitrary label.
    Forward(u32),
}

impl CheckedTable {
    pub fn new(capacity: u32, hold_down: u8, start: u8) -> Self {
        let labels = Labels { capacity, hold_down: Duration::from_nanos(hold_down.into()), start };
        Self {
            table: Table::new(labels).unwrap(),
            live: BTreeMap::new(),
            free: VecDeque::new(),
            freed: vec![],
            allocated: vec![],
            capacity,
            hold_down: hold_down.into(),
            start,
            now: 0,
        }
    }

    pub fn step(&mut self, step: Step) {
        match step {
            Step::Insert(destination, hop) => self.insert(destination, hop),
            Step::Set(destination, hop) => self.set(destination, hop),
            Step::Remove(destination) => self.remove(destination),
            Step::Wait(time) => self.now += u64::from(time),
            Step::Churn(destination, times) => {
                for _ in 0..times {
                    self.insert(destination, Some(Hop::Deliver));
                    self.remove(destination);
                }
            }
            Step::Forward(label) => self.forward(label.into()),
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.now)
    }

    /// The label that must be allocated next.
    fn next(&mut self) -> Result<Label, NoLabel> {
        let rested = |&&(_, since): &&(u32, u64)| self.now - since >= self.hold_down;
        let index = match self.free.front().filter(rested).copied() {
            Some((index, _)) => {
                self.free.pop_front();
                index
            }
            None if (self.freed.len() as u32) < self.capacity => {
                self.freed.push(0);
                self.freed.len() as u32 - 1
            }
            None if self.free.is_empty() => return Err(NoLabel::Full),
            None => return Err(NoLabel::HeldDown),
        };
        let generation = self.start.wrapping_add(self.freed[index as usize] as u8);
        Ok(Label::new(index, generation).unwrap())
    }

    fn insert(&mut self, destination: u8, hop: Option<Hop>) {
        let inserted = self.table.insert(destination, hop, self.now());
        if self.live.contains_key(&destination) {
            assert_eq!(inserted, Err(InsertError::InUse));
            return;
        }
        let label = self.next();
        assert_eq!(inserted, label.map_err(InsertError::NoLabel));
        if let Ok(label) = label {
            self.live.insert(destination, (label, hop));
            self.allocated.push((label, destination, self.freed[label.index() as usize]));
        }
    }

    fn set(&mut self, destination: u8, hop: Option<Hop>) {
        let row = self.live.get_mut(&destination);
        assert_eq!(self.table.set(&destination, hop), row.as_ref().map(|row| row.0));
        if let Some(row) = row {
            row.1 = hop;
        }
    }

    fn remove(&mut self, destination: u8) {
        let label = self.live.remove(&destination).map(|row| row.0);
        assert_eq!(self.table.remove(&destination, self.now()), label);
        if let Some(label) = label {
            self.freed[label.index() as usize] += 1;
            self.free.push_back((label.index(), self.now));
        }
    }

    fn forward(&self, label: Label) {
        let row = self.live.values().find(|row| row.0 == label);
        assert_eq!(self.table.forward(label), row.and_then(|row| row.1).ok_or(Stale), "{label:?}");
    }

    /// Every label ever allocated is stale unless its row still has that destination, or the
    /// generation has wrapped around.
    pub fn check(&self) {
        self.table.validate().unwrap();
        assert_eq!(self.table.len(), self.live.len());
        let rows = self.live.iter().map(|(destination, row)| (destination, row.0));
        assert!(self.table.iter().eq(rows));
        for (destination, &(label, hop)) in &self.live {
            assert_eq!(self.table.label(destination), Some(label));
            assert_eq!(self.table.forward_to(destination), hop);
        }
        for &(label, destination, freed) in &self.allocated {
            let since = self.freed[label.index() as usize] - freed;
            self.forward(label);
            match self.table.destination(label) {
                None => {}
                Some(owner) if *owner == destination => {}
                Some(_) => assert!(since > 0 && since % 256 == 0, "freed {since} times since"),
            }
            let owner_has_it = self.live.get(&destination).is_some_and(|row| row.0 == label);
            assert_eq!(self.table.destination(label) == Some(&destination), owner_has_it);
        }
    }
}
