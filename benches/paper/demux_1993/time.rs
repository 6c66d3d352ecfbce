//! What a look-up takes, in time.

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::Instant;

use flowtable::FourTuple;
use flowtable::demux::Arrival;

use super::costs::{SEED, USERS, WARM_UP};
use super::measure::Contestant;
use super::report::{Outcome, Report, Table, median, two};
use super::tpca::{Happening, Traffic, name};

type Packets = Vec<(FourTuple<Ipv4Addr>, Arrival)>;

/// All structures hear the same packets of 2000 users in each round, and another one begins each round. Ratios are
/// medians of the ratios within the rounds.
///
/// Nobody is told what is sent: the stack that sends has the PCB in its hand, but finding it here takes long. So
/// `SendReceive` remembers what it receives only.
pub(crate) fn lookups(report: &mut Report, quick: bool) -> Outcome {
    let (packets, rounds) = (packets(20_000), if quick { 5 } else { 25 });
    let mut all = Contestant::all(USERS)?;
    for contestant in &mut all {
        contestant.fill(USERS);
        run(contestant, &packets);
    }
    let mut times: Vec<Vec<f64>> = vec![vec![]; all.len()];
    for round in 0..rounds {
        for turn in 0..all.len() {
            let number = (round + turn) % all.len();
            times[number].push(run(&mut all[number], &packets));
        }
    }
    let times_of = |times: &[f64], bsd: &[f64]| {
        two(median(bsd.iter().zip(times).map(|(bsd, time)| bsd / time).collect()))
    };
    let mut table =
        Table::new(&["structure", "ns for a look-up", "times as fast as BsdList", "bar"]);
    for (contestant, times_here) in all.iter().zip(&times) {
        let bar = match contestant.name.as_str() {
            "Sequent, 19 chains" => "8",
            "TrashDemux" => "20",
            _ => "-",
        };
        let faster = times_of(times_here, &times[0]);
        table.row(&[&contestant.name, &two(median(times_here.clone())), &faster, &bar]);
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

/// Nanoseconds for a packet.
fn run(contestant: &mut Contestant, packets: &Packets) -> f64 {
    let begun = Instant::now();
    let mut sum = 0_u64;
    for (key, arrival) in packets {
        let found = contestant.demux.lookup(key, *arrival);
        sum += u64::from(found.pcb.map_or(0, |pcb| *pcb));
    }
    black_box(sum);
    begun.elapsed().as_nanos() as f64 / packets.len() as f64
}
