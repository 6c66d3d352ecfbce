//! Settings of the simulation of the paper, and what several comparisons read from its outcomes.

use flowtable::papers::schedule::Policy;
use flowtable::papers::schedule::simulator::Outcome as Simulated;
use model::papers::scheduling_2001::simulation::{
    LIMITS, SLICES, THROTTLES, packets, slice, throttle,
};

pub(crate) const FLOW_6: usize = 5;
pub(crate) const FLOW_13: usize = 12;

pub(crate) fn efficiency(outcome: &Simulated) -> f64 {
    100.0 * outcome.account.efficiency().unwrap_or_default()
}

pub(crate) fn limits() -> Vec<(String, f64, Policy)> {
    LIMITS.map(|limit| (format!("{limit} packets"), limit.into(), packets(limit))).into()
}

pub(crate) fn slices() -> Vec<(String, f64, Policy)> {
    SLICES.map(|micros| (format!("{micros} us"), micros as f64, slice(micros))).into()
}

pub(crate) fn throttles() -> Vec<(String, f64, Policy)> {
    let setting = |setting: (u32, u64)| {
        (format!("T {} %, G {} us", setting.0, setting.1), setting.1 as f64, throttle(setting))
    };
    THROTTLES.map(setting).into()
}
