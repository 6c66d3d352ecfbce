//! Files and times: damages, compression, old formats, wrong clocks, routes.

use super::{Case, check};

const CASES: &[Case] = &[];

#[test]
fn files_and_times() {
    check("cases::files", CASES);
}
