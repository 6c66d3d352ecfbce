//! Bytes for each entry while a map grows, as the allocator counts them.

use crate::board::{Board, Column};
use crate::contestant::Contestant;
use crate::keys::{Key, random_keys};
use crate::memory;

/// Spread between powers of two, so that nobody's favourite size is asked for alone.
const SIZES: [usize; 6] = [100_000, 150_000, 230_000, 460_000, 1_000_000, 1_900_000];

/// Bytes for each entry.
#[derive(Default)]
struct Growth {
    /// At each of [`SIZES`].
    live: [f64; SIZES.len()],
    /// The most that there was on the way to each of [`SIZES`], for each of the entries there.
    peak: [f64; SIZES.len()],
    lowest: f64,
    highest: f64,
    sum: f64,
}

/// Everybody grows to `top` entries: at the six sizes, on the way there, and at all sizes.
pub(crate) fn bytes<K: Key>(contestants: &mut [Contestant<K>], top: usize) -> [Board; 3] {
    let keys = random_keys::<K>(top, 1);
    let of_sizes = |bench, last| {
        let each = SIZES.map(|n| Column { bench, unit: "bytes", n });
        each.into_iter().chain([Column { bench: last, unit: "bytes", n: SIZES[5] }]).collect()
    };
    let of_all = |bench| Column { bench, unit: "bytes", n: top };
    let title =
        |what| format!("Bytes for each entry, keys of {} bytes, values of 8: {what}", K::NAME);
    let mut boards = [
        (title("at 100 k, 150 k, 230 k, 460 k, 1 M, 1.9 M"), of_sizes("bytes", "bytes, six sizes")),
        (title("at most on the way to each of these"), of_sizes("peak bytes", "peak, six sizes")),
        (
            title(&format!("at every number of entries from {} to {top}", SIZES[0])),
            ["bytes, lowest", "bytes, mean", "bytes, highest"].map(of_all).to_vec(),
        ),
    ]
    .map(|(title, columns)| Board::new(title, K::NAME, columns));
    boards.iter_mut().for_each(|board| board.add_rows(contestants));
    for (at, contestant) in contestants.iter_mut().enumerate() {
        let growth = grow(contestant, &keys);
        contestant.clear();
        let mean = |figures: [f64; 6]| figures.iter().sum::<f64>() / figures.len() as f64;
        let overall = [growth.lowest, growth.sum / (top - SIZES[0] + 1) as f64, growth.highest];
        for (board, figures) in boards.iter_mut().zip([
            [&growth.live[..], &[mean(growth.live)]].concat(),
            [&growth.peak[..], &[mean(growth.peak)]].concat(),
            overall.to_vec(),
        ]) {
            figures.iter().enumerate().for_each(|(column, &figure)| board.note(at, column, figure));
        }
    }
    boards
}

fn grow<K>(contestant: &mut Contestant<K>, keys: &[K]) -> Growth {
    contestant.clear();
    let before = memory::live();
    memory::forget_peak();
    let mut growth = Growth { lowest: f64::INFINITY, ..Growth::default() };
    contestant.grow(keys, &mut |entries| {
        if entries < SIZES[0] {
            return;
        }
        let each = |bytes: usize| (bytes - before) as f64 / entries as f64;
        let live = each(memory::live());
        growth.lowest = growth.lowest.min(live);
        growth.highest = growth.highest.max(live);
        growth.sum += live;
        if let Some(at) = SIZES.iter().position(|&size| size == entries) {
            growth.live[at] = live;
            growth.peak[at] = each(memory::peak());
        }
    });
    growth
}
