//! The meter: options, endings of flows, exports.

use super::{Case, check};

const CASES: &[Case] = &[];

#[test]
fn meter() {
    check("cases::meter", CASES);
}
