//! Variants of the scheduler in the simulation of figures 10 to 15, in integers.
//!
//! The simulator of the crate has one scheduler. This one has the same flows and the same loop,
//! with either of two orders of service, either tie break and either expected run:
//!
//! ```text
//!     WF2Q+       of the flows with S ≤ V the least S + expected / share;   V advances by the run
//!     start-time  the least S;                                              V is that S
//! ```

use std::error::Error;

use model::papers::scheduling_2001::simulation::{COSTS, LIMITS, SLICES, WHOLE, flows};

use crate::causes::Evidence;
use crate::report::Table;

/// Microseconds of the simulation, of a switch, and buffers of a flow.
const END: u64 = 100_000;
const SWITCH: u64 = 3;
const BUFFERS: u64 = 128;
/// Virtual time of a microsecond at a share of one: a common multiple of all shares.
const UNIT: u64 = 600;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Wf2q,
    StartTime,
}

#[derive(Clone, Copy)]
struct Variant {
    order: Order,
    higher_first: bool,
    /// Whether the run expected of a flow is its whole turn, or one packet.
    expects_turn: bool,
}

/// The limit of a turn.
#[derive(Clone, Copy)]
enum Limit {
    Packets(u64),
    Slice(u64),
}

#[derive(Clone, Default)]
struct Flow {
    period: u64,
    cost: u64,
    share: u64,
    arrived: u64,
    queue: u64,
    longest: u64,
    dropped: u64,
    start: u64,
    finish: u64,
    is_active: bool,
}

impl Flow {
    fn next_arrival(&self) -> Option<u64> {
        Some(self.arrived * self.period).filter(|at| *at < END)
    }

    fn deliver(&mut self, now: u64) {
        while self.next_arrival().is_some_and(|at| at <= now) {
            self.arrived += 1;
            if self.queue < BUFFERS {
                self.queue += 1;
                self.longest = self.longest.max(self.queue);
            } else {
                self.dropped += 1;
            }
        }
    }

    /// Returns the run that the scheduler expects.
    fn expected(&self, limit: Limit, expects_turn: bool) -> u64 {
        match limit {
            _ if !expects_turn => self.cost,
            Limit::Packets(most) => self.queue.min(most) * self.cost,
            Limit::Slice(micros) => {
                (self.queue * self.cost).min(micros.next_multiple_of(self.cost))
            }
        }
    }
}

/// What a simulation yields: E in per cent, packets of flow 13 dropped, and of flow 6 the longest
/// queue and the packets dropped.
#[derive(Clone, Copy)]
struct Simulated {
    efficiency: f64,
    dropped: u64,
    queue_of_6: u64,
    dropped_of_6: u64,
}

fn flows_of(cost_13: u64) -> Vec<Flow> {
    let flow = |flow: flowtable::schedule::simulator::Flow| Flow {
        period: 1_000_000 / u64::from(flow.packets_per_second),
        cost: flow.cost.as_micros() as u64,
        share: flow.share.into(),
        ..Flow::default()
    };
    flows(cost_13).into_iter().map(flow).collect()
}

fn simulate(variant: Variant, cost_13: u64, limit: Limit) -> Simulated {
    debug_assert_eq!(WHOLE, 200);
    let mut flows = flows_of(cost_13);
    let (mut now, mut virtual_time, mut processed, mut switched) = (0, 0, 0, 0);
    while now < END {
        flows.iter_mut().for_each(|flow| flow.deliver(now));
        for flow in &mut flows {
            if flow.queue > 0 && !flow.is_active {
                flow.start = flow.finish.max(virtual_time);
            }
            flow.is_active = flow.queue > 0;
        }
        let Some(at) = pick(variant, limit, &flows, &mut virtual_time) else {
            virtual_time = flows.iter().map(|flow| flow.finish).fold(virtual_time, u64::max);
            now = flows.iter().filter_map(Flow::next_arrival).min().unwrap_or(END);
            continue;
        };
        now += SWITCH;
        switched += SWITCH;
        let (mut packets, mut run) = (0, 0);
        flows.iter_mut().for_each(|flow| flow.deliver(now));
        while flows[at].queue > 0 && now < END {
            let is_over = match limit {
                Limit::Packets(most) => packets >= most,
                Limit::Slice(micros) => run >= micros,
            };
            if is_over {
                break;
            }
            flows[at].queue -= 1;
            let cost = flows[at].cost;
            (packets, run, now) = (packets + 1, run + cost, now + cost);
            flows.iter_mut().for_each(|flow| flow.deliver(now));
        }
        processed += run;
        let flow = &mut flows[at];
        flow.finish = flow.start + run * UNIT / flow.share;
        flow.start = flow.finish;
        if variant.order == Order::Wf2q {
            virtual_time += UNIT / u64::from(WHOLE) * run;
        }
    }
    Simulated {
        efficiency: 100.0 * processed as f64 / (processed + switched) as f64,
        dropped: flows[12].dropped,
        queue_of_6: flows[5].longest,
        dropped_of_6: flows[5].dropped,
    }
}

/// Returns the flow to serve, and advances the virtual time to its start.
fn pick(variant: Variant, limit: Limit, flows: &[Flow], virtual_time: &mut u64) -> Option<usize> {
    let active = || flows.iter().enumerate().filter(|(_, flow)| flow.is_active);
    let least = active().map(|(_, flow)| flow.start).min()?;
    let tag = |flow: &Flow| match variant.order {
        Order::StartTime => flow.start,
        Order::Wf2q => flow.start + flow.expected(limit, variant.expects_turn) * UNIT / flow.share,
    };
    *virtual_time = match variant.order {
        Order::StartTime => least,
        Order::Wf2q => least.max(*virtual_time),
    };
    let eligible = active().filter(|(_, flow)| flow.start <= *virtual_time);
    let place = |at: usize| if variant.higher_first { flows.len() - at } else { at };
    eligible.min_by_key(|(at, flow)| (tag(flow), place(*at))).map(|(at, _)| at)
}

/// The figures that the text describes, for one variant.
struct Figures {
    by_limit: Vec<[Simulated; 3]>,
    by_slice: Vec<[Simulated; 3]>,
}

fn figures_of(variant: Variant) -> Figures {
    let at = |limit| COSTS.map(|cost| simulate(variant, cost, limit));
    let by_limit = LIMITS.map(|limit| at(Limit::Packets(limit.into()))).into();
    Figures { by_limit, by_slice: SLICES.map(|micros| at(Limit::Slice(micros))).into() }
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
    for (name, order) in [("WF2Q+", Order::Wf2q), ("start-time", Order::StartTime)] {
        for (ties, higher_first) in [("higher first", true), ("lower first", false)] {
            for (expects, expects_turn) in [("a turn", true), ("a packet", false)] {
                if order == Order::StartTime && !expects_turn {
                    // Its tags do not contain the expected run.
                    continue;
                }
                let figures = figures_of(Variant { order, higher_first, expects_turn });
                let holds = statements(&figures);
                let [eight, slice] = [&figures.by_limit[1][2], &figures.by_slice[3][2]];
                let yes = |holds, yes| if holds { yes } else { "no" };
                let met = holds.iter().filter(|holds| **holds).count();
                table.row(&[
                    &name,
                    &ties,
                    if order == Order::Wf2q { &expects } else { &"-" },
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
