//! `FlowCache` against its reference model, a vector of flows, compared after each step; and
//! batches against single packets.

use core::fmt::Debug;
use core::hash::BuildHasher;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use model::cases;

use flowtable::eviction::{ByClass, Eviction, Lru, Passive, PassiveGc, Random, SecondChance};
use flowtable::flow_cache::{
    Class, CloseRule, Handle, Initiator, Protocol, Renewal, Tenant, Timeouts,
};
use flowtable::memory::Allocator;
use flowtable::{DefaultHashBuilder, FiveTuple, FlowKey, FourTuple, TcpFlags, Timestamp};
use model::flow_cache::flows::{FlowsModel, PacketInfo, Setting, Victims, timestamp};
use model::flow_cache::keys::NumberedKey;
use model::flow_cache::{CheckedFlowCache, both_directions};
use model::hashers::Weak;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

pub(super) const KEYS: u32 = 20;
const TICK: Duration = Duration::from_millis(10);

/// A packet of the flow with this number, in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    number: u32,
    reverse: bool,
    pub(super) seen: PacketInfo,
}

impl Sent {
    pub(super) fn key<K: NumberedKey>(self) -> K {
        let key = K::make(self.number);
        if self.reverse { key.reversed() } else { key }
    }
}

/// One operation of a test.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Observe(Sent),
    Batch(Vec<Sent>),
    /// A TCP connection, from the first packet to this one.
    Connect(u32, bool, usize),
    Advance(usize),
    AdvanceToNext,
    /// On a flow that is present, or has removed.
    Flow(usize, FlowOp),
    SetShare(u32, Option<usize>),
    /// Ends a class, in steps.
    Retain(Class, usize),
    SetClock(Duration),
    Drain(usize),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum FlowOp {
    Add(u64),
    AddAlias(Sent),
    RemoveKey(Sent),
    Remove,
    Pin(bool),
    SetClass(Class),
    SetTimeout(Option<Duration>),
}

/// The time that passes between two operations.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    By(Duration),
    Back(Duration),
}

/// Directions and flags of a connection that both sides close.
const CONNECTION: [(bool, u8); 8] = [
    (false, 0x02),
    (true, 0x12),
    (false, 0x10),
    (false, 0x18),
    (true, 0x18),
    (false, 0x11),
    (true, 0x11),
    (false, 0x10),
];

fn seen() -> impl Strategy<Value = PacketInfo> {
    let flags = prop_oneof![
        4 => select(vec![0x02, 0x12, 0x10, 0x18, 0x11, 0x04, 0x14]),
        1 => any::<u8>(),
    ];
    let protocol = prop_oneof![
        8 => Just(Protocol::Tcp),
        2 => Just(Protocol::Udp),
        1 => Just(Protocol::Icmp),
        1 => select(&Protocol::ALL[3..]),
    ];
    let tenant = prop_oneof![2 => Just(0), 1 => 1..4_u32];
    let initiator = prop_oneof![
        6 => Just(Initiator::ByFlags),
        1 => select(&[Initiator::Sender, Initiator::Receiver]),
    ];
    let sequence = prop_oneof![2 => Just(None), 1 => (0..3_u32).prop_map(Some)];
    (protocol, flags, tenant, initiator, sequence).prop_map(
        |(protocol, flags, tenant, initiator, sequence)| {
            let (flags, tenant) = (TcpFlags(flags), Tenant(tenant));
            PacketInfo { protocol, flags, tenant, initiator, sequence }
        },
    )
}

fn sent() -> impl Strategy<Value = Sent> {
    (0..KEYS, any::<bool>(), seen()).prop_map(|(number, reverse, seen)| Sent {
        number,
        reverse,
        seen,
    })
}

/// Random packets, packets that occur twice, or packets of both directions of consecutive flows.
fn batch() -> impl Strategy<Value = Vec<Sent>> {
    let both_directions = |(first, count): (u32, u32)| {
        let seen = model::flow_cache::keys::udp();
        let numbers = (first..first + count).map(|number| number % KEYS);
        let sent = numbers
            .flat_map(move |number| [false, true].map(|reverse| Sent { number, reverse, seen }));
        sent.collect()
    };
    prop_oneof![
        2 => vec(sent(), 0..40),
        1 => vec(sent(), 0..40).prop_map(|sent| [&sent[..], &sent].concat()),
        1 => (0..KEYS, 0..KEYS).prop_map(both_directions),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let by = |nanos: u64| Step::By(Duration::from_nanos(nanos));
    prop_oneof![
        6 => Just(by(0)),
        6 => (1..1000_u64).prop_map(by),
        6 => (0..30_000_000_u64).prop_map(by),
        6 => (0..5_000_000_000_u64).prop_map(by),
        2 => (0..90_000_000_000_u64).prop_map(by),
        1 => (1..10_u64).prop_map(move |years| by(years * 31_536_000_000_000_000)),
        2 => (0..5_000_000_000_u64).prop_map(|nanos| Step::Back(Duration::from_nanos(nanos))),
    ]
}

fn flow_op() -> impl Strategy<Value = FlowOp> {
    prop_oneof![
        2 => (0..1000_u64).prop_map(FlowOp::Add),
        3 => sent().prop_map(FlowOp::AddAlias),
        2 => sent().prop_map(FlowOp::RemoveKey),
        2 => Just(FlowOp::Remove),
        3 => any::<bool>().prop_map(FlowOp::Pin),
        2 => select(&Class::ALL).prop_map(FlowOp::SetClass),
        2 => proptest::option::of((1..4000_u64).prop_map(Duration::from_millis))
            .prop_map(FlowOp::SetTimeout),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        16 => sent().prop_map(Op::Observe),
        3 => batch().prop_map(Op::Batch),
        6 => (0..KEYS, any::<bool>(), 1..=CONNECTION.len())
            .prop_map(|(number, reverse, count)| Op::Connect(number, reverse, count)),
        8 => prop_oneof![0..4_usize, Just(1000)].prop_map(Op::Advance),
        2 => Just(Op::AdvanceToNext),
        14 => (0..40_usize, flow_op()).prop_map(|(nth, op)| Op::Flow(nth, op)),
        1 => (select(&Class::ALL), 1..8_usize).prop_map(|(class, step)| Op::Retain(class, step)),
        1 => (0..4_u32, proptest::option::of(0..4_usize))
            .prop_map(|(tenant, share)| Op::SetShare(tenant, share)),
        1 => (0..1_000_000_000_u64)
            .prop_map(|micros| Op::SetClock(Duration::from_micros(micros))),
        1 => (0..5_usize).prop_map(Op::Drain),
    ]
}

fn timeouts() -> impl Strategy<Value = Timeouts> {
    let few = |idle: [u64; 4], active: Option<u64>| {
        let mut timeouts = Timeouts::OFF;
        for (class, idle) in Class::ALL.into_iter().zip(idle) {
            for (factor, protocol) in (1..).zip(Protocol::ALL) {
                let idle = (idle > 0).then(|| Duration::from_millis(idle * factor));
                timeouts = timeouts.with_idle(protocol, class, idle).expect("it is short");
            }
        }
        timeouts.with_active(active.map(Duration::from_millis)).expect("it is short")
    };
    let own = (
        proptest::array::uniform4(prop_oneof![1 => Just(0), 5 => 1..4000_u64]),
        proptest::option::of(1..5000_u64),
    );
    prop_oneof![
        6 => own.prop_map(move |(idle, active)| few(idle, active)),
        1 => Just(Timeouts::CONNTRACK),
        1 => Just(Timeouts::METER),
        1 => Just(Timeouts::OFF),
    ]
}

pub(super) fn setting() -> impl Strategy<Value = Setting> {
    let tick = prop_oneof![
        3 => Just(TICK),
        1 => Just(Duration::from_nanos(1)),
        1 => Just(Duration::from_secs(1)),
        1 => Just(Duration::from_secs(3600)),
    ];
    let rule = select(vec![CloseRule::BothSides, CloseRule::FirstAck]);
    let emergency = proptest::option::of((0..100_usize, 0..100_usize, 1..2000_u64));
    let flows = prop_oneof![1..10_usize, 10..KEYS as usize];
    let renewal = prop_oneof![4 => Just(Renewal::BothSides), 1 => Just(Renewal::Initiator)];
    (flows, timeouts(), tick, rule, renewal, emergency).prop_map(
        |(flows, timeouts, tick, rule, renewal, emergency)| {
            let emergency = emergency.map(|(enter, leave, idle)| {
                let enter = 1 + enter % flows;
                (enter, 1 + leave % enter, Duration::from_millis(idle))
            });
            let victims = Victims::Any;
            Setting { flows, timeouts, tick, rule, renewal, emergency, victims }
        },
    )
}

pub(super) fn ops() -> impl Strategy<Value = Vec<(Step, Op)>> {
    vec((step(), op()), STEPS / 2..STEPS)
}

/// A flow that is there, or one of those that have ended last.
pub(super) fn handle<K>(model: &FlowsModel<K>, nth: usize) -> Option<Handle> {
    let alive = model.flows.iter().map(|flow| flow.handle);
    let handles: Vec<Handle> = alive.chain(model.dead.iter().rev().take(4).copied()).collect();
    (!handles.is_empty()).then(|| handles[nth % handles.len()])
}

/// The time of an operation.
pub(super) fn time<K>(model: &FlowsModel<K>, step: Step) -> Timestamp {
    let now = timestamp(model.now);
    match step {
        Step::By(time) => now + time,
        Step::Back(time) => {
            let back = now.as_nanos().saturating_sub(time.as_nanos() as u64);
            Timestamp::from_nanos(back)
        }
    }
}

/// A cache that observes batches, and one that observes their packets one by one; each with a
/// reference model.
struct Run<K, P, S> {
    batch: CheckedFlowCache<K, P, S>,
    single: CheckedFlowCache<K, P, S>,
    keys: Vec<K>,
}

impl<K: NumberedKey, P: Eviction + Clone, S: BuildHasher + Clone> Run<K, P, S> {
    fn new(setting: Setting, policy: P, hasher: S) -> Self {
        Self {
            batch: CheckedFlowCache::new(setting, policy.clone(), hasher.clone()),
            single: CheckedFlowCache::new(setting, policy, hasher),
            keys: both_directions((0..KEYS).map(K::make)),
        }
    }

    /// Performs an operation on both caches, and compares them with their reference models and with
    /// each other: the results, and the removed flows in their order.
    fn step(&mut self, op: &Op, now: Timestamp) {
        let model = &self.single.model;
        let handle = if let Op::Flow(nth, _) = op { handle(model, *nth) } else { None };
        for cache in [&mut self.batch, &mut self.single] {
            match op {
                Op::Batch(_) => {}
                Op::Flow(_, op) => handle.iter().for_each(|handle| change(cache, *handle, *op)),
                op => perform(cache, op, now),
            }
        }
        if let Op::Batch(sent) = op {
            // Most times are equal; some packets are late.
            let time = |at: u64| match at % 7 {
                6 => Timestamp::from_nanos(now.as_nanos().saturating_sub(at * 1_000_000)),
                _ => now + Duration::from_millis(at / 8 * 25),
            };
            let sent: Vec<(K, PacketInfo, Timestamp)> =
                (0..).zip(sent).map(|(at, sent)| (sent.key(), sent.seen, time(at))).collect();
            self.batch.observe_batch(&sent);
            sent.iter().for_each(|(key, seen, time)| self.single.observe(key, *seen, *time));
        }
        self.batch.compare(&self.keys);
        self.single.compare(&self.keys);
        assert_eq!(self.batch.model, self.single.model, "a batch differs from its packets");
        let [batch, single] = [&self.batch, &self.single].map(|cache| cache.ours.metrics());
        assert_eq!((batch.hits, batch.misses), (single.hits, single.misses));
        assert_eq!(self.batch.ours.version(), self.single.ours.version());
    }
}

pub(super) fn perform<K: NumberedKey, P: Eviction, S: BuildHasher, A: Allocator + Clone>(
    cache: &mut CheckedFlowCache<K, P, S, A>,
    op: &Op,
    now: Timestamp,
) {
    match *op {
        Op::Observe(sent) => cache.observe(&sent.key(), sent.seen, now),
        Op::Connect(number, swapped, count) => {
            for &(reverse, flags) in &CONNECTION[..count] {
                let seen = model::flow_cache::keys::tcp(TcpFlags(flags));
                let sent = Sent { number, reverse: reverse != swapped, seen };
                cache.observe(&sent.key(), seen, now);
            }
        }
        Op::Advance(budget) => _ = cache.advance(now, budget),
        Op::AdvanceToNext => {
            if let Some(next) = cache.advance(now, 1000).next {
                cache.advance(next, 1000);
            }
        }
        Op::SetShare(tenant, share) => cache.set_share(Tenant(tenant), share),
        Op::Retain(class, step) => cache.retain(class, step),
        Op::SetClock(time) => cache.set_clock(Timestamp::from(time)),
        Op::Drain(count) => cache.drain(count),
        Op::Batch(_) | Op::Flow(..) => unreachable!("handled by `step`"),
    }
}

pub(super) fn change<K: NumberedKey, P: Eviction, S: BuildHasher, A: Allocator + Clone>(
    cache: &mut CheckedFlowCache<K, P, S, A>,
    handle: Handle,
    op: FlowOp,
) {
    match op {
        FlowOp::Add(more) => cache.add(handle, more),
        FlowOp::AddAlias(sent) => cache.add_alias(handle, &sent.key()),
        FlowOp::RemoveKey(sent) => cache.remove_key(handle, &sent.key()),
        FlowOp::Remove => cache.remove(handle),
        FlowOp::Pin(pinned) => cache.set_pinned(handle, pinned),
        FlowOp::SetClass(class) => cache.set_class(handle, class),
        FlowOp::SetTimeout(timeout) => cache.set_timeout(handle, timeout),
    }
}

/// Runs the operations and compares the caches after each.
fn run<K: NumberedKey, P: Eviction + Clone, S: BuildHasher + Clone>(
    setting: Setting,
    policy: P,
    hasher: S,
    ops: Vec<(Step, Op)>,
) {
    let mut run: Run<K, P, S> = Run::new(setting, policy, hasher);
    for (step, op) in ops {
        let now = time(&run.single.model, step);
        run.step(&op, now);
    }
    // All timeouts expire.
    let end = time(&run.single.model, Step::By(Duration::from_secs(60 * 60 * 24 * 365)));
    run.step(&Op::Advance(10_000), end);
    assert!(run.single.advance(end, 10_000).is_done);
}

pub(super) fn proptest_config() -> ProptestConfig {
    ProptestConfig::with_cases(cases(300, 1))
}

/// Steps per case.
const STEPS: usize = 160;

proptest! {
    #![proptest_config(proptest_config())]

    #[test]
    fn five_tuples_match_the_model(setting in setting(), ops in ops()) {
        let setting = Setting { victims: Victims::Lowest, ..setting };
        let hasher = DefaultHashBuilder::with_seed(1);
        run::<FiveTuple<Ipv4Addr>, _, _>(setting, ByClass::new(), hasher, ops);
    }

    #[test]
    fn four_tuples_match_the_model(
        setting in setting(), ops in ops(), hasher in select(&Weak::ALL),
    ) {
        let setting = Setting { victims: Victims::Lowest, ..setting };
        run::<FourTuple<Ipv6Addr>, _, _>(setting, ByClass::new(), hasher, ops);
    }

    #[test]
    fn keys_with_zones_match_the_model(setting in setting(), ops in ops()) {
        run::<(u16, FlowKey), _, _>(setting, SecondChance::new(), Weak::Mixed, ops);
    }

    #[test]
    fn keys_of_one_direction_match_the_model(setting in setting(), ops in ops()) {
        run::<u64, _, _>(setting, Lru::new(), Weak::Three, ops);
    }

    #[test]
    fn random_victims_match_the_model(setting in setting(), ops in ops(), seed in any::<u64>()) {
        run::<[u8; 20], _, _>(setting, Random::with_seed(seed), Weak::Mixed, ops);
    }

    #[test]
    fn early_victims_match_the_model(
        setting in setting(), ops in ops(), gc in (1..10_usize, 1..10_usize),
    ) {
        let setting = Setting { victims: Victims::AnyEarly, ..setting };
        let gc = PassiveGc::new(gc.0, gc.1).expect("both are above 0");
        run::<FlowKey, _, _>(setting, Passive::new(gc), Weak::Mixed, ops);
    }
}
