//! The methods of the demultiplexers: PCBs examined, and errors. Sequences of operations are in
//! `model`.

use core::fmt::Debug;
use core::hash::{BuildHasherDefault, Hash, Hasher};
use core::net::Ipv4Addr;
use std::error::Error;

use flowtable::demux::{
    Arrival::{self, Ack, Data},
    BsdList, ChainsError, ConnectionId, Demux, DemuxError, Found, MoveToFront, NotFound,
    RejectedPcb, SendReceive, Sequent, SequentMoveToFront, TrashDemux,
};
use flowtable::probes::Probes;
use flowtable::{DefaultHashBuilder, FlowKey, FourTuple};
use model::counted::{Callback, Counted, alive, with_panic};
use model::hashers::{Weak, mix};

/// The name of a demultiplexer, and the demultiplexer.
type Named<T, K> = (&'static str, Box<dyn Demux<T, K>>);

/// All demultiplexers except [`ConnectionId`].
fn named<T: 'static, K: Eq + Hash + 'static>() -> Vec<Named<T, K>> {
    vec![
        ("BsdList", Box::new(BsdList::new())),
        ("MoveToFront", Box::new(MoveToFront::new())),
        ("SendReceive", Box::new(SendReceive::new())),
        ("Sequent", Box::new(Sequent::with_chains(19).unwrap())),
        ("SequentMoveToFront", Box::new(SequentMoveToFront::with_chains(19).unwrap())),
        ("TrashDemux", Box::new(TrashDemux::new())),
    ]
}

/// All demultiplexers, with numbers below 1000 as keys.
fn numbered<T: 'static>() -> Vec<Named<T, u32>> {
    let mut all = named();
    all.push(("ConnectionId", Box::new(ConnectionId::new(1000))));
    all
}

/// Inserts the PCBs 1 to `count` in this order, with their numbers as keys.
fn filled<D: Demux<u32, u32>>(mut demux: D, count: u32) -> D {
    (1..=count).for_each(|number| demux.insert(number, number).unwrap());
    demux
}

/// The PCBs examined for each arriving segment.
fn examined<const N: usize>(
    demux: &mut dyn Demux<u32, u32>,
    segments: [(u32, Arrival); N],
) -> [u32; N] {
    segments.map(|(number, arrival)| {
        let Found { pcb, examined } = demux.lookup(&number, arrival);
        assert_eq!(pcb.copied(), (number <= 10).then_some(number));
        examined
    })
}

#[test]
fn an_empty_demux_examines_and_finds_nothing() {
    for (name, mut demux) in numbered::<u32>() {
        assert_eq!((demux.len(), demux.is_empty()), (0, true), "{name}");
        for arrival in [Data, Ack] {
            let found = demux.lookup(&1, arrival);
            assert_eq!(found, Found { pcb: None, examined: 0 }, "{name}");
        }
        demux.sent(&1);
        assert_eq!(demux.remove(&1), Err(NotFound), "{name}");
        demux.validate().unwrap();
    }
}

#[test]
fn a_second_insertion_returns_the_pcb_and_changes_nothing() {
    for (name, mut demux) in numbered() {
        demux.insert(1, 10).unwrap();
        demux.insert(2, 20).unwrap();
        let refused = demux.insert(1, 11).unwrap_err();
        assert_eq!(refused, RejectedPcb { refused: 11_u32, reason: DemuxError::InUse }, "{name}");
        assert_eq!(demux.len(), 2, "{name}");
        assert_eq!(demux.lookup(&1, Data).pcb, Some(&mut 10), "{name}");
        assert_eq!(demux.lookup(&2, Data).pcb, Some(&mut 20), "{name}");
        demux.validate().unwrap();
    }
    // The order of the search is unchanged, too.
    let mut list = filled(BsdList::new(), 2);
    assert_eq!(list.insert(1, 11).unwrap_err().refused, 11);
    assert!(list.iter().eq([(&2, &2), (&1, &1)]));
}

#[test]
fn removing_an_absent_key_is_an_error_and_changes_nothing() {
    for (name, mut demux) in numbered() {
        demux.insert(7, 10_u32).unwrap();
        assert_eq!(demux.remove(&8), Err(NotFound), "{name}");
        assert_eq!((demux.len(), demux.remove(&7)), (1, Ok(10)), "{name}");
        assert_eq!((demux.len(), demux.remove(&7)), (0, Err(NotFound)), "{name}: removed once");
        assert_eq!(demux.lookup(&7, Data).pcb, None, "{name}");
        demux.insert(7, 20).unwrap();
        assert_eq!(demux.lookup(&7, Data).pcb, Some(&mut 20), "{name}");
        demux.validate().unwrap();
    }
}

#[test]
fn a_lookup_returns_a_mutable_pcb() {
    for (name, mut demux) in numbered() {
        (0..100).for_each(|number| demux.insert(number, 0_u32).unwrap());
        for round in 1..4 {
            for number in 0..100 {
                let pcb = demux.lookup(&number, Data).pcb.unwrap();
                assert_eq!(*pcb, (round - 1) * number, "{name}");
                *pcb += number;
            }
        }
        demux.validate().unwrap();
    }
}

#[test]
fn all_four_fields_are_compared() {
    let tuple = |src: u8, dst: u8, sport, dport| FourTuple {
        src: Ipv4Addr::new(10, 0, 0, src),
        dst: Ipv4Addr::new(10, 0, 0, dst),
        sport,
        dport,
    };
    let names = [
        tuple(1, 2, 3, 4),
        tuple(2, 1, 3, 4),
        tuple(1, 2, 4, 3),
        tuple(2, 1, 4, 3),
        tuple(1, 2, 3, 5),
    ];
    for (name, mut demux) in named() {
        for (at, key) in (0_u32..).zip(names) {
            demux.insert(key, at).unwrap();
        }
        for (at, key) in (0_u32..).zip(&names) {
            assert_eq!(demux.lookup(key, Data).pcb.copied(), Some(at), "{name}");
        }
        assert_eq!(demux.lookup(&tuple(1, 1, 3, 4), Data).pcb, None, "{name}");
    }
}

#[test]
fn keys_may_be_of_any_type() {
    let key = FlowKey::new("::1".parse().unwrap(), "::2".parse().unwrap(), 1, 2, 6).unwrap();
    for (name, mut demux) in named::<u32, FlowKey>() {
        demux.insert(key, 1).unwrap();
        assert_eq!(demux.lookup(&key.reversed(), Data).pcb, None, "{name}: the reverse direction");
        assert_eq!(demux.remove(&key), Ok(1), "{name}");
    }
}

#[test]
fn the_bsd_list_is_newest_first_after_the_cached_pcb() {
    let mut list = filled(BsdList::new(), 10);
    let segments = [(1, Data), (1, Data), (1, Ack), (10, Ack), (9, Data), (11, Data), (9, Data)];
    // The cache is empty at first, and a failed search does not change it.
    assert_eq!(examined(&mut list, segments), [10, 1, 1, 2, 3, 11, 1]);
    // Neither an insertion nor a sent packet changes the cache.
    list.insert(12, 12).unwrap();
    list.sent(&5);
    assert_eq!(examined(&mut list, [(9, Data), (10, Data)]), [1, 3]);
    assert_eq!(list.iter().next(), Some((&12, &12)));
    assert!(list.iter().map(|(number, _)| *number).skip(1).eq((1..=10).rev()));
}

#[test]
fn a_train_examines_one_pcb_for_each_segment_but_the_first() {
    let mut list = filled(BsdList::new(), 10);
    assert_eq!(examined(&mut list, [(4, Data); 5]), [7, 1, 1, 1, 1]);
    let mut chains = filled(Sequent::with_chains(19).unwrap(), 10);
    assert_eq!(examined(&mut chains, [(4, Data); 5])[1..], [1; 4]);
}

#[test]
fn a_found_pcb_moves_to_the_front() {
    let mut list = filled(MoveToFront::new(), 5);
    assert_eq!(
        examined(&mut list, [(1, Data), (1, Ack), (5, Data), (1, Data), (11, Ack)]),
        [5, 1, 2, 2, 5]
    );
    let order =
        |list: &MoveToFront<u32, u32>| list.iter().map(|(number, _)| *number).collect::<Vec<u32>>();
    assert_eq!(order(&list), [1, 5, 4, 3, 2]);
    assert_eq!(examined(&mut list, [(3, Data), (2, Data), (2, Data)]), [4, 5, 1]);
    assert_eq!(order(&list), [2, 3, 1, 5, 4]);
    list.remove(&1).unwrap();
    list.insert(6, 6).unwrap();
    assert_eq!(order(&list), [6, 2, 3, 5, 4]);
}

#[test]
fn round_robin_is_the_worst_case_of_move_to_front() {
    let mut list = filled(MoveToFront::new(), 10);
    for turn in 0..50 {
        let number = turn % 10 + 1;
        assert_eq!(examined(&mut list, [(number, Data)]), [10]);
    }
}

#[test]
fn acknowledgements_probe_the_last_sent_pcb_first_and_data_the_last_received() {
    let mut list = filled(SendReceive::new(), 10);
    list.sent(&2);
    // There is only one cached PCB.
    assert_eq!(examined(&mut list, [(1, Data)]), [1 + 10]);
    // The last packet was received for 1 and sent on 2.
    assert_eq!(examined(&mut list, [(1, Data), (11, Data), (11, Ack)]), [1, 12, 12]);
    assert_eq!(examined(&mut list, [(1, Ack)]), [2]);
    assert_eq!(examined(&mut list, [(2, Ack)]), [1]);
    // Received for 2 and sent on 2: that is one PCB, and it is examined once.
    assert_eq!(examined(&mut list, [(11, Ack), (1, Data), (2, Data)]), [11, 11, 2]);
    // A received packet does not change the PCB sent on.
    list.sent(&5);
    assert_eq!(examined(&mut list, [(10, Ack), (5, Ack), (10, Ack)]), [3, 1, 2]);
    list.sent(&99);
    assert_eq!(examined(&mut list, [(5, Ack)]), [1], "sending on an absent key has no effect");
    assert!(list.iter().map(|(number, _)| *number).eq((1..=10).rev()));
}

/// A hasher whose hash of a number is the number.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers");
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = number.into();
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

type ByIdentity = BuildHasherDefault<Identity>;

#[test]
fn by_default_there_are_nineteen_chains_with_a_cached_pcb_each() {
    let mut chains: Sequent<u32, u32, ByIdentity> = Sequent::default();
    (0..38).for_each(|number| chains.insert(number, number).unwrap());
    // Two PCBs in each chain, the greater number in front. Chains do not affect the caches of
    // others.
    for (expected, numbers) in [(2, 0..19), (1, 0..19), (2, 19..38), (1, 19..38), (3, 0..19)] {
        for number in numbers {
            assert_eq!(chains.lookup(&number, Data).examined, expected, "{number}");
        }
    }
    let mut chains: SequentMoveToFront<u32, u32, ByIdentity> = SequentMoveToFront::default();
    (0..38).for_each(|number| chains.insert(number, number).unwrap());
    for (expected, numbers) in [(2, 0..19), (1, 0..19), (2, 19..38), (2, 0..19)] {
        for number in numbers {
            assert_eq!(chains.lookup(&number, Data).examined, expected, "{number}");
        }
    }
}

#[test]
fn one_chain_is_one_list() {
    let mut list = filled(BsdList::new(), 10);
    let mut chain = filled(Sequent::with_chains(1).unwrap(), 10);
    let mut to_front = filled(MoveToFront::new(), 10);
    let mut chain_to_front = filled(SequentMoveToFront::with_chains(1).unwrap(), 10);
    for at in 0..200 {
        let segment = [(mix(at) as u32 % 11 + 1, Data)];
        assert_eq!(examined(&mut chain, segment), examined(&mut list, segment));
        assert_eq!(examined(&mut chain_to_front, segment), examined(&mut to_front, segment));
    }
}

#[test]
fn no_chains_are_an_error() {
    assert_eq!(Sequent::<()>::with_chains(0).unwrap_err(), ChainsError::NoChains);
    assert_eq!(SequentMoveToFront::<()>::with_chains(0).unwrap_err(), ChainsError::NoChains);
    let chains = Sequent::<(), u32, Weak>::with_chains_and_hasher(0, Weak::Mixed);
    assert_eq!(chains.unwrap_err(), ChainsError::NoChains);
    let chains = SequentMoveToFront::<(), u32, Weak>::with_chains_and_hasher(0, Weak::Mixed);
    assert_eq!(chains.unwrap_err(), ChainsError::NoChains);
}

#[test]
fn chains_that_exceed_memory_are_an_error() {
    for chains in [usize::MAX, usize::MAX / 2, usize::MAX / 8, usize::MAX / 64] {
        assert_eq!(Sequent::<()>::with_chains(chains).unwrap_err(), ChainsError::NoMemory);
        assert_eq!(
            SequentMoveToFront::<()>::with_chains(chains).unwrap_err(),
            ChainsError::NoMemory
        );
    }
}

#[test]
fn with_many_chains_a_lookup_examines_one_pcb() {
    // 0.5 collisions are expected; the seed is fixed.
    let hasher = DefaultHashBuilder::with_seed(1);
    let mut chains = Sequent::with_chains_and_hasher(1 << 20, hasher.clone()).unwrap();
    let mut to_front = SequentMoveToFront::with_chains_and_hasher(1 << 20, hasher).unwrap();
    let (mut first, mut second) = (0, 0);
    for number in 0..1000_u32 {
        chains.insert(number, number).unwrap();
        to_front.insert(number, number).unwrap();
    }
    for number in 0..1000 {
        first += chains.lookup(&number, Data).examined;
        second += to_front.lookup(&number, Data).examined;
    }
    assert!(first <= 1010 && second <= 1010, "{first} and {second}");
}

#[test]
fn a_weak_hash_affects_costs_only() {
    for hasher in Weak::ALL {
        let demuxes: [Box<dyn Demux<u32, u32>>; 3] = [
            Box::new(Sequent::with_chains_and_hasher(7, hasher).unwrap()),
            Box::new(SequentMoveToFront::with_chains_and_hasher(7, hasher).unwrap()),
            Box::new(TrashDemux::with_hasher(hasher)),
        ];
        for mut demux in demuxes {
            (0..300).for_each(|number| demux.insert(number, number).unwrap());
            for number in 0..400 {
                let found = demux.lookup(&number, Data);
                assert_eq!(found.pcb.copied(), (number < 300).then_some(number), "{hasher:?}");
                assert!(found.examined <= 301, "{hasher:?}: the cached PCB, and all PCBs");
            }
            assert!((0..300).all(|number| demux.remove(&number) == Ok(number)));
            demux.validate().unwrap();
        }
    }
}

#[test]
fn a_removed_pcb_is_not_cached() {
    let lists: [Box<dyn Demux<u32, u32>>; 4] = [
        Box::new(filled(BsdList::new(), 10)),
        Box::new(filled(SendReceive::new(), 10)),
        Box::new(filled(Sequent::with_chains(1).unwrap(), 10)),
        Box::new(filled(Sequent::with_chains_and_hasher(5, Weak::Constant).unwrap(), 10)),
    ];
    for mut list in lists {
        assert_eq!(examined(&mut *list, [(3, Data)]), [8]);
        list.sent(&3);
        list.remove(&3).unwrap();
        list.validate().unwrap();
        // Nine PCBs are left, and no cached PCB is examined before them.
        assert_eq!(examined(&mut *list, [(11, Data), (11, Ack)]), [9, 9]);
        // A new PCB may reuse its memory: that is not cached either.
        list.insert(11, 11).unwrap();
        assert_eq!(list.lookup(&99, Data).examined, 10);
        assert_eq!(list.lookup(&1, Data).examined, 10);
        // A PCB inserted again with the same key is another PCB.
        list.remove(&1).unwrap();
        list.insert(1, 1).unwrap();
        assert_eq!(list.lookup(&99, Ack).examined, 10);
        list.validate().unwrap();
    }
}

#[test]
fn a_removal_does_not_affect_the_other_cached_pcb() {
    let mut list = filled(SendReceive::new(), 10);
    list.lookup(&1, Data);
    list.sent(&2);
    list.remove(&1).unwrap();
    assert_eq!(examined(&mut list, [(11, Data), (2, Ack), (2, Data)]), [1 + 9, 1, 1]);
    list.remove(&2).unwrap();
    assert_eq!(examined(&mut list, [(11, Data), (11, Ack)]), [8, 8]);
    let mut list = filled(BsdList::new(), 10);
    list.lookup(&1, Data);
    list.remove(&10).unwrap();
    assert_eq!(examined(&mut list, [(1, Data)]), [1]);
}

#[test]
fn a_removal_keeps_the_order_of_other_pcbs() {
    for removed in 1..=5 {
        let mut list = filled(BsdList::new(), 5);
        let mut to_front = filled(MoveToFront::new(), 5);
        let mut both = filled(SendReceive::new(), 5);
        let lists: [&mut dyn Demux<u32, u32>; 3] = [&mut list, &mut to_front, &mut both];
        for list in lists {
            assert_eq!(list.remove(&removed), Ok(removed));
            list.insert(6, 6).unwrap();
            list.validate().unwrap();
        }
        let left = || (1..=6_u32).rev().filter(|number| *number != removed);
        assert!(list.iter().map(|(number, _)| *number).eq(left()));
        assert!(to_front.iter().map(|(number, _)| *number).eq(left()));
        assert!(both.iter().map(|(number, _)| *number).eq(left()));
    }
}

/// Inserts, refuses, finds and removes PCBs; the rest is dropped with the demultiplexer. A key has
/// `counted` counted objects.
fn check_drops<K>(mut demux: Box<dyn Demux<Counted, K>>, make: fn(u64) -> K, counted: usize) {
    let before = alive();
    for number in 0..100 {
        demux.insert(make(number), Counted::new(number)).unwrap();
    }
    assert_eq!(alive(), before + 100 * (1 + counted));
    for number in 0..100 {
        let refused = demux.insert(make(number), Counted::new(1000 + number)).unwrap_err();
        assert!(refused.refused.is_alive() && refused.refused.number == 1000 + number);
    }
    assert_eq!(alive(), before + 100 * (1 + counted), "the caller owns refused PCBs");
    for number in (0..150).step_by(3) {
        let removed = demux.remove(&make(number));
        assert!(removed.map_or(number >= 100, |pcb| pcb.is_alive() && pcb.number == number));
    }
    assert_eq!(alive(), before + 66 * (1 + counted));
    for number in (0..100).rev() {
        let found = demux.lookup(&make(number), Data).pcb;
        assert_eq!(found.is_some(), number % 3 > 0);
        if let Some(pcb) = found {
            assert!(pcb.is_alive() && pcb.number == number);
            *pcb = Counted::new(number);
        }
    }
    assert_eq!(alive(), before + 66 * (1 + counted));
    demux.insert(make(0), Counted::new(0)).unwrap();
    drop(demux);
    assert_eq!(alive(), before);
}

#[test]
fn every_pcb_and_every_key_is_dropped_once() {
    for (_, demux) in numbered() {
        check_drops(demux, |number| number as u32, 0);
    }
    for (_, demux) in named() {
        check_drops(demux, Counted::new, 1);
    }
    assert_eq!(alive(), 0);
}

#[test]
fn a_clone_has_pcbs_of_its_own() {
    fn test<D: Demux<Counted, u32> + Clone>(mut demux: D) {
        (0..50).for_each(|number| demux.insert(number, Counted::new(number.into())).unwrap());
        demux.lookup(&3, Data);
        demux.sent(&4);
        demux.remove(&5).unwrap();
        let mut clone = demux.clone();
        assert_eq!(alive(), 98);
        // The clone has the same cached PCBs.
        for (number, arrival) in [(3, Ack), (4, Data), (99, Data), (3, Data)] {
            let original = demux.lookup(&number, arrival).examined;
            assert_eq!(clone.lookup(&number, arrival).examined, original);
        }
        (0..40).filter(|&number| number != 5).for_each(|number| _ = clone.remove(&number).unwrap());
        assert_eq!((clone.len(), demux.len(), alive()), (10, 49, 59));
        assert!(demux.lookup(&7, Data).pcb.unwrap().is_alive());
        clone.validate().unwrap();
        demux.validate().unwrap();
        drop(demux);
        assert_eq!(clone.lookup(&45, Data).pcb.unwrap().number, 45);
    }
    test(BsdList::new());
    test(MoveToFront::new());
    test(SendReceive::new());
    test(Sequent::with_chains(5).unwrap());
    test(SequentMoveToFront::with_chains(5).unwrap());
    test(TrashDemux::new());
    test(ConnectionId::new(50));
    assert_eq!(alive(), 0);
}

#[test]
fn a_map_examines_one_pcb_independently_of_their_number() {
    for count in [10_u32, 1000, 30_000] {
        let mut demux = TrashDemux::with_hasher(Weak::Mixed);
        (0..count).for_each(|number| demux.insert(number, number).unwrap());
        let found: u32 = (0..count).map(|number| demux.lookup(&number, Data).examined).sum();
        assert!((count..=count + count / 16 + 1).contains(&found), "{found} for {count}");
        let absent = (count..2 * count).map(|number| demux.lookup(&number, Data).examined);
        let absent: u32 = absent.sum();
        assert!(absent <= count / 10, "{absent} for {count} absent keys");
        assert_eq!(demux.map().len(), count as usize);
    }
}

#[test]
fn a_map_counts_each_pcb_once() {
    for hasher in Weak::ALL {
        let mut demux = TrashDemux::with_hasher(hasher);
        (0..100).for_each(|number| demux.insert(number, number).unwrap());
        for number in 0..200_u32 {
            let mut probes = Probes::default();
            demux.map().get_observed(&number, &mut probes);
            assert_eq!(demux.lookup(&number, Data).examined, probes.entries, "{hasher:?}");
        }
    }
    let mut demux = TrashDemux::with_hasher(Weak::Constant);
    demux.insert(1, 1).unwrap();
    assert_eq!(demux.lookup(&2_u32, Data).examined, 1, "there is only one PCB");
}

#[test]
fn demultiplexers_are_send_sync_clone_and_debug() {
    fn has_common_traits<T: Send + Sync + Clone + Debug + Unpin>(_: &T) {}
    fn made<T: Default + Send + Sync + Clone + Debug + Unpin>() -> T {
        let made = T::default();
        has_common_traits(&made);
        assert!(!format!("{made:?}").is_empty());
        made
    }
    let demuxes: [Box<dyn Demux<u32, u32>>; 6] = [
        Box::new(made::<BsdList<u32, u32>>()),
        Box::new(made::<MoveToFront<u32, u32>>()),
        Box::new(made::<SendReceive<u32, u32>>()),
        Box::new(made::<Sequent<u32, u32>>()),
        Box::new(made::<SequentMoveToFront<u32, u32>>()),
        Box::new(made::<TrashDemux<u32, u32>>()),
    ];
    assert!(demuxes.iter().all(|demux| demux.is_empty()));
    has_common_traits(&ConnectionId::<u32>::new(1));
    const EMPTY: BsdList<u32, u32> = BsdList::new();
    assert_eq!(EMPTY.len(), 0);
}

/// The cached PCBs of the lists are forgotten before the key is dropped.
#[test]
fn a_key_that_panics_when_it_is_dropped_affects_no_other() {
    for (name, mut demux) in named::<u64, Counted>() {
        (0..5).for_each(|number| demux.insert(Counted::new(number), number).unwrap());
        let key = Counted::new(2);
        demux.sent(&key);
        assert!(demux.lookup(&key, Data).pcb.is_some());
        assert!(with_panic(Callback::Drop, 0, || demux.remove(&key)).is_none(), "{name}");
        for number in 0..5 {
            let found = demux.lookup(&Counted::new(number), Ack).pcb.copied();
            assert_eq!(found, (number != 2).then_some(number), "{name}");
        }
        assert_eq!(demux.len(), 4);
    }
}

/// Compiles without bounds on the type of PCBs.
fn insert_and_remove<T>(demux: &mut TrashDemux<T, u32>, pcb: T) -> Result<T, NotFound> {
    demux.insert(1, pcb).map_err(|_| NotFound)?;
    demux.remove(&1)
}

#[test]
fn a_pcb_may_be_of_any_type() {
    struct Opaque;
    assert!(insert_and_remove(&mut TrashDemux::new(), Opaque).is_ok());
}

#[test]
fn error_messages_describe_the_cause() {
    fn message(error: &(dyn Error + 'static)) -> String {
        assert!(error.source().is_none());
        error.to_string()
    }
    assert_eq!(message(&DemuxError::InUse), "the key has a PCB already");
    let rejected = RejectedPcb { refused: 1, reason: DemuxError::InUse };
    assert_eq!(message(&rejected), "the key has a PCB already");
    assert_eq!(message(&DemuxError::Full), "the structure has 2^31 - 1 PCBs, the most it can have");
    assert_eq!(message(&DemuxError::NoSuchId), "the connection ID is not below the capacity");
    assert_eq!(message(&DemuxError::NoMemory), "memory allocation failed");
    assert_eq!(message(&NotFound), "there is no entry with this key");
    assert_eq!(message(&ChainsError::NoChains), "the number of chains is zero");
    assert_eq!(message(&ChainsError::NoMemory), "memory allocation for the chains failed");
}
