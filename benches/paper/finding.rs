//! Findings: a published and a measured value, and whether they agree.
//!
//! ```text
//!     Finding::number("table 2", "one process, Kpps", 294.0, here)    two numbers
//!         .counted()                                                  agree within 1 %
//!         .because(Cause::…)                                          the cause if they do not
//! ```
//!
//! A verdict is computed from the measurement, so that another machine, or a fault, can change it.
//! "Agrees" and "differs" are for something measured or counted beside something printed. A formula
//! beside a formula, a setting and a constant are "calculated", whatever the outcome.
//!
//! Tolerances are a policy, not a choice for each line: [`counted`](Finding::counted),
//! [`rounded`](Finding::rounded), [`about`](Finding::about) and [`timed`](Finding::timed).

use std::fmt::{self, Display};
use std::panic::Location;

use crate::causes::Cause;

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Agrees,
    Differs,
    /// One value is calculated where the other is, or is a setting: nothing is measured beside
    /// something printed.
    Calculated,
    NotMeasured,
}

impl Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Calculated => "calculated",
            Self::NotMeasured => "not measured",
        })
    }
}

/// The outcome of a comparison in another run.
pub(crate) struct OtherRun {
    pub(crate) measured: String,
    pub(crate) verdict: String,
}

/// A comparison of a measured with a published value.
pub(crate) struct Finding {
    /// A table, a figure or a part of the text.
    pub(crate) place: &'static str,
    pub(crate) what: String,
    pub(crate) published: String,
    /// The words of the paper, from the inventory.
    pub(crate) quotation: String,
    pub(crate) measured: String,
    /// The condition for agreement.
    pub(crate) rule: String,
    pub(crate) verdict: Verdict,
    /// The cause of a difference.
    pub(crate) cause: Option<Cause>,
    /// A remark about a difference, or the reason why there is no comparison.
    pub(crate) why: String,
    /// The two values, if they are numbers.
    numbers: Option<(f64, f64)>,
    needs_full_scale: bool,
    /// Whether another machine may change it.
    pub(crate) is_timed: bool,
    /// The outcomes of other runs, if another machine may change it.
    pub(crate) others: Vec<OtherRun>,
    /// The line of code that makes it.
    pub(crate) source: &'static Location<'static>,
}

/// The reason for findings that a quick run cannot measure.
const SMALL: &str = "It counts on the full scale only.";
/// The reason for drawings.
const NO_DATA: &str = "The available copy of the paper has no numbers for it.";
impl Finding {
    /// Compares two numbers. They must be equal unless a tolerance follows.
    #[track_caller]
    pub(crate) fn number(
        place: &'static str,
        what: impl Into<String>,
        published: f64,
        measured: f64,
    ) -> Self {
        let texts = [plain(published), short(measured)];
        let numbers = Some((published, measured));
        let finding = Self { numbers, ..Self::check(place, what, "", texts[1].clone(), "", false) };
        let is_equal = published == measured;
        Self { published: texts[0].clone(), ..finding.judged("equal".into(), is_equal) }
    }

    /// Compares texts by a condition.
    #[track_caller]
    pub(crate) fn check(
        place: &'static str,
        what: impl Into<String>,
        published: &str,
        measured: impl Into<String>,
        rule: &str,
        holds: bool,
    ) -> Self {
        let finding = Self {
            place,
            what: what.into(),
            published: published.into(),
            quotation: String::new(),
            measured: measured.into(),
            rule: String::new(),
            verdict: Verdict::NotMeasured,
            cause: None,
            why: String::new(),
            numbers: None,
            needs_full_scale: false,
            is_timed: false,
            others: vec![],
            source: Location::caller(),
        };
        finding.judged(rule.into(), holds)
    }

    /// A place of the paper without a comparison.
    #[track_caller]
    pub(crate) fn not_measured(place: &'static str, what: &str, why: &str) -> Self {
        let finding = Self::check(place, what, "-", "-", "-", false);
        Self { verdict: Verdict::NotMeasured, cause: None, why: why.into(), ..finding }
    }

    /// A place of the paper that has no published numbers.
    #[track_caller]
    pub(crate) fn no_data(place: &'static str, what: &str) -> Self {
        Self::not_measured(place, what, NO_DATA)
    }

    fn judged(self, rule: String, agrees: bool) -> Self {
        let (verdict, cause) = match agrees {
            true => (Verdict::Agrees, None),
            false => (Verdict::Differs, Some(Cause::Unknown)),
        };
        Self { rule, verdict, cause, ..self }
    }

    /// The tolerance of a number that is printed with three digits or more, and counted or
    /// simulated here.
    pub(crate) fn counted(self) -> Self {
        self.within(1.0)
    }

    /// The tolerance of a number that is printed with two digits, and counted or simulated here.
    pub(crate) fn rounded(self) -> Self {
        self.within(5.0)
    }

    /// The tolerance of a number that the paper calls "about", or that is read off a figure.
    pub(crate) fn about(self) -> Self {
        self.within(10.0)
    }

    /// The tolerance of a ratio of times, which is marked as a property of this machine.
    pub(crate) fn timed(self) -> Self {
        self.within(25.0).on_this_machine()
    }

    /// Marks a comparison that another machine may change.
    pub(crate) fn on_this_machine(self) -> Self {
        Self { is_timed: true, ..self }
    }

    /// Allows a relative error in per cent of the published number.
    fn within(self, percent: f64) -> Self {
        let (published, measured) = self.numbers.expect("two numbers are compared");
        let agrees = (measured - published).abs() <= percent / 100.0 * published.abs();
        self.judged(format!("within {percent} %"), agrees)
    }

    /// Allows an absolute error.
    pub(crate) fn within_units(self, most: f64) -> Self {
        let (published, measured) = self.numbers.expect("two numbers are compared");
        self.judged(format!("within {most}"), (measured - published).abs() <= most)
    }

    /// Sets the cause of a difference. No effect on other verdicts.
    pub(crate) fn because(self, cause: Cause) -> Self {
        match self.verdict {
            Verdict::Differs => Self { cause: Some(cause), ..self },
            Verdict::Agrees | Verdict::Calculated | Verdict::NotMeasured => self,
        }
    }

    /// Adds a remark to a difference. No effect on other verdicts.
    pub(crate) fn noting(self, why: impl Into<String>) -> Self {
        match self.verdict {
            Verdict::Differs => Self { why: why.into(), ..self },
            Verdict::Agrees | Verdict::Calculated | Verdict::NotMeasured => self,
        }
    }

    /// Marks a comparison that measures nothing beside something printed. The rule then includes
    /// the outcome.
    pub(crate) fn calculated(self) -> Self {
        let holds = if self.verdict == Verdict::Agrees { "holds" } else { "does not hold" };
        let rule = format!("{}: {holds}", self.rule);
        Self { rule, verdict: Verdict::Calculated, cause: None, ..self }
    }

    /// Marks a finding that a quick run cannot measure.
    pub(crate) fn at_full_scale(self) -> Self {
        Self { needs_full_scale: true, ..self }
    }

    /// Returns the finding of a quick run.
    pub(crate) fn in_a_quick_run(self) -> Self {
        match (self.needs_full_scale, self.verdict) {
            (true, Verdict::Agrees | Verdict::Differs) => {
                let verdict = Verdict::NotMeasured;
                Self { verdict, cause: None, why: SMALL.into(), ..self }
            }
            _ => self,
        }
    }

    /// Returns the measured value, with the values of other runs in brackets.
    pub(crate) fn of_all_runs(&self) -> String {
        let others: Vec<&str> = self.others.iter().map(|run| run.measured.as_str()).collect();
        match others.as_slice() {
            [] => self.measured.clone(),
            _ => format!("{} ({})", self.measured, others.join("; ")),
        }
    }

    /// Returns whether the runs have the same verdict.
    pub(crate) fn is_the_same_in_all_runs(&self) -> bool {
        self.others.iter().all(|run| run.verdict == self.verdict.to_string())
    }

    /// Returns the fields of findings.csv, in order, as text.
    pub(crate) fn cells(&self) -> [String; 8] {
        let Self { place, what, published, measured, rule, verdict, why, .. } = self;
        let cause = self.cause.map_or(String::new(), |cause| cause.number().to_string());
        let [verdict, place] = [verdict.to_string(), place.to_string()];
        let [what, published, measured, rule, why] =
            [what, published, measured, rule, why].map(String::clone);
        [place, what, published, measured, rule, verdict, cause, why]
    }
}

impl Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, what, published, measured, rule, verdict, why, .. } = self;
        write!(f, "{verdict:12}  {place}, {what}: ")?;
        match verdict {
            Verdict::NotMeasured => return write!(f, "{why}"),
            _ => write!(f, "{published} published, {measured} here ({rule})")?,
        }
        match self.cause {
            Some(cause) => write!(f, ", cause {}. {why}", cause.number()),
            None => Ok(()),
        }
    }
}

/// Formats a number in full, unless it has many leading zeros.
fn plain(number: f64) -> String {
    if number.abs() < 1e-6 && number != 0.0 { format!("{number:e}") } else { number.to_string() }
}

/// Formats a number with four digits, or all digits of a whole number.
pub(crate) fn short(number: f64) -> String {
    match number.abs() {
        whole if whole.fract() == 0.0 => number.to_string(),
        1000.0.. => format!("{number:.0}"),
        100.0.. => format!("{number:.1}"),
        10.0.. => format!("{number:.2}"),
        0.001.. => format!("{number:.3}"),
        _ => format!("{number:.2e}"),
    }
}
