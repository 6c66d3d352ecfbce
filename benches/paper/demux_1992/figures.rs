//! Figures 4 and 9.

use bench_common::figure::{Figure, Line, Panel, Scale};
use flowtable::demux::analysis::Tpca;
use flowtable::demux::{Arrival, ChainsError};
use model::papers::demux_1992::subjects::{Subject, run_all};
use model::papers::demux_1992::tpca::{EventKind, Traffic};

use super::costs::{SEED, USERS, WARM_UP};
use crate::finding::{Finding, short};
use crate::report::{Outcome, Report, Table, two};

/// Windows in seconds at which figure 4 is compared.
const WINDOWS: [f64; 7] = [1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 50.0];
/// Users of figure 4 at these windows, evaluated from equation 3: the paper prints no numbers.
const THINKERS: [f64; 7] = [190.2, 362.4, 786.5, 1263.6, 1728.5, 1899.5, 1985.5];
/// Numbers of users at which figure 9 is compared.
const USER_COUNTS: [u32; 7] = [100, 200, 500, 1000, 2000, 5000, 10_000];

/// Figure 4: the number of 2000 users with an entry within a time.
pub(crate) fn thinkers(report: &mut Report, quick: bool) -> Outcome {
    let bank = Tpca::new(USERS, 0.2);
    let measured = entered(0.2, if quick { 3 } else { 50 });
    let mut table = Table::new(&["T, s", "N(T)", "closed loop"]);
    let mut most = 0.0_f64;
    for ((t, measured), by_hand) in measured.iter().zip(THINKERS) {
        most = most.max(100.0 * (measured / by_hand - 1.0).abs());
        table.row(&[t, &two(bank.users_within(*t)), &two(*measured)]);
    }
    let what = "users who enter something within 1 to 50 s";
    let ours = format!("off by {} % at most", short(most));
    let finding = Finding::check(
        "section 3.2, figure 4",
        what,
        "equation 3",
        ours,
        "within 5 %",
        most <= 5.0,
    );
    report.record(finding.calculated());
    let title = "Users out of 1999 others who enter something within T (figure 4)";
    report.table("figure_4", title, table)?;
    let curve = (0..=100).map(|half| f64::from(half) / 2.0).map(|t| (t, bank.users_within(t)));
    let lines = vec![
        Line { name: "N(T), equation 3", points: curve.collect() },
        Line { name: "closed loop, R = 0.2 s", points: measured },
    ];
    let figure = Figure {
        title: "Users out of 2000 who enter something within T (equation 3 is published)",
        x_label: "T, seconds",
        x_scale: Scale::Linear,
        panels: vec![Panel { y_label: "users", y: 0.0..2500.0, lines }],
    };
    report.figure("figure_4", &figure)
}

/// Counts the other users with an entry in a window, as a mean over `samples` windows.
fn entered(response: f64, samples: u32) -> Vec<(f64, f64)> {
    const APART: f64 = 60.0;
    let mut counts = WINDOWS.map(|window| (window, 0));
    let mut seen = vec![u32::MAX; USERS as usize];
    let begun = Traffic::closed(USERS, response, SEED).skip_while(|event| event.time < WARM_UP);
    for event in begun {
        let sample = ((event.time - WARM_UP) / APART) as u32;
        if sample >= samples {
            break;
        }
        // A user counts once per window, at the first entry.
        let last = &mut seen[event.user as usize];
        if event.kind == EventKind::Arrives(Arrival::Data) && *last != sample {
            *last = sample;
            let after = event.time - WARM_UP - APART * f64::from(sample);
            counts.iter_mut().filter(|count| after < count.0).for_each(|count| count.1 += 1);
        }
    }
    let others = f64::from(USERS - 1) / f64::from(USERS);
    counts.map(|(t, count)| (t, others * f64::from(count) / f64::from(samples))).into()
}

/// A curve of figure 9: its name, response time and equation.
type Curve = (&'static str, f64, fn(Tpca) -> f64);

const CURVES: [Curve; 6] = [
    ("BSD", 0.2, Tpca::bsd),
    ("to front, R = 1.0", 1.0, |bank| bank.move_to_front().mean()),
    ("to front, R = 0.5", 0.5, |bank| bank.move_to_front().mean()),
    ("to front, R = 0.2", 0.2, |bank| bank.move_to_front().mean()),
    ("Sequent 19, R = 0.2", 0.2, |bank| bank.sequent().mean()),
    ("Sequent 19, R = 1.0", 1.0, |bank| bank.sequent().mean()),
];

/// Figure 9: the cost by the number of users.
pub(crate) fn by_users(report: &mut Report, quick: bool) -> Outcome {
    let mut header = vec!["users".to_string()];
    header.extend(CURVES.iter().flat_map(|curve| [curve.0.to_string(), "closed loop".to_string()]));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = Table::new(&header);
    let mut measured: Vec<Vec<(f64, f64)>> = vec![vec![]; CURVES.len()];
    for users in USER_COUNTS.into_iter().filter(|&users| !quick || users <= USERS) {
        let counted = costs(users, quick)?;
        let mut cells = vec![users.to_string()];
        for (number, (_, response, equation)) in CURVES.into_iter().enumerate() {
            cells.push(two(equation(Tpca::new(users, response))));
            cells.push(two(counted[number]));
            measured[number].push((f64::from(users), counted[number]));
        }
        let cells: Vec<&dyn std::fmt::Display> = cells.iter().map(|cell| cell as _).collect();
        table.row(&cells);
    }
    judge(report, &measured)?;
    let title = "PCBs for a packet by the number of users, as the paper counts them (figure 9)";
    report.table("figure_9", title, table)?;
    draw(report, &measured)
}

/// Compares the largest deviation from each curve, and the order of the curves at the right end.
fn judge(report: &mut Report, measured: &[Vec<(f64, f64)>]) -> Outcome {
    let mut farthest = ("", 0.0);
    for ((name, response, equation), points) in CURVES.into_iter().zip(measured) {
        let off = |&(users, counted): &(f64, f64)| {
            100.0 * (counted / equation(Tpca::new(users as u32, response)) - 1.0).abs()
        };
        let most = points.iter().map(off).fold(0.0, f64::max);
        farthest = if most > farthest.1 { (name, most) } else { farthest };
    }
    let ours = format!("off by {} % at most ({})", short(farthest.1), farthest.0);
    let holds = farthest.1 <= 5.0;
    let finding = Finding::check(
        "section 3.5, figure 9",
        "six curves",
        "equations",
        ours,
        "within 5 %",
        holds,
    );
    report.record(finding.calculated());
    let last: Vec<f64> =
        measured.iter().filter_map(|points| points.last()).map(|point| point.1).collect();
    let is_ordered = last.windows(2).take(4).all(|pair| pair[0] > pair[1]);
    let ours = last.iter().map(|cost| short(*cost)).collect::<Vec<_>>().join(", ");
    let (what, rule) = ("the curves from above, with most users", "in this order");
    let paper = "BSD, to front (R = 1, 0.5, 0.2 s), Sequent";
    report.record(Finding::check("section 3.5, figure 9", what, paper, ours, rule, is_ordered));
    Ok(())
}

/// Simulates all curves of figure 9 for one number of users.
fn costs(users: u32, quick: bool) -> Result<[f64; CURVES.len()], ChainsError> {
    let packets = if quick { 5_000.0 } else { 200_000.0 };
    let end = WARM_UP + packets / (0.2 * f64::from(users));
    let simulate = |response, mut all: Vec<Subject>| {
        run_all(&mut all, users, Traffic::closed(users, response, SEED), WARM_UP, end);
        all
    };
    let short = vec![Subject::bsd(), Subject::move_to_front(), Subject::sequent(19)?];
    let short = simulate(0.2, short);
    let middle = simulate(0.5, vec![Subject::move_to_front()]);
    let long = simulate(1.0, vec![Subject::move_to_front(), Subject::sequent(19)?]);
    Ok([
        short[0].packets().mean(),
        long[0].packets().ahead(),
        middle[0].packets().ahead(),
        short[1].packets().ahead(),
        short[2].sequent_paper_mean(),
        long[1].sequent_paper_mean(),
    ])
}

/// Draws all curves in the upper panel and the lowest ones, enlarged, in the lower one.
fn draw(report: &mut Report, measured: &[Vec<(f64, f64)>]) -> Outcome {
    let curve = |&(name, response, equation): &Curve| {
        let point = |users: u32| (f64::from(users), equation(Tpca::new(users, response)));
        Line { name, points: (1..=100).map(|hundred| point(100 * hundred)).collect() }
    };
    let counted = |name, number: usize| Line { name, points: measured[number].clone() };
    let mut above = CURVES[..5].iter().map(curve).collect::<Vec<_>>();
    let printed = [1001.0, 724.0, 618.0, 549.0, 53.0].map(|pcbs| (f64::from(USERS), pcbs));
    above.push(Line { name: "published in the text", points: printed.into() });
    above.push(counted("to front, R = 0.2, closed loop", 3));
    let printed = Line { name: "published in the text", points: vec![(f64::from(USERS), 53.0)] };
    let below =
        vec![printed, curve(&CURVES[4]), curve(&CURVES[5]), counted("R = 0.2, closed loop", 4)];
    let figure = Figure {
        title: "PCBs for a packet by the number of users of TPC/A",
        x_label: "users",
        x_scale: Scale::Linear,
        panels: vec![
            Panel { y_label: "PCBs", y: 0.0..6000.0, lines: above },
            Panel { y_label: "PCBs", y: 0.0..350.0, lines: below },
        ],
    };
    report.figure("figure_9", &figure)
}
