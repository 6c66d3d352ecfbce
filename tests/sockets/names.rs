//! The validity of names and the lifetime of sockets.

use core::fmt::Debug;
use core::net::SocketAddr;

use flowtable::demux::NotFound;
use flowtable::sockets::{Local, Match, Name, Reuse, SocketError, SocketTable, Specificity};

use crate::{EPHEMERAL, TCP, UDP, end, flow, ip, tcp, udp, with_few_and_many};
use model::counted::{Counted, alive};

#[test]
fn a_name_is_valid_until_its_socket_is_removed_and_never_again() {
    with_few_and_many(|sockets| {
        let first = sockets.bind(tcp("[::]:80"), Reuse::No, "first").unwrap();
        assert_eq!(sockets.get(&first), Some(&"first"));
        *sockets.get_mut(&first).unwrap() = "changed";
        assert_eq!(sockets.remove(&first), Ok("changed"));
        let second = sockets.bind(tcp("[::]:80"), Reuse::No, "second").unwrap();
        assert_ne!(first, second);
        assert_eq!(sockets.get(&first), None);
        assert_eq!(sockets.get_mut(&first), None);
        assert_eq!(sockets.remove(&first), Err(NotFound));
        assert_eq!(sockets.get(&second), Some(&"second"));
        // A name forged from two others is invalid.
        let third = sockets.bind(tcp("[::]:81"), Reuse::No, "third").unwrap();
        let (Name::Bound { local, .. }, Name::Bound { id, .. }) = (second, third) else {
            panic!("not bound")
        };
        let forged = Name::Bound { local, id };
        assert_eq!(sockets.get(&forged), None);
        assert_eq!(sockets.remove(&forged), Err(NotFound));
        // Clearing does not make names repeat.
        sockets.clear();
        assert_eq!((sockets.get(&second), sockets.len(), sockets.iter().count()), (None, 0, 0));
        let again = sockets.bind(tcp("[::]:80"), Reuse::No, "again").unwrap();
        assert!(![first, second].contains(&again));
        assert_eq!(sockets.get(&second), None);
    });
}

#[test]
fn a_connection_that_is_inserted_again_has_its_old_name() {
    with_few_and_many(|sockets| {
        let (here, there) = (end("192.0.2.1:80"), end("198.51.100.7:4000"));
        let name = sockets.connect(here, there, TCP, "first").unwrap();
        assert_eq!(sockets.remove(&name), Ok("first"));
        assert_eq!(sockets.remove(&name), Err(NotFound));
        assert_eq!(sockets.connect(here, there, TCP, "second"), Ok(name));
        assert_eq!(sockets.get(&name), Some(&"second"));
    });
}

#[test]
fn every_socket_is_dropped_once() {
    let mut sockets = SocketTable::new(100);
    let here = end("192.0.2.1:443");
    let client = |number| SocketAddr::new(ip("198.51.100.7"), number);
    let mut names = vec![];
    for number in 1..=50 {
        let counted = || Counted::new(number.into());
        names.push(sockets.bind(tcp("[::]:443"), Reuse::Port, counted()).unwrap());
        names.push(sockets.connect(here, client(number), TCP, counted()).unwrap());
    }
    assert_eq!(alive(), 100);
    let refused = sockets.bind(tcp("[::]:80"), Reuse::No, Counted::new(7)).unwrap_err();
    assert_eq!((refused.reason, refused.refused.number), (SocketError::Full, 7));
    drop(refused);
    let clone = sockets.clone();
    assert_eq!(alive(), 200);
    drop(clone);
    for name in names.iter().step_by(3) {
        assert!(sockets.remove(name).unwrap().is_alive());
        let refused = sockets.connect(here, client(1), TCP, Counted::new(7)).unwrap_err();
        assert!(refused.reason == SocketError::InUse && refused.refused.is_alive());
    }
    assert_eq!(alive(), 66);
    // Few enough for the array.
    for name in names
        .iter()
        .filter(|name| sockets.get(name).is_some())
        .copied()
        .collect::<Vec<Name>>()
        .iter()
        .skip(9)
    {
        assert!(sockets.remove(name).unwrap().is_alive());
    }
    assert_eq!((alive(), sockets.len()), (9, 9));
    assert!(sockets.iter().all(|(_, socket)| socket.is_alive()));
    sockets.bind_ephemeral(udp("[::]:0"), EPHEMERAL, Reuse::No, Counted::new(8)).unwrap();
    sockets.connect_ephemeral(here.ip(), client(1), UDP, EPHEMERAL, Counted::new(8)).unwrap();
    assert_eq!(alive(), 11);
    sockets.clear();
    assert_eq!(alive(), 0);
    sockets.bind(tcp("[::]:80"), Reuse::No, Counted::new(9)).unwrap();
    drop(sockets);
    assert_eq!(alive(), 0);
}

#[test]
fn local_endpoints_have_accessors_and_a_display() {
    assert_eq!((tcp("192.0.2.1:80").port(), udp("[::]:53").port()), (Some(80), Some(53)));
    assert_eq!((tcp("192.0.2.1:80").protocol(), udp("[::]:53").protocol()), (TCP, UDP));
    assert_eq!(Local::all_ports(ip("::"), TCP).v6_only().port(), None);
    for (local, shown) in [
        (tcp("192.0.2.1:80"), "192.0.2.1:80 proto 6"),
        (tcp("0.0.0.0:80"), "0.0.0.0:80 proto 6"),
        (udp("[::1]:53"), "[::1]:53 proto 17"),
        (udp("[::]:53"), "[::]:53 proto 17"),
        (Local::all_ports(ip("192.0.2.1"), TCP), "192.0.2.1:* proto 6"),
    ] {
        assert_eq!(local.to_string(), shown);
    }
    assert_ne!(udp("[::]:53").v6_only().to_string(), udp("[::]:53").to_string());
    let takes =
        |local: Local| ["192.0.2.1", "192.0.2.2", "::1", "::2"].map(|to| local.takes(ip(to)));
    assert_eq!(takes(tcp("[::]:80")), [true; 4]);
    assert_eq!(takes(tcp("[::]:80").v6_only()), [false, false, true, true]);
    assert_eq!(takes(tcp("0.0.0.0:80")), [true, true, false, false]);
    assert_eq!(takes(tcp("192.0.2.1:80")), [true, false, false, false]);
    assert_eq!(takes(Local::all_ports(ip("::1"), UDP)), [false, false, true, false]);
    assert_eq!(Reuse::default(), Reuse::No);
}

#[test]
fn auto_traits() {
    fn check<T: Send + Sync + Clone + Debug + Unpin>(shown: &T) {
        assert!(!format!("{shown:?}").is_empty());
    }
    check(&SocketTable::<u32>::new(1));
    check(&tcp("[::]:80"));
    check(&Name::Connected(flow(1)));
    check(&Reuse::No);
    check(&Match { socket: 1, by: Specificity::Port });
}

#[test]
fn sockets_need_no_traits() {
    fn insert_and_remove<T>(sockets: &mut SocketTable<T>, socket: T) -> Result<T, NotFound> {
        let name = sockets.bind(tcp("[::]:80"), Reuse::No, socket).map_err(|_| NotFound)?;
        assert_eq!(sockets.iter().count(), 1);
        assert!(sockets.lookup(&flow(1)).is_none() && sockets.validate().is_ok());
        sockets.remove(&name)
    }
    struct Opaque;
    assert!(insert_and_remove(&mut SocketTable::new(1), Opaque).is_ok());
}
