//! Routes of both families, and their names.
//!
//! ```text
//!     lines of a file, ──► parsed ──► RouteTable<Ipv4Addr, NameId> ─┐
//!     or a table dump             └─► RouteTable<Ipv6Addr, NameId> ─┴─► names, each of them once
//! ```

mod bgp;
mod fields;
mod lines;
mod mrt;
mod options;
mod report;
mod rib;
mod text;

use core::fmt::{self, Display};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::HashMap;

use flowtable::key::bits::Address;
use flowtable::{Prefix, RouteTable};

pub use lines::{Fault, Lines};
pub use options::{Options, Query};
pub use report::Report;
use rib::Rib;

/// Routes for a run without a file: private prefixes and those reserved for documentation.
pub const DOCUMENTATION: &str = include_str!("documentation.txt");

/// The index of a name.
type NameId = u32;

/// A table for each family.
#[derive(Default)]
pub struct Routes {
    pub v4: RouteTable<Ipv4Addr, NameId>,
    pub v6: RouteTable<Ipv6Addr, NameId>,
    names: Vec<String>,
    ids: HashMap<String, NameId>,
    /// Number of lines with a prefix that an earlier line has; the last one counts.
    pub repeated: usize,
    /// Number of lines whose addresses have bits after their prefixes, which do not count.
    pub with_host_bits: usize,
    pub faults: Faults,
}

/// Lines and records that were skipped, and the end of what can be read: all are counted, the
/// first ones are kept.
#[derive(Debug, Default)]
pub struct Faults {
    first: Vec<Fault>,
    count: u64,
}

impl Faults {
    /// Number of faults that are kept.
    const KEPT: usize = 3;

    fn add(&mut self, fault: Fault) {
        self.count += 1;
        if self.first.len() < Self::KEPT {
            self.first.push(fault);
        }
    }

    /// Returns the number of faults.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the first faults.
    pub fn first(&self) -> &[Fault] {
        &self.first
    }
}

impl Routes {
    /// Reads routes, one in each line, with or without names, or those of a file in the format
    /// MRT. Lines and records that are no routes are skipped: see [`faults`](Self::faults).
    pub fn read(lines: &mut Lines) -> Self {
        let mut routes = Self::default();
        match lines.peek::<{ mrt::HEAD }>() {
            Err(fault) => routes.faults.add(fault),
            Ok(head) if mrt::is_mrt(&head) => routes.read_records(lines),
            Ok(_) => routes.read_lines(lines),
        }
        routes.ids = HashMap::new();
        routes
    }

    fn read_lines(&mut self, lines: &mut Lines) {
        loop {
            let parsed = match lines.next_line() {
                Ok(None) => return,
                Ok(Some(line)) => text::parse(line).map(|line| {
                    let text::Line { address, len, ref name } = line;
                    (address, len, self.name_id(name))
                }),
                Err(fault) => {
                    let is_end = !fault.is_of_line();
                    self.faults.add(fault);
                    if is_end {
                        return;
                    }
                    continue;
                }
            };
            match parsed {
                Ok((IpAddr::V4(address), len, name)) => {
                    let added = add(&mut self.v4, address, len, name);
                    self.count(&added);
                }
                Ok((IpAddr::V6(address), len, name)) => {
                    let added = add(&mut self.v6, address, len, name);
                    self.count(&added);
                }
                Err(why) => self.faults.add(lines.fault(why)),
            }
        }
    }

    fn count(&mut self, added: &Added) {
        self.repeated += usize::from(added.is_repeated);
        self.with_host_bits += usize::from(added.has_host_bits);
    }

    /// Reads the records of a file in the format MRT. The name of a route is the autonomous system
    /// that announces it.
    fn read_records(&mut self, lines: &mut Lines) {
        let (mut record, mut rib) = (mrt::Record::default(), Rib::default());
        for number in 1.. {
            match record.read(lines.bytes()) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.faults.add(lines.file_fault(error));
                    break;
                }
            }
            if let Err(why) = record.apply(&mut rib) {
                self.faults.add(lines.record_fault(number, why));
            }
        }
        // Equal files have equal tables.
        let mut routes: Vec<_> = rib.routes().collect();
        routes.sort_unstable_by_key(|(route, _)| (route.address, route.len));
        for (route, origin) in routes {
            let name = self.name_id(&origin.map_or(String::new(), |origin| format!("AS{origin}")));
            _ = match route.address {
                IpAddr::V4(address) => add(&mut self.v4, address, route.len, name),
                IpAddr::V6(address) => add(&mut self.v6, address, route.len, name),
            };
        }
    }

    /// Returns the ID of a name. Many routes share few names.
    fn name_id(&mut self, name: &str) -> NameId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = self.names.len() as NameId;
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }

    pub fn lookup(&self, address: IpAddr) -> Answer<'_> {
        let name = |id: &NameId| self.names[*id as usize].as_str();
        let found = match address {
            IpAddr::V4(v4) => self.v4.lookup(&v4).map(|(prefix, n)| (Either::V4(prefix), name(n))),
            IpAddr::V6(v6) => self.v6.lookup(&v6).map(|(prefix, n)| (Either::V6(prefix), name(n))),
        };
        Answer { address, found }
    }
}

/// How a route was added.
struct Added {
    is_repeated: bool,
    has_host_bits: bool,
}

/// Adds the route of a line, whose length is at most that of the address.
fn add<A: Address>(table: &mut RouteTable<A, NameId>, address: A, len: u32, name: NameId) -> Added {
    let has_host_bits = address.truncated(len) != address;
    let prefix = Prefix::new(address, len);
    let old = prefix.ok().and_then(|prefix| table.insert(prefix, name));
    Added { is_repeated: old.is_some(), has_host_bits }
}

/// A prefix of either family.
enum Either {
    V4(Prefix<Ipv4Addr>),
    V6(Prefix<Ipv6Addr>),
}

/// The result of the lookup of an address.
pub struct Answer<'a> {
    address: IpAddr,
    found: Option<(Either, &'a str)>,
}

/// Prints the address, its longest match and the name of that; a dash if there is none.
impl Display for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.address)?;
        let name = match &self.found {
            None => return f.write_str("-"),
            Some((Either::V4(prefix), name)) => write!(f, "{prefix}").map(|()| name),
            Some((Either::V6(prefix), name)) => write!(f, "{prefix}").map(|()| name),
        }?;
        if name.is_empty() { Ok(()) } else { write!(f, " {name}") }
    }
}
