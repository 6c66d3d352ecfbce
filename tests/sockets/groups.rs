//! Groups of sockets at one local endpoint, and the member that is selected for a packet.

use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet};

use flowtable::sockets::{Local, Name, Reuse, SocketTable, Specificity};
use flowtable::{DefaultHashBuilder, FlowKey, Prehashed, write_to};

use crate::{TCP, UDP, end, flow, ip, tcp};

/// The socket selected for each of the flows.
fn spread(sockets: &SocketTable<u32>, flows: u32) -> Vec<u32> {
    (0..flows)
        .map(|number| *sockets.lookup(&flow(number)).expect("the group has members").socket)
        .collect()
}

fn shares(chosen: &[u32]) -> BTreeMap<u32, usize> {
    let mut shares = BTreeMap::new();
    chosen.iter().for_each(|socket| *shares.entry(*socket).or_default() += 1);
    shares
}

#[test]
fn a_group_shares_its_flows_evenly() {
    for seed in 0..20 {
        let mut sockets = SocketTable::with_hasher(100, DefaultHashBuilder::with_seed(seed));
        // Sockets bound earlier, so that the ids of the members do not begin at 0.
        for number in 0..seed as u16 * 3 {
            sockets
                .bind(Local::new(SocketAddr::new(ip("::"), 1000 + number), UDP), Reuse::No, 0)
                .unwrap();
        }
        for number in 0..8 {
            sockets.bind(tcp("[::]:443"), Reuse::Port, number).unwrap();
        }
        let shares = shares(&spread(&sockets, 10_000));
        assert_eq!(shares.len(), 8);
        assert!(shares.values().all(|share| (800..=1700).contains(share)), "{seed}: {shares:?}");
    }
}

#[test]
fn joining_or_leaving_a_group_moves_only_the_flows_of_that_member() {
    const FLOWS: u32 = 2000;
    let mut sockets = SocketTable::with_hasher(1000, DefaultHashBuilder::with_seed(7));
    let mut names = vec![];
    let mut before = vec![];
    // Beyond the size at which the array is replaced by a map, and back.
    for number in 0..40 {
        names.push(sockets.bind(tcp("0.0.0.0:443"), Reuse::Port, number).unwrap());
        let now = spread(&sockets, FLOWS);
        assert_eq!(now, spread(&sockets, FLOWS), "selection is deterministic");
        let moved = before.iter().zip(&now).filter(|(before, now)| before != now);
        let moved: Vec<u32> = moved.map(|(_, now)| *now).collect();
        assert!(moved.iter().all(|now| *now == number), "{number} joins");
        assert!(number == 0 || !moved.is_empty());
        before = now;
    }
    for at in [
        0, 38, 17, 5, 20, 30, 1, 2, 3, 4, 0, 20, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10,
        10, 9, 8,
    ] {
        let name = names.remove(at);
        let left = sockets.remove(&name).unwrap();
        let now = spread(&sockets, FLOWS);
        let moved = before.iter().zip(&now).filter(|(before, now)| before != now);
        let moved: Vec<u32> = moved.map(|(before, _)| *before).collect();
        assert!(moved.iter().all(|before| *before == left), "{left} leaves");
        assert!(
            !now.contains(&left)
                && moved.len() == before.iter().filter(|all| **all == left).count()
        );
        before = now;
    }
    assert_eq!(shares(&before).len(), 13);
    // The flows of the removed member are distributed over all the others.
    let left = sockets.remove(&names[0]).unwrap();
    let now = spread(&sockets, FLOWS);
    let successors =
        before.iter().zip(&now).filter(|(before, _)| **before == left).map(|(_, now)| *now);
    assert!(successors.collect::<BTreeSet<u32>>().len() > 6);
    sockets.validate().unwrap();
}

#[test]
fn a_group_and_a_queue_use_the_hash_of_the_caller() {
    let mut sockets = SocketTable::with_hasher(100, DefaultHashBuilder::with_seed(5));
    (0..8).for_each(|number| _ = sockets.bind(tcp("0.0.0.0:443"), Reuse::Port, number).unwrap());
    let key = FlowKey::new(ip("203.0.113.1"), ip("192.0.2.1"), 40_000, 443, TCP).unwrap();
    let by = |sockets: &SocketTable<u32>, hash| {
        let packets = [Prehashed { hash, key: &key }];
        let mut batch = [None; 1];
        sockets.lookup_batch(packets, write_to(&mut batch));
        let single = sockets.lookup(packets[0]).map(|found| *found.socket);
        assert_eq!(single, batch[0].map(|found| *found.socket));
        single
    };
    let own = sockets.hash_of(&key);
    assert_eq!(by(&sockets, own), sockets.lookup(&key).map(|found| *found.socket));
    let members: BTreeSet<_> = (0..200_u64).map(|hash| by(&sockets, own ^ hash << 40)).collect();
    assert_eq!(members.len(), 8);
    let name = sockets.queue(&key, 100).unwrap();
    assert_eq!(by(&sockets, own), Some(100));
    sockets.remove(&name).unwrap();
    assert_ne!(by(&sockets, own), Some(100));
}

#[test]
fn members_leave_a_large_group_from_anywhere() {
    let mut sockets = SocketTable::with_hasher(1000, DefaultHashBuilder::with_seed(7));
    let bind = |number| sockets.bind(tcp("0.0.0.0:443"), Reuse::Port, number).unwrap();
    let names: Vec<Name> = (0..600).map(bind).collect();
    sockets.retain(|_, number| *number % 3 != 0);
    sockets.validate().unwrap();
    assert_eq!(sockets.extract_if(|_, number| *number % 2 == 0).count(), 200);
    sockets.validate().unwrap();
    // The first ones and the last ones.
    for number in [1, 5, 599, 595] {
        assert_eq!(sockets.remove(&names[number]), Ok(number as u32));
        sockets.validate().unwrap();
    }
    let left: BTreeSet<u32> = sockets.iter().map(|(_, number)| *number).collect();
    assert!(left.len() == 196 && spread(&sockets, 2000).iter().all(|own| left.contains(own)));
    sockets.retain(|_, number| *number == 301);
    assert_eq!((spread(&sockets, 3), sockets.validate()), (vec![301; 3], Ok(())));
}

#[test]
fn inserting_and_removing_other_sockets_leaves_a_group_unchanged() {
    let mut sockets = SocketTable::with_hasher(1000, DefaultHashBuilder::with_seed(3));
    (0..4).for_each(|number| _ = sockets.bind(tcp("0.0.0.0:443"), Reuse::Port, number).unwrap());
    let before = spread(&sockets, 1000);
    let others = 1..100_u16;
    let names: Vec<Name> = others
        .flat_map(|number| {
            let here = SocketAddr::new(ip("192.0.2.1"), number);
            let one = sockets.bind(Local::new(here, TCP), Reuse::No, 9).unwrap();
            let client = SocketAddr::new(ip("203.0.113.1"), number);
            [one, sockets.connect(end("192.0.2.1:443"), client, TCP, 9).unwrap()]
        })
        .collect();
    assert_eq!(spread(&sockets, 1000), before);
    assert_eq!(spread(&sockets.clone(), 1000), before);
    names.iter().for_each(|name| _ = sockets.remove(name).unwrap());
    assert_eq!(spread(&sockets, 1000), before);
    // Sockets at a more specific endpoint are another group.
    sockets.bind(tcp("192.0.2.1:443"), Reuse::Port, 5).unwrap();
    assert_eq!(shares(&spread(&sockets, 1000)), BTreeMap::from([(5, 1000)]));
}

#[test]
fn a_group_bound_to_all_ports_distributes_flows() {
    let mut sockets = SocketTable::with_hasher(100, DefaultHashBuilder::with_seed(5));
    for number in 0..4 {
        sockets.bind(Local::all_ports(ip("::"), TCP), Reuse::Port, number).unwrap();
    }
    assert_eq!(shares(&spread(&sockets, 1000)).len(), 4);
    let found = sockets.lookup(&flow(1)).unwrap();
    assert_eq!(found.by, Specificity::Everything);
}

#[test]
fn the_first_of_a_group_gets_all_packets_until_it_leaves() {
    for protocol in [TCP, UDP] {
        let mut sockets = SocketTable::new(100);
        let local = Local::new(end("0.0.0.0:443"), protocol);
        let names = [0, 1, 2].map(|number| sockets.bind(local, Reuse::First, number).unwrap());
        for (name, number) in names.iter().zip(0..) {
            let mut got = (0..100).map(|client| {
                let from = SocketAddr::new(ip("198.51.100.7"), 1 + client);
                let packet = crate::packet(from, end("192.0.2.1:443"), protocol);
                *sockets.lookup(&packet).unwrap().socket
            });
            assert!(got.all(|socket| socket == number));
            sockets.remove(name).unwrap();
        }
    }
    // The first socket decides: those that distribute packets share them if it does.
    let mut sockets = SocketTable::new(100);
    let bind = |sockets: &mut SocketTable<u32>, reuse, number| {
        sockets.bind(tcp("0.0.0.0:443"), reuse, number).unwrap()
    };
    let first = bind(&mut sockets, Reuse::First, 0);
    for (reuse, number) in [(Reuse::Port, 1), (Reuse::First, 2), (Reuse::Port, 3)] {
        bind(&mut sockets, reuse, number);
    }
    assert_eq!(shares(&spread(&sockets, 100)), BTreeMap::from([(0, 100)]));
    sockets.remove(&first).unwrap();
    let shares = shares(&spread(&sockets, 1000));
    assert!(shares.keys().eq([&1, &3]), "{shares:?}");
}
