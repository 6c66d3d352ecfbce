//! Table 1: the operations of the store.

use std::time::Duration;

use flowtable::Timestamp;
use flowtable::ephemeral::Binding;
use flowtable::probes::Words;
use model::papers::ephemeral_2002::chains::{ENTRIES, Filled, NOW, SEED};
use model::papers::ephemeral_2002::tables::{TABLE_1, WORD};

use crate::causes::Cause;
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};
use crate::rounds::{Subject, Times};

/// Words in table 1 if one entry is examined.
const WORDS: [f64; 4] = [5.0, 10.0, 2.0, 2.0];

/// Counts the words of each operation in table 1 if one entry is examined, or one is created in an
/// empty chain.
pub(crate) fn words() -> [u32; 4] {
    let mut filled = Filled::new(1, SEED);
    let store = &mut filled.store;
    let mut words = [Words::default(); 4];
    let created = store.find_or_create_observed(7, NOW, || 0, &mut words[1]);
    let binding = store.find_observed(&7, NOW, &mut words[0]).expect("it is there");
    assert_eq!(created.map(|bound| bound.binding), Ok(binding));
    assert_eq!(store.read_observed(binding, NOW, &mut words[2]), Some(&0));
    assert_eq!(store.write_observed(binding, NOW, 1, &mut words[3]), Ok(0));
    words.map(|Words(count)| count)
}

pub(crate) fn table_1(report: &mut Report, quick: bool) -> Outcome {
    let columns = [
        "operation",
        "words, paper",
        "words for cl = 1",
        "SRAM µs, modelled",
        "SRAM µs, paper",
        "ns, a tenth full",
        "ns, full",
    ];
    let mut table = Table::new(&columns);
    let entries = if quick { 4096 } else { ENTRIES };
    let times = [0.1, 1.0].map(|part| times(entries, part, quick));
    for (number, (name, formula, latency)) in TABLE_1.into_iter().enumerate() {
        // No entry is examined in an empty chain; the count of the paper includes one.
        let counted = words()[number] + if number == 1 { 5 } else { 0 };
        let (words, latencies) = (f64::from(counted), f64::from(counted) * WORD);
        let what = format!("{name}: words of memory, where one entry is examined");
        // The observer adds the constants of the layout: they are stated, not measured.
        report.record(Finding::number("table 1", what, WORDS[number], words).calculated());
        let what = format!("{name}: µs in SRAM, at 0.1 for a word, which is from find's");
        // The time of a word is derived from the latency of a find, so a find cannot check it.
        if name != "find" {
            let finding = Finding::number("table 1", what, latency, latencies);
            report.record(finding.about().because(Cause::WordsAndTime));
        }
        table.row(&[
            &name,
            &formula,
            &counted,
            &two(f64::from(counted) * WORD),
            &two(latency),
            &format!("{:.1}", times[0][number]),
            &format!("{:.1}", times[1][number]),
        ]);
    }
    report.table("table_1", "Operations (table 1)", table)
}

/// Nanoseconds of each operation at a load factor.
fn times(entries: usize, part: f64, quick: bool) -> [f64; 4] {
    let mut filled = Filled::new(entries, SEED);
    filled.fill_to_part(part);
    let tags = filled.present(entries);
    let find = |tag| filled.store.find(tag, NOW).expect("it is there");
    let bindings: Vec<Binding> = tags.iter().map(find).collect();
    let (found_in, read_in, mut written_in) =
        (filled.store.clone(), filled.store.clone(), filled.store.clone());
    let mut stream = Stream::new(entries, part);
    let mut subjects: [Subject<'_>; 4] = [
        Box::new(|| tags.iter().filter(|tag| found_in.find(*tag, NOW).is_some()).count() as u64),
        Box::new(|| stream.create(entries)),
        Box::new(|| bindings.iter().filter_map(|place| read_in.read(*place, NOW)).sum()),
        Box::new(|| {
            bindings.iter().filter(|place| written_in.write(**place, NOW, 1).is_ok()).count() as u64
        }),
    ];
    let times = Times::measure(&mut subjects, entries, if quick { 1 } else { 21 });
    [0, 1, 2, 3].map(|number| times.of(number))
}

/// Bindings created at a constant rate, at which as many expire.
struct Stream {
    filled: Filled,
    /// Number of live bindings.
    living: u64,
    created: u64,
}

impl Stream {
    fn new(entries: usize, part: f64) -> Self {
        let living = (entries as f64 * part) as u64;
        let mut stream = Self { filled: Filled::new(entries, SEED), living, created: 0 };
        stream.create(2 * entries);
        stream
    }

    /// Creates `count` bindings. Returns how many were new.
    fn create(&mut self, count: usize) -> u64 {
        let lifetime = Duration::from_secs(10).as_nanos() as u64;
        let mut is_new = 0;
        for _ in 0..count {
            self.created += 1;
            // Times are rounded: add a margin, so that the oldest binding has expired.
            let now = Timestamp::from_nanos(self.created * (lifetime / self.living + 1000));
            // Multiplication by an odd number is a bijection on 64 bits: tags are distinct.
            let tag = self.created.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let bound = self.filled.store.find_or_create(tag, now, || 0).expect("one has expired");
            is_new += u64::from(bound.is_new);
        }
        is_new
    }
}
