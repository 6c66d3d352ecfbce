//! Threaded indices: a table compared with a reference model, and networks of both kinds with
//! random events.
#![no_main]

use arbitrary::Arbitrary;
use flowtable::papers::threaded::{Hop, Label};
use libfuzzer_sys::fuzz_target;
use model::papers::source_hash_1995::network::router::Protocol;
use model::papers::source_hash_1995::network::{Event, Network, Setup};
use model::papers::source_hash_1995::table_model::{CheckedTable, Step};

/// The maximum number of steps: all labels ever assigned are compared after each.
const STEPS: usize = 100;

/// The maximum number of events: routers restart less often than there are generations.
const EVENTS: usize = 60;

#[derive(Arbitrary, Debug)]
enum Input {
    Table {
        capacity: u8,
        hold_down: u8,
        start: u8,
        steps: Vec<Op>,
    },
    Network {
        is_link_state: bool,
        routers: u8,
        more: u8,
        hold_down: u16,
        seed: u8,
        events: Vec<[u8; 3]>,
    },
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Op {
    Insert(u8, NextHop),
    Set(u8, NextHop),
    Remove(u8),
    Wait(u8),
    Churn(u8, u16),
    Forward(u32),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum NextHop {
    None,
    Deliver,
    Forward(u16, u32),
}

impl NextHop {
    fn hop(self) -> Option<Hop> {
        match self {
            Self::None => None,
            Self::Deliver => Some(Hop::Deliver),
            Self::Forward(port, label) => {
                let label = Label::from(label);
                let label = if label.is_threaded() { label } else { Label::NONE };
                Some(Hop::Forward { port, label })
            }
        }
    }
}

impl From<Op> for Step {
    fn from(op: Op) -> Self {
        match op {
            Op::Insert(destination, way) => Self::Insert(destination, way.hop()),
            Op::Set(destination, way) => Self::Set(destination, way.hop()),
            Op::Remove(destination) => Self::Remove(destination),
            Op::Wait(time) => Self::Wait(time),
            Op::Churn(destination, times) => Self::Churn(destination, times % 300),
            Op::Forward(label) => Self::Forward(label),
        }
    }
}

fuzz_target!(|input: Input| match input {
    Input::Table { capacity, hold_down, start, steps } => {
        let mut table = CheckedTable::new(1 + u32::from(capacity % 12), hold_down, start);
        for op in steps.into_iter().take(STEPS) {
            table.step(op.into());
            table.check();
        }
    }
    Input::Network { is_link_state, routers, more, hold_down, seed, events } => {
        let protocol = if is_link_state { Protocol::LinkState } else { Protocol::DistanceVector };
        let setup = Setup { hold_down: hold_down.into(), ..Setup::new(protocol, seed.into()) };
        let mut network = Network::new(setup, 2 + usize::from(routers % 7), usize::from(more % 7));
        for event in events.into_iter().take(EVENTS) {
            network.apply(Event::new(event));
        }
        network.settle();
        network.audit();
        assert_eq!(network.counts.wrong, 0);
    }
});
