//! `SnapshotRoutes` against a reference model, with pins that begin, repin and end in between.

use flowtable::concurrent::{PinnedSnapshot, Publication, SnapshotRoutes};
use flowtable::{Prefix, RouteTable};
use model::prefixes::last_address;
use model::prefixes::{flipped, prefix_of};
use model::routes::list::RouteList;
use model::threads::eventually;
use proptest::collection::vec;
use proptest::prelude::*;

use super::turn;

#[derive(Clone, Debug)]
enum Op {
    Insert(Prefix<u16>, u32),
    Remove(Prefix<u16>),
    Apply(Vec<(Prefix<u16>, Option<u32>)>),
    Retain(u32),
    Clear,
    Replace(Vec<(Prefix<u16>, u32)>),
    Publish,
    Pin,
    Repin(usize),
    Unpin(usize),
    Lookup(Prefix<u16>),
}

/// Prefixes from a small set, so that operations meet the same ones.
fn prefix() -> impl Strategy<Value = Prefix<u16>> {
    let address = prop_oneof![0..4_u16, (0..4_u16).prop_map(|at| at << 13), any::<u16>()];
    (address, 0..=16_u32).prop_map(|(address, len)| prefix_of(address, len))
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (prefix(), any::<u32>()).prop_map(|(at, value)| Op::Insert(at, value)),
        3 => prefix().prop_map(Op::Remove),
        2 => vec((prefix(), any::<Option<u32>>()), 0..9).prop_map(Op::Apply),
        1 => (2..5_u32).prop_map(Op::Retain),
        1 => Just(Op::Clear),
        1 => vec((prefix(), any::<u32>()), 0..9).prop_map(Op::Replace),
        1 => Just(Op::Publish),
        1 => Just(Op::Pin),
        1 => any::<usize>().prop_map(Op::Repin),
        2 => any::<usize>().prop_map(Op::Unpin),
        1 => prefix().prop_map(Op::Lookup),
    ]
}

type Model = RouteList<u16, u32>;
type Routes = SnapshotRoutes<u16, u32>;

/// The routes with their reference models: what readers see, what was written, and what each pin
/// sees.
struct Checked<'r> {
    routes: &'r Routes,
    visible: Model,
    written: Model,
    pending: usize,
    pins: Vec<(PinnedSnapshot<'r, u16, u32>, Model)>,
}

impl Checked<'_> {
    fn write(&mut self, updates: Vec<(Prefix<u16>, Option<u32>)>) {
        let outcome = self.retried(|routes| match updates[..] {
            [(at, Some(value))] => routes.insert(at, value).ok(),
            [(at, None)] => routes.remove(&at).ok(),
            _ => routes.apply(updates.iter().copied()).ok(),
        });
        let Some(publication) = outcome else { return };
        self.pending += updates.len();
        for (at, value) in updates {
            match value {
                Some(value) => drop(self.written.insert(at, value)),
                None => drop(self.written.remove(&at)),
            }
        }
        self.on_publication(publication);
    }

    fn retain(&mut self, divisor: u32) {
        let retained = |routes: &Routes| routes.retain(|_, value| value % divisor != 0).ok();
        let Some(publication) = self.retried(retained) else { return };
        let rejected = self.visible.iter();
        let rejected = rejected.into_iter().filter(|(_, value)| **value % divisor == 0);
        for (at, _) in rejected {
            self.written.remove(&at);
            self.pending += 1;
        }
        self.on_publication(publication);
    }

    /// Replaces all routes by `replace`, which returns whether it did.
    fn replace(&mut self, new: Vec<(Prefix<u16>, u32)>, replace: impl Fn(&Routes) -> bool) {
        if self.retried(|routes| replace(routes).then_some(())).is_none() {
            return;
        }
        self.written.clear();
        new.into_iter().for_each(|(at, value)| _ = self.written.insert(at, value));
        self.on_publication(Publication::Visible);
    }

    fn on_publication(&mut self, publication: Publication) {
        match publication {
            Publication::Visible => {
                (self.visible, self.pending) = (self.written.clone(), 0);
            }
            Publication::Pending if self.pins.is_empty() => {
                let is_visible = |routes: &Routes| routes.publish() == Publication::Visible;
                self.retried(|routes| is_visible(routes).then_some(()));
                self.on_publication(Publication::Visible);
            }
            Publication::Pending => {}
        }
    }

    /// Returns the result of `operation`, which is `None` if pins of this test delay it.
    ///
    /// Without such pins it succeeds at last: the thread of an earlier test that ends is a reader
    /// for a short time.
    fn retried<T>(&self, operation: impl Fn(&Routes) -> Option<T>) -> Option<T> {
        let mut result = operation(self.routes);
        if self.pins.is_empty() {
            eventually("an operation succeeds if no reader is pinned", || {
                if result.is_none() {
                    result = operation(self.routes);
                }
                result.is_some()
            });
        }
        result
    }

    fn step(&mut self, op: Op) {
        let count = self.pins.len().max(1);
        match op {
            Op::Insert(at, value) => self.write(vec![(at, Some(value))]),
            Op::Remove(at) => self.write(vec![(at, None)]),
            Op::Apply(updates) => self.write(updates),
            Op::Retain(divisor) => self.retain(divisor),
            Op::Clear => self.replace(vec![], |routes| routes.clear().is_ok()),
            Op::Replace(new) => {
                let table: RouteTable<_, _> = new.iter().copied().collect();
                self.replace(new, |routes| routes.replace(table.clone()).is_ok());
            }
            Op::Publish => {
                let publication = self.routes.publish();
                self.on_publication(publication);
            }
            Op::Pin => self.pins.push((self.routes.pin(), self.visible.clone())),
            Op::Repin(at) => {
                if let Some((pin, model)) = self.pins.get_mut(at % count) {
                    pin.repin();
                    *model = self.visible.clone();
                }
            }
            Op::Unpin(at) => {
                if at % count < self.pins.len() {
                    self.pins.swap_remove(at % count);
                }
            }
            Op::Lookup(at) => {
                self.pins.iter().for_each(|(pin, model)| compare(pin, model, &at));
                compare(&self.routes.pin(), &self.visible, &at);
            }
        }
        assert_eq!(self.routes.pending(), self.pending);
    }
}

fn compare(table: &RouteTable<u16, u32>, model: &Model, at: &Prefix<u16>) {
    let addresses = [at.address(), last_address(at), flipped(&at.address(), 0)];
    let mut found = [None; 3];
    table.lookup_batch(&addresses, &mut found);
    assert_eq!(found, addresses.each_ref().map(|address| model.lookup(address)));
    assert_eq!(table.lookup(&addresses[0]), model.lookup(&addresses[0]));
    assert_eq!(table.get(at), model.get(at));
    assert!(table.matches(&addresses[1]).eq(model.matches(&addresses[1])));
    assert!(table.covered(at).eq(model.covered(at)));
    assert!(table.iter().eq(model.iter()));
    if !cfg!(miri) {
        table.validate().unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 400 }))]

    #[test]
    fn answers_are_those_of_the_model(ops in vec(op(), 0..if cfg!(miri) { 20 } else { 120 })) {
        let _turn = turn();
        let routes = SnapshotRoutes::new().with_limit(400, 0);
        let mut checked = Checked {
            routes: &routes,
            visible: Model::new(),
            written: Model::new(),
            pending: 0,
            pins: Vec::new(),
        };
        for op in ops {
            checked.step(op);
        }
        checked.pins.clear();
        let publication = routes.publish();
        checked.on_publication(publication);
        compare(&routes.pin(), &checked.visible, &Prefix::default_route());
    }
}
