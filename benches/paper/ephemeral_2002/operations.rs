//! Table 1: the operations of the store.

use std::time::Duration;

use flowtable::Timestamp;
use flowtable::papers::esp::{
    EspPacket, Instruction, Location, Locations, Relation, Site, execute_observed,
};
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
/// empty chain. Reads and writes are those of packets: one that compares a value and fails, and one
/// that then replaces it.
pub(crate) fn words() -> [u32; 4] {
    let mut filled = Filled::new(1, SEED);
    let store = &mut filled.store;
    let [mut found, mut created] = [Words::default(); 2];
    store.get_or_insert_with_observed(&7, NOW, || 5, &mut created).expect("there is room");
    assert_eq!(store.get_observed(&7, NOW, &mut found), Some(&5));
    let [failed, replaced] = [4, 6].map(|value| {
        let compare = Instruction::Compare { tag: 7, relation: Relation::Greater, value };
        let (mut packet, mut words) =
            (EspPacket::new(Locations::CENTRE, 1, compare), Words::default());
        let site = Site { location: Location::Centre, identity: 1 };
        _ = execute_observed(store, &mut packet, site, NOW, &mut words);
        words.0
    });
    [found.0, created.0, failed - found.0, replaced - failed]
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
    let (found_in, read_in, mut written_in) =
        (filled.store.clone(), filled.store.clone(), filled.store.clone());
    let mut stream = Stream::new(entries, part);
    // A read and a write include the find that the paper counts apart.
    let mut subjects: [Subject<'_>; 4] = [
        Box::new(|| tags.iter().filter(|tag| found_in.get(*tag, NOW).is_some()).count() as u64),
        Box::new(|| stream.create(entries)),
        Box::new(|| tags.iter().filter_map(|tag| read_in.get(tag, NOW)).sum()),
        Box::new(|| {
            let values =
                tags.iter().filter_map(|tag| written_in.get_mut(tag, NOW).map(|it| *it = 1));
            values.count() as u64
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
            let value = || {
                is_new += 1;
                0
            };
            self.filled.store.get_or_insert_with(&tag, now, value).expect("one has expired");
        }
        is_new
    }
}
