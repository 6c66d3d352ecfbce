//! Routes of both families, and their names.
//!
//! ```text
//!     lines of a file, ──► parsed ──► RouteTable<Ipv4Addr, NameId> ─┐
//!     or a table dump             └─► RouteTable<Ipv6Addr, NameId> ─┴─► names, each of them once
//! ```

mod lines;
mod mrt;
mod options;
mod report;

use core::fmt::{self, Display};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;
use std::collections::HashMap;
use std::io;

use flowtable::key::bits::Address;
use flowtable::{Prefix, PrefixError, RouteTable};

pub use lines::{Fault, Lines};
use mrt::Announced;
pub use options::{Options, Query};
pub use report::Report;

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
}

impl Routes {
    /// Reads prefixes, one in each line, with or without a name after white space, or those of a
    /// table dump in the format MRT.
    pub fn read(lines: &mut Lines) -> Result<Self, Fault> {
        if mrt::is_table_dump(&lines.peek::<{ mrt::HEAD }>()?) {
            return Self::read_table_dump(lines);
        }
        let mut routes = Self::default();
        while let Some(line) = lines.next_line()? {
            let (prefix, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let (prefix, name) = (prefix.to_owned(), routes.name_id(name.trim_start()));
            let old = match prefix.contains(':') {
                false => insert(&mut routes.v4, &prefix, name),
                true => insert(&mut routes.v6, &prefix, name),
            };
            let old = old.map_err(|error| lines.fault(format!("{prefix}: {error}")))?;
            routes.repeated += usize::from(old.is_some());
        }
        routes.ids = HashMap::new();
        Ok(routes)
    }

    /// Reads a table dump. The name of a route is the autonomous system that announces it.
    fn read_table_dump(lines: &mut Lines) -> Result<Self, Fault> {
        let mut routes = Self::default();
        loop {
            let next = mrt::next_route(lines.bytes()).map_err(|error| lines.file_fault(error))?;
            let Some(Announced { address, len, origin }) = next else { break };
            let name = routes.name_id(&origin.map_or(String::new(), |id| format!("AS{id}")));
            let old = match address {
                IpAddr::V4(v4) => Prefix::new(v4, len).map(|at| routes.v4.insert(at, name)),
                IpAddr::V6(v6) => Prefix::new(v6, len).map(|at| routes.v6.insert(at, name)),
            };
            let old = old.map_err(|error| lines.file_fault(io::Error::other(error)))?;
            routes.repeated += usize::from(old.is_some());
        }
        routes.ids = HashMap::new();
        Ok(routes)
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

fn insert<A: Address + FromStr>(
    table: &mut RouteTable<A, NameId>,
    prefix: &str,
    name: NameId,
) -> Result<Option<NameId>, PrefixError> {
    Ok(table.insert(prefix.parse()?, name))
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
