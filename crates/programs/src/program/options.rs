//! The command line: what is the same for all examples.

use std::ffi::OsString;

use lexopt::Arg::{Long, Short, Value};
use lexopt::Parser;

/// What the arguments of an example ask for.
pub trait Options: Default {
    /// What `--help` prints first: what the example does, how it is called, and its options at the
    /// end.
    const USAGE: &'static str;

    /// Takes an option, and its value from the parser. Whether there is one of this name.
    fn option(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error>;

    /// Takes an argument that is no option. Whether there is a place for it.
    fn operand(&mut self, value: OsString) -> Result<bool, lexopt::Error>;

    /// Whether they fit together, when all are there.
    fn finished(self) -> Result<Self, lexopt::Error> {
        Ok(self)
    }
}

/// What `--help` prints last.
const GENERAL: &str = "    --quiet, -q         write nothing to standard error but what is wrong
    --help, -h          print this

Exits with 0; with 1 if results are wrong or could not be written; with 2 if
the arguments are wrong, or what they name cannot be read.
";

/// All that `--help` prints.
pub(crate) fn help<O: Options>() -> String {
    [O::USAGE, GENERAL].concat()
}

/// The options, and whether there is to be quiet; `None` if it is help that is asked for.
pub fn parse<O: Options>(mut parser: Parser) -> Result<Option<(O, bool)>, lexopt::Error> {
    let (mut options, mut quiet) = (O::default(), false);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Short('q') | Long("quiet") => quiet = true,
            Long(name) => {
                let name = name.to_owned();
                if !options.option(&name, &mut parser)? {
                    return Err(Long(&name).unexpected());
                }
            }
            Value(value) => {
                if !options.operand(value.clone())? {
                    return Err(Value(value).unexpected());
                }
            }
            Short(_) => return Err(argument.unexpected()),
        }
    }
    Ok(Some((options.finished()?, quiet)))
}
