//! Every number that the documentation of `ConcurrentTable` states, with its seed and size.

use flowtable::{ConcurrentTable, DefaultHashBuilder};

type Flows = ConcurrentTable<[u64; 2], u64>;

fn flows() -> Flows {
    let table = ConcurrentTable::with_hasher(DefaultHashBuilder::with_seed(2006));
    // Other tests of this process hold pins.
    table.with_garbage_limit(usize::MAX, 0)
}

#[test]
fn an_empty_table_takes_10_kilobytes() {
    let bytes = flows().allocation_size();
    assert!((9 << 10..11 << 10).contains(&bytes), "{bytes} bytes");
}

#[test]
fn an_entry_of_24_bytes_takes_38_to_44() {
    let table = flows();
    let (mut pin, mut sum, mut count) = (table.pin(), 0.0, 0.0);
    for number in 1..=1_000_000 {
        pin.insert([number, 0], number).unwrap();
        pin.repin();
        if number >= 100_000 && number % 10_000 == 0 {
            let bytes = table.allocation_size() as f64 / number as f64;
            assert!((38.0..44.0).contains(&bytes), "{bytes} bytes at {number}");
            (sum, count) = (sum + bytes, count + 1.0);
        }
    }
    let load = 25.6 / (sum / count);
    assert!((0.62..0.68).contains(&load), "the mean load is {load}");
}
