//! The clock of packets: jumps of all kinds, compared with a reference model.

use core::time::Duration;

use capture::clock::{ClockRule, Dated, PacketClock, Step};
use flowtable::FlowCache;
use flowtable::Timestamp;
use flowtable::flow_cache::{Config, EndReason, Event, Packet, Timeouts};
use proptest::collection::vec;
use proptest::prelude::*;

/// The bounds of [`ClockRule::DEFAULT`], in seconds, and its witnesses.
const BOUND: u64 = 10;
const FLOWS: usize = 3;
const PACKETS: usize = 16;

/// Returns the clock's steps for packets of (seconds, flow), the last of which are flushed.
fn steps(packets: &[(u64, u64)]) -> Vec<(u64, Step)> {
    let mut clock = PacketClock::new(ClockRule::DEFAULT);
    let mut steps = Vec::new();
    for (number, &(seconds, flow)) in packets.iter().enumerate() {
        let time = Timestamp::from_secs(seconds);
        // As callers do: without a queue if possible.
        if let Some(now) = clock.accept(time) {
            assert_eq!(steps.len(), number, "a packet that arrived before it waits");
            steps.push((now, Step::Forward));
            continue;
        }
        clock.push(time, flow, number);
        while let Some(Dated { packet, now, step, .. }) = clock.pop() {
            assert_eq!(packet, steps.len(), "the order of arrival");
            steps.push((now, step));
        }
        assert!(number + 1 - steps.len() <= PACKETS, "it waits for too long");
    }
    while let Some(Dated { packet, now, step, .. }) = clock.flush(Timestamp::MAX) {
        assert_eq!(packet, steps.len(), "the order of arrival");
        steps.push((now, step));
    }
    steps.into_iter().map(|(now, step)| (now.as_nanos() / 1_000_000_000, step)).collect()
}

/// The reference model, which has all packets from the beginning.
fn model(packets: &[(u64, u64)]) -> Vec<(u64, Step)> {
    let mut now = packets.first().map_or(0, |packet| packet.0);
    let (mut late, mut clocks) = (Vec::new(), Clocks::default());
    let is_near = |time: u64, now: u64| time.abs_diff(now) <= BOUND;
    let suffice = |witnesses: &[(u64, u64)]| {
        let mut flows: Vec<u64> = witnesses.iter().map(|witness| witness.1).collect();
        flows.sort_unstable();
        flows.dedup();
        flows.len() >= FLOWS || witnesses.len() >= PACKETS
    };
    let mut steps = Vec::new();
    for (at, &(time, flow)) in packets.iter().enumerate() {
        let step = if is_near(time, now) {
            late.clear();
            now = now.max(time);
            Step::Forward
        } else if time < now {
            let newest = late.iter().map(|witness: &(u64, u64)| witness.0).max();
            if newest.is_some_and(|newest| newest > time + BOUND) {
                late.clear();
            }
            late.push((time, flow));
            if suffice(&late) {
                let newest = late.iter().map(|witness| witness.0).max().unwrap_or(time);
                let elapsed = clocks
                    .find(now, newest)
                    .unwrap_or(newest - late[late.len().min(2) - 1].0.min(newest));
                late.clear();
                clocks.leave(now, elapsed, newest);
                now = newest;
                reset(elapsed)
            } else {
                Step::Late
            }
        } else {
            let window = &packets[at..packets.len().min(at + PACKETS + 1)];
            let near = window.iter().position(|other| is_near(other.0, now));
            let before = &window[..near.unwrap_or(window.len())];
            let witnesses: Vec<(u64, u64)> = before
                .iter()
                .filter(|other| other.0 > now && other.0 + BOUND >= time)
                .copied()
                .collect();
            let is_cut = near.is_none() && window.len() <= PACKETS;
            if suffice(&witnesses) || is_cut {
                let elapsed = clocks.find(now, time);
                if let Some(elapsed) = elapsed {
                    clocks.leave(now, elapsed, time);
                }
                now = time;
                elapsed.map_or(Step::Forward, reset)
            } else {
                Step::Outlier
            }
        };
        steps.push((now, step));
    }
    steps
}

/// The clocks that resets have left, by the difference of their times from the present one's.
#[derive(Default)]
struct Clocks(Vec<i64>);

impl Clocks {
    /// Forgets the last clock that shows about this time. Returns the seconds that have passed.
    fn find(&mut self, now: u64, time: u64) -> Option<u64> {
        let ahead = |other: &i64| time as i64 - now as i64 - *other;
        let at = self.0.iter().rposition(|other| ahead(other).unsigned_abs() <= BOUND)?;
        Some(ahead(&self.0.remove(at)).max(0) as u64)
    }

    /// Exchanges the clock that shows `now` for one that shows `time`.
    fn leave(&mut self, now: u64, elapsed: u64, time: u64) {
        let left = (now + elapsed) as i64 - time as i64;
        self.0 = self.0.iter().map(|other| other + left).chain([left]).collect();
        if self.0.len() > 8 {
            self.0.remove(0);
        }
    }
}

fn reset(elapsed: u64) -> Step {
    Step::Reset { elapsed: Duration::from_secs(elapsed) }
}

fn is_reset(step: &(u64, Step)) -> bool {
    matches!(step.1, Step::Reset { .. })
}

/// Packets of several flows a second apart, from this second on.
fn steady(from: u64, count: u64) -> Vec<(u64, u64)> {
    (0..count).map(|second| (from + second, second % 5)).collect()
}

#[test]
fn an_outlier_does_not_count() {
    for wrong in [0, 1, 50, 1020, 5000, 4_000_000_000, 18_000_000_000] {
        let packets = [steady(1000, 10), vec![(wrong, 9)], steady(1010, 10)].concat();
        let steps = steps(&packets);
        assert_eq!(steps, model(&packets));
        let times: Vec<u64> = steps.iter().map(|step| step.0).collect();
        let expected: Vec<u64> = (1000..1010).chain([1009]).chain(1010..1020).collect();
        assert_eq!(times, expected, "{wrong}");
    }
    // A packet within the bounds is no outlier.
    let packets = [steady(1000, 10), vec![(1019, 9)], steady(1010, 10)].concat();
    assert_eq!(steps(&packets)[10..], [(1019, Step::Forward); 11]);
}

#[test]
fn real_jumps_count() {
    // Ahead: silence; packets of a second, all of whose flows are counted at their times.
    for gap in [11, 3600, 86_400, 80 * 365 * 86_400] {
        let packets = [steady(1000, 10), steady(1010 + gap, 10)].concat();
        let steps = steps(&packets);
        assert_eq!(steps, model(&packets));
        assert!(steps[10..].iter().map(|step| step.0).eq(1010 + gap..1020 + gap), "{steps:?}");
        assert!(steps.iter().all(|(_, step)| *step == Step::Forward), "{steps:?}");
    }
    // Back: the third flow is believed. Then the clock is corrected, and no time has passed.
    let packets = [steady(10_000, 10), steady(6410, 10), steady(10_020, 10)].concat();
    let steps = steps(&packets);
    assert_eq!(steps, model(&packets));
    let resets: Vec<usize> = (0..30).filter(|at| is_reset(&steps[*at])).collect();
    assert_eq!(resets, [12, 20]);
    assert_eq!((steps[12].0, steps[20].0), (6412, 10_020));
    // One flow: after more packets.
    let alone = |from: u64| (0..20).map(move |second| (from + second, 1));
    let packets: Vec<_> = alone(10_000).chain(alone(6420)).collect();
    let steps = self::steps(&packets);
    assert_eq!(steps, model(&packets));
    assert_eq!(steps.iter().position(is_reset), Some(20 + PACKETS - 1));
}

/// One packet a minute, of one flow: each waits for others, and has its own time.
#[test]
fn sparse_packets_keep_their_times() {
    let packets: Vec<_> = (0..100).map(|minute| (60 * minute, 1)).collect();
    let steps = steps(&packets);
    assert_eq!(steps, model(&packets));
    assert!(steps.iter().zip(&packets).all(|(step, packet)| step.0 == packet.0), "{steps:?}");
}

/// After a packet of the year 2106, and after the clock was set back by an hour: the packets agree
/// however much time passes between them, and that time has passed.
#[test]
fn sparse_packets_set_the_clock_back() {
    for before in [vec![(4_294_967_295, 9)], steady(1_700_000_000, 10)] {
        let sparse = (0..300).map(|number| (1_699_990_000 + 12 * number, number % 5));
        let packets: Vec<_> = before.iter().copied().chain(sparse).collect();
        let steps = steps(&packets);
        assert_eq!(steps, model(&packets));
        let third = before.len() + 2;
        assert_eq!(steps[third], (1_699_990_024, reset(12)));
        let has_own_time = |(step, packet): (&(u64, Step), &(u64, u64))| step.0 == packet.0;
        assert!(steps.iter().zip(&packets).skip(third).all(has_own_time), "{steps:?}");
    }
}

/// Packets of two clocks, two minutes apart: time passes once, not with each change.
#[test]
fn two_clocks_do_not_add_up() {
    for train in 1..10 {
        let packets: Vec<_> = (0..1000)
            .map(|number| {
                let behind = if number / train % 2 == 0 { 0 } else { 120 };
                (10_000 + number / 10 - behind, number % 7)
            })
            .collect();
        let steps = steps(&packets);
        assert_eq!(steps, model(&packets), "{train}");
        let mut passed = 0;
        for pair in steps.windows(2) {
            passed += match pair[1].1 {
                Step::Reset { elapsed } => elapsed.as_secs(),
                _ => pair[1].0 - pair[0].0,
            };
        }
        assert!((90..=110).contains(&passed), "{train}: {passed} seconds instead of 100");
    }
}

/// A part of a sequence: how the timestamps continue.
fn part() -> impl Strategy<Value = (u8, u64, u64)> {
    (0..6_u8, prop_oneof![0..30_u64, 0..5000_u64, 0..5_000_000_000_u64], 1..40_u64)
}

/// Builds packets of parts: steady ones, jumps, outliers, silence, and two clocks.
fn packets(parts: &[(u8, u64, u64)]) -> Vec<(u64, u64)> {
    let (mut time, mut all) = (1_000_000_u64, Vec::new());
    for &(kind, distance, count) in parts {
        match kind {
            0 => time += distance,
            1 => time = time.saturating_sub(distance),
            _ => {}
        }
        for number in 0..count {
            time += number % 2;
            let flow = if kind == 5 { 0 } else { number % 4 };
            let is_odd = kind == 2 && number == 0 || kind == 3 && number % 3 == 0;
            let wrong = if kind == 2 { distance } else { time.saturating_sub(distance) };
            let sparse = if kind == 4 { distance % 100 } else { 0 };
            time += sparse;
            all.push((if is_odd { wrong } else { time }, flow));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn jumps_of_all_kinds_are_those_of_the_model(parts in vec(part(), 0..12)) {
        let packets = packets(&parts);
        let steps = steps(&packets);
        prop_assert_eq!(&steps, &model(&packets));
        // Guarantee 2: only a reset decreases the time.
        for pair in steps.windows(2) {
            prop_assert!(pair[1].0 >= pair[0].0 || is_reset(&pair[1]), "{:?}", steps);
        }
    }

    /// Guarantees 3 and 4, whatever was before.
    #[test]
    fn the_time_is_found_again(parts in vec(part(), 0..6), from in 0..5_000_000_000_u64) {
        let packets = [packets(&parts), steady(from, PACKETS as u64 + 30)].concat();
        let last = packets[packets.len() - 1].0;
        let now = steps(&packets)[packets.len() - 1].0;
        prop_assert!(now.abs_diff(last) <= BOUND, "{} instead of {}", now, last);
    }
}

/// The flows of the field test: five long ones, and one more of a packet each second, for an hour.
fn ended(packets: impl Iterator<Item = (u64, u64)>) -> usize {
    let config = Config::new(10_000).expect("valid").with_timeouts(Timeouts::METER);
    let mut cache: FlowCache<u64, ()> = FlowCache::new(config);
    let mut clock = PacketClock::new(ClockRule::DEFAULT);
    let mut ended = 0;
    for (seconds, flow) in packets {
        clock.push(Timestamp::from_secs(seconds), flow, flow);
        while let Some(Dated { packet, now, step, .. }) = clock.pop() {
            let mut count = |event: Event<'_, u64, ()>| {
                ended += usize::from(matches!(&event, Event::Ended(flow)
                    if flow.reason == EndReason::Idle));
            };
            if let Step::Reset { elapsed } = step {
                cache.advance(cache.now() + elapsed, usize::MAX, &mut count);
                cache.set_clock(now);
            }
            cache.advance(now, usize::MAX, &mut count);
            cache.observe(&packet, Packet::UDP, now).expect("there is capacity");
        }
    }
    ended
}

#[test]
fn timeouts_survive_outliers_and_jumps() {
    let start = 1_700_000_000;
    let second =
        |at: u64, time: u64| (0..5).map(move |flow| (time, flow)).chain([(time, 20_000 + at)]);
    let calm = ended((0..3600).flat_map(|at| second(at, start + at)));
    assert!((3535..=3540).contains(&calm), "{calm}");
    for wrong in [0, 4_294_967_295] {
        let glitch = move |at: u64| (at == 10).then_some((wrong, 9));
        let ended =
            ended((0..3600).flat_map(|at| glitch(at).into_iter().chain(second(at, start + at))));
        // And the flow of the wrong packet.
        assert_eq!(ended, calm + 1, "{wrong}");
    }
    let set_back = |at: u64| if at < 100 { start + at } else { start + at - 3600 };
    assert_eq!(ended((0..3600).flat_map(|at| second(at, set_back(at)))), calm);
}

/// Packets of two interfaces whose clocks are 20 seconds or an hour apart: each second three flows
/// of one packet from each of them.
#[test]
fn flows_end_while_two_clocks_alternate() {
    for apart in [20, 3600] {
        let second = |at: u64| {
            let burst = move |clock: u64| {
                (0..3).map(move |flow| {
                    (1_700_000_000 + at - clock * apart, 6 * at + 3 * clock + flow)
                })
            };
            burst(0).chain(burst(1))
        };
        // Six flows each second, until a minute before the end.
        let ended = ended((0..300).flat_map(second));
        assert!((6 * 235..=6 * 245).contains(&ended), "{apart}: {ended}");
    }
}
