//! Lookup times of all structures.

use std::net::Ipv4Addr;

use flowtable::FourTuple;
use flowtable::demux::Arrival;
use model::papers::demux_1992::subjects::Subject;
use model::papers::demux_1992::tpca::{EventKind, Traffic, name};

use super::costs::{SEED, USERS, WARM_UP};
use crate::report::{Outcome, Report, Table, two};
use crate::rounds::{Subject as Turn, Times};

type Packets = Vec<(FourTuple<Ipv4Addr>, Arrival)>;

/// Measures lookups of the same packets of 2000 users in interleaved rounds. Ratios are medians of
/// the ratios within rounds.
///
/// Sent segments are not passed to the structures: a sending stack holds the PCB already, while a
/// search for it here would dominate. So `SendReceive` caches received segments only.
pub(crate) fn lookup_times(report: &mut Report, quick: bool) -> Outcome {
    let (packets, rounds) = (packets(20_000), if quick { 5 } else { 25 });
    let mut all = Subject::all(USERS)?;
    all.iter_mut().for_each(|subject| subject.fill(USERS));
    let names: Vec<String> = all.iter().map(|subject| subject.name.clone()).collect();
    let mut turns: Vec<Turn<'_>> =
        all.iter_mut().map(|subject| Box::new(|| run(subject, &packets)) as _).collect();
    let times = Times::measure(&mut turns, packets.len(), rounds);
    let mut table =
        Table::new(&["structure", "ns for a lookup", "times as fast as BsdList", "bar"]);
    for (number, name) in names.iter().enumerate() {
        let bar = match name.as_str() {
            "Sequent, 19 chains" => "8",
            "TrashDemux" => "20",
            _ => "-",
        };
        let faster = two(times.times_as_fast(number, 0));
        table.row(&[name, &two(times.of(number)), &faster, &bar]);
    }
    let title = "2000 users of TPC/A, R = 0.2 s: time of a lookup";
    report.table("time", title, table)
}

/// Returns the packets that arrive after the warm-up.
fn packets(count: usize) -> Packets {
    Traffic::closed(USERS, 0.2, SEED)
        .skip_while(|event| event.time < WARM_UP)
        .filter_map(|event| match event.kind {
            EventKind::Arrives(arrival) => Some((name(event.user), arrival)),
            EventKind::Sends => None,
        })
        .take(count)
        .collect()
}

/// Looks up all packets. Returns the sum of the PCBs found.
fn run(subject: &mut Subject, packets: &Packets) -> u64 {
    let mut sum = 0;
    for (key, arrival) in packets {
        let found = subject.demux.lookup(key, *arrival);
        sum += u64::from(found.pcb.map_or(0, |pcb| *pcb));
    }
    sum
}
