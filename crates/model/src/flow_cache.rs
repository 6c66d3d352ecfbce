//! `FlowCache` compared with its reference model after every operation.

pub mod flows;
pub mod keys;
mod packet;

use core::convert::Infallible;
use core::fmt::Debug;
use core::hash::BuildHasher;
use core::time::Duration;

use flowtable::eviction::Eviction;
use flowtable::flow_cache::{
    AdmissionError, AliasError, Class, Config, Cursor, Emergency, EndReason, Event, Handle,
    ObserveError, Observed, Progress, RefusedFlow, Resident, SetTimeoutError, Tenant,
};
use flowtable::key::flow::FlowName;
use flowtable::memory::{Allocator, Global};
use flowtable::{Direction, FlowCache, Timestamp};

use self::flows::{FlowsModel, Observation, PacketInfo, Setting, timestamp};

pub struct CheckedFlowCache<K, P, S, A: Allocator + Clone = Global> {
    pub ours: FlowCache<K, u64, P, S, A>,
    pub model: FlowsModel<K>,
}

/// The result of a packet, which is counted in the value of its flow.
pub fn observation<K, A: Allocator + Clone>(
    observed: Result<Observed<'_, K, u64, A>, RefusedFlow<u64>>,
) -> Result<Observation<K>, AdmissionError> {
    let mut observed = observed.map_err(|error| error.reason)?;
    *observed.flow += 1;
    Ok(Observation {
        handle: observed.handle(),
        direction: observed.direction,
        alias: observed.alias,
        class: observed.class,
        fresh: observed.fresh,
        value: *observed.flow,
        removed: observed.take_removed(),
    })
}

pub fn config(setting: &Setting) -> Config {
    let config = Config::new(setting.flows).expect("the capacity is positive");
    let config = config
        .with_timeouts(setting.timeouts)
        .with_close_rule(setting.rule)
        .with_renewal(setting.renewal);
    let config = config.with_tick(setting.tick).expect("a tick between 0 and an hour");
    match setting.emergency {
        None => config,
        Some((enter, leave, idle)) => {
            let emergency = Emergency::new(enter, leave, idle).expect("it leaves below its entry");
            config.with_emergency(emergency).expect("it enters below the capacity")
        }
    }
}

impl<K: FlowName + Debug, P: Eviction, S: BuildHasher> CheckedFlowCache<K, P, S> {
    pub fn new(setting: Setting, policy: P, hasher: S) -> Self {
        let ours = FlowCache::with_policy_and_hasher(config(&setting), policy, hasher);
        Self { ours, model: FlowsModel::new(setting) }
    }
}

impl<K, P, S, A> CheckedFlowCache<K, P, S, A>
where
    K: FlowName + Debug,
    P: Eviction,
    S: BuildHasher,
    A: Allocator + Clone,
{
    /// A cache whose requests of memory may fail.
    pub fn lacking_memory(setting: Setting, policy: P, hasher: S, memory: A) -> Self {
        let ours = FlowCache::with_policy_and_hasher_in(config(&setting), policy, hasher, memory);
        let mut model = FlowsModel::new(setting);
        model.lacks_memory = true;
        Self { ours, model }
    }

    pub fn observe(&mut self, key: &K, seen: PacketInfo, now: Timestamp) {
        // All methods, in turns.
        self.model.tick_clock(now);
        let observed = match self.model.counts.observed % 3 {
            0 => self.ours.observe(key, seen.packet(), now),
            1 => self.ours.observe_with(key, seen.packet(), now, || 0),
            _ => {
                let seen =
                    self.ours.try_observe_with(key, seen.packet(), now, || Ok::<_, Infallible>(0));
                seen.map_err(|error| match error {
                    ObserveError::Refused(refused) => refused,
                    ObserveError::New(never) => match never {},
                })
            }
        };
        self.model.observe(key, seen, now, observation(observed));
    }

    /// A burst of packets, each with its time.
    pub fn observe_batch(&mut self, batch: &[(K, PacketInfo, Timestamp)]) {
        let packets = batch.iter().map(|(key, seen, time)| (key, seen.packet(), *time));
        let mut next = 0;
        self.ours.observe_batch(packets, |at, observed| {
            assert_eq!(at, next, "each once, in order");
            next += 1;
            let (key, seen, time) = &batch[at];
            self.model.tick_clock(*time);
            self.model.observe(key, *seen, *time, observation(observed));
        });
        assert_eq!(next, batch.len());
    }

    pub fn advance(&mut self, now: Timestamp, budget: usize) -> Progress {
        self.model.tick_clock(now);
        let (mut ended, mut reported) = (0, 0);
        let progress = self.ours.advance(now, budget, |event| match event {
            Event::Ended(removed) => {
                ended += 1;
                self.model.expired(&removed);
            }
            Event::Active(report) => {
                reported += 1;
                self.model.reported(&report);
                *report.value = 0;
            }
        });
        assert_eq!((progress.ended, progress.reported), (ended, reported));
        assert!(progress.examined <= budget, "{progress:?} of {budget}");
        assert!(ended <= progress.examined && reported <= progress.examined, "{progress:?}");
        if progress.is_done {
            self.model.assert_done();
            self.assert_next(&progress);
        }
        progress
    }

    /// A caller that returns at `next` misses nothing, and has no reason to return earlier.
    fn assert_next(&self, progress: &Progress) {
        let tick = self.model.setting.tick;
        let last = self.model.next_due().map(|due| timestamp(due) + tick);
        match (progress.next, last) {
            (Some(next), Some(last)) => assert!(next <= last, "{progress:?} but due by {last:?}"),
            (None, Some(due)) => panic!("no next event, but one is due by {due:?}"),
            (_, None) => {}
        }
        let next = progress.next.unwrap_or(Timestamp::MAX);
        assert!(next > timestamp(self.model.now), "{progress:?} at {:?}", self.model.now);
    }

    pub fn remove(&mut self, handle: Handle) {
        let removed = self.ours.remove(handle);
        assert_eq!(removed.is_some(), self.model.at(handle).is_some());
        if let Some(removed) = removed {
            assert_eq!(removed.reason, EndReason::Forced);
            self.model.remove(&removed);
        }
    }

    /// Drains `count` flows; the others remain.
    pub fn drain(&mut self, count: usize) {
        let there = self.model.flows.len();
        for removed in self.ours.drain().take(count) {
            assert_eq!(removed.reason, EndReason::Forced);
            self.model.remove(&removed);
        }
        assert_eq!(self.model.flows.len(), there.saturating_sub(count));
    }

    pub fn add_alias(&mut self, handle: Handle, key: &K) {
        // The key as packets of either direction carry it.
        let result = match handle.id() % 2 {
            0 => self.ours.add_alias(handle, Direction::Forward, key),
            _ => self.ours.add_alias(handle, Direction::Reverse, &key.reversed()),
        };
        let Some(at) = self.model.live(handle) else {
            return assert_eq!(result, Err(AliasError::NoFlow));
        };
        if let Some((other, ..)) = self.model.find(key) {
            let other = self.model.flows[other].handle;
            return assert_eq!(result, Err(AliasError::Taken(other)));
        }
        let lacks_memory = self.model.lacks_memory;
        let names = &mut self.model.flows[at].names;
        if names.len() > 255 {
            return assert_eq!(result, Err(AliasError::TooMany));
        }
        if lacks_memory && result == Err(AliasError::Memory) {
            return;
        }
        let number = result.expect("an unused name");
        assert!(number > 0 && names.iter().all(|(other, _)| *other != number), "{number}");
        names.push((number, key.clone()));
    }

    pub fn remove_key(&mut self, handle: Handle, key: &K) {
        let result = self.ours.remove_key(handle, key);
        let Some(at) = self.model.live(handle) else {
            return assert_eq!(result, Err(AliasError::NoFlow));
        };
        let found = self.model.find(key).filter(|(other, ..)| *other == at);
        match found.map(|(.., number)| number) {
            None => assert_eq!(result, Err(AliasError::NoSuchKey)),
            Some(0) => self.promoted(at, result),
            Some(number) => {
                assert_eq!(result, Ok(()));
                self.model.flows[at].names.retain(|(other, _)| *other != number);
            }
        }
    }

    /// The oldest alias has replaced the primary key.
    fn promoted(&mut self, at: usize, result: Result<(), AliasError>) {
        if self.model.lacks_memory && result == Err(AliasError::Memory) {
            return;
        }
        let names = &mut self.model.flows[at].names;
        if names.len() == 1 {
            return assert_eq!(result, Err(AliasError::PrimaryKey));
        }
        assert_eq!(result, Ok(()));
        names.remove(0);
        names[0].0 = 0;
    }

    pub fn set_pinned(&mut self, handle: Handle, pinned: bool) {
        let found = self.ours.set_pinned(handle, pinned);
        assert_eq!(found, self.model.live(handle).is_some());
        if found {
            self.model.set_pinned(handle, pinned);
        }
    }

    pub fn set_class(&mut self, handle: Handle, class: Class) {
        let found = self.ours.set_class(handle, class);
        assert_eq!(found, self.model.live(handle).is_some());
        if found {
            self.model.set_class(handle, class);
        }
    }

    pub fn set_timeout(&mut self, handle: Handle, timeout: Option<Duration>) {
        let result = self.ours.set_timeout(handle, timeout);
        if self.model.live(handle).is_some() {
            if self.model.lacks_memory && result == Err(SetTimeoutError::Memory) {
                return;
            }
            assert_eq!(result, Ok(()));
            self.model.set_timeout(handle, timeout);
        } else {
            assert_eq!(result, Err(SetTimeoutError::NoFlow));
        }
    }

    /// Ends the flows of a class, in steps of some slots.
    pub fn retain(&mut self, class: Class, step: usize) {
        let mut cursor = Cursor::new();
        let mut removed = vec![];
        while !cursor.is_done() {
            let keep = |flow: &Resident<'_, K, u64, A>| flow.class() != class;
            self.ours.retain_step(&mut cursor, step, keep, |flow| removed.push(flow));
        }
        assert!(removed.iter().all(|flow| flow.reason == EndReason::Forced));
        removed.iter().for_each(|flow| self.model.remove(flow));
        assert_eq!(self.model.flows_of(class), 0);
    }

    pub fn set_share(&mut self, tenant: Tenant, share: Option<usize>) {
        if self.model.lacks_memory {
            if self.ours.try_set_share(tenant, share).is_err() {
                return assert_eq!(self.ours.tenant_flows(tenant), None);
            }
        } else {
            self.ours.set_share(tenant, share);
        }
        self.model.shares.retain(|(other, _)| *other != tenant);
        self.model.shares.extend(share.map(|share| (tenant, share)));
    }

    pub fn set_clock(&mut self, now: Timestamp) {
        self.ours.set_clock(now);
        self.model.set_clock(now);
    }

    pub fn add(&mut self, handle: Handle, more: u64) {
        let value = self.ours.get_mut(handle);
        assert_eq!(value.is_some(), self.model.live(handle).is_some());
        if let Some(value) = value {
            *value += more;
            self.model.flow(handle).value += more;
        }
    }

    /// Compares everything that both can report, and looks `keys` up.
    pub fn compare(&self, keys: &[K]) {
        let Self { ours, model } = self;
        ours.validate().unwrap_or_else(|broken| panic!("{broken}"));
        assert_eq!((ours.len(), ours.now()), (model.flows.len(), timestamp(model.now)));
        assert_eq!(
            (ours.is_empty(), ours.capacity()),
            (model.flows.is_empty(), model.setting.flows)
        );
        model.flows.iter().for_each(|flow| self.compare_flow(flow.handle));
        for &handle in model.dead.iter().rev().take(64) {
            assert!(ours.get(handle).is_none() && ours.resident(handle).is_none(), "{handle:?}");
        }
        for key in keys {
            let found = ours.find(key).map(|found| (found.handle, found.direction, found.alias));
            let theirs = model.find(key).filter(|(at, ..)| !model.has_expired(&model.flows[*at]));
            let theirs =
                theirs.map(|(at, direction, name)| (model.flows[at].handle, direction, name));
            assert_eq!(found, theirs, "{key:?}");
        }
        self.compare_walk();
        self.compare_metrics();
    }

    fn compare_flow(&self, handle: Handle) {
        let at = self.model.at(handle).expect("it is alive");
        let flow = &self.model.flows[at];
        if self.model.has_expired(flow) {
            // It is still in the cache, and is not found.
            let is_found = self.ours.get(handle).is_some() || self.ours.resident(handle).is_some();
            return assert!(!is_found, "{flow:?}");
        }
        let resident = self.ours.resident(handle).unwrap_or_else(|| panic!("{flow:?} is lost"));
        assert_eq!(self.ours.get(handle), Some(&flow.value));
        assert!(resident.key() == flow.names[0].1, "{flow:?}: {:?}", resident.key());
        assert_eq!(
            (resident.handle(), *resident.value(), resident.is_pinned()),
            (handle, flow.value, flow.pinned)
        );
        assert_eq!(
            (resident.class(), resident.protocol(), resident.tenant()),
            (flow.class, flow.protocol, flow.tenant)
        );
        assert_eq!(
            (resident.first_seen(), resident.last_seen()),
            (timestamp(flow.first_seen), timestamp(flow.last_seen)),
            "{flow:?}"
        );
        assert_eq!(resident.timeout(), flow.timeout);
        let mut names: Vec<K> = resident.keys().collect();
        assert!(names[0] == flow.names[0].1);
        for (_, name) in &flow.names {
            let at = names.iter().position(|other| other == name);
            names.swap_remove(at.unwrap_or_else(|| panic!("{name:?} is missing")));
        }
        assert!(names.is_empty(), "superfluous names: {names:?}");
    }

    /// Paging through the cache returns each flow once.
    fn compare_walk(&self) {
        let (mut cursor, mut met) = (Cursor::new(), vec![]);
        while !cursor.is_done() {
            met.extend(self.ours.page(&mut cursor, 3).map(|resident| resident.handle()));
        }
        let mut alive: Vec<Handle> = self.model.flows.iter().map(|flow| flow.handle).collect();
        met.sort_unstable();
        alive.sort_unstable();
        assert_eq!(met, alive);
        let mut all: Vec<Handle> = self.ours.iter().map(|resident| resident.handle()).collect();
        all.sort_unstable();
        assert_eq!((all, self.ours.iter().len()), (alive, met.len()));
    }

    fn compare_metrics(&self) {
        let (metrics, model, counts) = (self.ours.metrics(), &self.model, &self.model.counts);
        let pinned = model.flows.iter().filter(|flow| flow.pinned).count();
        let aliases = model.flows.iter().map(|flow| flow.names.len() - 1).sum();
        assert_eq!(
            (metrics.flows, metrics.capacity, metrics.pinned, metrics.aliases, metrics.emergency),
            (model.flows.len(), model.setting.flows, pinned, aliases, model.emergency)
        );
        assert_eq!(
            (metrics.hits + metrics.misses, metrics.created, metrics.refused),
            (counts.observed, counts.created, counts.refused)
        );
        assert_eq!((metrics.reported, metrics.emergencies), (counts.reported, counts.emergencies));
        assert_eq!(metrics.bytes, self.ours.allocation_size());
        for class in Class::ALL {
            assert_eq!(metrics.flows_of(class), model.flows_of(class), "{class:?}");
            for reason in EndReason::ALL {
                let removed = counts.removed[reason as usize][class as usize];
                assert_eq!(metrics.removed(reason, class), removed, "{reason:?}, {class:?}");
            }
        }
    }
}

/// These keys and their reverses.
pub fn both_directions<K: FlowName>(keys: impl IntoIterator<Item = K>) -> Vec<K> {
    keys.into_iter().flat_map(|key| [key.reversed(), key]).collect()
}
