//! Values of options.

use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;
use core::time::Duration;

use lexopt::Parser;

/// Returns the value of an option as text.
pub fn text(parser: &mut Parser) -> Result<String, lexopt::Error> {
    Ok(parser.value()?.to_string_lossy().into_owned())
}

/// Returns the value of the option `name`: a number within these bounds.
pub fn number<N: FromStr<Err: fmt::Display> + PartialOrd + fmt::Display>(
    name: &str,
    parser: &mut Parser,
    bounds: RangeInclusive<N>,
) -> Result<N, lexopt::Error> {
    let text = text(parser)?;
    let number = text.parse();
    let what = if number.is_ok() { "not" } else { "not a number" };
    if let Some(number) = number.ok().filter(|number| bounds.contains(number)) {
        return Ok(number);
    }
    let (least, most) = bounds.into_inner();
    Err(wrong(name, &text, &format_args!("{what} from {least} to {most}")))
}

/// Parses the value of the option `name`: seconds above 0, possibly with a fraction.
pub fn seconds(name: &str, text: &str) -> Result<Duration, lexopt::Error> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 => {
            let time = Duration::try_from_secs_f64(seconds);
            time.map_err(|_| wrong(name, text, &"longer than time can be"))
        }
        _ => {
            let needed = format_args!("--{name} needs a number of seconds above 0");
            Err(wrong(name, text, &needed))
        }
    }
}

/// Returns an error about the value of an option.
pub fn wrong(name: &str, value: &str, why: &dyn fmt::Display) -> lexopt::Error {
    format!("--{name} {value}: {why}").into()
}
