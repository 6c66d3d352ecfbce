//! Generated traffic: TPC/A, the workload that the paper analyses.

use core::fmt;

use flowtable::{FiveTuple, FlowKey};
use traffic::tpca::{EventKind, Traffic, name};

use super::{Draft, Script};

/// Tellers that enter a transaction each, get the answer, think, and enter the next one.
#[derive(Clone, Copy, Debug)]
pub struct Tellers {
    /// Number of tellers; each has a connection from the beginning to the end.
    pub connections: u32,
    /// Number of counted arriving segments.
    pub lookups: usize,
    pub seed: u64,
}

impl Tellers {
    /// Seconds from a transaction to the acknowledgement of its answer.
    const RESPONSE: f64 = 0.2;
    /// Seconds of warm-up. By then most tellers have entered several transactions, so that lists in
    /// order of use are in that order.
    const WARM_UP: f64 = 50.0;

    pub fn script(&self) -> Script {
        let mut draft = Draft::default();
        for user in 0..self.connections {
            let id = draft.add(key(user));
            draft.was_open(id);
        }
        let (mut left, mut is_warm) = (self.lookups, false);
        for event in Traffic::closed(self.connections, Self::RESPONSE, self.seed) {
            if !is_warm && event.time >= Self::WARM_UP {
                draft.counts_from_here();
                is_warm = true;
            }
            match event.kind {
                EventKind::Sends => draft.sent(event.user),
                EventKind::Arrives(_) if left == 0 => break,
                EventKind::Arrives(arrival) => {
                    draft.arrives(event.user, arrival);
                    left -= usize::from(is_warm);
                }
            }
        }
        draft.finish()
    }
}

impl fmt::Display for Tellers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connections, lookups, .. } = self;
        let (response, warm_up) = (Self::RESPONSE, Self::WARM_UP);
        writeln!(
            f,
            "generated traffic, TPC/A: {lookups} segments arrive after {warm_up} s to warm up"
        )?;
        writeln!(
            f,
            "{connections:>10} connections from the beginning to the end, answers in {response} s"
        )
    }
}

/// Returns the key of a user, with the protocol as in keys of captures.
fn key(user: u32) -> FlowKey {
    const TCP: u8 = 6;
    let sockets = name(user);
    let (src, dst) = (sockets.src, sockets.dst);
    FiveTuple { src, dst, sport: sockets.sport, dport: sockets.dport, protocol: TCP }.into()
}
