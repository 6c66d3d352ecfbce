//! Which throttle the measured demand wants, and whether a newcomer still fits.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use super::throttle::{Overhead, Throttle, ThrottleError};
use crate::timestamp::nanos;

/// Nanoseconds in a second.
const SECOND: u128 = 1_000_000_000;

/// What a flow wants, as measured or as promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Packets that come in a second.
    pub packets_per_second: u64,
    /// What each of them costs.
    pub cost: Duration,
    /// As many packets as it may wait for: half of the places of a queue, or all of them if no other thread waits at
    /// the queue's other end.
    pub buffers: u32,
}

/// Why no throttle meets all demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inadmissible {
    /// Processing alone takes all the time, or so much that less than a millionth is left for switching.
    Overload {
        /// Nanoseconds of processing in each second.
        demanded: u64,
    },
    /// A timeslice would be longer than is allowed.
    LongSlice {
        /// The shortest that would do.
        needed: Duration,
    },
    /// A flow would have to wait for more packets than it has buffers for.
    Buffers {
        /// Which one, in the order in which they were given; the newcomer is last.
        flow: usize,
        /// As many as would do.
        needed: u32,
    },
}

impl fmt::Display for Inadmissible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overload { demanded } => {
                write!(f, "{demanded} ns of processing a second leave no time for switching")
            }
            Self::LongSlice { needed } => {
                write!(f, "timeslices would have to be {needed:?}, longer than is allowed")
            }
            Self::Buffers { flow, needed } => {
                write!(f, "flow {flow} would need {needed} buffers")
            }
        }
    }
}

impl Error for Inadmissible {}

/// Chooses the throttle for a demand: the largest overhead with which all of it is met, and the shortest timeslice.
///
/// Flows want `U = sum of rate * cost` of the processor. What is left is for switching: `T = 1 / U - 1`. A smaller
/// overhead would only make everybody wait for longer. `G = Csw / T`.
///
/// Call [`plan`](Self::plan) again whenever rates have been measured, and give the result to
/// [`Scheduler::set_policy`](super::Scheduler::set_policy). O(n) each.
///
/// Paper: Qie et al., the batching throttle. It leaves the choice of T and G open; this is how its results follow from
/// its formulas.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::schedule::{Adaptive, Demand, Inadmissible};
///
/// let us = Duration::from_micros;
/// let adaptive = Adaptive::new(us(3), us(100))?; // a switch, the longest timeslice
/// let flow = Demand { packets_per_second: 40_000, cost: us(10), buffers: 128 };
/// let throttle = adaptive.plan(&[flow, flow])?; // 80 %
/// assert_eq!((throttle.overhead().ppm(), throttle.slice()), (250_000, us(12)));
/// // Another 15 % fit, but not 20.
/// let small = Demand { packets_per_second: 15_000, ..flow };
/// assert!(adaptive.admits(&[flow, flow], small).is_ok());
/// let large = Demand { packets_per_second: 20_000, ..flow };
/// let error = adaptive.admits(&[flow, flow], large).unwrap_err();
/// assert_eq!(error, Inadmissible::Overload { demanded: 1_000_000_000 });
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adaptive {
    switch: Duration,
    longest_slice: Duration,
}

impl Adaptive {
    /// Of the cost of a switch, and the longest timeslice for which the others may be kept waiting.
    ///
    /// # Errors
    ///
    /// If a switch costs nothing, or more than the slice.
    pub fn new(switch: Duration, longest_slice: Duration) -> Result<Self, ThrottleError> {
        if switch.is_zero() {
            return Err(ThrottleError::NoSwitch);
        }
        if longest_slice < switch {
            return Err(ThrottleError::ShortSlice { needed: switch });
        }
        Ok(Self { switch, longest_slice })
    }

    /// The throttle with the largest overhead with which all demands are met.
    ///
    /// An overhead above 100 % is never chosen: who wants little waits for little anyway. A flow that wants nothing stands
    /// in nobody's way.
    ///
    /// # Errors
    ///
    /// If no overhead is small enough for the demand, and large enough for the longest timeslice and for all buffers.
    pub fn plan(&self, flows: &[Demand]) -> Result<Throttle, Inadmissible> {
        self.plan_for(flows.iter())
    }

    /// The same with a newcomer: the throttle to take if it is let in.
    ///
    /// # Errors
    ///
    /// If it must not be let in.
    pub fn admits(&self, flows: &[Demand], newcomer: Demand) -> Result<Throttle, Inadmissible> {
        self.plan_for(flows.iter().chain([&newcomer]))
    }

    fn plan_for<'a>(
        &self,
        flows: impl Iterator<Item = &'a Demand> + Clone,
    ) -> Result<Throttle, Inadmissible> {
        let demands = flows
            .clone()
            .map(|flow| u128::from(flow.packets_per_second) * u128::from(nanos(flow.cost).max(1)));
        let demanded = demands.fold(0, u128::saturating_add);
        let overhead = largest_overhead(demanded).ok_or(Inadmissible::Overload {
            demanded: u64::try_from(demanded).unwrap_or(u64::MAX),
        })?;
        let throttle = match Throttle::new(self.switch, overhead, self.longest_slice) {
            Ok(throttle) => throttle.with_shortest_slice().with_strict_thresholds(),
            Err(ThrottleError::ShortSlice { needed }) => {
                return Err(Inadmissible::LongSlice { needed });
            }
            Err(ThrottleError::NoSwitch) => unreachable!("checked when this was made"),
        };
        for (flow, demand) in flows.enumerate().filter(|(_, flow)| flow.packets_per_second > 0) {
            let needed = throttle.threshold(demand.cost, demand.buffers);
            if needed > demand.buffers {
                return Err(Inadmissible::Buffers { flow, needed });
            }
        }
        Ok(throttle.with_capped_thresholds())
    }
}

/// `1 / U - 1` in parts per million, rounded down, for so many nanoseconds of each second; 100 % at most.
fn largest_overhead(demanded: u128) -> Option<Overhead> {
    let left = SECOND.checked_sub(demanded)?;
    let ppm = (left * 1_000_000).checked_div(demanded).unwrap_or(u128::MAX).min(1_000_000);
    Overhead::from_ppm(ppm as u32)
}
