//! The example `route_lookup`: input, errors and results.

use std::io::{Cursor, Write};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use lexopt::Parser;
use programs::input::Input;
use programs::program::{Options as _, parse};
use programs::route_lookup::{DOCUMENTATION, Fault, Lines, Options, Query, Report, Routes};

fn lines(bytes: &[u8]) -> Lines {
    let lines = Lines::new("routes.txt".to_owned(), Cursor::new(bytes.to_vec()));
    lines.unwrap_or_else(|fault| panic!("{fault}"))
}

/// Reads routes without faults.
fn read(bytes: &[u8]) -> Routes {
    let routes = Routes::read(&mut lines(bytes));
    assert!(routes.faults.first().is_empty(), "{:?}", routes.faults);
    routes
}

/// Returns the first fault.
fn fault(bytes: &[u8]) -> String {
    let routes = Routes::read(&mut lines(bytes));
    routes.faults.first().first().expect("there is one").to_string()
}

fn answer(routes: &Routes, address: &str) -> String {
    routes.lookup(address.parse().expect("an address")).to_string()
}

const ROUTES: &str = "\
# A table of both families.
192.0.2.0/24\tupstream 1
  192.0.2.128/25   upstream  2   # the upper half

2001:db8::/32
10.0.0.0/8 before
10.0.0.0/8 after\r
::ffff:0:0/96 mapped";

#[test]
fn prefixes_and_names_are_read() {
    let routes = read(ROUTES.as_bytes());
    assert_eq!((routes.v4.len(), routes.v6.len(), routes.repeated), (3, 2, 1));
    for (address, expected) in [
        ("192.0.2.1", "192.0.2.1 192.0.2.0/24 upstream 1"),
        ("192.0.2.200", "192.0.2.200 192.0.2.128/25 upstream  2"),
        ("2001:db8::1", "2001:db8::1 2001:db8::/32"),
        ("10.1.2.3", "10.1.2.3 10.0.0.0/8 after"),
        ("::ffff:10.1.2.3", "::ffff:10.1.2.3 ::ffff:0.0.0.0/96 mapped"),
        ("11.0.0.0", "11.0.0.0 -"),
        ("::", ":: -"),
    ] {
        assert_eq!(answer(&routes, address), expected);
    }
}

/// A record of a table dump.
fn record(kind: u16, subtype: u16, body: &[u8]) -> Vec<u8> {
    let mut record = vec![0x65, 0, 0, 0];
    record.extend(kind.to_be_bytes());
    record.extend(subtype.to_be_bytes());
    record.extend((body.len() as u32).to_be_bytes());
    record.extend(body);
    record
}

/// The body of a record with routes to a prefix: an entry for each list of attributes.
fn rib(len: u8, prefix: &[u8], path_id: &[u8], entries: &[&[u8]]) -> Vec<u8> {
    let mut body = [&[0, 0, 0, 9, len], prefix].concat();
    body.extend((entries.len() as u16).to_be_bytes());
    for attributes in entries {
        body.extend([0, 0, 0x65, 0, 0, 0]);
        body.extend(path_id);
        body.extend((attributes.len() as u16).to_be_bytes());
        body.extend(*attributes);
    }
    body
}

/// ORIGIN, and an AS_PATH of AS 64500 and AS 70000.
const PATH: [u8; 17] = [0x40, 1, 1, 0, 0x40, 2, 10, 2, 2, 0, 0, 0xfb, 0xf4, 0, 1, 0x11, 0x70];

/// An AS_PATH with a length of two bytes, which ends with a set.
const PATH_TO_SET: [u8; 16] = [0x50, 2, 0, 12, 2, 1, 0, 0, 0xfb, 0xf4, 1, 1, 0, 0, 0xfb, 0xf5];

fn table_dump() -> Vec<u8> {
    [
        record(13, 1, &[0; 8]),
        record(13, 2, &rib(8, &[10], &[], &[&PATH])),
        record(13, 2, &rib(20, &[192, 0, 0x2f], &[], &[&PATH_TO_SET, &PATH])),
        record(13, 4, &rib(32, &[0x20, 1, 0x0d, 0xb8], &[], &[&PATH_TO_SET])),
        record(13, 8, &rib(0, &[], &[0, 0, 0, 1], &[&PATH, &PATH])),
        record(13, 6, &[1, 2, 3]),
        record(16, 4, &[4; 40]),
        record(13, 10, &rib(128, &[0xfe; 16], &[0, 0, 0, 2], &[&[]])),
        // A prefix that no peer announces.
        record(13, 2, &rib(8, &[10], &[], &[])),
    ]
    .concat()
}

#[test]
fn a_table_dump_is_read() {
    let routes = read(&table_dump());
    assert_eq!((routes.v4.len(), routes.v6.len(), routes.repeated), (3, 2, 0));
    for (address, expected) in [
        ("10.1.2.3", "10.1.2.3 10.0.0.0/8 AS70000"),
        ("192.0.33.1", "192.0.33.1 192.0.32.0/20 AS70000"),
        ("8.8.8.8", "8.8.8.8 0.0.0.0/0 AS70000"),
        ("2001:db8::1", "2001:db8::1 2001:db8::/32"),
        ("2002::", "2002:: -"),
    ] {
        assert_eq!(answer(&routes, address), expected);
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&table_dump()).expect("a vector takes all");
    let compressed = read(&encoder.finish().expect("a vector takes all"));
    assert_eq!((compressed.v4, compressed.v6), (routes.v4, routes.v6));
}

#[test]
fn records_before_and_after_a_damage_are_kept() {
    let dump = table_dump();
    // Each end that is not the end of a record; the first ones are not recognised as a dump.
    let ends: Vec<usize> = dump_ends(&dump);
    for end in (6..dump.len()).filter(|end| !ends.contains(end)) {
        let routes = Routes::read(&mut lines(&dump[..end]));
        let fault = routes.faults.first()[0].to_string();
        let expected = "routes.txt cannot be read: the file ends inside a record";
        assert_eq!((fault.as_str(), routes.faults.count()), (expected, 1), "{end}");
        let whole = ends.iter().filter(|whole| **whole <= end).count() - 1;
        let found = [0, 0, 1, 2, 2, 3, 3, 3, 3, 3][whole];
        assert_eq!(routes.v4.len(), found, "{end}");
    }
    for (body, words) in [
        (rib(33, &[10, 0, 0, 0, 0], &[], &[]), "record 2: a prefix of 33 bits"),
        (rib(8, &[10], &[], &[&PATH[..9]]), "record 2: an MRT record that is too short"),
        (vec![0; 4], "record 2: an MRT record that is too short for its fields"),
    ] {
        let bad = record(13, 2, &body);
        let all =
            [record(13, 1, &[0; 8]), bad.clone(), bad.clone(), bad.clone(), bad, dump.clone()];
        let routes = Routes::read(&mut lines(&all.concat()));
        assert_eq!((routes.v4.len(), routes.v6.len()), (3, 2));
        let faults = &routes.faults;
        assert_eq!((faults.first().len(), faults.count()), (3, 4));
        let fault = faults.first()[0].to_string();
        assert!(fault.starts_with(&format!("routes.txt, {words}")), "{fault}");
    }
    let mut huge = record(13, 2, &[]);
    huge[8] = 0x7f;
    assert!(fault(&huge).contains("an MRT record of 2130706432 bytes"), "{}", fault(&huge));
}

/// An entry of a table of the first version: for a peer, with a path of systems of two bytes.
fn first_version(prefix: &[u8], len: u8, origin: u16) -> Vec<u8> {
    let path = [&[0x40, 2, 6, 2, 2, 0xfd, 0xe9][..], &origin.to_be_bytes()].concat();
    let (view, rest) =
        ([0; 4], [&[len, 1, 0, 0, 0, 0][..], &vec![origin as u8; prefix.len()], &[0, 1]].concat());
    let length = (path.len() as u16).to_be_bytes();
    let subtype = if prefix.len() == 4 { 1 } else { 2 };
    record(12, subtype, &[&view[..], prefix, &rest, &length, &path].concat())
}

#[test]
fn tables_of_the_first_version_are_read() {
    let v6: Vec<u8> = [0x20, 1, 0x0d, 0xb8].into_iter().chain([0; 12]).collect();
    let dump = [
        first_version(&[10, 0, 0, 0], 8, 500),
        // Another peer.
        first_version(&[10, 0, 0, 0], 8, 600),
        first_version(&v6, 32, 700),
    ];
    let routes = read(&dump.concat());
    assert_eq!(answer(&routes, "10.1.2.3"), "10.1.2.3 10.0.0.0/8 AS500");
    assert_eq!(answer(&routes, "2001:db8::1"), "2001:db8::1 2001:db8::/32 AS700");
}

/// A record with an update between two peers with numbers of four bytes.
fn update(withdrawn: &[u8], attributes: &[u8], announced: &[u8]) -> Vec<u8> {
    update_of(9, withdrawn, attributes, announced)
}

/// A record with an update of the peer whose address has these bytes.
fn update_of(peer: u8, withdrawn: &[u8], attributes: &[u8], announced: &[u8]) -> Vec<u8> {
    let block = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat();
    let message = [&[0xff; 16][..], &[0, 0, 2], &block(withdrawn), &block(attributes), announced];
    let peers = [&[0; 8][..], &[0, 0, 0, 1], &[peer; 4], &[9; 4]].concat();
    record(16, 4, &[peers, message.concat()].concat())
}

#[test]
fn updates_are_applied_in_order() {
    let reach = [0x80, 14, 13, 0, 2, 1, 4, 1, 2, 3, 4, 0, 24, 0x20, 1, 0x0d];
    let mut unreach = vec![0x80, 15, 8, 0, 2, 1, 32, 0x20, 1, 0x0d, 0xb9];
    unreach[2] = (unreach.len() - 3) as u8;
    let updates = [
        update(&[], &PATH, &[8, 10, 16, 172, 16]),
        update(&[16, 172, 16], &[], &[]),
        update(&[], &[&PATH[..], &reach].concat(), &[]),
        table_dump(),
        update(&[], &unreach, &[24, 192, 0, 2]),
        // A change of state, and a family that is not IP.
        record(16, 5, &[0; 20]),
        record(16, 4, &[0; 40]),
        record(17, 4, &[&[0; 4][..], &update(&[8, 10], &[], &[])[12..]].concat()),
    ];
    let routes = read(&updates.concat());
    for (address, expected) in [
        // A route of the table, whose peer did not withdraw it, and its default route.
        ("10.1.2.3", "10.1.2.3 10.0.0.0/8 AS70000"),
        ("172.16.0.1", "172.16.0.1 0.0.0.0/0 AS70000"),
        ("192.0.2.1", "192.0.2.1 192.0.2.0/24"),
        ("2001:dff::1", "2001:dff::1 2001:d00::/24 AS70000"),
    ] {
        assert_eq!(answer(&routes, address), expected);
    }
}

/// A path that ends in this system.
fn path(origin: u8) -> [u8; 9] {
    [0x40, 2, 6, 2, 1, 0, 0, 0, origin]
}

/// A change of the state of the session with a peer.
fn state(peer: u8, new: u8) -> Vec<u8> {
    let peers = [&[0; 8][..], &[0, 0, 0, 1], &[peer; 4], &[9; 4], &[0, 3, 0, new]].concat();
    record(16, 5, &peers)
}

#[test]
fn a_route_is_there_while_a_peer_announces_it() {
    let net = [8, 10];
    let announced = |peer: u8| update_of(peer, &[], &path(peer), &net);
    let withdrawn = |peer: u8| update_of(peer, &net, &[], &[]);
    // Records, and the origin of the route after each.
    for steps in [
        vec![(announced(1), Some(1)), (announced(2), Some(1)), (withdrawn(1), Some(2))],
        vec![(announced(1), Some(1)), (announced(2), Some(1)), (withdrawn(2), Some(1))],
        vec![(announced(1), Some(1)), (withdrawn(2), Some(1)), (withdrawn(1), None)],
        vec![
            (announced(1), Some(1)),
            (announced(2), Some(1)),
            // The peer changes its path.
            (update_of(1, &[], &path(7), &net), Some(7)),
            (withdrawn(1), Some(2)),
            (announced(1), Some(2)),
            (withdrawn(2), Some(1)),
        ],
        // The end of a session withdraws the routes of its peer; other states do not.
        vec![
            (announced(1), Some(1)),
            (announced(2), Some(1)),
            (state(1, 6), Some(1)),
            (state(1, 1), Some(2)),
            (announced(1), Some(2)),
            (state(2, 1), Some(1)),
            (state(1, 1), None),
        ],
    ] {
        let mut records = vec![];
        for (record, origin) in steps {
            records.extend(record);
            // A route that no step changes.
            let all = [&records[..], &update_of(5, &[], &path(5), &[8, 11])].concat();
            let expected = match origin {
                Some(origin) => format!("10.1.2.3 10.0.0.0/8 AS{origin}"),
                None => "10.1.2.3 -".to_owned(),
            };
            assert_eq!(answer(&read(&all), "10.1.2.3"), expected);
            // A path that comes and goes changes nothing, however often.
            records.extend([announced(3), withdrawn(3)].concat().repeat(70));
            assert_eq!(answer(&read(&records), "10.1.2.3"), expected);
        }
    }
}

#[test]
fn a_prefix_of_very_many_paths_takes_linear_time() {
    const PATHS: u32 = 400_000;
    let begin = Instant::now();
    let entry = |id: u32| record(13, 8, &rib(8, &[10], &id.to_be_bytes(), &[&path(7)]));
    let routes = read(&(0..PATHS).flat_map(entry).collect::<Vec<u8>>());
    assert_eq!(answer(&routes, "10.1.2.3"), "10.1.2.3 10.0.0.0/8 AS7");
    // Without optimization, a comparison with each path of the prefix would take ten minutes.
    assert!(begin.elapsed() < Duration::from_secs(120), "{:?}", begin.elapsed());
}

#[test]
fn updates_continue_a_table_by_its_peers() {
    let peers = [
        &[0; 4][..],
        &[0, 0],
        &[0, 2],
        &[2, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0],
        &[2, 0, 0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0],
    ];
    let entry = |peer: u8, origin| [&[0, peer, 0, 0, 0, 0, 0, 9], &path(origin)[..]].concat();
    let body = [&[0, 0, 0, 0, 8, 10, 0, 2][..], &entry(0, 50), &entry(1, 60)].concat();
    let table = [record(13, 1, &peers.concat()), record(13, 2, &body)].concat();
    let after =
        |updates: &[Vec<u8>]| answer(&read(&[&table[..], &updates.concat()].concat()), "10.1.2.3");
    let withdrawn = |peer: u8| update_of(peer, &[8, 10], &[], &[]);
    assert_eq!(after(&[]), "10.1.2.3 10.0.0.0/8 AS50");
    assert_eq!(after(&[withdrawn(1)]), "10.1.2.3 10.0.0.0/8 AS60");
    assert_eq!(after(&[withdrawn(3)]), "10.1.2.3 10.0.0.0/8 AS50");
    assert_eq!(after(&[withdrawn(1), withdrawn(2)]), "10.1.2.3 -");
}

/// The ends of the records of a dump.
fn dump_ends(dump: &[u8]) -> Vec<usize> {
    let mut ends = vec![0];
    while let Some(&end) = ends.last().filter(|end| **end < dump.len()) {
        let length = u32::from_be_bytes(dump[end + 8..end + 12].try_into().expect("four bytes"));
        ends.push(end + 12 + length as usize);
    }
    ends
}

#[test]
fn gzip_is_known_by_its_magic() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(ROUTES.as_bytes()).expect("a vector takes all");
    let routes = read(&encoder.finish().expect("a vector takes all"));
    assert_eq!((routes.v4.len(), routes.v6.len()), (3, 2));
    assert_eq!(answer(&routes, "192.0.2.1"), "192.0.2.1 192.0.2.0/24 upstream 1");
}

#[test]
fn lines_of_all_kinds_are_read() {
    let text = b"\xef\xbb\xbf192.0.2.0/24 first\r
; a comment of another kind
10.1.2.3/8 host bits # comment
1.2.3.4
2001:db8::1
default via 192.0.2.1 dev eth0
default via fe80::1 dev eth0
172.16.0.0/255.240.0.0 mask
198.51.100.0/24,AS65000
\"203.0.113.0/24\",\"quoted\"
blackhole 100.64.0.0/10 proto static
192.88.99.0/24 ; no name
192.88.98.0/24 caf\xe9";
    let routes = read(text);
    assert_eq!((routes.with_host_bits, routes.repeated), (1, 0));
    for (address, expected) in [
        ("192.0.2.9", "192.0.2.0/24 first"),
        ("10.9.9.9", "10.0.0.0/8 host bits"),
        ("1.2.3.4", "1.2.3.4/32"),
        ("2001:db8::1", "2001:db8::1/128"),
        ("8.8.8.8", "0.0.0.0/0 via 192.0.2.1 dev eth0"),
        ("2600::", "::/0 via fe80::1 dev eth0"),
        ("172.31.0.1", "172.16.0.0/12 mask"),
        ("198.51.100.1", "198.51.100.0/24 AS65000"),
        ("203.0.113.1", "203.0.113.0/24 \"quoted\""),
        ("100.64.0.1", "100.64.0.0/10 blackhole proto static"),
        ("192.88.99.1", "192.88.99.0/24"),
        ("192.88.98.1", "192.88.98.0/24 caf\u{fffd}"),
    ] {
        assert_eq!(answer(&routes, address), format!("{address} {expected}"));
    }
}

#[test]
fn faults_name_the_file_and_the_line() {
    let no_prefix = "not an address, with or without a slash and a length";
    for (bytes, words) in [
        (&b"10.0.0.0/33"[..], "line 1: 10.0.0.0/33: prefix of 33 bits".to_owned()),
        (b"\n\n10.0.0 x", format!("line 3: 10.0.0: {no_prefix}")),
        (b"10.0.0.0/8\n1:::/3", format!("line 2: 1:::/3: {no_prefix}")),
        (b"10.0.0.0/255.0.255.0", format!("line 1: 10.0.0.0/255.0.255.0: {no_prefix}")),
        (b"10.0.0.0/8\n\xff\xfe/3", "line 2: not text".to_owned()),
        (&[b'1'; 10_000], "line 1: 4096 bytes and no end of the line".to_owned()),
    ] {
        assert!(fault(bytes).starts_with(&format!("routes.txt, {words}")), "{}", fault(bytes));
    }
    // All other lines count, and the first three faults are named.
    let routes = Routes::read(&mut lines(b"a\n10.0.0.0/8 x\nb\nc\nd\n11.0.0.0/8 y"));
    assert_eq!((routes.v4.len(), routes.faults.count()), (2, 4));
    let named: Vec<String> = routes.faults.first().iter().map(ToString::to_string).collect();
    let expected = [(1, 'a'), (3, 'b'), (4, 'c')]
        .map(|(line, word)| format!("routes.txt, line {line}: {word}: {no_prefix}"));
    assert_eq!(named, expected);
    let broken = fault(&[0x1f, 0x8b, 1, 2, 3]);
    assert!(broken.starts_with("routes.txt cannot be read: "), "{broken}");
    let missing = std::fs::File::open("there/is/none").expect_err("there is none");
    let fault = Fault::of_file("there/is/none".to_owned(), missing);
    assert!(fault.to_string().starts_with("there/is/none cannot be read"), "{fault}");
    assert_eq!(answer(&read(b""), "10.0.0.0"), "10.0.0.0 -", "no routes are no fault");
}

#[test]
fn the_built_in_table_is_one() {
    let routes = read(DOCUMENTATION.as_bytes());
    assert_eq!((routes.v4.len(), routes.v6.len(), routes.repeated), (17, 11, 0));
    assert_eq!(answer(&routes, "10.1.2.3"), "10.1.2.3 10.1.2.3/32 private, the printer there");
    let report = Report { name: "these", routes: &routes, elapsed: core::time::Duration::ZERO };
    let report = report.to_string();
    for words in ["these: 28 routes", "IPv4: 17 routes", "IPv6: 11 routes", "in bursts of 32"] {
        assert!(report.contains(words), "{report}");
    }
}

#[test]
fn the_first_argument_is_a_file_unless_it_is_an_address() {
    let parse = |arguments: &[&str]| {
        let parsed = parse::<Options>(Parser::from_args(arguments));
        let parsed =
            parsed.map(|call| call.options().map(|options| (options.routes, options.queries)));
        parsed.map_err(|error| error.to_string())
    };
    let file = Some(Input::File("routes.txt".into()));
    let (one, two) = ("10.0.0.1", "2001:db8::1");
    let query = |text: &str| Query::Address(text.parse().expect("an address"));
    let pipe = || vec![Query::Pipe];
    for (arguments, routes, addresses) in [
        (&[][..], None, vec![]),
        (&["routes.txt"], file.clone(), pipe()),
        (&["routes.txt", one], file.clone(), vec![query(one)]),
        (&["routes.txt", one, "-q", "-", two], file, vec![query(one), Query::Pipe, query(two)]),
        (&[one, two], None, vec![query(one), query(two)]),
        (&[one, "-"], None, vec![query(one), Query::Pipe]),
        (&["-"], None, pipe()),
        (&["-", "--quiet", one, two], Some(Input::Pipe), vec![query(one), query(two)]),
    ] {
        assert_eq!(parse(arguments), Ok(Some((routes, addresses))), "{arguments:?}");
    }
    for (arguments, words) in [
        (&[one, "routes.txt"], "routes.txt is no address"),
        (&["a", "b"], "b is no address"),
        (&["-", "-"], "standard input can be read only once"),
        (&["--quiet", "--loud"], "invalid option '--loud'"),
    ] {
        assert_eq!(parse(arguments), Err(words.to_owned()), "{arguments:?}");
    }
    assert_eq!((parse(&["--help"]), parse(&[one, "-h"])), (Ok(None), Ok(None)));
    assert!(Options::USAGE.ends_with("\nOptions:\n"));
}
