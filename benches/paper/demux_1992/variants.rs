//! Other traffic, and the combination of move-to-front and chains, which the paper rejects.

use model::papers::demux_1992::subjects::{Subject, run_all};
use model::papers::demux_1992::tpca::{Traffic, Trains};

use super::costs::{SEED, USERS, WARM_UP, end, percent};
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};

/// Polled points of sale: move-to-front examines the whole list for each entry.
pub(crate) fn polling(report: &mut Report, quick: bool) -> Outcome {
    let mut table = Table::new(&["users", "structure", "entry", "ack", "packet"]);
    for users in [100, 500, USERS] {
        let mut all = [
            Subject::bsd(),
            Subject::move_to_front(),
            Subject::sequent(19)?,
            Subject::sequent_move_to_front(19)?,
            Subject::trash(),
        ];
        let end = if quick { 200.0 } else { 1100.0 };
        run_all(&mut all, users, Traffic::polling(users, 0.2, SEED), WARM_UP, end);
        if users == USERS {
            let what = "all think for 10 s: PCBs that a list which moves to the front examines";
            let entries = all[1].entries.mean();
            // Each other user enters once in between.
            report.record(Finding::number("section 3.2", what, 2000.0, entries).calculated());
        }
        for subject in &all {
            let (entry, ack) = (subject.entries.mean(), subject.acks.mean());
            let packet = subject.packets().mean();
            table.row(&[&users, &subject.name, &two(entry), &two(ack), &two(packet)]);
        }
    }
    let title =
        "All users think for exactly ten seconds: PCBs examined (the worst for MoveToFront)";
    report.table("polling", title, table)
}

/// Bulk transfers: the traffic that a cached PCB is designed for, and why its hit ratio is a poor
/// metric.
pub(crate) fn trains(report: &mut Report, quick: bool) -> Outcome {
    let header = ["segments", "structure", "PCBs for a packet", "hits", "PCBs for a train"];
    let mut table = Table::new(&header);
    for segments in [1, 3, 10, 100, 1000] {
        let mut all = [
            Subject::bsd(),
            Subject::send_receive(),
            Subject::move_to_front(),
            Subject::sequent(19)?,
            Subject::trash(),
        ];
        // A thousand segments per second.
        let end = if quick { 20.0 } else { 1000.0 };
        run_all(&mut all, USERS, Trains::new(USERS, segments, SEED), 1.0, end);
        if segments == 3 {
            judge_trains(report, &all[0]);
        }
        for subject in &all {
            let packet = subject.packets();
            let train = packet.mean() * f64::from(segments);
            let hits = percent(packet.hit_ratio());
            table.row(&[&segments, &subject.name, &two(packet.mean()), &hits, &two(train)]);
        }
    }
    let title = "Trains of segments for 2000 connections: PCBs examined";
    report.table("trains", title, table)
}

/// A hit ratio of two thirds does not lower the cost of a message.
fn judge_trains(report: &mut Report, bsd: &Subject) {
    const PLACE: &str = "section 3.3, packet trains";
    let packets = bsd.packets();
    let what = "BSD, three segments for a message: hits, % (two of three)";
    let finding = Finding::number(PLACE, what, 67.0, 100.0 * packets.hit_ratio()).counted();
    report.record(finding.calculated());
    let train = 3.0 * packets.mean();
    let what = "the same: PCBs for a message, where single packets take 1001";
    let rule = "not fewer than 1000";
    let finding = Finding::check(PLACE, what, "no fewer", two(train), rule, train >= 1000.0);
    report.record(finding.calculated());
    let why = "It was observed in a network of the authors.";
    report.record(Finding::not_measured(PLACE, "hits of a remembered PCB in practice, 30 %", why));
}

/// Finds the number of plain chains that equals 19 move-to-front chains.
pub(crate) fn moving_to_front_or_more_chains(report: &mut Report, quick: bool) -> Outcome {
    let header = ["R, s", "19 chains", "19 that move to front", "as few: chains", "PCBs"];
    let mut table = Table::new(&header);
    for response in [0.2, 0.5, 1.0, 2.0] {
        let mut all = vec![Subject::sequent_move_to_front(19)?];
        for chains in 19..60 {
            all.push(Subject::sequent(chains)?);
        }
        let end = if quick { 110.0 } else { end(false) };
        run_all(&mut all, USERS, Traffic::closed(USERS, response, SEED), WARM_UP, end);
        let cost = |subject: &Subject| subject.packets().mean();
        let (moving, plain) = all.split_first().ok_or("there are no subjects")?;
        let enough = plain.iter().position(|plain| cost(plain) <= cost(moving));
        let enough = enough.ok_or("60 chains are not enough")?;
        if response == 0.2 {
            let what = "100 plain chains beside 19 that move to the front: PCBs for a packet";
            let mut hundred = [Subject::sequent(100)?];
            let traffic = Traffic::closed(USERS, response, SEED);
            run_all(&mut hundred, USERS, traffic, WARM_UP, end);
            let costs = [cost(&hundred[0]), cost(moving)];
            let ours = format!("{} beside {}", two(costs[0]), two(costs[1]));
            let (paper, rule) = ("more chains are cheaper", "fewer");
            let finding =
                Finding::check("section 3.4", what, paper, ours, rule, costs[0] < costs[1]);
            report.record(finding.at_full_scale());
        }
        let costs = [&plain[0], moving, &plain[enough]].map(|one| two(cost(one)));
        table.row(&[&response, &costs[0], &costs[1], &(19 + enough), &costs[2]]);
    }
    let title = "2000 users of TPC/A: PCBs examined by chains that move to front, and chains \
        that do as well";
    report.table("more_chains", title, table)
}
