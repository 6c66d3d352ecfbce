//! Every number that the documentation of `TrashMap` states, with its seed and size.

use flowtable::probes::Probes;
use flowtable::{DefaultHashBuilder, TrashMap};

const SEED: u64 = 2007;

/// A hasher that counts the hashes that it computes.
#[derive(Clone)]
struct CountingHasher(DefaultHashBuilder, std::rc::Rc<std::cell::Cell<usize>>);

impl std::hash::BuildHasher for CountingHasher {
    type Hasher = <DefaultHashBuilder as std::hash::BuildHasher>::Hasher;

    fn build_hasher(&self) -> Self::Hasher {
        self.1.set(self.1.get() + 1);
        self.0.build_hasher()
    }
}

/// A key and a value of 24 bytes together, as measured in the documentation.
type Flows<S = DefaultHashBuilder> = TrashMap<[u64; 2], u64, S>;

fn flows(entries: u64) -> Flows {
    let mut flows = TrashMap::with_hasher(DefaultHashBuilder::with_seed(SEED));
    (0..entries).for_each(|flow| _ = flows.insert([flow, !flow], flow));
    flows
}

#[test]
fn an_entry_takes_43_bytes_on_average_over_sizes() {
    let sizes = [10_000, 100_000, 150_000, 230_000, 460_000, 1_000_000];
    let bytes = sizes.map(|entries| flows(entries).shape().bytes_per_entry());
    let mean = bytes.iter().sum::<f64>() / 6.0;
    assert!(bytes.iter().all(|bytes| (29.0..58.0).contains(bytes)), "{bytes:.1?}");
    assert!((38.0..45.0).contains(&mean), "{mean:.1}: {bytes:.1?}");
}

#[test]
fn an_entry_takes_up_to_80_bytes_after_removals() {
    let mut flows = flows(400_000);
    for flow in 0..350_000 {
        flows.remove(&[flow, !flow]);
        let bytes = flows.allocation_size() as f64 / flows.len() as f64;
        assert!((29.0..80.0).contains(&bytes), "{bytes:.1} bytes for each of {}", flows.len());
    }
}

#[test]
fn at_most_four_percent_of_the_entries_are_not_in_their_home_group() {
    for entries in [430_000, 800_000, 1_000_000] {
        let shape = flows(entries).shape();
        let home = shape.entries_by_distance[0] as f64 / shape.entries as f64;
        assert!((0.960..1.0).contains(&home), "{home:.4} of {entries} are in their home group");
        assert!(shape.groups_per_hit() < 1.07, "{:.4} groups", shape.groups_per_hit());
    }
}

#[test]
fn a_miss_compares_up_to_seven_keys_in_a_hundred_lookups() {
    let flows = flows(200_000);
    let mut probes = Probes::default();
    for flow in 200_000..400_000_u64 {
        assert_eq!(flows.get_observed(&[flow, !flow], &mut probes), None);
    }
    // A group has 6 to 14 entries, and one in 255 of them has the tag of the key by chance.
    let compared = f64::from(probes.entries) / 200_000.0;
    assert!((0.025..0.070).contains(&compared), "{compared:.4} compared");
}

#[test]
fn an_insertion_hashes_one_other_entry_on_average() {
    let hasher = CountingHasher(DefaultHashBuilder::with_seed(SEED), Default::default());
    let mut flows: Flows<CountingHasher> = TrashMap::with_hasher(hasher.clone());
    let mut counts = vec![];
    for flow in 0..400_000_u64 {
        if flow == 100_000 || flow == 200_000 {
            counts.push(hasher.1.get());
        }
        flows.insert([flow, !flow], flow);
    }
    // Hashes during one doubling, less one for the insertion itself.
    let moves = (counts[1] - counts[0]) as f64 / 100_000.0 - 1.0;
    assert!((1.0..1.6).contains(&moves), "{moves:.2} hashes for each insertion");
}

#[test]
fn churn_changes_memory_by_a_third_at_most_and_no_probes() {
    let (mut flows, fresh) = (flows(200_000), flows(200_000).shape());
    for flow in 200_000..1_000_000_u64 {
        let old = flow - 200_000;
        assert_eq!(flows.remove(&[old, !old]), Some(old));
        flows.insert([flow, !flow], flow);
    }
    let churned = flows.shape();
    // Segments near their thresholds split when chance gives them more.
    assert!(churned.bytes.abs_diff(fresh.bytes) * 3 < fresh.bytes, "{churned:?}, not {fresh:?}");
    let more = churned.groups_per_hit() - fresh.groups_per_hit();
    assert!(more < 0.01, "{more:.4} additional buckets per hit");
}

#[test]
fn random_keys_do_not_cause_a_reseed() {
    assert_eq!(flows(if cfg!(debug_assertions) { 1_000_000 } else { 10_000_000 }).reseeds(), 0);
}
