//! Multicasts on a shared medium: routers that come and go, compared with a list of groups.

use std::collections::{BTreeMap, BTreeSet};

use flowtable::papers::threaded::{
    Binding, Label, LabelError, Medium, NoLabel, RouterError, Stale,
};
use proptest::collection::vec;
use proptest::prelude::*;

const ROWS: u32 = 4;

#[test]
fn a_medium_has_at_least_one_row_and_at_most_as_many_as_labels() {
    let medium = |rows| Medium::<u8>::new(1, 1, rows).map(|medium| medium.designated);
    assert_eq!(medium(0), Err(LabelError::NoRows));
    assert_eq!(medium(Label::ROWS), Ok(1));
    assert_eq!(medium(Label::ROWS + 1), Err(LabelError::TooManyRows));
}

#[test]
fn only_the_designated_router_binds() {
    let [mut first, mut second] = [7, 3].map(|own| Medium::new(own, 7, 2).unwrap());
    let binding = first.bind('G').unwrap();
    // A group has one label, however often it is bound.
    assert_eq!(first.bind('G'), Ok(binding.clone()));
    assert_eq!(second.bind('G'), Err(RouterError::NotDesignated));
    assert_eq!(second.unbind(&'G'), Err(RouterError::NotDesignated));
    assert_eq!(second.on_binding(3, binding.clone()), Err(RouterError::NotDesignated));
    assert_eq!(second.row(binding.label), Err(Stale));
    let beyond = Binding { label: Label::new(2, 0).unwrap(), group: Some('H') };
    assert_eq!(second.on_binding(7, beyond), Err(RouterError::NoLabel(NoLabel::Full)));
    assert_eq!(second.on_binding(7, binding), Ok(()));
    assert_eq!(second.label(&'G'), first.label(&'G'));
    assert_eq!(second.row(Label::from(0)), Err(Stale));
}

/// The designated router goes down after some routers have received its last broadcasts.
#[test]
fn bindings_of_the_next_designated_router_replace_what_only_some_have_received() {
    let mut all = [9, 1, 2].map(|own| Medium::new(own, 9, 4).unwrap());
    let [nine, one, two] = &mut all;
    let lost = nine.bind('G').unwrap();
    two.on_binding(9, lost.clone()).unwrap();
    (one.designated, two.designated) = (1, 1);
    // Router 1 has not received G, and gives its row and label to H.
    let binding = one.bind('H').unwrap();
    two.on_binding(1, binding.clone()).unwrap();
    assert_eq!(binding.label, lost.label);
    assert_eq!([two.label(&'G'), two.label(&'H')], [None, Some(binding.label)]);
    // Where the group has another row, it leaves it.
    let moved = Binding { label: Label::new(3, 5).unwrap(), group: Some('H') };
    two.on_binding(1, moved.clone()).unwrap();
    assert_eq!([two.row(binding.label), two.row(moved.label)], [Err(Stale), Ok(3)]);
    assert_eq!(two.validate(), Ok(()));
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Bind(u8),
    Unbind(u8),
    Up(u32),
    Down(u32),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (0..6u8).prop_map(Event::Bind),
        3 => (0..6u8).prop_map(Event::Unbind),
        1 => (0..5u32).prop_map(Event::Up),
        1 => (0..5u32).prop_map(Event::Down),
    ];
    vec(event, 1..200)
}

/// All routers of a medium, and the labels that they should have.
struct Lan {
    routers: BTreeMap<u32, Medium<u8>>,
    labels: BTreeMap<u8, Label>,
    /// All labels that were ever allocated.
    seen: BTreeSet<Label>,
}

impl Lan {
    fn designated(&self) -> u32 {
        self.routers.values().next().unwrap().designated
    }

    fn broadcast(&mut self, binding: &Binding<u8>) {
        let from = self.designated();
        for medium in self.routers.values_mut() {
            assert_eq!(medium.on_binding(from, binding.clone()), Ok(()));
        }
    }

    fn bind(&mut self, group: u8) {
        let from = self.designated();
        let result = self.routers.get_mut(&from).unwrap().bind(group);
        if !self.labels.contains_key(&group) && self.labels.len() == ROWS as usize {
            assert_eq!(result, Err(RouterError::NoLabel(NoLabel::Full)));
            return;
        }
        let binding = result.unwrap();
        assert_eq!(binding.group, Some(group));
        match self.labels.get(&group) {
            Some(&label) => assert_eq!(binding.label, label),
            None => assert!(self.seen.insert(binding.label), "{:?} is reused", binding.label),
        }
        self.labels.insert(group, binding.label);
        self.broadcast(&binding);
    }

    fn unbind(&mut self, group: u8) {
        let from = self.designated();
        let binding = self.routers.get_mut(&from).unwrap().unbind(&group).unwrap();
        assert_eq!(binding.is_some(), self.labels.remove(&group).is_some());
        binding.iter().for_each(|binding| self.broadcast(binding));
    }

    fn up(&mut self, router: u32) {
        let from = self.designated();
        let mut medium = Medium::new(router, from, ROWS).unwrap();
        for binding in self.routers[&from].bindings() {
            medium.on_binding(from, binding).unwrap();
        }
        self.routers.insert(router, medium);
    }

    fn down(&mut self, router: u32) {
        self.routers.remove(&router);
        if self.designated() == router {
            let least = *self.routers.keys().next().unwrap();
            self.routers.values_mut().for_each(|medium| medium.designated = least);
        }
        let bindings: Vec<_> = self.routers[&self.designated()].bindings().collect();
        bindings.iter().for_each(|binding| self.broadcast(binding));
    }

    fn check(&self) {
        for medium in self.routers.values() {
            assert_eq!(medium.validate(), Ok(()));
            assert_eq!(medium.designated, self.designated());
            for group in 0..6 {
                assert_eq!(medium.label(&group), self.labels.get(&group).copied());
            }
            for &label in &self.seen {
                let is_live = self.labels.values().any(|&live| live == label);
                let row = is_live.then_some(label.index() as usize).ok_or(Stale);
                assert_eq!(medium.row(label), row);
            }
        }
        assert!(self.routers.contains_key(&self.designated()));
    }
}

proptest! {
    /// All routers have the same labels, and no label is ever of another group than the one that it
    /// was allocated for.
    #[test]
    fn routers_agree_on_labels(events in events()) {
        let routers = [(2, Medium::new(2, 2, ROWS).unwrap())].into();
        let mut lan = Lan { routers, labels: BTreeMap::new(), seen: BTreeSet::new() };
        for event in events {
            match event {
                Event::Bind(group) => lan.bind(group),
                Event::Unbind(group) => lan.unbind(group),
                Event::Up(router) if !lan.routers.contains_key(&router) => lan.up(router),
                Event::Down(router)
                    if lan.routers.len() > 1 && lan.routers.contains_key(&router) =>
                {
                    lan.down(router);
                }
                Event::Up(_) | Event::Down(_) => {}
            }
            lan.check();
        }
    }
}
