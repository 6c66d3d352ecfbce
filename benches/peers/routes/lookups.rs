//! Rounds of lookups.

use super::Subjects;
use super::address::{Addresses, Traffic, WARM_UP};
use super::family::Family;
use super::subject::{LookupMode, Route, RouteSubject};
use crate::results::{Column, Results};
use crate::subject::{Agreement, BURST, Timed, rotation};

/// The modes of lookups for each kind of traffic, and the names of their columns.
const BENCHES: [(Traffic, [(LookupMode, &str); 4]); 3] = [
    (
        Traffic::Inside,
        [
            (LookupMode::Single, "inside"),
            (LookupMode::Chain, "inside, dependent"),
            (LookupMode::Burst, "inside, burst"),
            (LookupMode::Values, "inside, burst of values"),
        ],
    ),
    (
        Traffic::Random,
        [
            (LookupMode::Single, "random"),
            (LookupMode::Chain, "random, dependent"),
            (LookupMode::Burst, "random, burst"),
            (LookupMode::Values, "random, burst of values"),
        ],
    ),
    (
        Traffic::Zipf,
        [
            (LookupMode::Single, "zipf"),
            (LookupMode::Chain, "zipf, dependent"),
            (LookupMode::Burst, "zipf, burst"),
            (LookupMode::Values, "zipf, burst of values"),
        ],
    ),
];

/// Lookups are timed in pieces of less than a millisecond: an interruption affects only some of
/// them, and not the median.
const PIECE: usize = 1 << 12;

pub(crate) fn lookups<A: Family>(
    title: &str,
    subjects: &mut Subjects<A>,
    routes: &[Route<A>],
    quick: bool,
) -> Results {
    let (rounds, count) = if quick { (3, 1 << 16) } else { (11, 1 << 19) };
    let title = format!("{title}: lookups, ns each; bursts of {BURST}; medians of {rounds} rounds");
    let columns = BENCHES.iter().flat_map(|(_, benches)| benches);
    let columns = columns.map(|&(_, bench)| Column { bench, unit: "ns", n: routes.len() });
    let mut results = Results::new(title, A::KEY, columns.collect());
    results.add_rows(subjects);
    let mut source = Addresses::new(routes);
    for round in 0..rounds {
        for (at, (traffic, benches)) in BENCHES.iter().enumerate() {
            let warm = source.draw(*traffic, WARM_UP);
            let probes = benches.map(|(how, _)| {
                source.draw(*traffic, if how == LookupMode::Chain { count / 4 } else { count })
            });
            let mut agreement = [(); 4].map(|()| Agreement::default());
            for row in rotation(round, subjects.len()) {
                let subject = &subjects[row];
                subject.benchmark.run_lookups(LookupMode::Single, &warm);
                for (bench, (how, _)) in benches.iter().enumerate() {
                    let timed = in_pieces(subject, *how, &probes[bench]);
                    let (_, column) = benches[bench];
                    agreement[bench].check(timed.sum, &format!("{}, {column}", subject.name));
                    results.record(row, at * benches.len() + bench, timed.ns);
                }
            }
        }
    }
    results
}

/// Returns the median of the pieces' times, and the sum over all of them.
pub(crate) fn in_pieces<A>(subject: &RouteSubject<A>, how: LookupMode, addresses: &[A]) -> Timed {
    let pieces = addresses.chunks(PIECE).map(|piece| subject.benchmark.run_lookups(how, piece));
    let (mut ns, sums): (Vec<_>, Vec<_>) = pieces.map(|timed| (timed.ns, timed.sum)).unzip();
    let middle = ns.len() / 2;
    let ns = *ns.select_nth_unstable_by(middle, f64::total_cmp).1;
    Timed { ns, sum: sums.into_iter().fold(0, u64::wrapping_add) }
}
