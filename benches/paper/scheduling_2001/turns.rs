//! Variants of the scheduler in the simulation of figures 10 to 15, in the reference model of the
//! simulator, in integers:
//!
//! ```text
//!     WF2Q+       of the flows with S ≤ V the least S + expected / share;   V advances by the run
//!     start-time  the least S;                                              V is that S
//! ```

use std::error::Error;

use flowtable::papers::schedule::simulator::Flow;
use model::papers::scheduling_2001::simulation::{COSTS, LIMITS, SLICES, WHOLE, flows};
use model::schedule::{Expected, FlowModel, Rule, SimulationModel};

use crate::causes::Evidence;
use crate::report::Table;

/// Microseconds of the simulation, and of a switch.
const END: u64 = 100_000;
const SWITCH: u64 = 3;

#[derive(Clone, Copy)]
struct Variant {
    is_by_start: bool,
    is_lower_first: bool,
    expected: Expected,
}

/// The results of a simulation: E in per cent, packets of flow 13 dropped, and of flow 6 the
/// longest queue and the packets dropped.
#[derive(Clone, Copy)]
struct Simulated {
    efficiency: f64,
    dropped: u64,
    queue_of_6: u64,
    dropped_of_6: u64,
}

fn simulate(variant: Variant, cost_13: u64, rule: Rule) -> Simulated {
    let Variant { is_by_start, is_lower_first, expected } = variant;
    let (whole, switch, end) = (WHOLE.into(), SWITCH, END);
    let model = SimulationModel { rule, expected, is_by_start, is_lower_first, switch, whole, end };
    let flow = |flow: Flow| FlowModel {
        period: 1_000_000 / u64::from(flow.packets_per_second),
        phase: 0,
        cost: flow.cost.as_micros() as u64,
        // Only a throttle has timeouts.
        timeout: 0,
        share: flow.share.into(),
        buffers: flow.buffers.into(),
    };
    let flows: Vec<FlowModel> = flows(cost_13).into_iter().map(flow).collect();
    let outcome = model.run(&flows);
    let busy = outcome.processing + outcome.switching;
    Simulated {
        efficiency: 100.0 * outcome.processing as f64 / busy as f64,
        dropped: outcome.dropped[12],
        queue_of_6: outcome.longest[5],
        dropped_of_6: outcome.dropped[5],
    }
}

/// The figures that the text describes, for one variant.
struct Figures {
    by_limit: Vec<[Simulated; 3]>,
    by_slice: Vec<[Simulated; 3]>,
}

fn figures_of(variant: Variant) -> Figures {
    let at = |rule| COSTS.map(|cost| simulate(variant, cost, rule));
    let by_limit = LIMITS.map(|limit| at(Rule::Packets(limit.into()))).into();
    Figures { by_limit, by_slice: SLICES.map(|micros| at(Rule::Slice(micros))).into() }
}

fn rises(outcomes: &[[Simulated; 3]], of: impl Fn(&Simulated) -> f64) -> bool {
    (0..3).all(|cost| outcomes.iter().map(|costs| of(&costs[cost])).is_sorted_by(|a, b| a < b))
}

/// Returns which of the printed statements hold.
fn statements(figures: &Figures) -> [bool; 11] {
    let (limits, slices) = (&figures.by_limit, &figures.by_slice);
    let near = |value: f64, printed: f64, percent: f64| {
        (value - printed).abs() <= percent / 100.0 * printed
    };
    let efficiency = |one: &Simulated| one.efficiency;
    let falls = |one: &Simulated| -(one.dropped as f64);
    [
        rises(limits, efficiency),
        near(limits[1][2].efficiency, 84.0, 2.0),
        rises(limits, falls),
        limits[0][0].dropped_of_6 > 0,
        limits[0][1].dropped_of_6 == 0,
        limits[0][2].dropped_of_6 == 0,
        limits[1][2].queue_of_6.abs_diff(8) <= 1,
        rises(slices, efficiency),
        near(slices[3][2].efficiency, 84.0, 2.0),
        rises(slices, falls),
        near(slices[3][2].queue_of_6 as f64, 24.0, 10.0),
    ]
}

/// Runs all variants, and counts the printed statements that hold.
pub(crate) fn explain_turn_details(_quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let header = [
        "scheduler",
        "equal tags",
        "expects",
        "E, 8 packets",
        "queue",
        "E, 500 us",
        "queue",
        "figure 13",
        "figure 14",
        "statements met",
    ];
    let mut table = Table::new(&header);
    table.row(&[&"printed", &"-", &"-", &84, &8, &84, &24, &"rises", &"falls", &"11"]);
    for (name, is_by_start) in [("WF2Q+", false), ("start-time", true)] {
        for (ties, is_lower_first) in [("higher first", false), ("lower first", true)] {
            for (expects, expected) in
                [("a turn", Expected::Queued), ("a packet", Expected::OnePacket)]
            {
                if is_by_start && expects == "a packet" {
                    // Its tags do not contain the expected run.
                    continue;
                }
                let figures = figures_of(Variant { is_by_start, is_lower_first, expected });
                let holds = statements(&figures);
                let [eight, slice] = [&figures.by_limit[1][2], &figures.by_slice[3][2]];
                let yes = |holds, yes| if holds { yes } else { "no" };
                let met = holds.iter().filter(|holds| **holds).count();
                table.row(&[
                    &name,
                    &ties,
                    if is_by_start { &"-" } else { &expects },
                    &format!("{:.1}", eight.efficiency),
                    &eight.queue_of_6,
                    &format!("{:.1}", slice.efficiency),
                    &slice.queue_of_6,
                    &yes(holds[7], "rises"),
                    &yes(holds[9], "falls"),
                    &format!("{met} of {}", holds.len()),
                ]);
            }
        }
    }
    Ok(vec![("Statements about figures 10 to 15, by variant of the scheduler, c13 = 30 us", table)])
}
