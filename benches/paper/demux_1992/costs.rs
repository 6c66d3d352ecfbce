//! Costs for 2000 users of TPC/A: published, by the equations, and counted in a simulation.

use flowtable::demux::ChainsError;
use flowtable::demux::analysis::Tpca;
use model::papers::demux_1992::subjects::{Subject, run_all};
use model::papers::demux_1992::tpca::Traffic;

use crate::causes::Cause;
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};

/// Number of users: 200 transactions per second.
pub(crate) const USERS: u32 = 2000;
pub(crate) const SEED: u64 = 1993;
/// Seconds until counting begins.
pub(crate) const WARM_UP: f64 = 100.0;

/// Returns the end of the simulation in seconds, warm-up included.
pub(crate) fn end(quick: bool) -> f64 {
    if quick { 150.0 } else { 2100.0 }
}

/// Formats a ratio in per cent.
pub(crate) fn percent(ratio: f64) -> String {
    format!("{:.2} %", 100.0 * ratio)
}

/// Compares published numbers with the equations.
pub(crate) fn numbers(report: &mut Report) -> Outcome {
    let bank = Tpca::new(USERS, 0.2);
    let chains = |chains| Tpca { chains, ..bank };
    let error = |bank: Tpca| percent(bank.sequent().entry / bank.sequent().mean() - 1.0);
    let (one, many) = (chains(1), chains(51));
    let rows = [
        ("(1) BSD", "1001", two(bank.bsd())),
        ("its hit ratio", "0.05 %", percent(1.0 / f64::from(USERS))),
        ("(8) Sequent, 19 chains, no trains", "53.6", two(bank.sequent().entry)),
        ("its hit ratio", "0.95 %", percent(19.0 / f64::from(USERS))),
        ("(9) p, 19 chains", "1.5 %", percent(bank.train_probability())),
        ("(9) p, 50 chains", "-", percent(chains(50).train_probability())),
        ("(9) p, 51 chains", "almost 21 %", percent(many.train_probability())),
        ("(9) p, 1 chain", "1.9e-35", format!("{:.2e}", one.train_probability())),
        ("(11) Sequent, 19 chains", "53.0", two(bank.sequent().mean())),
        ("(11') the same, counting the probe", "-", two(bank.sequent_counting_the_probe().mean())),
        ("(8) against (11), 19 chains", "a little more than 1 %", error(bank)),
        ("(8) against (11), 51 chains", "exceeding 10 %", error(many)),
        ("(11) Sequent, 100 chains", "less than 9", two(chains(100).sequent().mean())),
    ];
    let mut table = Table::new(&["2000 users, R = 0.2 s", "paper", "equation"]);
    for (what, paper, equation) in &rows {
        table.row(&[what, paper, equation]);
    }
    let [few, more] = [19, 51].map(|chains| {
        let bank = Tpca { chains, ..bank };
        100.0 * (bank.sequent().entry / bank.sequent().mean() - 1.0)
    });
    for (what, paper, ours, rule, holds) in [
        ("19 chains", "a little more than 1 %", few, "1 to 1.5 %", (1.0..1.5).contains(&few)),
        ("51 chains", "exceeding 10 %", more, "more than 10 %", more > 10.0),
    ] {
        let what = format!("error of equation 8 against 11, {what}");
        let ours = format!("{ours:.2} %");
        report.record(Finding::check("section 3.3", what, paper, ours, rule, holds).calculated());
    }
    let cut = (-10.0_f64).exp();
    for (place, what, paper, ours) in [
        ("section 2", "think times that are cut off at 100 s, %", 0.004, 100.0 * cut),
        ("section 3.3", "footnote 6: no packet of the user for R = 0.2 s, %", 96.0, {
            100.0 * (-2.0 * 0.1 * 0.2_f64).exp()
        }),
    ] {
        report.record(Finding::number(place, what, paper, ours).about().calculated());
    }
    let (part, rule) = (100.0 * 11.0 * cut, "less than 0.4 %");
    let what = "part of the think time that is cut off";
    let ours = format!("{part:.2} %");
    let finding = Finding::check("section 2", what, rule, ours, "less", part < 0.4);
    report.record(finding.calculated());
    let what = "p with one chain, by equation 9";
    let finding = Finding::number("section 3.1", what, 1.9e-35, one.train_probability());
    report.record(finding.rounded().calculated());
    let what = "PCBs of the longest of 19 chains, which the paper calls the average scan";
    let longest = f64::from(USERS.div_ceil(19));
    report.record(Finding::number("section 3.3", what, 106.0, longest).calculated());
    report.table("equations", "Values of the equations", table)
}

/// A row of the comparison.
struct Row {
    what: &'static str,
    /// As printed in the paper.
    paper: &'static str,
    equation: f64,
    /// The exact value for a closed loop, if the equation is an approximation.
    exact: Option<f64>,
    /// Extracts the value from the counts.
    measured: Measure,
    print: fn(f64) -> String,
}

type Measure = Box<dyn Fn(&[Subject]) -> f64>;

/// A response time and the numbers printed for it.
struct Published {
    response: f64,
    /// Entry, acknowledgement and mean of move-to-front.
    front: [&'static str; 3],
    /// Equation 11 and p for 19, 51 and 100 chains.
    chains: [[&'static str; 2]; 3],
}

const UNPUBLISHED: [[&str; 2]; 3] = [["-"; 2]; 3];

const PUBLISHED: [Published; 4] = [
    Published {
        response: 0.2,
        front: ["1019", "78", "549"],
        chains: [["53.0", "1.5 %"], ["-", "almost 21 %"], ["less than 9", "-"]],
    },
    Published { response: 0.5, front: ["1045", "190", "618"], chains: UNPUBLISHED },
    Published { response: 1.0, front: ["1086", "362", "724"], chains: UNPUBLISHED },
    Published { response: 2.0, front: ["1150", "659", "904"], chains: UNPUBLISHED },
];

/// Returns the structures with an equation. The rows refer to them by index.
fn subjects() -> Result<Vec<Subject>, ChainsError> {
    Ok(vec![
        Subject::bsd(),
        Subject::move_to_front(),
        Subject::sequent(19)?,
        Subject::sequent(51)?,
        Subject::sequent(100)?,
        Subject::sequent_hashed(19)?,
    ])
}

/// Returns the rows for one response time.
fn rows(published: &Published) -> Vec<Row> {
    let bank = Tpca::new(USERS, published.response);
    let mut rows = list_rows(bank, published.front);
    for (number, (chains, paper)) in [19, 51, 100].into_iter().zip(published.chains).enumerate() {
        rows.extend(chain_rows(Tpca { chains, ..bank }, 2 + number, paper));
    }
    rows.push(Row {
        what: "(11') Sequent 19, default hash",
        paper: "-",
        equation: bank.sequent_counting_the_probe().mean(),
        exact: None,
        measured: Box::new(|all| all[5].packets().mean()),
        print: two,
    });
    rows
}

/// Rows of BSD and move-to-front.
fn list_rows(bank: Tpca, paper: [&'static str; 3]) -> Vec<Row> {
    let row = |what, paper, equation, exact, measured| Row {
        what,
        paper,
        equation,
        exact,
        measured,
        print: two,
    };
    let exact = bank.move_to_front_in_a_closed_loop();
    let front = bank.move_to_front();
    let entry = Some(exact.entry);
    let ack = Some(exact.ack);
    let both = Some(exact.mean());
    let (ahead_of_entry, ahead_of_ack, ahead): (Measure, Measure, Measure) = (
        Box::new(|all| all[1].entries.ahead()),
        Box::new(|all| all[1].acks.ahead()),
        Box::new(|all| all[1].packets().ahead()),
    );
    vec![
        row("(1) BSD", "1001", bank.bsd(), None, Box::new(|all| all[0].packets().mean())),
        row("(5) front, entry", paper[0], front.entry, entry, ahead_of_entry),
        row("N(2R) front, ack", paper[1], front.ack, ack, ahead_of_ack),
        row("(6) front", paper[2], front.mean(), both, ahead),
    ]
}

/// Rows of the chains of `bank`, counted for the subject at index `at`.
fn chain_rows(bank: Tpca, at: usize, paper: [&'static str; 2]) -> [Row; 3] {
    let names = [
        ["(11) Sequent 19", "(11) Sequent 51", "(11) Sequent 100"],
        ["(11') Sequent 19", "(11') Sequent 51", "(11') Sequent 100"],
        [
            "(9) Sequent 19, acks that hit",
            "(9) Sequent 51, acks that hit",
            "(9) Sequent 100, acks that hit",
        ],
    ]
    .map(|names| names[at - 2]);
    let row = |what, paper, equation, measured, print| Row {
        what,
        paper,
        equation,
        exact: None,
        measured,
        print,
    };
    let paper_mean = Box::new(move |all: &[Subject]| all[at].sequent_paper_mean());
    let honest = Box::new(move |all: &[Subject]| all[at].packets().mean());
    let hits = Box::new(move |all: &[Subject]| all[at].acks.hit_ratio());
    [
        row(names[0], paper[0], bank.sequent().mean(), paper_mean, two),
        row(names[1], "-", bank.sequent_counting_the_probe().mean(), honest, two),
        row(names[2], paper[1], bank.train_probability(), hits, percent),
    ]
}

/// Compares all numbers of the analysis at the response times of the paper, in a closed and an open
/// loop.
pub(crate) fn by_response_time(report: &mut Report, quick: bool) -> Outcome {
    let header =
        ["R, s", "what", "paper", "equation", "exact", "closed loop", "off by", "open loop"];
    let mut table = Table::new(&header);
    for published in &PUBLISHED {
        let response = published.response;
        let (mut closed, mut open) = (subjects()?, subjects()?);
        let traffic = Traffic::closed(USERS, response, SEED);
        run_all(&mut closed, USERS, traffic, WARM_UP, end(quick));
        let traffic = Traffic::open(USERS, response, SEED);
        run_all(&mut open, USERS, traffic, WARM_UP, end(quick));
        judge(report, published, &closed);
        for row in rows(published) {
            let measured = (row.measured)(&closed);
            table.row(&[
                &response,
                &row.what,
                &row.paper,
                &(row.print)(row.equation),
                &row.exact.map_or("-".to_string(), two),
                &(row.print)(measured),
                &off_by(measured, row.equation),
                &(row.print)((row.measured)(&open)),
            ]);
        }
    }
    let title =
        "2000 users of TPC/A: PCBs for a packet (in front of it: \"front\"), by the response time";
    report.table("tpca", title, table)
}

/// Compares the printed numbers with the counts of the closed loop.
fn judge(report: &mut Report, published: &Published, all: &[Subject]) {
    let response = published.response;
    let [bsd, front, nineteen, fifty_one, hundred, ..] = all else { return };
    let measured = [front.entries.ahead(), front.acks.ahead(), front.packets().ahead()];
    for ((name, paper), measured) in
        ["entry", "ack", "mean"].into_iter().zip(published.front).zip(measured)
    {
        let what = format!("list that moves to the front, R = {response} s, {name}: PCBs ahead");
        let paper = paper.parse().unwrap_or(f64::NAN);
        report.record(
            Finding::number("section 3.2", what, paper, measured)
                .counted()
                .because(Cause::UsersWait)
                .at_full_scale(),
        );
    }
    if response > 0.2 {
        return;
    }
    let what = "PCBs examined for a packet";
    report.record(
        Finding::number("section 3.1", what, 1001.0, bsd.packets().mean())
            .counted()
            .at_full_scale(),
    );
    hits_of_one_entry(report, bsd, nineteen);
    let what = "19 chains: PCBs for a packet, counted as the paper does";
    report.record(
        Finding::number("section 3.3", what, 53.0, nineteen.sequent_paper_mean())
            .counted()
            .at_full_scale(),
    );
    let (cost, rule) = (hundred.packets().mean(), "less than 9");
    let what = "100 chains: PCBs for a packet, with the probe that is missing in equation 10";
    report.record(
        Finding::check("section 3.3", what, "less than 9", two(cost), rule, cost < 9.0)
            .at_full_scale(),
    );
    let what = "19 chains, no trains: PCBs for an entry";
    report.record(
        Finding::number("section 3.3", what, 53.6, nineteen.entries.mean())
            .counted()
            .at_full_scale(),
    );
    let what = "responses that find the PCB remembered, %";
    let hits = |name: &str, paper, subject: &Subject| {
        let what = format!("{name}: {what}");
        Finding::number("section 3.3", what, paper, 100.0 * subject.acks.hit_ratio())
    };
    for finding in [hits("19 chains", 1.5, nineteen), hits("51 chains", 21.0, fifty_one)] {
        report.record(finding.rounded().because(Cause::UsersWait).at_full_scale());
    }
}

/// Compares the hit ratios of the remembered entries, by which the paper dismisses them.
fn hits_of_one_entry(report: &mut Report, bsd: &Subject, nineteen: &Subject) {
    for (place, name, paper, subject) in
        [("section 3.1", "BSD list", 0.05, bsd), ("section 3.3", "19 chains", 0.95, nineteen)]
    {
        let what = format!("{name}: packets that find the PCB remembered, %");
        let finding = Finding::number(place, what, paper, 100.0 * subject.packets().hit_ratio());
        let finding = finding.rounded().because(Cause::OwnPacket);
        report.record(finding.at_full_scale());
    }
}

/// Formats a relative error, or a dash for an expected value near zero.
fn off_by(measured: f64, equation: f64) -> String {
    match equation {
        0.01.. => format!("{:+.1} %", 100.0 * (measured / equation - 1.0)),
        _ => "-".to_string(),
    }
}

/// Compares the factors in the text between structures.
fn judge_factors(report: &mut Report, all: &[Subject]) {
    let cost = |name: &str| {
        let subject = all.iter().find(|subject| subject.name == name);
        subject.map_or(f64::NAN, |subject| subject.packets().mean())
    };
    let nineteen = cost("Sequent, 19 chains");
    let hundred = nineteen / cost("Sequent, 100 chains");
    let moving = nineteen / cost("SequentMoveToFront, 19 chains");
    for (place, what, paper, ratio, rule, holds) in [
        (
            "section 3.4",
            "19 chains : 100",
            "a factor of five",
            hundred,
            "5 or more",
            hundred >= 5.0,
        ),
        (
            "section 3.4",
            "19 chains : 19 that move to front",
            "a factor of two",
            moving,
            "within 10 %",
            (1.8..=2.2).contains(&moving),
        ),
    ] {
        let what = format!("{what}, PCBs for a packet");
        let finding = Finding::check(place, what, paper, two(ratio), rule, holds);
        report.record(finding.at_full_scale());
    }
}

/// Counts the PCBs examined by every structure.
pub(crate) fn by_structure(report: &mut Report, quick: bool) -> Outcome {
    let mut table =
        Table::new(&["structure", "entry", "ack", "packet", "hits, entry", "hits, ack", "hits"]);
    let mut all = Subject::all(USERS)?;
    run_all(&mut all, USERS, Traffic::closed(USERS, 0.2, SEED), WARM_UP, end(quick));
    for (name, round_trip) in [("100 ms", 0.1), ("1 ms", 0.001)] {
        let mut alone = [Subject::send_receive()];
        let traffic = Traffic::closed(USERS, 0.2, SEED).with_round_trip(round_trip);
        run_all(&mut alone, USERS, traffic, WARM_UP, end(quick));
        let [mut subject] = alone;
        subject.name = format!("SendReceive, round trip of {name}");
        all.insert(2, subject);
    }
    let direct = all.last().map_or(f64::NAN, |subject| subject.packets().mean());
    let what = "connection IDs: PCBs for a packet";
    report.record(Finding::number("section 3.4", what, 1.0, direct).calculated());
    judge_factors(report, &all);
    for subject in &all {
        table.row(&[
            &subject.name,
            &two(subject.entries.mean()),
            &two(subject.acks.mean()),
            &two(subject.packets().mean()),
            &percent(subject.entries.hit_ratio()),
            &percent(subject.acks.hit_ratio()),
            &percent(subject.packets().hit_ratio()),
        ]);
    }
    let title = "2000 users of TPC/A, R = 0.2 s, round trip of 10 ms: PCBs examined, by structure";
    report.table("structures", title, table)
}
