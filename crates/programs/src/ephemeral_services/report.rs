//! The report of a run.

use core::fmt;

use flowtable::ephemeral::StoreError;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::network::{Links, Network, Traffic};
use super::options::Options;
use super::services::{Complaints, Depth, Services, Tally};
use super::tree::Tree;

/// Results of all services.
pub struct Report {
    pub options: Options,
    pub routers: usize,
    pub depth: Depth,
    pub complaints: Complaints,
    pub plain_count: Tally,
    pub robust_count: Tally,
    pub robust_max: Tally,
    /// By service: depth, complaints, plain, robust.
    pub traffic: [Traffic; 4],
    pub most_bindings: usize,
    /// Number of bindings at the end, and a lifetime later.
    pub bindings: [usize; 2],
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { receivers, links: Links { lost, duplicated }, rounds, .. } = self.options;
        writeln!(f, "{receivers} receivers below {} routers, {rounds} rounds", self.routers)?;
        writeln!(f, "of 1000 packets links lose {lost} and duplicate {duplicated}")?;
        self.found(f)?;
        self.counted(f)?;
        self.sent(f)?;
        let [end, later] = self.bindings;
        writeln!(f, "\nbindings of a router: {} at most", self.most_bindings)?;
        let lifetime = Network::LIFETIME.as_secs();
        writeln!(f, "of all routers: {end} at the end, {later} a lifetime of {lifetime} s later")
    }
}

impl Report {
    /// Attempts to complain before receivers give up.
    const ATTEMPTS: u32 = 8;

    /// Returns the number of rounds of all services.
    pub fn rounds(options: &Options) -> u64 {
        4 * u64::from(options.rounds)
    }

    /// Generates the network and runs all services. Calls `on_round_end` after each round.
    pub fn of(options: Options, on_round_end: &dyn Fn()) -> Result<Self, StoreError> {
        let mut rng = StdRng::seed_from_u64(options.seed);
        let tree = Tree::random(options.receivers, &mut rng);
        let mut network = Network::new(tree, options.links, rng)?;
        let routers = network.tree.routers;
        let rounds = options.rounds;
        let mut services = Services { network: &mut network, rounds, on_round_end };
        let depth = services.depth();
        let of_depth = services.network.take_traffic();
        let complaints = services.complaints(Self::ATTEMPTS);
        let of_complaints = services.network.take_traffic();
        let plain_count = services.plain_count();
        let of_plain = services.network.take_traffic();
        let [robust_count, robust_max] = services.robust_count_and_max();
        let traffic = [of_depth, of_complaints, of_plain, services.network.take_traffic()];
        let most_bindings = network.most_bindings;
        let end = network.bindings();
        network.idle();
        let bindings = [end, network.bindings()];
        Ok(Self {
            options,
            routers,
            depth,
            complaints,
            plain_count,
            robust_count,
            robust_max,
            traffic,
            most_bindings,
            bindings,
        })
    }

    fn found(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (depth, receivers) = (&self.depth, self.options.receivers);
        writeln!(f, "\ndepth of the tree by COMPARE: {}, true {}", depth.found, depth.truth)?;
        let (right, rounds) = (depth.right, self.options.rounds);
        let received = depth.received;
        writeln!(
            f,
            "    found in {right} of {rounds} rounds; \
             the source receives {received:.1} of {receivers} answers"
        )?;
        let Complaints { missed, reported, by, received, most_received, attempts } =
            self.complaints;
        writeln!(f, "complaints by COUNT: {reported} of {missed} missing packets are reported")?;
        writeln!(
            f,
            "    missed by {by}; {received} complaints arrive, \
             {most_received} at once at most, in {attempts} attempts"
        )
    }

    fn counted(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = ["right", "low", "high", "none", "warned"];
        write!(f, "\n{:<28} {:>6} {:>7}", "", "true", "largest")?;
        columns.iter().try_for_each(|column| write!(f, " {column:>6}"))?;
        writeln!(f)?;
        for (name, tally) in [
            ("receivers, COUNT + COLLECT", &self.plain_count),
            ("receivers, RCHILD + RCOLLECT", &self.robust_count),
            ("maximum, RCHILD + RCOLLECT", &self.robust_max),
        ] {
            let Tally { truth, right, too_small, too_large, unanswered, warned, largest } = *tally;
            let largest = largest.map_or_else(|| "-".into(), |largest| largest.to_string());
            write!(f, "{name:<28} {truth:>6} {largest:>7}")?;
            let rounds = [right, too_small, too_large, unanswered, warned];
            rounds.iter().try_for_each(|rounds| write!(f, " {rounds:>6}"))?;
            writeln!(f)?;
        }
        writeln!(f, "low, high, none: rounds with an answer too small, too large, or without one")?;
        writeln!(f, "warned: a packet with the error bit arrived, so the answer may be wrong")
    }

    fn sent(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The width of a number.
        const LEAST: usize = 7;
        let columns = ["sent", "forwarded", "dropped", "lost", "twice", "arrived", "errors"];
        write!(f, "\n{:<18}", "packets")?;
        columns.iter().try_for_each(|column| write!(f, " {column:>LEAST$}"))?;
        writeln!(f)?;
        let names = ["COMPARE", "COUNT", "COUNT + COLLECT", "RCHILD + RCOLLECT"];
        for (name, traffic) in names.into_iter().zip(&self.traffic) {
            let Traffic { sent, forwarded, dropped, lost, duplicated, arrived, errors } = *traffic;
            write!(f, "{name:<18}")?;
            let numbers = [sent, forwarded, dropped, lost, duplicated, arrived, errors];
            numbers.iter().zip(&columns).try_for_each(|(number, column)| {
                write!(f, " {number:>width$}", width = column.len().max(LEAST))
            })?;
            writeln!(f)?;
        }
        Ok(())
    }
}
