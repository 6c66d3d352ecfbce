//! The results of Qie, Bavier, Peterson and Karlin for schedulers, and the results of their
//! simulation with every parameter stated.
//!
//! The simulation uses integers only, so its results are equal on all machines. The bench `paper`
//! prints them.

use flowtable::papers::schedule::share::Order;
use flowtable::papers::schedule::simulator::{Flow, Outcome};
use flowtable::papers::schedule::{Adaptive, Demand, Inadmissible, Policy};
use model::papers::scheduling_2001::results::{BY_LIMIT, BY_SLICE, BY_THROTTLE, Cell};
use model::papers::scheduling_2001::simulation::{
    self, COSTS, DURATION, LIMITS, SLICES, SWITCH, THROTTLES, WHOLE, flows, us,
};
use model::schedule::{Expected, FlowModel, Rule, SimulationModel};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The number of a flow in the paper, as an index.
const fn flow(number: usize) -> usize {
    number - 1
}

fn cell(outcome: &Outcome) -> Cell {
    let others = &outcome.flows[..flow(13)];
    let percent = |part: f64, scale: f64| (part * scale).round() as u32;
    Cell {
        efficiency: percent(outcome.account.efficiency().unwrap(), 1000.0),
        dropped: outcome.flows[flow(13)].dropped,
        longest: [3, 6, 9].map(|number| outcome.flows[flow(number)].longest_queue),
        others_dropped: others.iter().map(|flow| flow.dropped).sum(),
        idle: percent(outcome.idle.as_secs_f64() / DURATION.as_secs_f64(), 100.0),
    }
}

fn efficiency(outcome: &Outcome) -> f64 {
    outcome.account.efficiency().unwrap()
}

fn run(cost_13: u64, policy: Policy) -> Outcome {
    simulation::run(&flows(cost_13), policy)
}

#[track_caller]
fn assert_row(setting: &str, row: [Cell; 3], policy: Policy) {
    for (cost, expected) in COSTS.into_iter().zip(row) {
        assert_eq!(cell(&run(cost, policy)), expected, "{setting}, c13 = {cost}");
    }
}

#[test]
fn the_table_by_packet_limits() {
    for (limit, row) in LIMITS.into_iter().zip(BY_LIMIT) {
        assert_row(&format!("{limit} packets"), row, simulation::packets(limit));
    }
}

#[test]
fn the_table_by_timeslices() {
    for (slice, row) in SLICES.into_iter().zip(BY_SLICE) {
        assert_row(&format!("{slice} us"), row, simulation::slice(slice));
    }
}

#[test]
fn the_table_by_throttles() {
    for (setting, row) in THROTTLES.into_iter().zip(BY_THROTTLE) {
        assert_row(&format!("{setting:?}"), row, simulation::throttle(setting));
    }
}

#[test]
fn the_demand_of_the_flows_is_that_of_the_paper() {
    let demand = |flow: &Flow| f64::from(flow.packets_per_second) * flow.cost.as_secs_f64();
    let [others, with_13] = [12, 13].map(|n| flows(3).iter().take(n).map(demand).sum::<f64>());
    assert!((others - 0.595).abs() < 1e-9 && (with_13 - 0.895).abs() < 1e-9);
    let shares: u32 = flows(3).iter().map(|flow| flow.share).sum();
    assert_eq!(shares * 1000 / WHOLE, 625);
    for cost in COSTS {
        let arrived: Vec<u64> =
            run(cost, simulation::packets(8)).flows.iter().map(|flow| flow.arrived).collect();
        assert_eq!(arrived[..3], [500, 1000, 2000]);
        assert_eq!(arrived[flow(13)], 10_000);
    }
}

// Packet limits: figures 10 to 12.

#[test]
fn without_batches_the_efficiency_follows_from_the_shares() {
    for (cost, row) in COSTS.into_iter().zip(BY_LIMIT[0]) {
        // Packets per µs of processing, where each flow receives its share.
        let packets =
            3.5 / 62.5 + 21.0 / 62.5 / 3.0 + 35.0 / 62.5 / 10.0 + 3.0 / 62.5 / cost as f64;
        let expected = 1.0 / (1.0 + 3.0 * packets);
        assert!((f64::from(row.efficiency) / 1000.0 - expected).abs() < 0.002, "c13 = {cost}");
        // Flows need 62.5 %. Flow 6 drops packets if its backlog after 0.1 s exceeds its 128
        // buffers.
        let missing = 2000.0 * (1.0 - expected / 0.625);
        let outcome = run(cost, simulation::packets(1)).flows[flow(6)];
        assert_eq!(outcome.dropped > 0, missing > 128.0, "c13 = {cost}: {missing}");
        let kept = outcome.dropped as f64 + f64::from(outcome.longest_queue);
        assert!((kept - missing).abs() < 10.0, "c13 = {cost}: {kept}, {missing}");
    }
}

#[test]
fn flow_6_drops_without_batches_if_flow_13_is_cheap() {
    let dropped = COSTS.map(|cost| run(cost, simulation::packets(1)).flows[flow(6)].dropped);
    assert!(dropped[0] > 0 && dropped[1..] == [0, 0], "{dropped:?}");
}

#[test]
fn efficiency_rises_with_the_limit_and_with_the_cost() {
    let all =
        LIMITS.map(|limit| COSTS.map(|cost| efficiency(&run(cost, simulation::packets(limit)))));
    assert!(all.iter().all(|row| row.is_sorted()), "{all:?}");
    assert!(all.is_sorted_by(|low, high| (0..3).all(|cost| low[cost] < high[cost])), "{all:?}");
}

#[test]
fn the_cost_of_flow_13_matters_for_limits_but_not_for_slices_and_the_throttle() {
    let spread = |policy: Policy| {
        let all = COSTS.map(|cost| efficiency(&run(cost, policy)));
        all.into_iter().fold(0.0, f64::max) - all.into_iter().fold(1.0, f64::min)
    };
    for limit in [8, 16, 32, 64] {
        assert!(spread(simulation::packets(limit)) > 0.15, "{limit}");
    }
    for micros in [30, 150, 300, 500] {
        assert!(spread(simulation::slice(micros)) < 0.01, "{micros}");
    }
    for setting in THROTTLES {
        assert!(spread(simulation::throttle(setting)) < 0.035, "{setting:?}");
    }
}

#[test]
fn flow_6_with_32_buffers_drops_packets_if_batches_are_large() {
    let dropped = [16, 32, 64].map(|limit| {
        let mut flows = flows(30);
        flows[flow(6)].buffers = 32;
        simulation::run(&flows, simulation::packets(limit)).flows[flow(6)].dropped
    });
    assert_eq!(dropped, [0, 6, 156]);
}

// Timeslices: figures 13 to 15.

#[test]
fn flow_6_uses_less_than_a_sixth_of_a_long_slice() {
    let longest = COSTS.map(|cost| run(cost, simulation::slice(500)).flows[flow(6)].longest_run);
    let longest = longest.into_iter().max().unwrap();
    assert_eq!((longest.as_secs_f64() / us(500).as_secs_f64() * 1000.0).round(), 138.0);
}

// The throttle: figures 16 to 18.

#[test]
fn two_settings_drop_no_packets_and_their_neighbours_do() {
    let dropped =
        THROTTLES.map(|setting| run(3, simulation::throttle(setting)).flows[flow(13)].dropped);
    assert_eq!(dropped, [3552, 1447, 0, 0, 80]);
}

#[test]
fn thresholds_are_those_of_the_formula() {
    for (setting, expected) in
        THROTTLES.into_iter().zip([[10, 4, 1], [15, 5, 2], [30, 10, 3], [60, 20, 6], [150, 50, 15]])
    {
        let throttle = simulation::capped(setting);
        let strict = throttle.with_strict_thresholds();
        assert_eq!([1, 3, 10].map(|cost| strict.threshold(us(cost), 128)), expected);
        assert_eq!(throttle.threshold(us(1), 128), expected[0].min(128));
    }
    let of_13 = THROTTLES.map(|setting| simulation::capped(setting).threshold(us(30), 128));
    assert_eq!(of_13, [1, 1, 1, 2, 5]);
}

#[test]
fn a_flow_with_fewer_buffers_than_its_threshold_starves_unless_that_is_capped() {
    let of = |outcome: &Outcome| [1, 2, 3].map(|number| outcome.flows[flow(number)]);
    for cost in COSTS {
        let strict = of(&run(cost, simulation::throttle((2, 150))));
        assert_eq!(strict.map(|flow| flow.dropped), [372, 872, 1872], "c13 = {cost}");
        assert_eq!(strict.map(|flow| flow.turns), [0; 3], "c13 = {cost}");
    }
    let capped = run(3, Policy::Throttle(simulation::capped((2, 150))));
    assert_eq!(of(&capped).map(|flow| flow.dropped), [2, 9, 66]);
}

#[test]
fn more_buffers_or_a_timeout_prevent_starvation() {
    let with = |cost: u64, change: fn(Flow) -> Flow| {
        let mut flows = flows(cost);
        flows[flow(3)] = change(flows[flow(3)]);
        simulation::run(&flows, simulation::throttle((2, 150))).flows[flow(3)]
    };
    for cost in COSTS {
        assert_eq!(with(cost, |flow| Flow { buffers: 256, ..flow }).dropped, 0, "c13 = {cost}");
        let privileged = with(cost, |flow| Flow { timeout: Some(us(500)), ..flow });
        assert_eq!(privileged.dropped, 0, "c13 = {cost}");
        assert!((15..=19).contains(&privileged.longest_queue), "{}", privileged.longest_queue);
    }
}

#[test]
fn a_timeout_keeps_the_queue_of_flow_9_short() {
    for cost in COSTS {
        let outcome = run(cost, simulation::throttle((2, 150)));
        let longest = [6, 9].map(|number| outcome.flows[flow(number)].longest_queue);
        assert!(longest[0] >= 58 && longest[1] <= 20, "{longest:?}");
    }
}

#[test]
fn the_throttle_follows_from_the_demand() {
    let demand = |flow: &Flow| Demand {
        packets_per_second: flow.packets_per_second.into(),
        cost: flow.cost,
        buffers: flow.buffers,
    };
    let demands: Vec<Demand> = flows(3).iter().map(demand).collect();
    let adaptive = Adaptive::new(SWITCH, us(150)).unwrap();
    let throttle = adaptive.plan(&demands).unwrap();
    assert_eq!(throttle.overhead().ppm(), 117_318); // 0.105 / 0.895
    assert_eq!((throttle.slice().as_nanos() + 50) / 100, 256); // 25.6 µs
    // No packet is dropped; 10 % and 5 % drop none either, and 20 % does.
    let outcome = run(3, Policy::Throttle(throttle));
    assert_eq!(outcome.flows.iter().map(|flow| flow.dropped).sum::<u64>(), 0);
    assert!(efficiency(&outcome) >= 0.895);
    let demands: Vec<Demand> = flows(10).iter().map(demand).collect();
    let demanded = 595_000_000 + 1_000_000_000;
    assert_eq!(adaptive.plan(&demands), Err(Inadmissible::Overload { demanded }));
}

// Parameters that the paper leaves open.

fn with_random_phases(cost_13: u64, seed: u64) -> Vec<Flow> {
    let mut rng = StdRng::seed_from_u64(seed);
    let with_phase = |flow: Flow| {
        let period = 1_000_000 / u64::from(flow.packets_per_second);
        Flow { phase: us(rng.random_range(0..period)), ..flow }
    };
    flows(cost_13).into_iter().map(with_phase).collect()
}

#[test]
fn with_random_phases_limits_and_slices_have_no_effect() {
    let limits = LIMITS[1..].iter().map(|limit| simulation::packets(*limit));
    for policy in limits.chain(SLICES.map(simulation::slice)) {
        for cost in COSTS {
            let of_seed =
                |seed| efficiency(&simulation::run(&with_random_phases(cost, seed), policy));
            let mut all: Vec<f64> = (0..9).map(of_seed).collect();
            all.sort_by(f64::total_cmp);
            assert!((0.624..0.645).contains(&all[4]), "{policy:?}, c13 = {cost}: {all:?}");
            assert!(all[0] >= 0.624 && all[8] < 0.68, "{policy:?}, c13 = {cost}: {all:?}");
        }
    }
}

#[test]
fn with_random_phases_the_throttle_has_the_same_effect() {
    for setting in THROTTLES {
        for cost in COSTS {
            let together = run(cost, simulation::throttle(setting));
            for seed in 0..4 {
                let flows = with_random_phases(cost, seed);
                let apart = simulation::run(&flows, simulation::throttle(setting));
                let difference = efficiency(&apart) - efficiency(&together);
                assert!(difference.abs() < 0.015, "{setting:?}, {cost}, {seed}: {difference}");
                let longest = |outcome: &Outcome| outcome.flows[flow(6)].longest_queue;
                assert!(longest(&apart).abs_diff(longest(&together)) <= 3);
                if cost == 3 && [10, 5].contains(&setting.0) {
                    assert_eq!(apart.flows[flow(13)].dropped, 0, "{setting:?}, {seed}");
                }
            }
        }
    }
}

#[test]
fn serving_the_lower_flow_first_halves_queues() {
    let longest = |flows: &[Flow], index: usize| {
        simulation::run(flows, simulation::slice(500)).flows[index].longest_queue
    };
    let mut reversed = flows(30);
    reversed.reverse();
    let (higher, lower) = (longest(&flows(30), flow(3)), longest(&reversed, 13 - 3));
    assert!((0.3..0.7).contains(&(f64::from(lower) / f64::from(higher))), "{lower}, {higher}");
}

fn flow_model(flow: &Flow) -> FlowModel {
    FlowModel {
        period: 1_000_000 / u64::from(flow.packets_per_second),
        phase: flow.phase.as_micros() as u64,
        cost: flow.cost.as_micros() as u64,
        timeout: flow.timeout.map_or(0, |timeout| timeout.as_micros() as u64),
        share: flow.share.into(),
        buffers: flow.buffers.into(),
    }
}

#[test]
fn the_expected_length_of_a_run_changes_efficiency_by_three_points() {
    let mut most: f64 = 0.0;
    for limit in LIMITS.map(u64::from) {
        for cost in COSTS {
            let flows: Vec<FlowModel> = flows(cost).iter().map(flow_model).collect();
            let efficiency = |expected| {
                let (rule, is_lower_first) = (Rule::Packets(limit), false);
                let (switch, whole, end) = (3, WHOLE.into(), 100_000);
                let model = SimulationModel {
                    rule,
                    expected,
                    is_by_start: false,
                    is_lower_first,
                    switch,
                    whole,
                    end,
                };
                let outcome = model.run(&flows);
                outcome.processing as f64 / (outcome.processing + outcome.switching) as f64
            };
            let queued = efficiency(Expected::Queued);
            for other in [Expected::OnePacket, Expected::Full].map(efficiency) {
                most = most.max((other - queued).abs());
            }
        }
    }
    assert!((0.001..=0.035).contains(&most), "{most}");
}

/// Start-time fair queueing, which the paper cites, comes closer than WF2Q+ to E = 84 % and a queue
/// of 8 packets with a limit of 8 packets.
#[test]
fn start_time_fair_queueing_in_the_simulation() {
    let of = |order, policy| {
        let cell = cell(&simulation::run_in(order, &flows(30), policy));
        (cell.efficiency, cell.longest[1])
    };
    assert_eq!(of(Order::StartTime, simulation::packets(8)), (835, 9));
    assert_eq!(of(Order::StartTime, simulation::slice(500)), (879, 18));
    let (efficiency, longest) = of(Order::Wf2qPlus, simulation::packets(8));
    assert!(efficiency < 835 && longest > 9, "{efficiency} and {longest}");
}

/// Costs that vary with the data, around the estimates: the throttle bounds switching by the mean.
#[test]
fn the_throttle_bounds_switching_when_costs_vary() {
    let flows = flows(3);
    let mut rng = StdRng::seed_from_u64(2001);
    for setting in THROTTLES {
        let simulation =
            simulation::simulation(Order::default(), &flows, simulation::throttle(setting));
        // From nothing to twice the estimate.
        let even = |flow: usize, _| {
            let most = 2 * flows[flow].cost.as_nanos() as u64;
            core::time::Duration::from_nanos(rng.random_range(1..most))
        };
        let even = simulation.run_with(even).unwrap();
        // Each twentieth packet costs ten times the estimate, the others about half.
        let rare = |flow: usize, packet| {
            let mean = flows[flow].cost;
            if packet % 20 == 19 { mean * 10 } else { mean * 10 / 19 }
        };
        let rare = simulation.run_with(rare).unwrap();
        let constant = efficiency(&simulation.run().unwrap());
        // A long packet extends a short turn: less switching for the same work.
        for (outcome, most, above) in [(even, 2, 0.02), (rare, 10, 0.05)] {
            let varied = efficiency(&outcome);
            let change = varied - constant;
            assert!(-0.02 < change && change < above, "{setting:?}: {varied} and {constant}");
            // Turns end with the first packet after the timeslice.
            let slice = core::time::Duration::from_micros(setting.1);
            for (flow, outcome) in flows.iter().zip(outcome.flows) {
                assert!(outcome.longest_run <= slice + flow.cost * most, "{setting:?}");
            }
        }
    }
}
