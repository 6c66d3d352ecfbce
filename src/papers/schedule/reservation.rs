//! Reservations of bit rates: packets, cycles and buffers from bits.

use core::time::Duration;

use super::adaptive::Demand;

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
/// [`slots`](Self::slots) + t × [`packets_per_second`](Demand::packets_per_second) of its packets
/// arrive, and its thread is served at that rate: for example, a burst in the smallest packets, and
/// its rate in average ones. A thread that waits for other turns, or for more packets under a
/// throttle, needs slots for that in addition.
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
/// assert_eq!((demand.packets_per_second, reservation.slots()), (2500, 125));
/// // A tenth of the processor.
/// assert_eq!(demand.share(1000), 100);
/// let thread = ThreadConfig::new(demand.share(1000), demand.cost);
/// let thread = thread.with_buffers(reservation.slots(), 64);
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
    #[must_use]
    pub fn slots(&self) -> u32 {
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
