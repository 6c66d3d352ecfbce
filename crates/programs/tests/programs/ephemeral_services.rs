//! The example `ephemeral_services`: its services in networks of many seeds.

use core::cell::Cell;

use lexopt::Parser;
use programs::ephemeral_services::network::{Links, Traffic};
use programs::ephemeral_services::options::Options;
use programs::ephemeral_services::report::Report;
use programs::program::{Call, Options as _, parse};

const NO_LOSS: Links = Links { lost: 0, duplicated: 50 };
const PERFECT: Links = Links { lost: 0, duplicated: 0 };

/// Returns reports on networks of 30 to 69 receivers, one for each seed.
fn reports(links: Links) -> impl Iterator<Item = Report> {
    let seeds = 0..if cfg!(miri) { 1 } else { 40 };
    seeds.map(move |seed| {
        let options = Options { receivers: 30 + seed as usize, links, rounds: 10, seed };
        let rounds_run = Cell::new(0);
        let rounds = Report::rounds(&options);
        let report =
            Report::of(options, &|| rounds_run.set(rounds_run.get() + 1)).expect("there is memory");
        assert_eq!(rounds_run.get(), rounds);
        assert!(report.traffic.iter().all(Traffic::adds_up));
        assert!(report.bindings[0] > 0 && report.bindings[1] == 0);
        // Bindings per round: one for the depth, one for each of up to eight complaints, seven for
        // counts.
        assert!((9..=160).contains(&report.most_bindings), "{}", report.most_bindings);
        report
    })
}

#[test]
fn the_depth_of_a_tree_is_found_whatever_is_duplicated() {
    for report in reports(NO_LOSS) {
        assert_eq!((report.depth.right, report.depth.found), (10, report.depth.truth));
        // Some arrive before the deepest; each next one is deeper, so there are at most as many as
        // levels.
        assert!(report.depth.received <= report.depth.truth as f64);
    }
    // Even if each link loses a tenth of packets, some round finds it, and none finds more.
    let lossy = Links { lost: 100, duplicated: 50 };
    let found = reports(lossy).filter(|report| {
        assert!(report.depth.found <= report.depth.truth);
        report.depth.found == report.depth.truth
    });
    assert!(found.count() >= 38);
}

#[test]
fn one_of_all_siblings_that_complain_is_heard() {
    for report in reports(NO_LOSS) {
        let complaints = report.complaints;
        assert_eq!((complaints.missed, complaints.reported, complaints.attempts), (10, 10, 10));
        assert_eq!((complaints.received, complaints.most_received), (10, 1));
        assert!(complaints.by > 10);
    }
    for report in reports(Links { lost: 100, duplicated: 50 }) {
        let complaints = report.complaints;
        // After eight attempts nearly all are reported, and never two at once.
        assert!(complaints.reported >= 9 && complaints.most_received == 1);
        assert_eq!(complaints.received, u64::from(complaints.reported));
    }
}

#[test]
fn without_duplicates_and_losses_both_ways_of_counting_are_right() {
    for report in reports(PERFECT) {
        let [plain, robust] = [report.plain_count, report.robust_count];
        assert_eq!((plain.right, plain.warned), (10, 0));
        // One child in a thousand sets of four is missed.
        assert!(robust.right >= 8 && robust.unanswered == 0 && robust.too_large == 0);
    }
}

#[test]
fn duplicates_disturb_the_plain_way_and_not_the_robust_one() {
    let (mut plain, mut robust) = (0, 0);
    for report in reports(NO_LOSS) {
        assert_eq!(report.robust_count.largest, Some(report.robust_count.truth));
        assert_eq!(report.robust_max.largest, Some(report.robust_max.truth));
        for tally in [report.robust_count, report.robust_max] {
            assert_eq!((tally.too_large, tally.unanswered, tally.warned), (0, 0, 0));
        }
        plain += report.plain_count.right;
        robust += report.robust_count.right;
    }
    assert!(plain < 20 && robust > 385, "{plain} and {robust} of 400");
}

#[test]
fn losses_make_nothing_too_large_and_some_round_is_right() {
    let links = Links { lost: 2, duplicated: 20 };
    let right = reports(links).filter(|report| {
        for tally in [report.robust_count, report.robust_max] {
            assert_eq!(tally.too_large, 0);
            assert!(tally.largest.is_none_or(|largest| largest <= tally.truth));
        }
        report.robust_count.largest == Some(report.robust_count.truth)
    });
    assert!(right.count() >= 38);
}

#[test]
fn the_same_seed_is_the_same_network() {
    let [one, again] = [(), ()].map(|()| reports(NO_LOSS).next().expect("a report").to_string());
    assert_eq!(one, again);
    assert!(one.starts_with("30 receivers below 16 routers, 10 rounds\n"), "{one}");
}

#[test]
fn options_agree_with_the_usage() {
    let parse = |line: &str| {
        let parsed = parse::<Options>(Parser::from_args(line.split_whitespace()));
        parsed.map(Call::options).map_err(|error| error.to_string())
    };
    assert_eq!(parse(""), Ok(Some(Options::default())));
    let options = parse("--receivers 7 --loss 0 --duplication 1000 --rounds 3 --seed 9");
    let links = Links { lost: 0, duplicated: 1000 };
    assert_eq!(options, Ok(Some(Options { receivers: 7, links, rounds: 3, seed: 9 })));
    assert_eq!(parse("--rounds 3 --help"), Ok(None));
    for option in ["--receivers", "--loss", "--duplication", "--rounds", "--seed"] {
        assert!(Options::USAGE.contains(&format!("\n    {option} ")), "{option}");
    }
    for (line, message) in [
        ("--receivers 0", "--receivers 0: not from 1 to 10000"),
        ("--loss 1001", "--loss 1001: not from 0 to 1000"),
        ("--rounds many", "--rounds many: not a number from 1 to 1000"),
        ("--seed", "missing argument for option '--seed'"),
        ("capture.pcap", "unexpected argument \"capture.pcap\""),
    ] {
        assert_eq!(parse(line).expect_err("it is wrong"), message);
    }
}
