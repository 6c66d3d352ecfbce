//! Scheduling plans.

use core::time::Duration;

use flowtable::papers::schedule::{Budget, Overhead, Policy, Throttle, ThrottleError};

use super::Costs;

/// A plan: which thread runs when, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Each arrival interrupts, and is read and classified before anything else; forwarding and
    /// writing threads have turns of one packet.
    Interrupts,
    /// Turns of at most this number of packets.
    Batch(u32),
    /// Turns of this multiple of the cost of a switch.
    Slice(u32),
    /// The batching throttle: this percentage of time may be spent on switches.
    Throttle(u32),
}

impl Plan {
    /// The compared plans. A slice of fifty switches of 3 µs is 150 µs.
    pub const COMPARED: [Self; 5] =
        [Self::Batch(1), Self::Batch(16), Self::Slice(50), Self::Throttle(10), Self::Interrupts];

    /// The plans whose throughput is measured at rising loads.
    pub const LIVELOCK: [Self; 3] = [Self::Interrupts, Self::Batch(16), Self::Throttle(10)];

    pub fn policy(self, costs: &Costs) -> Result<Policy, ThrottleError> {
        let switch = Duration::from_nanos(costs.switch);
        Ok(match self {
            Self::Interrupts => Policy::Budget(Budget::packets(1)),
            Self::Batch(packets) => Policy::Budget(Budget::packets(packets)),
            Self::Slice(switches) => {
                Policy::Budget(Budget { slice: switch * switches, ..Budget::UNTIL_EMPTY })
            }
            Self::Throttle(percent) => {
                let ppm = percent.saturating_mul(10_000);
                let overhead = Overhead::from_ppm(ppm).unwrap_or(Self::LEAST);
                // The shortest slice that amortises a switch: formula 1.
                let slice = costs.switch.saturating_mul(1_000_000).div_ceil(overhead.ppm().into());
                Policy::Throttle(Throttle::new(switch, overhead, Duration::from_nanos(slice))?)
            }
        })
    }

    /// The minimum overhead: one part per million.
    const LEAST: Overhead = match Overhead::from_ppm(1) {
        Some(least) => least,
        None => panic!("one is not zero"),
    };

    /// Returns the maximum number of packets of a poll, for the estimator.
    pub fn poll(self) -> u32 {
        match self {
            Self::Interrupts => 1,
            Self::Batch(packets) => packets.min(16),
            Self::Slice(_) | Self::Throttle(_) => 16,
        }
    }

    pub fn name(self, costs: &Costs) -> String {
        let microseconds = |switches: u32| f64::from(switches) * costs.switch as f64 / 1000.0;
        match self {
            Self::Interrupts => "interrupts".to_owned(),
            Self::Batch(packets) => format!("batch of {packets}"),
            Self::Slice(switches) => format!("slice of {} us", Plain(microseconds(switches))),
            Self::Throttle(percent) => {
                let slice = costs.switch as f64 / f64::from(percent) / 10.0;
                format!("throttle {percent} %, {} us", Plain(slice))
            }
        }
    }
}

/// A number formatted without trailing zeros.
struct Plain(f64);

impl core::fmt::Display for Plain {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let rounded = (self.0 * 1000.0).round() / 1000.0;
        write!(f, "{rounded}")
    }
}
