//! A bounded table of flows: packets create flows, timeouts and evictions end them, and each end is
//! reported.
//!
//! ```text
//!                     key, packet, now                               now, budget
//!                            │                                            │ advance
//!                            ▼ observe                                    ▼
//!     keys       ┌──────────────────────┐     slots            ┌──────────────────────┐
//!     of both    │ index                │  ┌─▸ flow │ flow │ … │ wheel                │
//!     directions │ lines of 12 slots    ├──┘   cold │ cold │ … │ slots by deadline    │
//!                └──────────────────────┘  ┌─▸ alias│ alias│ … └──────────────────────┘
//!                  aliases ────────────────┘        ▲
//!                                                   │ victim
//!                                        ┌──────────┴───────────┐
//!                                        │ eviction policy,     │
//!                                        │ shares of tenants    │
//!                                        └──────────────────────┘
//! ```
//!
//! - **One lookup per packet**: [`observe`](FlowCache::observe) finds the flow by the normalised
//!   key of both directions and returns the direction of the packet relative to the initiator, or
//!   creates the flow. [`observe_batch`](FlowCache::observe_batch) processes a burst, whose cache
//!   misses overlap. [`try_observe_with`](FlowCache::try_observe_with) and
//!   [`observe_at`](FlowCache::observe_at) are for callers that decide which packets create flows.
//!   A key may come with its hash, such as the hash of a network card:
//!   [`Prehashed`](crate::Prehashed).
//! - **Aliases**: an [alias](FlowCache::add_alias), such as a translated tuple or another
//!   connection ID, refers to the same flow, and is removed with it. It replaces the primary key
//!   when that is [retired](FlowCache::remove_key).
//! - **State**: packets move a flow from class to class ([`state`]); each class has its timeout. A
//!   packet only writes the time into the flow; [`advance`](FlowCache::advance) ends idle flows and
//!   reports long-lived ones, a bounded number of flows per call.
//! - **Expiry is exact**: a flow whose idle timeout has passed is not found, and takes no packets,
//!   whether or not a call has ended it. Until then it is in memory, in
//!   [`len`](FlowCache::len), [`metrics`](FlowCache::metrics) and iterations.
//! - **Eviction**: in a full cache, a new flow evicts a flow that a policy selects in O(1): see
//!   [`crate::eviction`]. The default evicts closing flows first, then half-open, then unreplied
//!   ones, and established ones when there are hardly any others: see [`ByClass`].
//!   [Pinned](FlowCache::set_pinned) flows are not evicted; a tenant at its
//!   [share](FlowCache::set_share) evicts a flow of its own.
//! - **Nothing is lost silently**: a removed flow is returned, with its value and the reason.
//!   [`metrics`](FlowCache::metrics) counts all events.
//! - **Expected flows**, such as the data connections of FTP and the media of SIP, are in a table
//!   beside the cache: [`Expectations`].
//! - **Routes**: a decision that a flow has is checked by one load: see [`crate::routes::stamped`].
//! - **Cores**: one cache for each, by the hash of the network card: see [`cores`].
//! - **Handles**: a [`Handle`] finds a flow without its key, for its lifetime, and never another.
//!
//! # Time
//!
//! The cache reads no clock. Its time is the latest one that it was given: it stands still while
//! packets arrive with earlier times. A single step is limited to one year, so that one wrong time
//! does not use up the range of 438 years. After the caller's clock was set, call
//! [`set_clock`](FlowCache::set_clock): all flows keep their ages. Without that call, flows after
//! an erroneous jump forward are not expired until the caller's time has caught up; they are still
//! evicted.
//!
//! # Hostile packets
//!
//! Keys are hashed with a seed. Floods, answered or not, evict no [assured](state) flows while
//! these are less than seven eighths of the flows that are not pinned. At a
//! [share](FlowCache::set_share), only the flows of the tenant count. A flood of complete
//! handshakes, or of answered datagrams that are enough for an [`Assurance`], makes established
//! flows and evicts those first that were idle for longest. So does a sender that forges the
//! packets of both sides: three of TCP for each flow, six of other protocols. A share bounds the
//! flows of a tenant. Where interfaces are known, drop packets first whose sources do not belong to
//! their interface. The costliest packet creates a flow: a removal, an insertion, and some links;
//! the first one with a [`Tenant`] also allocates 4 bytes for each place that has been used.
//! Sequence numbers are not checked.
//!
//! # Cost
//!
//! A hit of an established flow reads and writes two cache lines that depend on each other: the
//! index line and the flow, with an IPv4 key and a value of 32 bytes. All else, such as the wheel,
//! the policy and the rest of the record, is for the creation, the reports and the end of a flow.
//! Such a packet takes about 120 instructions if its flow is the first candidate in its index line,
//! and is decided by one test of the flow's state. Packets of handshakes, and of flows that are not
//! the first candidate, take about twice as many. A key whose index line was full is in another
//! line, until a packet finds that there is a free slot. The free slot of the next new flow is
//! prefetched, and in a full cache the lines of the next victims.
//!
//! A flow needs 7 to 13 bytes in the index, 18 of state, its key and value, 32 bytes more that
//! packets do not need, 11 bytes in the wheel, and half a byte in the policy: 115 to 120 bytes for
//! five-tuples of IPv4 with values of 32 bytes, at any fill above a tenth of a million flows. An
//! alias needs the memory of an index entry, of a key, and 20 bytes. Growth copies nothing but the
//! index, which grows in steps of bounded work, and lists of chunks (8 bytes for 1024 flows or
//! more). Memory of removed flows is reused for new ones and released by
//! [`clear`](FlowCache::clear).
//!
//! The wheel examines an idle flow once for a timeout below 64 [ticks](Config::with_tick), twice
//! below 4096, three times below 262,144; and an active flow about once per timeout.
//!
//! # Papers
//!
//! Olsson and Nilsson, *TRASH* (2006), section 4: a flow cache with passive and active garbage
//! collection. From there: eviction of the least valuable of four, a hundred at once
//! ([`Passive`](crate::eviction::Passive) spreads the work over insertions), and removal of closed
//! connections ([`CloseRule::FirstAck`]). The rest is as in flow meters and connection tracking.

// In this order for the documentation of the type.
mod cache;
mod packet;
mod time;

mod config;
pub mod cores;
mod expectations;
mod report;
#[cfg(feature = "serde")]
mod serial;
mod store;

use core::fmt;

use crate::eviction::ByClass;
use crate::hash::DefaultHashBuilder;
use crate::memory::{Allocator, Global};
use store::accounting::Accounting;
use store::index::Index;
use store::slots::Store;
use time::clock::Clock;

pub use config::{Config, ConfigError, Emergency};
pub use cores::Steering;
pub use expectations::{ExpectError, Expectations, Expected, Related, Source};
pub use packet::properties::{Initiator, Packet, Protocol, Tenant};
pub use packet::result::Observed;
pub use packet::state;
pub use packet::state::{Assurance, Class, CloseRule, EndReason, FinWatch, Renewal};
pub use report::events::{
    AdmissionError, AliasError, Event, FlowMatch, ObserveError, Progress, RefusedFlow, RemovedFlow,
    Report,
};
pub use report::image::{Image, ImageError, RefusedImage};
pub use report::metrics::Metrics;
pub use report::scan::{Cursor, Resident};
pub use store::{Handle, Version};
pub use time::expiry::SetTimeoutError;
pub use time::timeouts::{TimeoutError, Timeouts};

/// A bounded table of flows with keys `K`, values `V`, an eviction policy `P` and a hasher `S`.
///
/// The [module](self) has the states of a flow, the rules of eviction, and the memory of a flow.
///
/// | method | cost |
/// |---|---|
/// | `observe`, `observe_with`, `try_observe_with` of a flow | two cache lines, one after the other |
/// | of a new flow | an index line and a record; in a full cache also the line and record of the evicted flow |
/// | `observe_at`, `get`, `get_mut`, `resident`, `remove`, `set_pinned`, `set_timeout` | O(1): the record, without a search |
/// | `observe_batch`, `try_observe_batch` | as many packets, the cache misses of 32 overlapped |
/// | `find`, `find_quoted` | O(1) |
/// | `add_alias`, `remove_key` | O(aliases of the flow) |
/// | `advance`, `page`, `retain_step` | O(budget) |
/// | `iter`, `retain`, `extract_if`, `drain`, `clear`, `clone`, `==`, `restore` | O(slots), O(flows of the image) |
/// | `set_share` | O(1); the first share of a tenant O(slots) |
/// | `len`, `metrics`, `allocation_size`, `version`, `tenant_flows` | O(1) |
///
/// With a [`Prehashed`](crate::Prehashed) key they cost the same without hashing.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, Event, Packet, Timeouts};
/// use flowtable::{FlowCache, FlowKey, Timestamp};
///
/// #[derive(Default)]
/// struct Counts {
///     packets: u64,
/// }
///
/// let config = Config::new(1_000_000)?.with_timeouts(Timeouts::METER);
/// let mut cache: FlowCache<FlowKey, Counts> = FlowCache::new(config);
/// let key = FlowKey::new("10.0.0.1".parse()?, "10.0.0.2".parse()?, 5353, 53, 17).unwrap();
/// for (key, seconds) in [(key, 10), (key.reversed(), 11)] {
///     let seen = cache.observe(&key, Packet::UDP, Timestamp::from_secs(seconds))?;
///     seen.flow.packets += 1;
/// }
/// let mut report = vec![];
/// cache.advance(Timestamp::from_secs(80), 100, |event| {
///     if let Event::Ended(flow) = event {
///         report.push((flow.key, flow.value.packets, flow.reason.code()));
///     }
/// });
/// assert_eq!(report, [(key, 2, 1)]);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[doc(alias("conntrack", "connection tracking", "flow table", "ipfix", "lru", "nat", "netflow"))]
#[doc(alias = "syn flood")]
#[derive(Clone)]
pub struct FlowCache<K, V, P = ByClass, S = DefaultHashBuilder, A = Global>
where
    A: Allocator + Clone,
{
    config: Config,
    /// The keys of flows and aliases.
    index: Index<S, A>,
    store: Store<K, V, A>,
    accounting: Accounting<P, A>,
    clock: Clock,
    /// One more than the number of changes: a flow that never changed has changed since version 0.
    version: u64,
    is_emergency: bool,
}

impl<K, V, P, S, A: Allocator + Clone> fmt::Debug for FlowCache<K, V, P, S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowCache")
            .field("config", &self.config)
            .field("len", &self.store.len())
            .finish_non_exhaustive()
    }
}
