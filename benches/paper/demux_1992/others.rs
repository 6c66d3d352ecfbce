//! Other traffic, and the combination that the paper dismisses.

use model::papers::demux_1992::measure::{Contestant, listen};
use model::papers::demux_1992::tpca::{Traffic, Trains};

use super::costs::{SEED, USERS, WARM_UP, end, percent};
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};

/// Points of sale that are polled in turns: moving to the front examines the whole list for each entry.
pub(crate) fn polling(report: &mut Report, quick: bool) -> Outcome {
    let mut table = Table::new(&["users", "structure", "entry", "ack", "packet"]);
    for users in [100, 500, 2000] {
        let mut all = [
            Contestant::bsd(),
            Contestant::move_to_front(),
            Contestant::sequent(19)?,
            Contestant::sequent_move_to_front(19)?,
            Contestant::trash(),
        ];
        let end = if quick { 200.0 } else { 1100.0 };
        listen(&mut all, users, Traffic::polling(users, 0.2, SEED), WARM_UP, end);
        let what = format!(
            "{users} users who all think for 10 s: PCBs that a list which moves to the front \
                examines"
        );
        report.find(Finding::number("section 3.2", what, users.into(), all[1].entries.mean()));
        for contestant in &all {
            let (entry, ack) = (contestant.entries.mean(), contestant.acks.mean());
            let packet = contestant.packets().mean();
            table.row(&[&users, &contestant.name, &two(entry), &two(ack), &two(packet)]);
        }
    }
    let title =
        "Everybody thinks for ten seconds exactly: PCBs examined (the worst for MoveToFront)";
    report.table("polling", title, table)
}

/// Bulk transfers: the traffic that a remembered PCB is for, and why its hit ratio says little.
pub(crate) fn trains(report: &mut Report, quick: bool) -> Outcome {
    let header = ["segments", "structure", "PCBs for a packet", "hits", "PCBs for a train"];
    let mut table = Table::new(&header);
    for segments in [1, 3, 10, 100, 1000] {
        let mut all = [
            Contestant::bsd(),
            Contestant::send_receive(),
            Contestant::move_to_front(),
            Contestant::sequent(19)?,
            Contestant::trash(),
        ];
        // A thousand segments in a second.
        let end = if quick { 20.0 } else { 1000.0 };
        listen(&mut all, USERS, Trains::new(USERS, segments, SEED), 1.0, end);
        if segments == 3 {
            judge_trains(report, &all[0]);
        }
        for contestant in &all {
            let packet = contestant.packets();
            let train = packet.mean() * f64::from(segments);
            let hits = percent(packet.hit_ratio());
            table.row(&[&segments, &contestant.name, &two(packet.mean()), &hits, &two(train)]);
        }
    }
    let title = "Trains of segments for 2000 connections: PCBs examined";
    report.table("trains", title, table)
}

/// The hit ratio of a remembered PCB says little.
fn judge_trains(report: &mut Report, bsd: &Contestant) {
    const PLACE: &str = "text, packet trains";
    let packets = bsd.packets();
    let what = "BSD, three segments for a message: hits, % (two of three)";
    report.find(Finding::number(PLACE, what, 67.0, 100.0 * packets.hit_ratio()).within(1.0));
    let train = 3.0 * packets.mean();
    let what = "the same: PCBs for a message, where single packets take 1001";
    let rule = "not fewer than 1000";
    report.find(
        Finding::check(PLACE, what, "no fewer", two(train), rule, train >= 1000.0).at_full_scale(),
    );
}

/// How many chains do what 19 chains that move to the front do.
pub(crate) fn moving_to_front_or_more_chains(report: &mut Report, quick: bool) -> Outcome {
    let header = ["R, s", "19 chains", "19 that move to front", "as few: chains", "PCBs"];
    let mut table = Table::new(&header);
    for response in [0.2, 0.5, 1.0, 2.0] {
        let mut all = vec![Contestant::sequent_move_to_front(19)?];
        for chains in 19..60 {
            all.push(Contestant::sequent(chains)?);
        }
        let end = if quick { 110.0 } else { end(false) };
        listen(&mut all, USERS, Traffic::closed(USERS, response, SEED), WARM_UP, end);
        let cost = |contestant: &Contestant| contestant.packets().mean();
        let (moving, plain) = all.split_first().ok_or("there is nobody")?;
        let enough = plain.iter().position(|plain| cost(plain) <= cost(moving));
        let enough = enough.ok_or("60 chains are not enough")?;
        let what =
            format!("R = {response} s: plain chains that do what 19 do which move to the front");
        let ours = format!("{} chains", 19 + enough);
        let rule = "40 or fewer";
        let finding = Finding::check(
            "section 3.5",
            what,
            "more chains are cheaper",
            ours,
            rule,
            19 + enough <= 40,
        );
        report.find(finding.at_full_scale());
        let costs = [&plain[0], moving, &plain[enough]].map(|one| two(cost(one)));
        table.row(&[&response, &costs[0], &costs[1], &(19 + enough), &costs[2]]);
    }
    let title = "2000 users of TPC/A: PCBs examined by chains that move to front, and chains \
        that do as well";
    report.table("more_chains", title, table)
}
