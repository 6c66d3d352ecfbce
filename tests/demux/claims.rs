//! The costs that McKenney and Dove calculated for demultiplexers, and simulations of their
//! traffic.
//!
//! Costs are PCBs examined per packet. No test reads a clock.

use flowtable::demux::analysis::{ConnectionSetup, Tpca};
use flowtable::demux::{Arrival, Demux, Sequent};

use model::papers::demux_1992::balanced_hash::Balanced;
use model::papers::demux_1992::setup::{PACKETS, Segment, segments};
use model::papers::demux_1992::subjects::{Subject, run_all, set_up_all, set_up_server};
use model::papers::demux_1992::tpca::{Event, Traffic, Trains, name};

const USERS: u32 = 2000;
const SEED: u64 = 1993;
/// Seconds before counting begins.
const WARM_UP: f64 = 100.0;

fn bank(response: f64) -> Tpca {
    Tpca::new(USERS, response)
}

/// Checks that `number` differs from `expected` by at most `percent`.
#[track_caller]
fn assert_within(percent: f64, number: f64, expected: f64, what: &str) {
    let off = 100.0 * (number / expected - 1.0);
    println!("{what}: {number:.3}, {off:+.2} % from {expected:.3}");
    assert!(off.abs() <= percent, "{what}: {number:.3}, not {expected:.3} to {percent} %");
}

/// Checks that `number` rounds to `expected` at `decimals`.
#[track_caller]
fn assert_rounds(number: f64, decimals: i32, expected: f64) {
    let scale = 10_f64.powi(decimals);
    assert!((number * scale - expected * scale).abs() <= 0.5 + 1e-6, "{number}, not {expected}");
}

// The equations.

#[test]
fn a_search_of_2000_pcbs_examines_1001() {
    assert_rounds(bank(0.2).bsd(), 0, 1001.0);
    let n = f64::from(USERS);
    assert_rounds(bank(0.2).bsd(), 6, 1.0 + (n * n - 1.0) / (2.0 * n));
}

#[test]
fn move_to_front_has_the_costs_of_the_paper() {
    for (response, entry, ack, both) in [
        (0.2, 1018.902, 78.382, 548.642),
        (0.5, 1045.907, 190.230, 618.069),
        (1.0, 1085.851, 362.357, 724.104),
        (2.0, 1149.821, 659.030, 904.426),
    ] {
        assert_rounds(bank(response).move_to_front().entry, 3, entry);
        assert_rounds(bank(response).move_to_front().ack, 3, ack);
        assert_rounds(bank(response).move_to_front().mean(), 3, both);
    }
    let entries = [0.2, 0.5, 1.0, 2.0].map(|response| bank(response).move_to_front().entry.round());
    assert_eq!(entries, [1019.0, 1046.0, 1086.0, 1150.0]);
    let acks = [0.2, 0.5, 1.0, 2.0].map(|response| bank(response).move_to_front().ack.round());
    assert_eq!(acks, [78.0, 190.0, 362.0, 659.0]);
    let both = [0.2, 0.5, 1.0, 2.0].map(|response| bank(response).move_to_front().mean().round());
    assert_eq!(both, [549.0, 618.0, 724.0, 904.0]);
}

#[test]
fn chains_have_the_costs_of_the_paper() {
    for (response, few, many, most) in [
        (0.2, 52.977, 18.280, 8.516),
        (0.5, 53.38, 20.14, 10.03),
        (1.0, 53.38, 20.35, 10.63),
        (2.0, 53.38, 20.35, 10.74),
    ] {
        let decimals = if response == 0.2 { 3 } else { 2 };
        for (chains, cost) in [(19, few), (51, many), (100, most)] {
            assert_rounds(Tpca { chains, ..bank(response) }.sequent().mean(), decimals, cost);
        }
    }
    for (chains, cost) in [(19, 53.627), (51, 20.595), (100, 10.975)] {
        let bank = Tpca { chains, ..bank(0.2) };
        assert_rounds(bank.sequent().entry, 3, cost);
        let (n, h) = (f64::from(USERS), f64::from(chains));
        assert_rounds(bank.sequent().entry, 6, 1.0 + (n * n - h * h) / (2.0 * n * h));
    }
    assert_rounds(bank(0.2).sequent().entry, 1, 53.6);
    assert_rounds(bank(0.2).sequent().mean(), 1, 53.0);
    assert_rounds(bank(0.2).sequent_counting_the_probe().mean(), 2, 53.47);
    assert_rounds(Tpca { chains: 100, ..bank(0.2) }.sequent().mean(), 1, 8.5);
    assert_rounds(Tpca { chains: 100, ..bank(0.2) }.sequent_counting_the_probe().mean(), 2, 8.78);
}

#[test]
fn trains_have_the_probabilities_of_the_paper() {
    let p = |chains| Tpca { chains, ..bank(0.2) }.train_probability();
    assert_rounds(100.0 * p(19), 2, 1.54);
    assert_rounds(100.0 * p(51), 1, 21.7);
    assert_rounds(100.0 * p(50), 1, 21.0);
    assert_rounds(1e35 * p(1), 2, 1.88);
}

#[test]
fn ignoring_trains_is_off_by_1_percent_with_19_chains_and_by_13_with_51() {
    let off = |chains| {
        let bank = Tpca { chains, ..bank(0.2) };
        100.0 * (bank.sequent().entry / bank.sequent().mean() - 1.0)
    };
    assert_rounds(off(19), 2, 1.23);
    assert_rounds(off(51), 1, 12.7);
}

#[test]
fn figure_4_has_these_points() {
    for (t, users) in [
        (1.0, 190.2),
        (2.0, 362.4),
        (5.0, 786.5),
        (10.0, 1263.6),
        (20.0, 1728.5),
        (30.0, 1899.5),
        (50.0, 1985.5),
    ] {
        assert_rounds(bank(0.2).users_within(t), 1, users);
    }
}

#[test]
fn figure_9_has_these_points() {
    for (users, costs) in [
        (100, [51.0, 35.9, 30.6, 27.2, 2.4, 2.9]),
        (1000, [501.0, 361.9, 308.9, 274.2, 25.4, 27.1]),
        (2000, [1001.0, 724.1, 618.1, 548.6, 53.0, 53.4]),
        (5000, [2501.0, 1810.8, 1545.6, 1372.0, 132.3, 132.3]),
        (10_000, [5001.0, 3622.0, 3091.6, 2744.3, 263.9, 263.9]),
    ] {
        let [short, middle, long] = [0.2, 0.5, 1.0].map(|response| Tpca::new(users, response));
        let found = [
            short.bsd(),
            long.move_to_front().mean(),
            middle.move_to_front().mean(),
            short.move_to_front().mean(),
            short.sequent().mean(),
            long.sequent().mean(),
        ];
        for (found, cost) in found.into_iter().zip(costs) {
            assert_rounds(found, 1, cost);
        }
    }
}

#[test]
fn a_single_user_and_chains_of_one_pcb_cost_one_pcb() {
    for users in [1, 7, 19] {
        let few = Tpca::new(users, 0.5);
        assert_eq!(few.train_probability(), 1.0);
        let costs = [few.sequent().entry, few.sequent().ack, few.sequent().mean()];
        assert_eq!(costs, [1.0; 3]);
        assert_eq!(few.sequent_counting_the_probe().mean(), 1.0);
    }
    let alone = Tpca::new(1, 0.5);
    assert_eq!(alone.bsd(), 1.0);
    assert_eq!(
        (alone.move_to_front().mean(), alone.move_to_front_in_a_closed_loop().mean()),
        (0.0, 0.0)
    );
}

// The closed forms against the sums and integrals that they are derived from.

/// Equation 3 of the paper: the mean number of other users with a transaction in an interval.
fn sum_over_users(users: u32, entered: f64) -> f64 {
    let others = users - 1;
    let mut combinations = 1.0;
    let mut sum = 0.0;
    for count in 0..=others {
        let rest = (others - count) as i32;
        let chance = combinations * entered.powi(count as i32) * (1.0 - entered).powi(rest);
        sum += f64::from(count) * chance;
        combinations *= f64::from(others - count) / f64::from(count + 1);
    }
    sum
}

/// Simpson's rule.
fn integral(from: f64, to: f64, f: impl Fn(f64) -> f64) -> f64 {
    const STEPS: u32 = 20_000;
    let width = (to - from) / f64::from(STEPS);
    let weight = |step| match step {
        0 | STEPS => 1.0,
        step if step % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let terms = (0..=STEPS).map(|step| weight(step) * f(from + width * f64::from(step)));
    terms.sum::<f64>() * width / 3.0
}

/// Equation 4 of the paper: the density of the think time, per second.
fn density(t: f64) -> f64 {
    0.1 * (-0.1 * t).exp()
}

/// Seconds after which no user is still thinking: the remaining probability is 4e-18.
const FOREVER: f64 = 400.0;

#[test]
fn users_within_is_the_mean_of_a_binomial_distribution() {
    for users in [1, 2, 10, 100, 500] {
        for t in [0.0, 0.1, 1.0, 10.0, 60.0] {
            let bank = Tpca::new(users, 0.2);
            let sum = sum_over_users(users, 1.0 - (-0.1_f64 * t).exp());
            assert!((bank.users_within(t) - sum).abs() < 1e-9, "{users} users, {t} s");
        }
    }
}

#[test]
fn the_cost_of_an_entry_is_the_integral_of_the_paper() {
    for response in [0.0, 0.2, 0.5, 1.0, 2.0, 30.0] {
        let bank = bank(response);
        let short = integral(0.0, response, |t| density(t) * bank.users_within(2.0 * t));
        let long = integral(response, FOREVER, |t| density(t) * bank.users_within(t + response));
        assert_rounds(short + long, 3, bank.move_to_front().entry);
    }
}

#[test]
fn the_exact_cost_of_an_entry_is_an_integral_over_other_users() {
    for response in [0.0, 0.2, 0.5, 1.0, 2.0, 30.0] {
        let bank = bank(response);
        // Another user sends nothing for `t` seconds if all of them are thinking or all are
        // waiting.
        let cycle = 10.0 + response;
        let silent = |t: f64| (10.0 * (-0.1 * t).exp() + (response - t).max(0.0)) / cycle;
        let ahead = |t: f64| f64::from(USERS - 1) * (1.0 - silent(t));
        let entry = integral(0.0, response, |t| density(t) * ahead(t))
            + integral(response, FOREVER, |t| density(t) * ahead(t));
        assert_rounds(entry, 3, bank.move_to_front_in_a_closed_loop().entry);
        assert_rounds(ahead(response), 6, bank.move_to_front_in_a_closed_loop().ack);
    }
}

// Simulations.

/// The subjects after this traffic, with the PCBs that they examined.
fn simulate<const N: usize>(
    mut all: [Subject; N],
    traffic: impl Iterator<Item = Event>,
    seconds: f64,
) -> [Subject; N] {
    run_all(&mut all, USERS, traffic, WARM_UP, WARM_UP + seconds);
    all
}

fn sequent(chains: usize) -> Subject {
    Subject::sequent(chains).unwrap()
}

/// Compares 600 seconds of a closed loop with equations 5, 6 and 11, as counted in the paper, to
/// `percent`.
fn a_closed_loop_agrees(response: f64, percent: f64) {
    let all = [Subject::move_to_front(), sequent(19), sequent(51), sequent(100)];
    let [front, few, many, most] = simulate(all, Traffic::closed(USERS, response, SEED), 600.0);
    let bank = bank(response);
    assert_within(percent, front.entries.ahead(), bank.move_to_front().entry, "entry, (5)");
    assert_within(percent, front.packets().ahead(), bank.move_to_front().mean(), "to front, (6)");
    let exact = bank.move_to_front_in_a_closed_loop().entry;
    assert_within(0.5, front.entries.ahead(), exact, "entry, (5')");
    let exact = bank.move_to_front_in_a_closed_loop().ack;
    assert_within(1.0, front.acks.ahead(), exact, "acknowledgement, exactly");
    let exact = bank.move_to_front_in_a_closed_loop().mean();
    assert_within(0.5, front.packets().ahead(), exact, "to front, (6')");
    for (chains, sequent) in [(19, few), (51, many), (100, most)] {
        let bank = Tpca { chains, ..bank };
        let what = format!("{chains} chains, (11)");
        assert_within(percent, sequent.sequent_paper_mean(), bank.sequent().mean(), &what);
        let (with_probe, cost) =
            (sequent.packets().mean(), bank.sequent_counting_the_probe().mean());
        assert_within(percent, with_probe, cost, &format!("{chains} chains, (11')"));
    }
}

#[test]
fn the_simulation_is_within_1_percent_at_short_response_times() {
    a_closed_loop_agrees(0.2, 1.0);
    a_closed_loop_agrees(0.5, 1.0);
}

#[test]
fn the_simulation_is_within_2_5_percent_at_long_response_times() {
    a_closed_loop_agrees(1.0, 2.5);
    a_closed_loop_agrees(2.0, 2.5);
}

#[test]
fn every_structure_has_its_documented_cost() {
    let [bsd, both, front, chains, hashed, combined, trash, id] = simulate(
        [
            Subject::bsd(),
            Subject::send_receive(),
            Subject::move_to_front(),
            sequent(19),
            Subject::sequent_hashed(19).unwrap(),
            Subject::sequent_move_to_front(19).unwrap(),
            Subject::trash(),
            Subject::connection_id(USERS),
        ],
        Traffic::closed(USERS, 0.2, SEED),
        200.0,
    );
    assert_within(1.0, bsd.packets().mean(), 1001.0, "BSD");
    assert_within(1.0, both.packets().mean(), 933.0, "SendReceive");
    assert_within(1.0, front.packets().mean(), 550.0, "MoveToFront");
    assert_within(1.0, combined.packets().mean(), 29.7, "SequentMoveToFront");
    assert!(chains.packets().mean() <= 54.0);
    assert_within(1.0, chains.packets().mean(), 53.5, "19 chains");
    // A random hash makes chains of different lengths, and more lookups are in the long ones.
    let uneven = hashed.packets().mean() - chains.packets().mean();
    assert!((0.2..1.0).contains(&uneven), "{uneven}");
    assert!((1.0..1.06).contains(&trash.packets().mean()), "{}", trash.packets().mean());
    assert_eq!(id.packets().mean(), 1.0);
}

#[test]
fn acknowledgements_have_the_hit_ratio_of_equation_9() {
    let all = [sequent(19), sequent(51), sequent(100)];
    let all = simulate(all, Traffic::closed(USERS, 0.2, SEED), 1500.0);
    for (chains, sequent) in [19, 51, 100].into_iter().zip(all) {
        let p = Tpca { chains, ..bank(0.2) }.train_probability();
        let hits = sequent.acks.hit_ratio();
        assert!((hits - p).abs() < 0.005, "{chains} chains: {hits}, not {p}");
    }
}

#[test]
fn an_open_loop_costs_more_than_the_closed_loop_of_the_paper() {
    for (response, entry, both) in [(0.2, 998.3, 537.6), (2.0, 998.4, 774.0)] {
        let traffic = Traffic::open(USERS, response, SEED);
        let [front] = simulate([Subject::move_to_front()], traffic, 600.0);
        assert_within(1.0, front.entries.ahead(), entry, "entry");
        assert_within(1.0, front.packets().ahead(), both, "to front");
    }
}

#[test]
fn the_cached_pcb_of_the_last_sent_packet_helps_with_short_round_trips() {
    let cost = |round_trip| {
        let traffic = Traffic::closed(USERS, 0.2, SEED).with_round_trip(round_trip);
        let [both] = simulate([Subject::send_receive()], traffic, 100.0);
        both.packets().mean()
    };
    assert_within(2.0, cost(0.001), 590.0, "1 ms");
    assert_within(2.0, cost(0.1), 1002.0, "100 ms");
}

#[test]
fn with_polling_in_turns_move_to_front_examines_every_pcb() {
    let all = [Subject::move_to_front(), Subject::sequent_move_to_front(19).unwrap()];
    let traffic = Traffic::polling(USERS, 0.2, SEED);
    let [front, combined] = simulate(all, traffic, 50.0);
    assert_eq!(front.entries.mean(), f64::from(USERS));
    // Each search examines a whole chain, and the lengths of chains differ by at most one PCB.
    assert_within(0.1, combined.entries.mean(), f64::from(USERS) / 19.0, "chains");
}

#[test]
fn trains_hit_the_cached_pcb_but_the_first_segment_costs_the_same() {
    let cost = |segments: u32| {
        let [bsd] = simulate([Subject::bsd()], Trains::new(USERS, segments, SEED), 50.0);
        (bsd.packets().hit_ratio(), bsd.packets().mean() * f64::from(segments))
    };
    let (hits, train) = cost(3);
    assert_within(0.2, hits, 2.0 / 3.0, "hits");
    assert_within(2.0, train, 1001.0 + 2.0, "PCBs for a train of 3");
    let (hits, train) = cost(100);
    assert_within(0.2, hits, 0.99, "hits");
    assert_within(5.0, train, 1001.0 + 99.0, "PCBs for a train of 100");
}

#[test]
fn twice_the_chains_cost_less_than_moving_to_front() {
    for (response, chains) in [(0.2, 36), (2.0, 24)] {
        let all = [Subject::sequent_move_to_front(19).unwrap(), sequent(chains)];
        let [moving, plain] = simulate(all, Traffic::closed(USERS, response, SEED), 300.0);
        let (moving, plain) = (moving.packets().mean(), plain.packets().mean());
        assert!(plain < moving, "R = {response} s: {chains} chains {plain}, to front {moving}");
    }
}

// Connections that are set up at the same time.

#[test]
fn connection_setup_costs_84_and_9_million_pcbs_by_the_equations() {
    let [bsd, sequent] =
        [3600, 5040].map(|connections| ConnectionSetup { connections, chains: 19 });
    assert_eq!((bsd.packets(), sequent.packets()), (46_800, 65_520));
    assert_rounds(bsd.bsd() / 1e6, 2, 84.24);
    assert_rounds(sequent.sequent() / 1e6, 2, 8.69);
    assert_rounds(bsd.bsd() / sequent.sequent(), 2, 9.69);
    assert_rounds((906.0 / 3600.0) / (193.0 / 5040.0), 2, 6.57);
}

/// PCBs examined in `chains` lists with one cached PCB each, by arithmetic: the position of a PCB
/// in its list is the number of later insertions.
fn by_arithmetic(segments: &[Segment], chains: u32) -> u64 {
    let mut lengths = vec![0_u64; chains as usize];
    let mut cached = vec![None; chains as usize];
    let mut positions = vec![0; segments.len() / usize::from(PACKETS)];
    let mut examined = 0;
    for segment in segments {
        let chain = (segment.connection % chains) as usize;
        if cached[chain] == Some(segment.connection) {
            examined += 1;
            continue;
        }
        examined += u64::from(cached[chain].is_some());
        let position = &mut positions[segment.connection as usize];
        if segment.is_syn() {
            examined += lengths[chain];
            *position = lengths[chain];
            lengths[chain] += 1;
        } else {
            examined += lengths[chain] - *position;
            cached[chain] = Some(segment.connection);
        }
    }
    examined
}

#[test]
fn simulated_connection_setup_costs_slightly_less() {
    let few = segments(3600, SEED);
    let bsd = set_up_all(&mut *Subject::bsd().demux, &few);
    assert_eq!((bsd.packets, bsd.examined), (46_800, by_arithmetic(&few, 1)));
    let many = segments(5040, SEED);
    let chains = set_up_all(&mut *sequent(19).demux, &many);
    // The hash is the address of the host plus a constant, so the chains are in another order.
    assert_eq!((chains.packets, chains.examined), (65_520, by_arithmetic(&many, 19)));
    // The list grows: on average 85/14 n² PCBs are examined, against 91/14 n² in the paper.
    let growing = |connections: u32| 85.0 / 14.0 * f64::from(connections).powi(2);
    assert_within(1.0, bsd.examined as f64, growing(3600), "BSD");
    assert_within(1.5, chains.examined as f64, growing(5040) / 19.0, "Sequent");
    assert_within(1.0, bsd.examined as f64, 78.8e6, "BSD");
    assert_within(1.0, chains.examined as f64, 8.19e6, "Sequent");
}

#[test]
fn seven_of_thirteen_packets_arrive_at_the_server() {
    let segments = segments(500, SEED);
    for mut subject in Subject::all(500).unwrap() {
        let server = set_up_server(&mut *subject.demux, &segments);
        assert_eq!(server.packets, 7 * 500, "{}", subject.name);
        assert_eq!(subject.demux.len(), 500);
        subject.demux.validate().unwrap();
    }
}

// The parts of the simulations.

#[test]
fn chains_by_the_sum_of_words_have_equal_lengths() {
    for chains in [19, 51, 100] {
        let mut demux: Sequent<u32, _, _> =
            Sequent::with_chains_and_hasher(chains, Balanced).unwrap();
        for user in 0..USERS {
            demux.insert(name(user), user).unwrap();
        }
        // The longest search is the first one, for the first PCB, without a cached PCB: 106 in the
        // paper.
        let longest =
            (0..USERS).map(|user| demux.lookup(&name(user), Arrival::Data).examined).max();
        assert_eq!(longest, Some(USERS.div_ceil(chains as u32)), "{chains} chains");
    }
}

#[test]
fn traffic_is_ordered_by_time_and_reproducible() {
    type Make = fn(u32, f64, u64) -> Traffic;
    let kinds: [(Make, f64); 3] =
        [(Traffic::closed, 10.2), (Traffic::polling, 10.2), (Traffic::open, 10.0)];
    for (make, cycle) in kinds {
        let events: Vec<Event> =
            make(200, 0.2, 7).take_while(|event| event.time < 1000.0).collect();
        assert!(events.is_sorted_by_key(|event| event.time));
        assert!(events.iter().eq(&make(200, 0.2, 7).take(events.len()).collect::<Vec<_>>()));
        // Each cycle of a user has three events.
        assert_within(3.0, events.len() as f64, 3.0 * 200.0 * 1000.0 / cycle, "events");
    }
}
