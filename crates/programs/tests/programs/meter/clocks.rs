//! Wrong timestamps and clocks that are set: the hour of the field test.

use capture::data::{ETHERNET, LITTLE, MICROSECONDS, pcap, udp};

use crate::run::Run;

const START: u32 = 1_700_000_000;

/// Returns the report on an hour of five long flows, and of one more flow of a packet each second;
/// with a packet of this time after ten seconds, and with a clock that `shown` shows.
fn hour(wrong: Option<u32>, shown: impl Fn(u32) -> u32) -> Run {
    let mut frames = Vec::new();
    for second in 0..3600 {
        if let (10, Some(wrong)) = (second, wrong) {
            frames.push((wrong, 0, udp(9, 53, 0)));
        }
        for flow in 0..5 {
            frames.push((shown(second), u32::from(flow) * 10_000, udp(1000 + flow, 53, 0)));
        }
        frames.push((shown(second), 500_000, udp(20_000 + second as u16, 53, 0)));
    }
    let records: Vec<_> = frames.iter().map(|(s, us, frame)| (*s, *us, &frame[..])).collect();
    let capture = pcap(LITTLE, MICROSECONDS, ETHERNET, &records);
    let run = Run::piped(&capture, usize::MAX, &["--timeouts", "meter", "--top", "0"]);
    assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
    run
}

#[test]
fn timeouts_survive_wrong_times_and_clocks_that_are_set() {
    let calm = hour(None, |second| START + second).count("were idle");
    assert!((3535..=3540).contains(&calm), "{calm}");
    // Of 1970, of a year later, an hour and a minute ahead, an hour back, of the year 2106.
    for wrong in [1, START + 31_536_000, START + 3610, START + 70, START - 3590, u32::MAX] {
        let ended = hour(Some(wrong), |second| START + second).count("were idle");
        assert_eq!(ended, calm + 1, "{wrong}");
    }
    // Set back by an hour and a day; set back and corrected.
    for back in [3600, 86_400] {
        let shown = |second| START + second - if second >= 100 { back } else { 0 };
        assert_eq!(hour(None, shown).count("were idle"), calm, "{back}");
        let shown = |second| START + second - if second / 100 == 1 { back } else { 0 };
        assert_eq!(hour(None, shown).count("were idle"), calm, "{back}");
    }
    // Set ahead, which is silence: the long flows end, and so do those of the last minute.
    for ahead in [3600, 86_400] {
        let shown = |second| START + second + if second >= 100 { ahead } else { 0 };
        assert_eq!(hour(None, shown).count("were idle"), calm + 5, "{ahead}");
    }
}
