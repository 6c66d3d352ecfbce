//! The report of a comparison.

use core::fmt;

use super::{Score, Subject};

/// The table of results.
pub struct Report<'a> {
    /// The description of the traffic, in lines.
    pub traffic: &'a dyn fmt::Display,
    pub scores: &'a [Score],
    /// Structures that were not replayed, since they would examine too many PCBs.
    pub left_out: &'a [&'static str],
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.traffic)?;
        writeln!(
            f,
            "\n{:<18} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "PCBs examined", "mean", "median", "99 of 100", "most", "hits", "ns"
        )?;
        self.scores.iter().try_for_each(|score| row(f, score))?;
        for name in self.left_out {
            let most = Subject::MOST_EXAMINED;
            writeln!(f, "{name:<18} left out: it would examine more than {most} PCBs")?;
        }
        write!(f, "{NOTES}")?;
        let wrong = || self.scores.iter().filter(|score| score.tally.wrong > 0);
        if wrong().next().is_none() {
            writeln!(f, "\nall found the same PCBs")?;
        }
        wrong().try_for_each(|score| disagreement(f, score))
    }
}

/// Explanations of the columns.
const NOTES: &str = "
hits: the first PCB that was examined was the right one, of all lookups
ns: per arriving segment, including insertion and removal of PCBs, and sent
    segments, which only SendReceive looks up (a stack has the PCB of a segment
    that it sends)
both Sequent structures have 19 chains
";

fn row(f: &mut fmt::Formatter<'_>, score: &Score) -> fmt::Result {
    let examined = &score.tally.examined;
    let (name, mean, most) = (score.name, examined.mean(), examined.most());
    let [median, nearly_all] = [0.5, 0.99].map(|share| examined.quantile(share));
    let hits = 100.0 * examined.hit_ratio();
    write!(f, "{name:<18} {mean:>9.2} {median:>9} {nearly_all:>9} {most:>9} {hits:>7.2} %")?;
    match score.time_ns() {
        Some(time) => writeln!(f, " {time:>9.1}"),
        None => writeln!(f, " {:>9}", "-"),
    }
}

fn disagreement(f: &mut fmt::Formatter<'_>, score: &Score) -> fmt::Result {
    let (name, wrong) = (score.name, score.tally.wrong);
    let first = score.tally.first_wrong.as_deref().unwrap_or_default();
    writeln!(f, "\nPCBs DISAGREE: {name}, {wrong} times, first: {first}")
}
