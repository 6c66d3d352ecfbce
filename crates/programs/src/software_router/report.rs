//! The report of a comparison.

use core::fmt;

use super::{Comparison, Costs, Function, Outcome, PathTally, Plan, Traffic};

/// The report: one screen, and the paths of each schedule, if they are wanted.
pub struct Report<'a> {
    /// The name of the traffic.
    pub name: &'a str,
    pub comparison: &'a Comparison<'a>,
    /// Whether each path of each schedule is listed.
    pub has_paths: bool,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { traffic, costs, rate, outcomes, .. } = self.comparison;
        let (packets, Traffic { flows, unclassified, others, .. }) =
            (traffic.packets.len(), traffic);
        write!(f, "{}: {packets} IP packets, {flows} flows", self.name)?;
        if *unclassified > 0 {
            write!(f, ", {unclassified} packets without a path")?;
        }
        writeln!(f, "; {others} other frames")?;
        let seconds = traffic.duration_ns(*rate) as f64 / 1e9;
        let [capacity, rate] = [costs.capacity(traffic), *rate].map(kpps);
        writeln!(
            f,
            "capacity without switches: {capacity} kpps; offered: {rate} kpps for {seconds:.4} s"
        )?;
        if self.has_paths || **costs != Costs::PAPER {
            costs_table(f, costs)?;
        }
        self.summary(f)?;
        self.curve(f)?;
        write!(f, "{NOTES}")?;
        if self.has_paths {
            outcomes.iter().try_for_each(|outcome| schedule(f, outcome, costs))?;
            write!(f, "{NOTES_ON_PATHS}")?;
        }
        Ok(())
    }
}

/// Explanations of the summary.
const NOTES: &str = "
E: the efficiency index, the part of the busy time that is spent on packets
Compare beyond the capacity: interrupts, without a schedule, send less the more
packets arrive (livelock); batches and throttles do not.
";

/// Explanations of the paths.
const NOTES_ON_PATHS: &str = "
drops: at the card, whose ring was full; at the input queue of a path
refused: malformed header, no route, TTL expired, or repeated too often
";

impl Report<'_> {
    /// All schedules: packets sent, of each path, too.
    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |function: Function| function.name().len().max(7);
        write!(f, "\n{:<20} {:>6} {:>7} {:>7}", "kpps sent", "all", "E", "turns")?;
        for function in Function::ALL {
            write!(f, " {:>width$}", function.name(), width = width(function))?;
        }
        writeln!(f)?;
        for outcome in &self.comparison.outcomes {
            let name = outcome.plan.name(self.comparison.costs);
            let efficiency = 100.0 * outcome.efficiency();
            let rate = |sent| outcome.rate(sent) / 1e3;
            write!(f, "{name:<20} {:>6.1} {efficiency:>5.1} %", rate(outcome.total().sent))?;
            write!(f, " {:>7}", outcome.account.turns)?;
            for function in Function::ALL {
                let sent = outcome.functions[function as usize].sent;
                write!(f, " {:>width$.1}", rate(sent), width = width(function))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    /// Throughput at rising loads.
    fn curve(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{:<11}", "rising load")?;
        for plan in Plan::LIVELOCK {
            write!(f, " {:>22}", plan.name(self.comparison.costs))?;
        }
        writeln!(
            f,
            "\n{:>11} {:>14} {:>7} {:>14} {:>7} {:>14} {:>7}",
            "kpps", "kpps", "E", "kpps", "E", "kpps", "E"
        )?;
        for point in &self.comparison.curve {
            write!(f, "{:>11}", kpps(point.rate))?;
            for outcome in &point.outcomes {
                let (rate, e) = (outcome.rate(outcome.total().sent) / 1e3, outcome.efficiency());
                write!(f, " {rate:>14.1} {:>5.1} %", 100.0 * e)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Prints the costs of the stages, and those of the paper.
fn costs_table(f: &mut fmt::Formatter<'_>, costs: &Costs) -> fmt::Result {
    let list = |costs: &Costs| {
        let functions = Function::ALL.map(|function| costs.functions[function as usize]);
        let [fast, general, proxy, active] = functions;
        [costs.input, fast, general, proxy, active, costs.output, costs.switch]
    };
    let names = ["input", "fast", "general", "proxy", "active", "output", "switch"];
    write!(f, "\n{:<24}", "ns for a packet")?;
    names.iter().try_for_each(|name| write!(f, " {name:>8}"))?;
    write!(f, "\n{:<24}", "as in the paper")?;
    list(&Costs::PAPER).iter().try_for_each(|cost| write!(f, " {cost:>8}"))?;
    if *costs != Costs::PAPER {
        write!(f, "\n{:<24}", "measured, and used")?;
        list(costs).iter().try_for_each(|cost| write!(f, " {cost:>8}"))?;
    }
    writeln!(f)
}

/// Prints the results of a schedule: a line for all paths, and one for each function.
fn schedule(f: &mut fmt::Formatter<'_>, outcome: &Outcome, costs: &Costs) -> fmt::Result {
    let (total, efficiency) = (outcome.total(), 100.0 * outcome.efficiency());
    let Outcome { card_drops, unread, unclassified, account, empty_polls, .. } = outcome;
    let turns = account.turns;
    let name = outcome.plan.name(costs);
    let rate = outcome.rate(total.sent) / 1e3;
    writeln!(
        f,
        "\n{name}: E {efficiency:.1} %, {rate:.1} kpps, {turns} turns, \
         {empty_polls} empty polls"
    )?;
    writeln!(
        f,
        "    {} packets: {card_drops} dropped at the card, {unread} left there, \
         {unclassified} refused there",
        outcome.offered
    )?;
    writeln!(
        f,
        "    {:<11} {:>8} {:>8} {:>7} {:>7} {:>7} {:>7} {:>8} {:>8}",
        "path", "arrived", "sent", "kpps", "drops", "refused", "left", "longest", "longest"
    )?;
    writeln!(
        f,
        "    {:<11} {:>8} {:>8} {:>7} {:>7} {:>7} {:>7} {:>8} {:>8}",
        "", "", "", "", "", "", "", "input", "output"
    )?;
    for function in Function::ALL {
        path(f, function.name(), &outcome.functions[function as usize], outcome)?;
    }
    Ok(())
}

fn path(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    tally: &PathTally,
    outcome: &Outcome,
) -> fmt::Result {
    let PathTally { arrived, sent, input_drops, refused, queued, .. } = tally;
    let rate = outcome.rate(*sent) / 1e3;
    let (input, output) = (tally.longest_input, tally.longest_output);
    write!(f, "    {name:<11} {arrived:>8} {sent:>8} {rate:>7.1} {input_drops:>7}")?;
    writeln!(f, " {refused:>7} {queued:>7} {input:>8} {output:>8}")
}

fn kpps(rate: u64) -> String {
    format!("{:.1}", rate as f64 / 1e3)
}
