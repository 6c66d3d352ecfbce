//! Refused calls: the error states the reason and returns the socket, and nothing has changed.

use core::hash::BuildHasher;
use std::cell::Cell;
use std::error::Error;
use std::hash::DefaultHasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use flowtable::sockets::{Name, RejectedSocket, Reuse, SocketError, SocketTable};

use crate::{EPHEMERAL, TCP, end, tcp, udp, with_few_and_many};

/// The sockets and their names, sorted.
fn contents(sockets: &SocketTable<&'static str>) -> Vec<(&'static str, Name)> {
    let mut standing: Vec<(&str, Name)> =
        sockets.iter().map(|(name, socket)| (*socket, name)).collect();
    standing.sort_by_key(|(socket, _)| *socket);
    standing
}

/// Checks that `act` is refused for this reason and returns its socket.
fn refuses(
    sockets: &mut SocketTable<&'static str>,
    reason: SocketError,
    act: impl FnOnce(&mut SocketTable<&'static str>) -> Result<Name, RejectedSocket<&'static str>>,
) {
    let before = contents(sockets);
    assert_eq!(act(sockets).unwrap_err(), RejectedSocket { refused: "given", reason });
    assert_eq!(contents(sockets), before, "nothing has changed");
    assert_eq!(sockets.len(), before.len());
    sockets.validate().unwrap();
}

#[test]
fn an_error_states_the_reason_and_returns_the_socket() {
    with_few_and_many(|sockets| {
        let (here, there) = (end("192.0.2.1:80"), end("198.51.100.7:4000"));
        sockets.bind(tcp("0.0.0.0:80"), Reuse::Port, "bound").unwrap();
        sockets.connect(here, there, TCP, "connected").unwrap();
        refuses(sockets, SocketError::InUse, |all| all.bind(tcp("[::]:80"), Reuse::No, "given"));
        refuses(sockets, SocketError::InUse, |all| all.connect(here, there, TCP, "given"));
        for zero in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            refuses(sockets, SocketError::PortZero, |all| {
                all.bind(tcp(zero), Reuse::Port, "given")
            });
        }
        let (no_here, no_there) = (end("192.0.2.1:0"), end("198.51.100.7:0"));
        refuses(sockets, SocketError::PortZero, |all| all.connect(no_here, there, TCP, "given"));
        refuses(sockets, SocketError::PortZero, |all| all.connect(here, no_there, TCP, "given"));
        refuses(sockets, SocketError::PortZero, |all| {
            all.connect_ephemeral(here.ip(), no_there, TCP, EPHEMERAL, "given")
        });
        for any in ["0.0.0.0:80", "[::]:80", "[::ffff:0.0.0.0]:80"].map(end) {
            refuses(sockets, SocketError::Unspecified, |all| all.connect(any, there, TCP, "given"));
            refuses(sockets, SocketError::Unspecified, |all| all.connect(here, any, TCP, "given"));
            refuses(sockets, SocketError::Unspecified, |all| {
                all.connect_ephemeral(any.ip(), there, TCP, EPHEMERAL, "given")
            });
        }
        let v6 = end("[2001:db8::1]:80");
        refuses(sockets, SocketError::MixedFamilies, |all| all.connect(v6, there, TCP, "given"));
        refuses(sockets, SocketError::MixedFamilies, |all| all.connect(here, v6, TCP, "given"));
        refuses(sockets, SocketError::MixedFamilies, |all| {
            all.connect_ephemeral(v6.ip(), there, TCP, EPHEMERAL, "given")
        });
        #[allow(clippy::reversed_empty_ranges, reason = "an empty range is the test case")]
        for bad in [0..=10, 0..=0, 2..=1, 0..=u16::MAX, u16::MAX..=0] {
            refuses(sockets, SocketError::BadRange, |all| {
                all.bind_ephemeral(udp("0.0.0.0:5"), bad.clone(), Reuse::No, "given")
            });
            refuses(sockets, SocketError::BadRange, |all| {
                all.connect_ephemeral(here.ip(), there, TCP, bad, "given")
            });
        }
        let mut over = 5..=5;
        over.next();
        refuses(sockets, SocketError::BadRange, |all| {
            all.bind_ephemeral(udp("0.0.0.0:5"), over, Reuse::No, "given")
        });
        refuses(sockets, SocketError::NoPort, |all| {
            all.bind_ephemeral(tcp("192.0.2.2:0"), 80..=80, Reuse::Port, "given")
        });
        refuses(sockets, SocketError::NoPort, |all| {
            all.connect_ephemeral(here.ip(), there, TCP, 80..=80, "given")
        });
    });
}

#[test]
fn a_full_table_is_an_error_and_both_kinds_count() {
    let mut none = SocketTable::new(0);
    refuses(&mut none, SocketError::Full, |all| all.bind(tcp("[::]:80"), Reuse::No, "given"));
    assert_eq!((none.capacity(), none.len(), none.is_empty()), (0, 0, true));
    let mut sockets = SocketTable::new(2);
    let (here, there) = (end("192.0.2.1:80"), end("198.51.100.7:4000"));
    let name = sockets.bind(tcp("[::]:80"), Reuse::Port, "bound").unwrap();
    sockets.connect(here, there, TCP, "connected").unwrap();
    assert_eq!((sockets.capacity(), sockets.len(), sockets.is_empty()), (2, 2, false));
    let other = end("198.51.100.7:4001");
    refuses(&mut sockets, SocketError::Full, |all| all.bind(tcp("[::]:81"), Reuse::No, "given"));
    refuses(&mut sockets, SocketError::Full, |all| all.connect(here, other, TCP, "given"));
    refuses(&mut sockets, SocketError::Full, |all| {
        all.bind_ephemeral(tcp("[::]:0"), EPHEMERAL, Reuse::No, "given")
    });
    refuses(&mut sockets, SocketError::Full, |all| {
        all.connect_ephemeral(here.ip(), there, TCP, EPHEMERAL, "given")
    });
    // `Full` has priority over `InUse`; invalid arguments have priority over `Full`.
    refuses(&mut sockets, SocketError::Full, |all| all.bind(tcp("[::]:80"), Reuse::No, "given"));
    refuses(&mut sockets, SocketError::Full, |all| all.connect(here, there, TCP, "given"));
    refuses(&mut sockets, SocketError::Full, |all| {
        all.connect_ephemeral(here.ip(), there, TCP, 80..=80, "given")
    });
    refuses(&mut sockets, SocketError::PortZero, |all| all.bind(tcp("[::]:0"), Reuse::No, "given"));
    refuses(&mut sockets, SocketError::Unspecified, |all| {
        all.connect(end("0.0.0.0:80"), there, TCP, "given")
    });
    refuses(&mut sockets, SocketError::BadRange, |all| {
        all.connect_ephemeral(here.ip(), there, TCP, 0..=80, "given")
    });
    sockets.remove(&name).unwrap();
    sockets.connect(here, other, TCP, "after a removal").unwrap();
}

/// A hasher that panics at one of its calls.
#[derive(Clone)]
struct PanicsAt(Rc<Cell<u32>>);

impl BuildHasher for PanicsAt {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let left = self.0.replace(self.0.get().wrapping_sub(1));
        if left == 1 {
            std::panic::resume_unwind(Box::new("without the message of a panic"));
        }
        DefaultHasher::default()
    }
}

#[test]
fn a_hasher_that_panics_once_affects_one_call() {
    let (mut failed, here, there) = (0, end("192.0.2.1:80"), end("198.51.100.7:4000"));
    for call in 1..400 {
        let calls = Rc::new(Cell::new(0));
        let mut sockets = SocketTable::with_hasher(100, PanicsAt(calls.clone()));
        calls.set(call);
        let mut connect = || {
            let made = sockets.connect_ephemeral(here.ip(), there, TCP, EPHEMERAL, "a socket");
            made.map(drop).expect("there is a port");
        };
        failed += u32::from(catch_unwind(AssertUnwindSafe(&mut connect)).is_err());
        calls.set(0);
        (0..40).for_each(|_| connect());
    }
    assert!(failed > 200, "{failed}: the first search calls the hasher for each of its cursors");
}

#[test]
fn errors_display_their_reasons() {
    fn shown(error: &(dyn Error + 'static)) -> String {
        assert!(error.source().is_none());
        error.to_string()
    }
    let all = [
        (SocketError::InUse, "another socket has the address, or the connection"),
        (SocketError::Full, "the table has reached its limit"),
        (SocketError::NoMemory, "memory allocation failed"),
        (SocketError::PortZero, "port 0 cannot be bound or connected"),
        (SocketError::Unspecified, "an address of the connection is unspecified"),
        (SocketError::MixedFamilies, "the addresses are of different IP versions"),
        (SocketError::NoPort, "all ports of the range are in use"),
        (SocketError::BadRange, "the range of ports is empty, or contains port 0"),
        (SocketError::NotFound, "no bound socket has the name"),
        (SocketError::OtherAddress, "the socket is bound to another address, port or protocol"),
    ];
    for (reason, message) in all {
        let rejected = RejectedSocket { refused: 1, reason };
        assert_eq!((shown(&reason).as_str(), shown(&rejected).as_str()), (message, message));
    }
}
