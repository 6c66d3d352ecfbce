//! B: traversals.

use std::collections::HashSet;

use super::model_crate::hashers::{Weak, mix};
use super::model_crate::threads::run_concurrently;
use super::{ROUNDS, Table, Value, churn_others, table};

mod guarantees {
    use super::*;

    fn b<V: Value>() {
        let table: Table<V> = table(Weak::Mixed);
        let stay = if cfg!(miri) { 10 } else { 3000 };
        (0..stay).for_each(|key| _ = table.pin().insert(key, V::new(key, 1)).unwrap());
        let replace = || {
            let mut pin = table.pin();
            for round in 0..ROUNDS {
                let key = mix(round) % stay;
                assert!(pin.insert(key, V::new(key, round)).unwrap().is_some());
                if round % 1000 == 0 {
                    pin.shrink_to_fit();
                }
                pin.repin();
            }
        };
        let visit = |_| {
            let (pin, mut visited) = (table.pin(), HashSet::new());
            for (key, value) in &pin {
                value.version_of(key);
                assert!(visited.insert(key), "B2: {key} is visited twice");
            }
            assert!((0..stay).all(|key| visited.contains(&key)), "B1");
        };
        run_concurrently(&[&replace, &|| churn_others(&table)], &[&visit]);
    }

    #[test]
    fn b1_b2_an_entry_that_stays_is_visited_once() {
        b::<u64>();
        b::<[u64; 4]>();
    }
}
