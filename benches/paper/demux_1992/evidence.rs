//! The runs that show the causes of differences.

use std::error::Error;

use flowtable::demux::analysis::Tpca;
use model::papers::demux_1992::subjects::{Subject, run_all};
use model::papers::demux_1992::tpca::Traffic;

use super::costs::{SEED, USERS, WARM_UP, end};
use crate::causes::Evidence;
use crate::report::{Table, two};

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

/// Sets 1/N, and the probability that a user's query directly follows his last packet, beside what
/// is counted.
pub(crate) fn explain_own_packet(quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let header = ["R, s", "1/N, %", "½·a / (a + λ), %", "counted, %"];
    let mut table = Table::new(&header);
    for response in [0.2, 1.0] {
        let mut all = [Subject::bsd()];
        run_all(&mut all, USERS, Traffic::closed(USERS, response, SEED), WARM_UP, end(quick));
        // Packets of the others in a second, when each user thinks 10 s and waits for R.
        let others = 2.0 * f64::from(USERS - 1) / (10.0 + response);
        let own = 0.5 * 0.1 / (0.1 + others);
        let percent = |ratio: f64| format!("{:.4}", 100.0 * ratio);
        let counted = percent(all[0].packets().hit_ratio());
        table.row(&[&response, &percent(1.0 / f64::from(USERS)), &percent(own), &counted]);
    }
    Ok(vec![("Packets that find the PCB of a BSD list remembered", table)])
}
