//! The example `route_lookup`: input, errors and results.

use std::io::{Cursor, Write};

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

fn read(bytes: &[u8]) -> Routes {
    Routes::read(&mut lines(bytes)).unwrap_or_else(|fault| panic!("{fault}"))
}

fn fault(bytes: &[u8]) -> String {
    let fault: Option<Fault> = Routes::read(&mut lines(bytes)).err();
    fault.expect("it is refused").to_string()
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
        record(13, 10, &rib(128, &[0xfe; 16], &[0, 0, 0, 2], &[])),
        record(13, 2, &rib(8, &[10], &[], &[])),
    ]
    .concat()
}

#[test]
fn a_table_dump_is_read() {
    let routes = read(&table_dump());
    assert_eq!((routes.v4.len(), routes.v6.len(), routes.repeated), (3, 2, 1));
    for (address, expected) in [
        ("10.1.2.3", "10.1.2.3 10.0.0.0/8"),
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
fn a_damaged_table_dump_is_refused() {
    let dump = table_dump();
    // Each end that is not the end of a record; the first ones are not recognised as a dump.
    let ends: Vec<usize> = dump_ends(&dump);
    for end in (6..dump.len()).filter(|end| !ends.contains(end)) {
        let fault = fault(&dump[..end]);
        assert!(fault.starts_with("routes.txt cannot be read: "), "{end}: {fault}");
    }
    for (body, words) in [
        (rib(33, &[10, 0, 0, 0, 0], &[], &[]), "a prefix of 33 bits"),
        (rib(8, &[10], &[], &[&PATH[..9]]), "too short for its fields"),
        (vec![0; 4], "too short for its fields"),
    ] {
        let fault = fault(&record(13, 2, &body));
        assert!(fault.contains(words), "{fault}");
    }
    let mut huge = record(13, 2, &[]);
    huge[8] = 0x7f;
    assert!(fault(&huge).contains("an MRT record of 2130706432 bytes"), "{}", fault(&huge));
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
fn faults_name_the_file_and_the_line() {
    let refused = "routes.txt, line 3: 10.0.0.1/8: an address bit after the first 8 is set";
    assert_eq!(fault(b"# one\n10.0.0.0/8 a\n10.0.0.1/8 b\n11.0.0.0/33"), refused);
    for (bytes, words) in [
        (&b"10.0.0.0/33"[..], "line 1: 10.0.0.0/33: prefix of 33 bits"),
        (b"\n\n10.0.0.0 x", "line 3: 10.0.0.0: not an address, a slash and a length"),
        (b"10.0.0.0/8\n1:::/3", "line 2: 1:::/3: not an address"),
        (b"10.0.0.0/8\n\xff\xfe/3", "line 2: not text"),
        (&[b'1'; 10_000], "line 1: 4096 bytes and no end of the line"),
    ] {
        assert!(fault(bytes).starts_with(&format!("routes.txt, {words}")), "{}", fault(bytes));
    }
    let broken = fault(&[0x1f, 0x8b, 1, 2, 3]);
    assert!(broken.starts_with("routes.txt cannot be read: "), "{broken}");
    let missing = std::fs::File::open("there/is/none").expect_err("there is none");
    let fault = Fault::of_file("there/is/none".to_owned(), missing);
    assert!(fault.to_string().starts_with("there/is/none cannot be read: "), "{fault}");
    let read = Routes::read(&mut lines(b"")).map(|routes| answer(&routes, "10.0.0.0"));
    assert_eq!(
        read.unwrap_or_else(|fault| panic!("{fault}")),
        "10.0.0.0 -",
        "no routes are no fault"
    );
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
