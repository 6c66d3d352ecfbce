//! The batching throttle: thresholds that bound the overhead of switching, and the planner that
//! chooses the throttle for a demand.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::timestamp::nanos;

/// Parts per million in a whole.
const MILLION: u64 = 1_000_000;

/// The allowed ratio of switching to processing time, in parts per million: T of the paper.
///
/// Paper: Qie et al., section 4.2.
///
/// # Example
///
/// ```
/// use flowtable::papers::schedule::Overhead;
///
/// let ten = Overhead::from_ppm(100_000).unwrap(); // 10 %
/// assert!((ten.efficiency() - 1.0 / 1.1).abs() < 1e-12);
/// assert_eq!(Overhead::from_ppm(0), None); // no switching, no turns
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Overhead(u32);

impl Overhead {
    /// Creates an overhead in parts per million. `None` if it is zero.
    #[must_use]
    pub const fn from_ppm(ppm: u32) -> Option<Self> {
        if ppm == 0 { None } else { Some(Self(ppm)) }
    }

    /// Returns the overhead in parts per million.
    #[must_use]
    pub const fn ppm(self) -> u32 {
        self.0
    }

    /// Returns the efficiency index `E = 1 / (1 + T)`: the fraction of the busy time that is
    /// processing.
    #[must_use]
    pub fn efficiency(self) -> f64 {
        MILLION as f64 / (MILLION + u64::from(self.0)) as f64
    }

    /// Returns the processing time that allows this switching time, in nanoseconds, rounded up.
    const fn processing_for(self, switch: u64) -> u128 {
        (switch as u128 * MILLION as u128).div_ceil(self.0 as u128)
    }
}

/// The error of [`Throttle::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThrottleError {
    /// The cost of a switch is zero.
    NoSwitch,
    /// The timeslice is too short to amortise a switch: formula 1.
    ShortSlice {
        /// The shortest sufficient timeslice.
        needed: Duration,
    },
}

impl fmt::Display for ThrottleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSwitch => f.write_str("a throttle needs a switching cost above zero"),
            Self::ShortSlice { needed } => {
                write!(f, "a timeslice below {needed:?} does not amortise a switch")
            }
        }
    }
}

impl Error for ThrottleError {}

/// The batching throttle: a thread gets no turn before enough work waits to amortise the switch.
///
/// With a switch of `Csw`, an overhead of `T` and a cost per packet of `Cpp`, a thread must wait
/// for `B = ceil(Csw / (T * Cpp))` packets, unless its timeout expires before; then it runs until
/// its timeslice `G` is used or no work is left. `G >= Csw / T` is required (the paper's formula
/// 1).
///
/// Due to the ceiling, `B` packets may exceed `G` by one packet: the timeslice is checked after
/// each packet.
///
/// A threshold is capped at half of the slots of the thread's queues, or all of them where no other
/// thread waits at their other ends, so that a small queue costs efficiency and not packets: see
/// [`ThreadConfig::buffers`](super::ThreadConfig::buffers).
/// [Strict](Self::with_strict_thresholds) thresholds are not capped: a thread with fewer slots than
/// its threshold then runs only by its timeout, and never without one.
///
/// The formula also gives the size of a batch of lookups: 40 ns per batch, 25 ns per lookup, 10 %:
/// 16.
///
/// Paper: Qie et al., section 4.2 and equation 1.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::schedule::{Overhead, Throttle, ThrottleError};
///
/// let us = Duration::from_micros;
/// let ten = Overhead::from_ppm(100_000).unwrap();
/// let throttle = Throttle::new(us(3), ten, us(30))?;
/// assert_eq!([1, 3, 10].map(|cost| throttle.threshold(us(cost), 128)), [30, 10, 3]);
/// assert_eq!(throttle.threshold(us(1), 16), 16); // at most the buffers
///
/// let error = Throttle::new(us(3), ten, us(29)).unwrap_err();
/// assert_eq!(error, ThrottleError::ShortSlice { needed: us(30) });
/// # Ok::<(), ThrottleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    switch: u64,
    overhead: Overhead,
    slice: u64,
    is_strict: bool,
}

impl Throttle {
    /// Creates a throttle with the cost of a switch, the allowed overhead, and the timeslice.
    ///
    /// # Errors
    ///
    /// If the cost of a switch is zero, or the timeslice is shorter than `switch / overhead`.
    pub fn new(
        switch: Duration,
        overhead: Overhead,
        slice: Duration,
    ) -> Result<Self, ThrottleError> {
        let (switch, slice) = (nanos(switch), nanos(slice));
        if switch == 0 {
            return Err(ThrottleError::NoSwitch);
        }
        let needed = overhead.processing_for(switch);
        if u128::from(slice) < needed {
            let needed = Duration::from_nanos(u64::try_from(needed).unwrap_or(u64::MAX));
            return Err(ThrottleError::ShortSlice { needed });
        }
        Ok(Self { switch, overhead, slice, is_strict: false })
    }

    /// Disables the cap of thresholds: they follow the formula, even where a queue is too small.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::papers::schedule::{Overhead, Throttle, ThrottleError};
    ///
    /// let us = Duration::from_micros;
    /// let throttle = Throttle::new(us(3), Overhead::from_ppm(100_000).unwrap(), us(30))?;
    /// assert_eq!(throttle.threshold(us(1), 16), 16);
    /// let strict = throttle.with_strict_thresholds();
    /// assert_eq!(strict.threshold(us(1), 16), 30);
    /// # Ok::<(), ThrottleError>(())
    /// ```
    #[must_use]
    pub const fn with_strict_thresholds(self) -> Self {
        Self { is_strict: true, ..self }
    }

    /// Sets the shortest timeslice that amortises a switch.
    pub(super) fn with_shortest_slice(self) -> Self {
        // At most the present timeslice, so it fits.
        let slice = self.overhead.processing_for(self.switch) as u64;
        Self { slice, ..self }
    }

    /// Returns the allowed overhead.
    #[must_use]
    pub const fn overhead(&self) -> Overhead {
        self.overhead
    }

    /// Returns the timeslice.
    #[must_use]
    pub const fn slice(&self) -> Duration {
        Duration::from_nanos(self.slice)
    }

    /// Returns the number of packets that a thread must wait for, given the cost per packet and the
    /// number of packets that it may wait for. At least one.
    #[must_use]
    pub fn threshold(&self, cost: Duration, buffers: u32) -> u32 {
        let threshold = threshold(self.switch, self.overhead, nanos(cost));
        let threshold = if self.is_strict { threshold } else { threshold.min(buffers) };
        threshold.max(1)
    }
}

/// Returns `ceil(switch / (overhead * cost))`, saturated.
fn threshold(switch: u64, overhead: Overhead, cost: u64) -> u32 {
    let packets = u128::from(switch) * u128::from(MILLION);
    let packets = packets.div_ceil(u128::from(overhead.0) * u128::from(cost.max(1)));
    u32::try_from(packets).unwrap_or(u32::MAX)
}

/// Nanoseconds in a second.
const SECOND: u128 = 1_000_000_000;

/// The demand of a flow, measured or declared.
///
/// Paper: Qie et al., section 4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The arrival rate.
    pub packets_per_second: u64,
    /// The cost per packet.
    pub cost: Duration,
    /// The number of packets that the flow may wait for: half of the slots of a queue, or all of
    /// them if no other thread waits at the queue's other end.
    pub buffers: u32,
}

impl Demand {
    /// Returns the share of the processor, of `whole`, that processes the packets as they arrive:
    /// rounded up, and at most `u32::MAX`.
    #[must_use]
    pub fn share(&self, whole: u32) -> u32 {
        let share = self.nanos_per_second().saturating_mul(u128::from(whole)).div_ceil(SECOND);
        u32::try_from(share).unwrap_or(u32::MAX)
    }

    /// Returns the nanoseconds of processing in each second.
    fn nanos_per_second(&self) -> u128 {
        u128::from(self.packets_per_second) * u128::from(nanos(self.cost).max(1))
    }
}

/// The reservation of a flow in bits, as RSVP signals it.
///
/// A processor works by packets, and bits say nothing about their number: a flow may send its rate
/// in the smallest packets. To reserve for the worst case wastes most of the processor. So the
/// *average* packet is reserved for, and buffers hold what arrives while packets are smaller:
///
/// ```text
///     packets/s   = bits/s / bits of the average packet       cycles/s = packets/s × cost
///     input slots = bytes of a burst / bytes of the smallest packet
/// ```
///
/// **Guarantee.** A flow loses no packet if, in each interval of t seconds, at most
/// slots + t × [`packets_per_second`](Demand::packets_per_second) of its packets arrive, and its
/// thread is served at that rate: for example, a burst in the smallest packets, and its rate in
/// average ones. A thread that waits for other turns, or for more packets under a throttle, needs
/// slots for that in addition.
///
/// Paper: Qie et al., section 3.5: an average reservation and buffers.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::schedule::{Adaptive, Reservation, ThreadConfig};
///
/// let us = Duration::from_micros;
/// // 10 Mb/s in packets of 500 bytes on average, and bursts of 8 kB in packets of 64 bytes.
/// let reservation = Reservation {
///     bits_per_second: 10_000_000,
///     burst: 8000,
///     average_packet: 500,
///     smallest_packet: 64,
///     cost: us(40),
/// };
/// let demand = reservation.demand();
/// assert_eq!((demand.packets_per_second, demand.buffers), (2500, 63));
/// // A tenth of the processor.
/// assert_eq!(demand.share(1000), 100);
/// let thread = ThreadConfig::new(demand.share(1000), demand.cost);
/// let thread = ThreadConfig { buffers: demand.buffers.min(64 / 2), ..thread };
/// assert!(Adaptive::new(us(3), us(100))?.plan(&[demand]).is_ok());
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The reserved rate.
    pub bits_per_second: u64,
    /// The bytes that may arrive at once.
    pub burst: u32,
    /// The bytes of the average packet, at least one.
    pub average_packet: u32,
    /// The bytes of the smallest packet, at least one.
    pub smallest_packet: u32,
    /// The cost per packet.
    pub cost: Duration,
}

impl Reservation {
    /// Returns the slots of an input queue that hold a burst of the smallest packets. At least one.
    fn slots(&self) -> u32 {
        self.burst.div_ceil(self.smallest_packet.max(1)).max(1)
    }

    /// Returns the demand of the average packets, whose rate is rounded up. They may wait until
    /// half of the slots are used.
    #[must_use]
    pub fn demand(&self) -> Demand {
        let bits = 8 * u64::from(self.average_packet.max(1));
        let packets_per_second = self.bits_per_second.div_ceil(bits);
        Demand { packets_per_second, cost: self.cost, buffers: self.slots().div_ceil(2) }
    }
}

/// The error if no throttle meets all demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inadmissible {
    /// Processing leaves no time, or less than a millionth of it, for switching.
    Overload {
        /// The nanoseconds of processing in each second.
        demanded: u64,
    },
    /// The timeslice would exceed the maximum.
    LongSlice {
        /// The shortest sufficient timeslice.
        needed: Duration,
    },
    /// The threshold of a flow would exceed its buffers.
    Buffers {
        /// The index of the flow in the slice.
        flow: usize,
        /// The number of sufficient buffers.
        needed: u32,
    },
}

impl fmt::Display for Inadmissible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overload { demanded } => {
                write!(f, "{demanded} ns of processing per second leave no time for switching")
            }
            Self::LongSlice { needed } => {
                write!(f, "the timeslice would have to be {needed:?}, above the maximum")
            }
            Self::Buffers { flow, needed } => {
                write!(f, "flow {flow} needs {needed} buffers")
            }
        }
    }
}

impl Error for Inadmissible {}

/// A planner that chooses the throttle for a demand: the largest overhead that meets all of it, and
/// the shortest timeslice.
///
/// Flows demand `U = sum of rate * cost` of the CPU. The rest is for switching: `T = 1 / U - 1`. A
/// smaller overhead would only lengthen all waiting times. `G = Csw / T`.
///
/// Call [`plan`](Self::plan) after each measurement of the rates, and pass the result to
/// [`Scheduler::set_policy`](super::Scheduler::set_policy). O(n) each.
///
/// Paper: Qie et al., section 4.2: the workload determines E, E determines T, and equation 1
/// determines G.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::schedule::{Adaptive, Demand, Inadmissible};
///
/// let us = Duration::from_micros;
/// let adaptive = Adaptive::new(us(3), us(100))?; // a switch, the longest timeslice
/// let flow = Demand { packets_per_second: 40_000, cost: us(10), buffers: 128 };
/// let throttle = adaptive.plan(&[flow, flow])?; // 80 %
/// assert_eq!((throttle.overhead().ppm(), throttle.slice()), (250_000, us(12)));
/// // Another 15 % are admissible, but not 20.
/// let small = Demand { packets_per_second: 15_000, ..flow };
/// assert!(adaptive.plan(&[flow, flow, small]).is_ok());
/// let large = Demand { packets_per_second: 20_000, ..flow };
/// let error = adaptive.plan(&[flow, flow, large]).unwrap_err();
/// assert_eq!(error, Inadmissible::Overload { demanded: 1_000_000_000 });
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adaptive {
    switch: Duration,
    longest_slice: Duration,
}

impl Adaptive {
    /// Creates a planner with the cost of a switch, and the maximum timeslice, which bounds the
    /// waiting time of other threads.
    ///
    /// # Errors
    ///
    /// If the cost of a switch is zero, or exceeds the timeslice.
    pub fn new(switch: Duration, longest_slice: Duration) -> Result<Self, ThrottleError> {
        if switch.is_zero() {
            return Err(ThrottleError::NoSwitch);
        }
        if longest_slice < switch {
            return Err(ThrottleError::ShortSlice { needed: switch });
        }
        Ok(Self { switch, longest_slice })
    }

    /// Returns the throttle with the largest overhead that meets all demands.
    ///
    /// To decide whether a flow is admitted, plan with its demand among the others.
    ///
    /// The overhead is at most 100 %: at a low load the waiting times are short anyway. Flows with
    /// a rate of zero are ignored.
    ///
    /// # Errors
    ///
    /// If no overhead is small enough for the demand, and large enough for the maximum timeslice
    /// and for all buffers.
    pub fn plan(&self, flows: &[Demand]) -> Result<Throttle, Inadmissible> {
        let demands = flows.iter().map(Demand::nanos_per_second);
        let demanded = demands.fold(0, u128::saturating_add);
        let overhead = largest_overhead(demanded).ok_or(Inadmissible::Overload {
            demanded: u64::try_from(demanded).unwrap_or(u64::MAX),
        })?;
        let throttle = match Throttle::new(self.switch, overhead, self.longest_slice) {
            Ok(throttle) => throttle.with_shortest_slice(),
            Err(ThrottleError::ShortSlice { needed }) => {
                return Err(Inadmissible::LongSlice { needed });
            }
            Err(ThrottleError::NoSwitch) => unreachable!("checked by the constructor"),
        };
        let flows = flows.iter().enumerate();
        for (flow, demand) in flows.filter(|(_, flow)| flow.packets_per_second > 0) {
            let needed = throttle.threshold(demand.cost, u32::MAX);
            if needed > demand.buffers {
                return Err(Inadmissible::Buffers { flow, needed });
            }
        }
        Ok(throttle)
    }
}

/// Returns `1 / U - 1` in parts per million, rounded down, for the demanded nanoseconds per second;
/// at most 100 %.
fn largest_overhead(demanded: u128) -> Option<Overhead> {
    let left = SECOND.checked_sub(demanded)?;
    let ppm = (left * 1_000_000).checked_div(demanded).unwrap_or(u128::MAX).min(1_000_000);
    Overhead::from_ppm(ppm as u32)
}
