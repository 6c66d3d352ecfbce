//! `DuplicateFilter`: each remote procedure call is executed once.

use super::*;

#[test]
fn a_call_above_the_last_sequence_number_is_accepted() {
    let mut filter = DuplicateFilter::new(2, Duration::from_secs(10)).unwrap();
    let mut accept =
        |sender, sequence, seconds| filter.accept(&sender, sequence, Timestamp::from_secs(seconds));
    assert_eq!(accept('a', 5, 0), CallVerdict::Accept);
    assert_eq!(
        [accept('a', 5, 1), accept('a', 4, 1), accept('a', 0, 1)],
        [CallVerdict::Duplicate; 3]
    );
    assert_eq!(accept('a', 6, 2), CallVerdict::Accept, "a duplicate does not extend the lifetime");
    assert_eq!(accept('b', u64::MAX, 3), CallVerdict::Accept);
    assert_eq!(
        [accept('c', 1, 4), accept('c', 1, 11)],
        [CallVerdict::Full; 2],
        "no sender is evicted"
    );
    assert_eq!(accept('b', u64::MAX, 11), CallVerdict::Duplicate);
    assert_eq!(accept('a', 7, 11), CallVerdict::Accept, "calls of known senders are accepted");
    assert_eq!(accept('c', 1, 13), CallVerdict::Accept, "ten seconds after b");
    assert_eq!(accept('b', 1, 13), CallVerdict::Full);
    assert_eq!(accept('b', 1, 21), CallVerdict::Accept, "ten seconds after a");
    assert_eq!(
        accept('c', 1, 0),
        CallVerdict::Duplicate,
        "an earlier timestamp counts as the latest one"
    );
    assert_eq!(accept('c', 1, 23), CallVerdict::Accept);
    assert_eq!(filter.len(), 2);
    assert_eq!(filter.clean(Timestamp::from_secs(99), 1), 1);
    assert_eq!(filter.clean(Timestamp::ZERO, usize::MAX), 1);
    assert!(filter.is_empty() && filter.allocation_size() > 0);
}

/// Senders call, wait for the answer, and call again; the network delivers each packet three times,
/// the last one less than a lifetime after the packet was sent. Each call is executed once,
/// including calls of senders that restart with sequence number 0 after waiting for a lifetime.
#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn each_call_is_executed_once() {
    const LIFETIME: u64 = 1000;
    const SENDERS: u64 = 40;
    let lifetime = Duration::from_nanos(LIFETIME);
    let mut filter = DuplicateFilter::new(SENDERS as usize, lifetime).unwrap();
    let mut random = 0_u64;
    let mut draw = |below: u64| {
        random += 1;
        mix(random) % below
    };
    // Packets by time of arrival: sender, sequence number, and number of the call.
    let mut arrivals: BTreeSet<(u64, u64, u64, u64)> = BTreeSet::new();
    let (mut calls, mut executed) = (0, BTreeMap::<u64, u32>::new());
    for sender in 0..SENDERS {
        let (mut now, mut number) = (draw(500), 0);
        for _ in 0..PACKETS / 300 {
            // The first delivery is executed before the next call is sent.
            let first = draw(300);
            for delay in [first, first + draw(LIFETIME - first), first + draw(LIFETIME - first)] {
                arrivals.insert((now + delay, sender, number, calls));
            }
            (calls, number, now) = (calls + 1, number + 1, now + first + 1 + draw(300));
            if draw(10) == 0 {
                (number, now) = (0, now + LIFETIME);
            }
        }
    }
    for (now, sender, number, call) in arrivals {
        let verdict = filter.accept(&sender, number, Timestamp::from_nanos(now));
        assert_ne!(verdict, CallVerdict::Full);
        *executed.entry(call).or_default() += u32::from(verdict == CallVerdict::Accept);
    }
    assert_eq!(executed.len() as u64, calls);
    assert!(executed.values().all(|times| *times == 1));
}

/// Each packet removes up to two expired senders, so a full filter accepts as soon as senders
/// expire.
#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn expired_senders_are_replaced() {
    let hasher = BuildHasherDefault::<std::hash::DefaultHasher>::new();
    let mut filter = DuplicateFilter::with_hasher(100, Duration::from_secs(1), hasher).unwrap();
    let mut accept =
        |sender: u32, seconds| filter.accept(&sender, 0, Timestamp::from_secs(seconds));
    (0..100).for_each(|sender| assert_eq!(accept(sender, 0), CallVerdict::Accept));
    assert_eq!(accept(100, 0), CallVerdict::Full);
    (100..200).for_each(|sender| assert_eq!(accept(sender, 1), CallVerdict::Accept));
    assert_eq!(accept(200, 1), CallVerdict::Full);
    assert_eq!(filter.clean(Timestamp::from_secs(2), 30), 30);
    assert_eq!(filter.accept(&300, 0, Timestamp::ZERO), CallVerdict::Accept);
    assert_eq!(filter.len(), 70 - 2 + 1);
    filter.validate().unwrap();
}

/// The sender was accepted before zero, by the new time.
#[test]
fn a_clock_that_is_set_back_to_zero_does_not_forget_senders() {
    let mut filter = DuplicateFilter::new(10, Duration::from_secs(60)).unwrap();
    let mut accept = |seconds| filter.accept(&'a', 5, Timestamp::from_secs(seconds));
    use CallVerdict::{Accept, Duplicate};
    assert_eq!(
        [100, 130, 1, 2, 30, 31].map(&mut accept),
        [Accept, Duplicate, Duplicate, Duplicate, Duplicate, Accept]
    );
}

/// A caller retransmits a call every 20 seconds: a lifetime of a minute covers one minute of that.
#[test]
fn a_retransmission_after_the_lifetime_is_accepted() {
    let mut filter = DuplicateFilter::new(10, Duration::from_secs(60)).unwrap();
    let verdicts = [0, 20, 40, 59, 60].map(|at| filter.accept(&'a', 5, Timestamp::from_secs(at)));
    use CallVerdict::{Accept, Duplicate};
    assert_eq!(verdicts, [Accept, Duplicate, Duplicate, Duplicate, Accept]);
    let mut none = DuplicateFilter::new(10, Duration::ZERO).unwrap();
    assert_eq!([(); 2].map(|()| none.accept(&'a', 5, Timestamp::ZERO)), [Accept; 2]);
}

/// The index of a packet finds the sender's state, and decides nothing: with any indices, even one
/// for all senders, the verdicts are those by hash.
#[test]
fn an_index_from_the_packet_changes_no_verdict() {
    let lifetime = Duration::from_nanos(50);
    for indices in [1, 3, 1 << 20] {
        let [mut by_hash, mut by_index] =
            [0; 2].map(|_| DuplicateFilter::new(8, lifetime).unwrap());
        for step in 0..if cfg!(miri) { 40 } else { 2000 } {
            let (sender, sequence) = (mix(step) % 12, mix(step + 1_000_000) % 16);
            let index = SourceIndex::new((mix(sender) % indices) as u32);
            let now = Timestamp::from_nanos(step);
            let expected = by_hash.accept(&sender, sequence, now);
            let indexed = Prehashed { hash: index.get().into(), key: &sender };
            assert_eq!(by_index.accept(indexed, sequence, now), expected);
        }
        by_index.validate().unwrap();
        assert_eq!(by_index.len(), by_hash.len());
    }
}

/// The clock of a filter is 64 bits wide, and does not wrap around.
#[test]
fn expired_senders_are_accepted_however_often_the_clock_is_wrong() {
    let mut filter = DuplicateFilter::new(10, Duration::MAX).unwrap();
    for round in 0..10 {
        assert_eq!(filter.accept(&1, 7, Timestamp::ZERO), CallVerdict::Accept, "round {round}");
        assert_eq!(filter.accept(&1, 7, Timestamp::ZERO), CallVerdict::Duplicate);
        for _ in 0..round {
            assert_eq!(filter.clean(Timestamp::MAX, 0), 0);
            filter.set_clock(Timestamp::ZERO);
            filter.validate().unwrap();
        }
        assert_eq!((filter.clean(Timestamp::MAX, 0), filter.len()), (0, 1));
        filter.set_clock(Timestamp::ZERO);
    }
}
