//! Findings: what a paper published, what came out here, and whether they agree.
//!
//! ```text
//!     Finding::number("table 2", "one process, Kpps", 294.0, here)    two numbers
//!         .within(2.0)                                                 agree if they differ by 2 % or less
//!         .because("…")                                                what it is due to if they do not
//! ```
//!
//! Nobody writes a verdict down. It follows from what was measured, so that another machine, or a fault, changes it.

use std::fmt::{self, Display};

/// Whether what was measured is what was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Agrees,
    Differs,
    /// The paper was set against itself: nothing of the crate was run.
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

/// What is measured beside what was published, in one line.
pub(crate) struct Finding {
    /// A table or figure of the paper, or a part of its text.
    pub(crate) place: &'static str,
    pub(crate) what: String,
    pub(crate) published: String,
    pub(crate) measured: String,
    /// What the two must fulfil to agree.
    pub(crate) rule: String,
    pub(crate) verdict: Verdict,
    /// What a difference is due to, or why there is nothing to compare.
    pub(crate) why: String,
    /// The two numbers, if that is what they are.
    numbers: Option<(f64, f64)>,
    needs_full_scale: bool,
}

/// Why something is not measured that depends on the scale.
const SMALL: &str = "It counts on the full scale only.";
/// Why drawings are not measured, and what is not known.
const NO_DATA: &str = "The copy of the paper that was at hand has no numbers of it.";
/// What is said of a difference that nobody expected.
const UNKNOWN: &str = "No reason is known: look for a fault, or for other work of the machine.";

impl Finding {
    /// Two numbers. They agree if they are equal, unless a tolerance follows.
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

    /// Something that can be said in words only, and whether it holds.
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
            measured: measured.into(),
            rule: String::new(),
            verdict: Verdict::NotMeasured,
            why: String::new(),
            numbers: None,
            needs_full_scale: false,
        };
        finding.judged(rule.into(), holds)
    }

    /// Something that cannot be compared.
    pub(crate) fn lost(place: &'static str, what: &str, why: &str) -> Self {
        let finding = Self::check(place, what, "-", "-", "-", false);
        Self { verdict: Verdict::NotMeasured, why: why.into(), ..finding }
    }

    /// Drawings, and other things whose data are not known.
    pub(crate) fn no_data(place: &'static str, what: &str) -> Self {
        Self::lost(place, what, NO_DATA)
    }

    fn judged(self, rule: String, agrees: bool) -> Self {
        let (verdict, why) = match agrees {
            true => (Verdict::Agrees, ""),
            false => (Verdict::Differs, UNKNOWN),
        };
        Self { rule, verdict, why: why.into(), ..self }
    }

    /// The numbers may differ by so many per cent of the published one.
    pub(crate) fn within(self, percent: f64) -> Self {
        let (published, measured) = self.numbers.expect("two numbers are compared");
        let agrees = (measured - published).abs() <= percent / 100.0 * published.abs();
        self.judged(format!("within {percent} %"), agrees)
    }

    /// The numbers may differ by so much.
    pub(crate) fn apart_by(self, most: f64) -> Self {
        let (published, measured) = self.numbers.expect("two numbers are compared");
        self.judged(format!("within {most}"), (measured - published).abs() <= most)
    }

    /// What a difference is due to. It is not said where there is none.
    pub(crate) fn because(self, why: &str) -> Self {
        match self.verdict {
            Verdict::Differs => Self { why: why.into(), ..self },
            Verdict::Agrees | Verdict::Calculated | Verdict::NotMeasured => self,
        }
    }

    /// Both sides are of the paper, so that nothing of the crate can change the outcome, which the rule says.
    pub(crate) fn calculated(self) -> Self {
        let holds = if self.verdict == Verdict::Agrees { "holds" } else { "does not hold" };
        let rule = format!("{}: {holds}", self.rule);
        Self { rule, verdict: Verdict::Calculated, ..self }
    }

    /// A run on a small scale says nothing about it.
    pub(crate) fn at_full_scale(self) -> Self {
        Self { needs_full_scale: true, ..self }
    }

    /// The same in a run on a small scale.
    pub(crate) fn on_a_small_scale(self) -> Self {
        match (self.needs_full_scale, self.verdict) {
            (true, Verdict::Agrees | Verdict::Differs) => {
                Self { verdict: Verdict::NotMeasured, why: SMALL.into(), ..self }
            }
            _ => self,
        }
    }

    /// Everything, in the order of the fields.
    pub(crate) fn cells(&self) -> [&dyn Display; 7] {
        let Self { place, what, published, measured, rule, verdict, why, .. } = self;
        [place, what, published, measured, rule, verdict, why]
    }
}

impl Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, what, published, measured, rule, verdict, why, .. } = self;
        write!(f, "{verdict:12}  {place}, {what}: ")?;
        match verdict {
            Verdict::NotMeasured => write!(f, "{why}"),
            _ if why.is_empty() => write!(f, "{published} published, {measured} here ({rule})"),
            _ => write!(f, "{published} published, {measured} here ({rule}). {why}"),
        }
    }
}

/// As it is, unless that takes many zeros.
fn plain(number: f64) -> String {
    if number.abs() < 1e-6 && number != 0.0 { format!("{number:e}") } else { number.to_string() }
}

/// Four digits of a number, or all of a whole one.
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
