//! Bytes per entry while a map grows, as counted by the allocator.

use super::subject::{MapBenchmark, MapSubject};
use crate::keys::{Key, random_keys};
use crate::memory;
use crate::results::{Column, Results};

/// Numbers of entries at different distances from powers of two, so that no growth policy is
/// favoured.
const SIZES: [usize; 6] = [100_000, 150_000, 230_000, 460_000, 1_000_000, 1_900_000];

/// Bytes per entry of one map.
#[derive(Default)]
struct Growth {
    /// At each of [`SIZES`].
    live: [f64; SIZES.len()],
    /// The peak on the way to each of [`SIZES`].
    peak: [f64; SIZES.len()],
    lowest: f64,
    highest: f64,
    sum: f64,
}

/// Grows all maps to `top` entries. Returns the bytes at the six sizes, the peaks on the way there,
/// and the range over all sizes.
pub(crate) fn bytes<K: Key>(subjects: &mut [MapSubject<K>], top: usize) -> [Results; 3] {
    let keys = random_keys::<K>(top, 1);
    let of_sizes = |bench, last| {
        let each = SIZES.map(|n| Column { bench, unit: "bytes", n });
        each.into_iter().chain([Column { bench: last, unit: "bytes", n: SIZES[5] }]).collect()
    };
    let of_all = |bench| Column { bench, unit: "bytes", n: top };
    let title = |what| format!("Bytes per entry, keys of {} bytes, values of 8: {what}", K::NAME);
    let mut tables = [
        (title("at 100 k, 150 k, 230 k, 460 k, 1 M, 1.9 M"), of_sizes("bytes", "bytes, six sizes")),
        (title("peak on the way to each of these"), of_sizes("peak bytes", "peak, six sizes")),
        (
            title(&format!("at every number of entries from {} to {top}", SIZES[0])),
            ["bytes, lowest", "bytes, mean", "bytes, highest"].map(of_all).to_vec(),
        ),
    ]
    .map(|(title, columns)| Results::new(title, K::NAME, columns));
    tables.iter_mut().for_each(|results| results.add_rows(subjects));
    for (at, subject) in subjects.iter_mut().enumerate() {
        let growth = grow(subject.benchmark.as_mut(), &keys);
        subject.benchmark.clear();
        let mean = |figures: [f64; 6]| figures.iter().sum::<f64>() / figures.len() as f64;
        let overall = [growth.lowest, growth.sum / (top - SIZES[0] + 1) as f64, growth.highest];
        for (results, figures) in tables.iter_mut().zip([
            [&growth.live[..], &[mean(growth.live)]].concat(),
            [&growth.peak[..], &[mean(growth.peak)]].concat(),
            overall.to_vec(),
        ]) {
            figures
                .iter()
                .enumerate()
                .for_each(|(column, &figure)| results.record(at, column, figure));
        }
    }
    tables
}

fn grow<K>(benchmark: &mut dyn MapBenchmark<K>, keys: &[K]) -> Growth {
    benchmark.clear();
    let before = memory::live();
    memory::reset_peak();
    let mut growth = Growth { lowest: f64::INFINITY, ..Growth::default() };
    benchmark.grow(keys, &mut |entries| {
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
