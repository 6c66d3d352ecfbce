//! Command line options of all programs.

use std::ffi::OsString;

use lexopt::Arg::{Long, Short, Value};
use lexopt::Parser;

/// Options of a program.
pub trait Options: Default {
    /// The beginning of the help text: purpose, usage, and the options of the program.
    const USAGE: &'static str;

    /// The end of the help text: the exit codes.
    const EXIT_CODES: &'static str = "
Exits with 0; with 1 if results are wrong or could not be written; with 2 if
the arguments are wrong, or an input cannot be read.
";

    /// Names of the options that may be given more than once.
    const REPEATABLE: &'static [&'static str] = &[];

    /// Handles an option, and takes its value from the parser. Returns whether the option exists.
    fn option(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error>;

    /// Handles an argument that is not an option. Returns whether it is expected.
    fn operand(&mut self, value: OsString) -> Result<bool, lexopt::Error>;

    /// Checks that the options are consistent, after all were parsed.
    fn finished(self) -> Result<Self, lexopt::Error> {
        Ok(self)
    }
}

/// The end of the help text.
const GENERAL: &str = "    --quiet, -q         write only errors to standard error
    --help, -h          print this
    --version, -V       print the version
";

/// Returns the help text.
pub(crate) fn help<O: Options>() -> String {
    [O::USAGE, GENERAL, O::EXIT_CODES].concat()
}

/// The request of a command line.
#[derive(Debug)]
pub enum Call<O> {
    /// To run with these options; whether `--quiet` was given.
    Run(O, bool),
    Help,
    Version,
}

impl<O> Call<O> {
    /// Returns the options of a run.
    pub fn options(self) -> Option<O> {
        match self {
            Self::Run(options, _) => Some(options),
            Self::Help | Self::Version => None,
        }
    }
}

/// Parses the arguments.
pub fn parse<O: Options>(mut parser: Parser) -> Result<Call<O>, lexopt::Error> {
    let (mut options, mut quiet) = (O::default(), false);
    let mut given: Vec<String> = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Call::Help),
            Short('V') | Long("version") => return Ok(Call::Version),
            Short('q') | Long("quiet") => quiet = true,
            Long(name) => {
                let name = name.to_owned();
                if given.contains(&name) && !O::REPEATABLE.contains(&name.as_str()) {
                    return Err(format!("--{name} is given twice").into());
                }
                if !options.option(&name, &mut parser)? {
                    return Err(Long(&name).unexpected());
                }
                given.push(name);
            }
            Value(value) => {
                if !options.operand(value.clone())? {
                    return Err(Value(value).unexpected());
                }
            }
            Short(_) => return Err(argument.unexpected()),
        }
    }
    Ok(Call::Run(options.finished()?, quiet))
}
