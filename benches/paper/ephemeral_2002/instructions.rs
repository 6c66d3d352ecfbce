//! Tables 2 and 3: the instructions COMPARE and COUNT.

use flowtable::ephemeral::EphemeralStore;
use flowtable::papers::esp::{
    Action, EspPacket, Instruction, Location, Locations, Relation, Site, execute, execute_observed,
};
use flowtable::probes::Words;
use model::papers::ephemeral_2002::chains::{ENTRIES, Filled, NOW, SEED};
use model::papers::ephemeral_2002::tables::{
    OTHER_WORK, TABLE_1, TABLE_2, TABLE_3, WORD, megabits, thousands,
};

use crate::causes::{Cause, Evidence};
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};
use crate::rounds::{Subject, Times};

const SITE: Site = Site { location: Location::Centre, identity: 1 };

pub(crate) fn packet(instruction: Instruction) -> EspPacket {
    EspPacket::new(Locations::CENTRE, 1, instruction)
}

/// The two instructions of the paper on a tag.
pub(crate) fn compare(tag: u64, value: u64) -> EspPacket {
    packet(Instruction::Compare { tag, relation: Relation::Greater, value })
}

pub(crate) fn count(tag: u64) -> EspPacket {
    packet(Instruction::Count { tag, threshold: 1 })
}

/// Returns the words accessed for a packet, and whether it is forwarded.
pub(crate) fn words(store: &mut EphemeralStore, mut packet: EspPacket) -> (u32, bool) {
    let mut words = Words::default();
    let verdict = execute_observed(store, &mut packet, SITE, NOW, &mut words);
    (words.0, verdict == Action::Forward)
}

/// Counts the words of COMPARE (create, drop, forward) and of COUNT (create, find) in a store
/// without other entries.
pub(crate) fn words_of_all() -> [(&'static str, u32); 5] {
    let mut filled = Filled::new(2, SEED);
    let mut run = |packet| words(&mut filled.store, packet).0;
    [
        ("COMPARE, creates", run(compare(1, 5))),
        ("COMPARE, drops", run(compare(1, 5))),
        ("COMPARE, binds again", run(compare(1, 6))),
        ("COUNT, creates", run(count(2))),
        ("COUNT, finds", run(count(2))),
    ]
}

pub(crate) fn tables_2_and_3(report: &mut Report, quick: bool) -> Outcome {
    let columns = [
        "memory",
        "COMPARE µs",
        "COUNT µs",
        "COMPARE k/s",
        "here",
        "COUNT k/s",
        "here",
        "COUNT Mb/s",
    ];
    let mut table = Table::new(&columns);
    for ((memory, [compare, count]), stated) in TABLE_2.into_iter().zip(TABLE_3) {
        table.row(&[
            &memory,
            &two(compare),
            &two(count),
            &stated[0],
            &thousands(compare),
            &stated[1],
            &thousands(count),
            &format!("{:.1}", megabits(stated[1])),
        ]);
    }
    let title = "The paper's latencies, and thousands of packets in a second: floor(1000 / (µs + \
        0.32)) (tables 2 and 3)";
    report.table("tables_2_and_3", title, table)?;
    judge(report);
    ours(report, quick)
}

/// Compares latencies by words, rates by latencies, and the rate of the smallest packets.
fn judge(report: &mut Report) {
    for (name, paper, words) in
        [("COMPARE, binds again", TABLE_2[0].1[0], 2), ("COUNT, finds", TABLE_2[0].1[1], 4)]
    {
        let modelled = f64::from(words_of_all()[words].1) * WORD;
        let what = format!("{name}: µs in SRAM, at 0.1 for a word");
        report.record(
            Finding::number("table 2", what, paper, modelled).about().because(Cause::WordsAndTime),
        );
    }
    let why = "The paper does not state the time of a word of SDRAM.";
    report.record(Finding::not_measured(
        "table 2",
        "latencies in SDRAM, and with heads in SRAM",
        why,
    ));
    for (at, name) in ["COMPARE", "COUNT"].into_iter().enumerate() {
        let memories = TABLE_2.map(|(memory, _)| memory).join(", ");
        let what =
            format!("{name} ({memories}): k packets/s, 1000 / (µs of table 2 + {OTHER_WORK})");
        let paper = TABLE_3.map(|stated| stated[at].to_string()).join(", ");
        let ours = TABLE_2.map(|(_, latencies)| thousands(latencies[at]).to_string()).join(", ");
        let finding = Finding::check("table 3", what, &paper, &*ours, "equal", ours == paper);
        report.record(finding.calculated());
    }
    let (what, fastest) =
        ("Mb/s of the smallest packets with COUNT", megabits(thousands(TABLE_2[0].1[1])));
    let finding = Finding::number("text, rates", what, 169.0, fastest).counted();
    report.record(finding.calculated());
}

/// Reports the words counted here, and measured nanoseconds per packet.
fn ours(report: &mut Report, quick: bool) -> Outcome {
    let mut table = Table::new(&["", "words", "SRAM µs, modelled", "k/s, modelled"]);
    for (name, words) in words_of_all() {
        let latency = f64::from(words) * WORD;
        table.row(&[&name, &words, &two(latency), &thousands(latency)]);
    }
    let title = format!("Words here, and what they would take in SRAM beside {OTHER_WORK} µs");
    report.table("instructions_words", &title, table)?;

    let entries = if quick { 4096 } else { ENTRIES };
    let mut table = Table::new(&[
        "",
        "executed ns",
        "M/s",
        "with parsing and writing ns",
        "M/s",
        "Mb/s at 62 bytes",
    ]);
    let mut filled = Filled::new(entries, SEED);
    filled.fill_to_part(0.5);
    let tags = filled.present(entries);
    let compares = tags.iter().map(|tag| compare(*tag, 0));
    for (name, packets) in [
        ("COMPARE, finds", compares.collect::<Vec<EspPacket>>()),
        ("COUNT, finds", tags.iter().map(|tag| count(*tag)).collect()),
    ] {
        let times = times(&filled.store, &packets, quick);
        let [executed, whole] = times;
        let rates = times.map(|time| 1000.0 / time);
        let megabits = format!(
            "{:.0}",
            rates[1] * f64::from(model::papers::ephemeral_2002::tables::SMALLEST * 8)
        );
        let one = |number: f64| format!("{number:.1}");
        table.row(&[&name, &one(executed), &one(rates[0]), &one(whole), &one(rates[1]), &megabits]);
    }
    let title = format!("Instructions on this machine, {entries} entries, half full, one core");
    report.table("instructions", &title, table)
}

/// Nanoseconds per packet: execution only, and parsing, execution and encoding.
fn times(store: &EphemeralStore, packets: &[EspPacket], quick: bool) -> [f64; 2] {
    let mut stores = [store.clone(), store.clone()];
    let [executed, whole] = &mut stores;
    let encoded = |packet: &EspPacket| {
        let mut bytes = [0; EspPacket::MAX_LEN];
        packet.write_to(&mut bytes).expect("there is room");
        bytes
    };
    let mut bytes: Vec<_> = packets.iter().map(encoded).collect();
    let mut subjects: [Subject<'_>; 2] = [
        Box::new(|| {
            let run = |packet: &&EspPacket| {
                execute(executed, &mut { **packet }, SITE, NOW) == Action::Drop
            };
            packets.iter().filter(run).count() as u64
        }),
        Box::new(|| {
            let mut dropped = 0;
            for bytes in &mut bytes {
                let (mut packet, _) = EspPacket::parse(bytes).expect("it was written so");
                dropped += u64::from(execute(whole, &mut packet, SITE, NOW) == Action::Drop);
                packet.write_to(bytes).expect("it is as long");
            }
            dropped
        }),
    ];
    let times = Times::measure(&mut subjects, packets.len(), if quick { 1 } else { 21 });
    [0, 1].map(|number| times.of(number))
}

/// Sets the paper's words beside its times, and the difference between its instructions beside its
/// operations.
pub(crate) fn explain_words(_quick: bool) -> Result<Evidence, Box<dyn std::error::Error>> {
    let mut table = Table::new(&["operation", "words", "printed µs", "µs for a word"]);
    for ((name, _, latency), words) in TABLE_1.into_iter().zip([5.0, 10.0, 2.0, 2.0]) {
        table.row(&[&name, &words, &latency, &format!("{:.3}", latency / words)]);
    }
    for ((name, words), latency) in
        [words_of_all()[2], words_of_all()[4]].into_iter().zip(TABLE_2[0].1)
    {
        table.row(&[&name, &words, &latency, &format!("{:.3}", latency / f64::from(words))]);
    }
    let [compare, count] = TABLE_2[0].1;
    let apart = format!("{:.2}", compare - count);
    table.row(&[&"COMPARE less COUNT", &"-", &apart, &"a find or create takes 1.4"]);
    Ok(vec![("Printed times by words, in SRAM", table)])
}
