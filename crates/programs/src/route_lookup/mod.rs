//! Routes of both families, and what they are called.
//!
//! ```text
//!     lines of a file ─► parsed ─► RouteTable<Ipv4Addr, number> ─┐
//!                              └─► RouteTable<Ipv6Addr, number> ─┴─► names, each of them once
//! ```

mod lines;
mod options;
mod report;

use core::fmt::{self, Display};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;
use std::collections::HashMap;

use flowtable::key::bits::Address;
use flowtable::{Prefix, PrefixError, RouteTable};

pub use lines::{Fault, Lines};
pub use options::{Query, Options};
pub use report::Report;

/// Routes for a run without a file: private prefixes and those reserved for documentation.
pub const DOCUMENTATION: &str = include_str!("documentation.txt");

/// The number of a name.
type Name = u32;

/// A table for each family.
#[derive(Default)]
pub struct Routes {
    pub v4: RouteTable<Ipv4Addr, Name>,
    pub v6: RouteTable<Ipv6Addr, Name>,
    names: Vec<String>,
    numbers: HashMap<String, Name>,
    /// Lines whose prefix had come before: the last one counts.
    pub repeated: usize,
}

impl Routes {
    /// Reads prefixes, one in each line, with or without a name behind white space.
    pub fn read(lines: &mut Lines) -> Result<Self, Fault> {
        let mut routes = Self::default();
        while let Some(line) = lines.next_line()? {
            let (prefix, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let (prefix, name) = (prefix.to_owned(), routes.number(name.trim_start()));
            let old = match prefix.contains(':') {
                false => insert(&mut routes.v4, &prefix, name),
                true => insert(&mut routes.v6, &prefix, name),
            };
            let old = old.map_err(|error| lines.fault(format!("{prefix}: {error}")))?;
            routes.repeated += usize::from(old.is_some());
        }
        routes.numbers = HashMap::new();
        Ok(routes)
    }

    /// The number of a name. There are few names for many routes.
    fn number(&mut self, name: &str) -> Name {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as Name;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    pub fn lookup(&self, address: IpAddr) -> Answer<'_> {
        let name = |number: &Name| self.names[*number as usize].as_str();
        let found = match address {
            IpAddr::V4(v4) => self.v4.lookup(&v4).map(|(prefix, n)| (Either::V4(prefix), name(n))),
            IpAddr::V6(v6) => self.v6.lookup(&v6).map(|(prefix, n)| (Either::V6(prefix), name(n))),
        };
        Answer { address, found }
    }
}

fn insert<A: Address + FromStr>(
    table: &mut RouteTable<A, Name>,
    prefix: &str,
    name: Name,
) -> Result<Option<Name>, PrefixError> {
    Ok(table.insert(prefix.parse()?, name))
}

/// A prefix of either family.
enum Either {
    V4(Prefix<Ipv4Addr>),
    V6(Prefix<Ipv6Addr>),
}

/// What there is for an address.
pub struct Answer<'a> {
    address: IpAddr,
    found: Option<(Either, &'a str)>,
}

/// The address, its longest match and the name of that; a dash if there is none.
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
