//! The runs that show the causes of differences.

use std::error::Error;

use flowtable::demux::analysis::Tpca;
use model::papers::demux_1992::setup::{segments, segments_after_syns};
use model::papers::demux_1992::subjects::{Subject, run_all, set_up_all};
use model::papers::demux_1992::tpca::Traffic;

use super::costs::{SEED, USERS, WARM_UP, end};
use crate::causes::Evidence;
use crate::report::{Table, two};

/// Counts the PCBs of the set-up experiment with packets in random order, and with the SYNs first.
pub(crate) fn explain_syns_first(quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let header = ["structure", "connections", "printed", "random order", "SYNs first"];
    let mut table = Table::new(&header);
    for (connections, printed, is_bsd) in [(3600, "84", true), (5040, "8.7", false)] {
        let connections = if quick { connections / 10 } else { connections };
        let mut cells = vec![];
        for packets in [segments(connections, SEED), segments_after_syns(connections, SEED)] {
            let mut subject = if is_bsd { Subject::bsd() } else { Subject::sequent(19)? };
            let examined = set_up_all(&mut *subject.demux, &packets).examined;
            cells.push(format!("{:.2}", examined as f64 / 1e6));
        }
        let name = if is_bsd { "BSD" } else { "Sequent, 19 chains" };
        table.row(&[&name, &connections, &printed, &cells[0], &cells[1]]);
    }
    Ok(vec![("Millions of PCBs examined, by the order of packets", table)])
}

/// Sets the equations with and without the wait beside what is counted.
pub(crate) fn explain_users_wait(quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let header = ["R, s", "packet", "equation", "with the wait", "counted"];
    let mut table = Table::new(&header);
    for response in [0.2, 0.5, 1.0, 2.0] {
        let bank = Tpca::new(USERS, response)?;
        let mut all = [Subject::move_to_front()];
        let traffic = Traffic::closed(USERS, response, SEED);
        run_all(&mut all, USERS, traffic, WARM_UP, end(quick));
        let (entries, acks) = (all[0].entries.ahead(), all[0].acks.ahead());
        for (name, plain, waiting, counted) in [
            (
                "entry",
                bank.move_to_front_entry(),
                bank.move_to_front_entry_in_a_closed_loop(),
                entries,
            ),
            ("ack", bank.move_to_front_ack(), bank.move_to_front_ack_in_a_closed_loop(), acks),
        ] {
            table.row(&[&response, &name, &two(plain), &two(waiting), &two(counted)]);
        }
    }
    Ok(vec![("PCBs ahead in a list that moves to the front", table)])
}

/// Evaluates equation 9 with the connection itself and without it.
pub(crate) fn explain_trains(_quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let mut table = Table::new(&["chains", "printed", "e^-2aR(N/H - 1)", "e^-2aRN/H"]);
    for (chains, printed) in [(1, "1.9e-35"), (19, "1.5 %"), (50, "-"), (51, "almost 21 %")] {
        let p = Tpca::new(USERS, 0.2)?.with_chains(chains)?.train_probability();
        let all = (-2.0 * 0.1 * 0.2 * f64::from(USERS) / f64::from(chains)).exp();
        let text =
            |p: f64| if p < 1e-6 { format!("{p:.2e}") } else { format!("{:.2} %", 100.0 * p) };
        table.row(&[&chains, &printed, &text(p), &text(all)]);
    }
    Ok(vec![("Responses that find their PCB remembered, R = 0.2 s", table)])
}
