//! The runs that show the causes of differences.

use std::error::Error;

use flowtable::demux::analysis::Tpca;
use model::papers::demux_1992::subjects::{Subject, run_all};
use model::papers::demux_1992::tpca::Traffic;

use super::costs::{SEED, USERS, WARM_UP, end};
use crate::causes::Evidence;
use crate::report::{Table, two};

/// Sets the equations with and without the wait beside the counted values.
pub(crate) fn explain_users_wait(quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let header = ["R, s", "packet", "equation", "with the wait", "counted"];
    let mut table = Table::new(&header);
    for response in [0.2, 0.5, 1.0, 2.0] {
        let bank = Tpca::new(USERS, response);
        let (front, exact) = (bank.move_to_front(), bank.move_to_front_in_a_closed_loop());
        let mut all = [Subject::move_to_front()];
        let traffic = Traffic::closed(USERS, response, SEED);
        run_all(&mut all, USERS, traffic, WARM_UP, end(quick));
        let (entries, acks) = (all[0].entries.ahead(), all[0].acks.ahead());
        for (name, plain, waiting, counted) in
            [("entry", front.entry, exact.entry, entries), ("ack", front.ack, exact.ack, acks)]
        {
            table.row(&[&response, &name, &two(plain), &two(waiting), &two(counted)]);
        }
    }
    let front = ("PCBs ahead in a list that moves to the front", table);
    Ok(vec![front, ("Responses that find the PCB remembered, %, R = 0.2 s", responses(quick)?)])
}

/// The probability that no packet of a user arrives between a query and its response, if each user
/// waits for `response` and thinks 10 s: that none of his queries is within twice that time.
fn is_quiet(response: f64) -> f64 {
    10.0 / (10.0 + response) * (-response / 10.0).exp()
}

/// Sets equation 9, with and without the wait, beside the counted values.
fn responses(quick: bool) -> Result<Table, Box<dyn Error>> {
    const RESPONSE: f64 = 0.2;
    let mut table = Table::new(&["chains", "equation 9", "with the wait", "counted"]);
    let mut all = [Subject::sequent(19)?, Subject::sequent(51)?];
    run_all(&mut all, USERS, Traffic::closed(USERS, RESPONSE, SEED), WARM_UP, end(quick));
    for (chains, subject) in [19, 51].into_iter().zip(&all) {
        // The other users of a chain.
        let others = f64::from(USERS) / f64::from(chains) - 1.0;
        let equation = Tpca { chains, ..Tpca::new(USERS, RESPONSE) }.train_probability();
        let [equation, waiting, counted] =
            [equation, is_quiet(RESPONSE).powf(others), subject.acks.hit_ratio()]
                .map(|ratio| format!("{:.3}", 100.0 * ratio));
        table.row(&[&chains, &equation, &waiting, &counted]);
    }
    Ok(table)
}

/// Sets H/N, and the probability that a user's packet directly follows his last one in his chain,
/// beside the counted values: a query an acknowledgement, or, with p, an acknowledgement a query.
pub(crate) fn explain_own_packet(quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let header = ["chains", "R, s", "H/N, %", "½·(a / (a + λ) + p), %", "counted, %"];
    let mut table = Table::new(&header);
    for response in [0.2, 1.0] {
        let mut all = [Subject::bsd(), Subject::sequent(19)?];
        run_all(&mut all, USERS, Traffic::closed(USERS, response, SEED), WARM_UP, end(quick));
        for (chains, subject) in [1.0, 19.0].into_iter().zip(&all) {
            let others = f64::from(USERS) / chains - 1.0;
            // Their packets in a second, when each user thinks 10 s and waits for R.
            let rate = 2.0 * others / (10.0 + response);
            let own = 0.5 * (0.1 / (0.1 + rate) + is_quiet(response).powf(others));
            let percent = |ratio: f64| format!("{:.4}", 100.0 * ratio);
            let counted = percent(subject.packets().hit_ratio());
            let printed = percent(chains / f64::from(USERS));
            table.row(&[&chains, &response, &printed, &percent(own), &counted]);
        }
    }
    Ok(vec![("Packets that find the PCB of a list remembered", table)])
}
