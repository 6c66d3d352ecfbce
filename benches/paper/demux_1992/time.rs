//! What a look-up takes, in time.

use std::net::Ipv4Addr;

use flowtable::FourTuple;
use flowtable::demux::Arrival;
use model::papers::demux_1992::measure::Contestant;
use model::papers::demux_1992::tpca::{Happening, Traffic, name};

use super::costs::{SEED, USERS, WARM_UP};
use crate::report::{Outcome, Report, Table, two};
use crate::rounds::{Contestant as Turn, Times};

type Packets = Vec<(FourTuple<Ipv4Addr>, Arrival)>;

/// All structures hear the same packets of 2000 users in each round, and another one begins each round. Ratios are
/// medians of the ratios within the rounds.
///
/// Nobody is told what is sent: the stack that sends has the PCB in its hand, but finding it here takes long. So
/// `SendReceive` remembers what it receives only.
pub(crate) fn lookups(report: &mut Report, quick: bool) -> Outcome {
    let (packets, rounds) = (packets(20_000), if quick { 5 } else { 25 });
    let mut all = Contestant::all(USERS)?;
    all.iter_mut().for_each(|contestant| contestant.fill(USERS));
    let names: Vec<String> = all.iter().map(|contestant| contestant.name.clone()).collect();
    let mut turns: Vec<Turn<'_>> =
        all.iter_mut().map(|contestant| Box::new(|| run(contestant, &packets)) as _).collect();
    let times = Times::measure(&mut turns, packets.len(), rounds);
    let mut table =
        Table::new(&["structure", "ns for a look-up", "times as fast as BsdList", "bar"]);
    for (number, name) in names.iter().enumerate() {
        let bar = match name.as_str() {
            "Sequent, 19 chains" => "8",
            "TrashDemux" => "20",
            _ => "-",
        };
        let faster = two(times.times_as_fast(number, 0));
        table.row(&[name, &two(times.of(number)), &faster, &bar]);
    }
    let title = "2000 users of TPC/A, R = 0.2 s: time of a look-up";
    report.table("time", title, table)
}

/// What arrives when everything has settled.
fn packets(count: usize) -> Packets {
    Traffic::closed(USERS, 0.2, SEED)
        .skip_while(|event| event.time < WARM_UP)
        .filter_map(|event| match event.what {
            Happening::Arrives(arrival) => Some((name(event.user), arrival)),
            Happening::Sends => None,
        })
        .take(count)
        .collect()
}

/// Looks all packets up. The sum says which PCBs were found.
fn run(contestant: &mut Contestant, packets: &Packets) -> u64 {
    let mut sum = 0;
    for (key, arrival) in packets {
        let found = contestant.demux.lookup(key, *arrival);
        sum += u64::from(found.pcb.map_or(0, |pcb| *pcb));
    }
    sum
}
