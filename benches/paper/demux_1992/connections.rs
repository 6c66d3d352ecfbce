//! Connection set-up: PCBs examined and time for thousands of connections set up concurrently.

use std::time::Instant;

use flowtable::demux::analysis::ConnectionSetup;
use model::papers::demux_1992::setup::segments;
use model::papers::demux_1992::subjects::{Subject, Tally, set_up_all, set_up_server};

use super::costs::SEED;
use crate::causes::Cause;
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, median, two};

/// The measurements of the paper: connections, and seconds.
const BSD: (u32, f64) = (3600, 906.0);
const SEQUENT: (u32, f64) = (5040, 193.0);

const PLACE: &str = "section 4, connection set-up";

/// Measurements of one structure.
struct Row {
    name: String,
    all: Tally,
    server: Tally,
    seconds: f64,
}

/// Measures all structures, then compares the two that the paper timed.
pub(crate) fn set_up(report: &mut Report, quick: bool) -> Outcome {
    let header = [
        "connections",
        "structure",
        "PCBs, by the equation",
        "PCBs",
        "the server's",
        "paper, s",
        "ms",
        "ns per packet",
    ];
    let mut table = Table::new(&header);
    let mut few = vec![];
    let mut many = vec![];
    for (connections, rows) in [(BSD.0, &mut few), (SEQUENT.0, &mut many)] {
        let connections = if quick { connections / 10 } else { connections };
        *rows = measure(connections, if quick { 1 } else { 9 })?;
        let paper = ConnectionSetup { connections, chains: 19 };
        for row in &*rows {
            let (pcbs, seconds) = match (row.name.as_str(), connections) {
                ("BsdList", 3600) => (millions(paper.bsd()), "906"),
                ("BsdList", _) => (millions(paper.bsd()), "-"),
                ("Sequent, 19 chains", 5040) => (millions(paper.sequent()), "193"),
                ("Sequent, 19 chains", _) => (millions(paper.sequent()), "-"),
                _ => ("-".to_string(), "-"),
            };
            table.row(&[
                &connections,
                &row.name,
                &pcbs,
                &millions(row.all.examined as f64),
                &millions(row.server.examined as f64),
                &seconds,
                &two(1e3 * row.seconds),
                &two(1e9 * row.seconds / row.all.packets as f64),
            ]);
        }
    }
    let title =
        "Connections that are set up at once and send five messages: millions of PCBs, time";
    report.table("connection_setup", title, table)?;
    compare(report, &few, &many)
}

/// Compares the published ratios: BSD with 3600 connections against Sequent with 5040.
fn compare(report: &mut Report, few: &[Row], many: &[Row]) -> Outcome {
    let find = |rows: &[Row], name| {
        let row = rows.iter().find(|row| row.name == name).ok_or("it was not measured")?;
        Ok::<_, &str>((row.all.examined as f64, row.seconds))
    };
    let (bsd, sequent) = (find(few, "BsdList")?, find(many, "Sequent, 19 chains")?);
    let [few, many] =
        [BSD.0, SEQUENT.0].map(|connections| ConnectionSetup { connections, chains: 19 });
    let per_connection = |bsd, sequent| (bsd / f64::from(BSD.0)) / (sequent / f64::from(SEQUENT.0));
    // The printed numbers are the equation, which takes the list as full from the first packet on.
    for (name, paper, pcbs) in
        [("BSD, 3600", 84.0, few.bsd()), ("Sequent, 5040", 8.7, many.sequent())]
    {
        let what = format!("{name} connections: millions of PCBs examined, by the equation");
        report.record(Finding::number(PLACE, what, paper, pcbs / 1e6).counted().calculated());
    }
    for (what, paper, connections) in [
        ("BSD, 3600 connections: packets", 46_800.0, BSD.0),
        ("Sequent, 5040 connections: packets", 65_520.0, SEQUENT.0),
    ] {
        let packets = segments(connections, SEED).len() as f64;
        report.record(Finding::number(PLACE, what, paper, packets).calculated());
    }
    let what = "PCBs, BSD with 3600 : Sequent with 5040 connections (the quotient, 84 / 8.7)";
    let finding = Finding::number(PLACE, what, 9.66, few.bsd() / many.sequent()).counted();
    report.record(finding.calculated());
    let ratio = per_connection(bsd.1, sequent.1);
    let what = "time for a connection, BSD : Sequent";
    let finding = Finding::number(PLACE, what, 6.57, ratio).timed();
    report.record(finding.because(Cause::OtherWork).at_full_scale());
    let mut table =
        Table::new(&["BSD with 3600 against Sequent with 5040", "calculated", "measured"]);
    let pcbs = [two(few.bsd() / many.sequent()), two(bsd.0 / sequent.0)];
    let time = [two(per_connection(BSD.1, SEQUENT.1)), two(per_connection(bsd.1, sequent.1))];
    table.row(&[&"PCBs in all", &pcbs[0], &pcbs[1]]);
    table.row(&[&"time for a connection", &time[0], &time[1]]);
    report.table("connection_setup_ratios", "The same, as ratios", table)?;
    report.remark(
        "The printed 84 and 8.7 million are packets times half the list, at its full length. The \
            paper's connections send as soon as they are set up, so the list grows while they are \
            opened, and fewer PCBs are examined: the column that is counted."
            .into(),
    );
    Ok(())
}

/// Measures every structure. Times are medians over the rounds.
fn measure(connections: u32, rounds: usize) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let segments = segments(connections, SEED);
    let mut times: Vec<Vec<f64>> = vec![];
    let mut rows = vec![];
    for round in 0..rounds {
        for (number, mut subject) in Subject::all(connections)?.into_iter().enumerate() {
            let begun = Instant::now();
            let all = set_up_all(&mut *subject.demux, &segments);
            let seconds = begun.elapsed().as_secs_f64();
            if round == 0 {
                let name = subject.name;
                rows.push(Row { name, all, server: Tally::default(), seconds });
                times.push(vec![]);
            }
            times[number].push(seconds);
        }
    }
    for (row, mut subject) in rows.iter_mut().zip(Subject::all(connections)?) {
        row.server = set_up_server(&mut *subject.demux, &segments);
    }
    for (row, times) in rows.iter_mut().zip(times) {
        row.seconds = median(times);
    }
    Ok(rows)
}

fn millions(pcbs: f64) -> String {
    format!("{:.3}", pcbs / 1e6)
}
