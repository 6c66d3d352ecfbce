//! The board of look-ups.

use super::Contestants;
use super::address::{Draw, Traffic, WARM_UP};
use super::contestant::{Contestant, How, Route};
use super::family::Family;
use crate::board::{Board, Column};
use crate::contestant::BURST;
use crate::entrant::{Agreed, Timed, in_turn};

/// What each kind of traffic is asked for, and the names of its columns.
const BENCHES: [(Traffic, [(How, &str); 3]); 3] = [
    (
        Traffic::Inside,
        [(How::Single, "inside"), (How::Chain, "inside, dependent"), (How::Burst, "inside, burst")],
    ),
    (
        Traffic::Random,
        [(How::Single, "random"), (How::Chain, "random, dependent"), (How::Burst, "random, burst")],
    ),
    (
        Traffic::Zipf,
        [(How::Single, "zipf"), (How::Chain, "zipf, dependent"), (How::Burst, "zipf, burst")],
    ),
];

/// Look-ups are timed in pieces that take less than a millisecond: if the machine does something else
/// in the meantime, that is in some of them only.
const PIECE: usize = 1 << 12;

pub(crate) fn lookups<A: Family>(
    title: &str,
    contestants: &mut Contestants<A>,
    routes: &[Route<A>],
    quick: bool,
) -> Board {
    let (rounds, count) = if quick { (3, 1 << 16) } else { (11, 1 << 19) };
    let title =
        format!("{title}: look-ups, ns each; bursts of {BURST}; medians of {rounds} rounds");
    let columns = BENCHES.iter().flat_map(|(_, benches)| benches);
    let columns = columns.map(|&(_, bench)| Column { bench, unit: "ns", n: routes.len() });
    let mut board = Board::new(title, A::NAME, columns.collect());
    board.add_rows(contestants);
    let mut draw = Draw::new(routes);
    for round in 0..rounds {
        for (at, (traffic, benches)) in BENCHES.iter().enumerate() {
            let warm = draw.addresses(*traffic, WARM_UP);
            let probes = benches.map(|(how, _)| {
                draw.addresses(*traffic, if how == How::Chain { count / 4 } else { count })
            });
            let mut agreed = [(); 3].map(|()| Agreed::default());
            for row in in_turn(round, contestants.len()) {
                let contestant = &contestants[row];
                contestant.look_up(How::Single, &warm);
                for (bench, (how, _)) in benches.iter().enumerate() {
                    let timed = in_pieces(contestant, *how, &probes[bench]);
                    let (_, job) = benches[bench];
                    agreed[bench].on(timed.sum, &format!("{}, {job}", contestant.name));
                    board.note(row, at * benches.len() + bench, timed.ns);
                }
            }
        }
    }
    board
}

/// The median of the pieces' nanoseconds, and the sum of them all.
pub(crate) fn in_pieces<A>(contestant: &Contestant<A>, how: How, addresses: &[A]) -> Timed {
    let pieces = addresses.chunks(PIECE).map(|piece| contestant.look_up(how, piece));
    let (mut ns, sums): (Vec<_>, Vec<_>) = pieces.map(|timed| (timed.ns, timed.sum)).unzip();
    let middle = ns.len() / 2;
    let ns = *ns.select_nth_unstable_by(middle, f64::total_cmp).1;
    Timed { ns, sum: sums.into_iter().fold(0, u64::wrapping_add) }
}
