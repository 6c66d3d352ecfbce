//! Section 4.4: the goal of the collection against the pauses of insertions.
//!
//! The paper leaves the goal, 100, for further study. A large goal makes rare and long pauses, and
//! might let the root shrink and grow again; a small one collects at nearly each insertion.

use flowtable::DefaultHashBuilder;
use flowtable::eviction::{Passive, PassiveGc};
use model::papers::trash_2006::traffic::{Packet, Rings, trash};

use super::cache::Trash;
use super::flow_cache::Flows;
use super::forwarder::{Forwarder, Subject, measure_rounds};
use crate::report::{Outcome, Report, Table, two};

/// Goals, as parts of 100 000 entries. A collection evicts at most a quarter.
const GOALS: [usize; 6] = [1, 10, 100, 1_000, 10_000, 25_000];

/// Measures the denial of service by the goal, for the trie and for `FlowCache`, whose slots are an
/// array.
pub(crate) fn gc_goal(report: &mut Report, quick: bool) -> Outcome {
    let (threshold, rounds, round) = if quick { (5_000, 2, 10_000) } else { (100_000, 9, 200_000) };
    let mut packets = Rings::rdos(Rings::ADJACENT);
    let filling: Vec<Packet> = packets.by_ref().take(4 * threshold).collect();
    let hasher = DefaultHashBuilder::with_seed(2006);
    let mut subjects: Vec<Box<dyn Subject>> = vec![];
    let mut names = vec![];
    for goal in GOALS.map(|goal| (goal * threshold / 100_000).max(1)) {
        let gc = PassiveGc::new(threshold, goal)?;
        let of_key = hasher.clone();
        subjects.push(Box::new(Forwarder::new(Trash::new(gc, move |flow| trash(flow, &of_key)))));
        names.push(("TRASH 160", goal));
        let flows = Flows::new(gc, Passive::new(gc), hasher.clone());
        subjects.push(Box::new(Forwarder::new(flows)));
        names.push(("FlowCache, passive", goal));
    }
    subjects.iter_mut().for_each(|subject| _ = subject.forward(&filling));
    let mut roots = RootBits::new(&subjects);
    let mut all = vec![];
    for _ in 0..rounds {
        all.push(measure_rounds(&mut subjects, &mut packets, 1, round));
        roots.observe(&subjects);
    }
    let header = [
        "cache",
        "goal",
        "ns per packet",
        "p50 ns",
        "p99",
        "p99.9",
        "p99.99",
        "slowest",
        "entries",
        "root bits seen",
    ];
    let mut table = Table::new(&header);
    for (at, (name, goal)) in names.iter().enumerate() {
        let middle = |of: &dyn Fn(&super::forwarder::Measurement) -> f64| {
            crate::report::median(all.iter().map(|round| of(&round[at])).collect())
        };
        let quantile = |q: usize| format!("{:.0}", middle(&|one| one.insertion[q]));
        let [p50, p99, p999, p9999, most] = [0, 1, 2, 3, 4].map(quantile);
        let ns = two(middle(&|one| one.ns_per_packet));
        let (entries, bits) = (subjects[at].state().entries, roots.seen(at));
        table.row(&[name, goal, &ns, &p50, &p99, &p999, &p9999, &most, &entries, &bits]);
    }
    let title = "The goal of the collection (section 4.4): time of an insertion, collections \
        included, in a denial of service";
    report.table("gc_goal", title, table)?;
    let of_tries = (0..names.len()).filter_map(|at| roots.range(at));
    let kept = of_tries.clone().filter(|(least, most)| least == most).count();
    report.remark(format!(
        "The root keeps its size with {kept} of {} goals. A goal is a quarter of the entries at \
            most, as many as a collection evicts.",
        of_tries.count()
    ));
    Ok(())
}

/// The least and the greatest size of the roots of tries.
struct RootBits(Vec<Option<(u32, u32)>>);

impl RootBits {
    fn new(subjects: &[Box<dyn Subject>]) -> Self {
        let shapes = subjects.iter().map(|subject| subject.state().shape);
        Self(shapes.map(|shape| shape.map(|it| (it.root_bits, it.root_bits))).collect())
    }

    fn observe(&mut self, subjects: &[Box<dyn Subject>]) {
        for (range, subject) in self.0.iter_mut().zip(subjects) {
            if let (Some((least, most)), Some(shape)) = (range, subject.state().shape) {
                (*least, *most) = ((*least).min(shape.root_bits), (*most).max(shape.root_bits));
            }
        }
    }

    fn range(&self, at: usize) -> Option<(u32, u32)> {
        self.0[at]
    }

    fn seen(&self, at: usize) -> String {
        self.range(at).map_or("-".into(), |(least, most)| format!("{least} to {most}"))
    }
}
