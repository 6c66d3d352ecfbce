//! *Trading packet headers for packet processing*: indices and lookups with them, threaded indices,
//! and the data manipulation header: `cargo bench -- source_hash`.

use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use flowtable::hash::source_index::SourceIndex;
use flowtable::papers::dml::{Checksum, DmlBuilder, DmlHeader, Kind, Region};
use flowtable::papers::hash::{
    Crc8Pair, Crc16, Crc32, Fletcher16, XorFold8, XorFold16, hash_bytes,
};
use flowtable::papers::threaded::{Hop, Label, Labels, Table};
use flowtable::{SourceHashCache, Timestamp};
use settings::{Key, SIZES, keys};

/// A flow identifier of twelve bytes, as in the paper.
fn identifier(key: &Key) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&key.src.octets());
    bytes[4..8].copy_from_slice(&key.dst.octets());
    bytes[8..10].copy_from_slice(&key.sport.to_be_bytes());
    bytes[10..].copy_from_slice(&key.dport.to_be_bytes());
    bytes
}

/// A hash function of the paper.
type Function = fn(&[u8]) -> u32;

/// The hash of an identifier, by each function of the paper.
fn hashes(criterion: &mut Criterion) {
    let hashes: [(&str, Function); 6] = [
        ("xor_8", |key| hash_bytes::<XorFold8>(key) as u32),
        ("xor_16", |key| hash_bytes::<XorFold16>(key) as u32),
        ("crc_8_pair", |key| hash_bytes::<Crc8Pair>(key) as u32),
        ("crc_16", |key| hash_bytes::<Crc16>(key) as u32),
        ("crc_32", |key| hash_bytes::<Crc32>(key) as u32),
        ("fletcher_16", |key| hash_bytes::<Fletcher16>(key) as u32),
    ];
    let key = identifier(&keys(1, 1)[0]);
    let mut group = criterion.benchmark_group("source_hash/hash");
    for (name, hash) in hashes {
        group.bench_function(name, |bencher| bencher.iter(|| hash(black_box(&key))));
    }
    group.finish();
}

/// Lookups by an index that the packet carries.
fn cache(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("source_hash/cache");
    for count in SIZES {
        let flows: Vec<_> =
            keys(count, 1).into_iter().map(|key| (SourceIndex::new(key.src.into()), key)).collect();
        let mut cache: SourceHashCache<Key, u64> =
            SourceHashCache::new(2 * count).expect("there is memory");
        flows.iter().for_each(|(index, key)| _ = cache.insert(*index, *key, 1));
        let mut next = flows.iter().cycle();
        group.bench_function(BenchmarkId::new("get", count), |bencher| {
            bencher.iter(|| {
                let (index, key) = next.next().expect("an endless iterator");
                cache.get(black_box(*index), key).copied()
            });
        });
    }
    group.finish();
}

/// A packet is forwarded by the row of its label, which has the label for the next router.
fn threaded(criterion: &mut Criterion) {
    let mut forward = || -> Result<(), Box<dyn Error>> {
        let labels = Labels { capacity: 16, hold_down: Duration::ZERO, start: 0 };
        let mut table = Table::new(labels)?;
        let mut packet = Label::from(0);
        for destination in 0..16_u16 {
            packet = table.insert(destination, None, Timestamp::ZERO)?;
            table.set(&destination, Some(Hop::Forward { port: destination, label: packet }));
        }
        criterion.bench_function("source_hash/threaded_index", |bencher| {
            bencher.iter(|| {
                if let Ok(Hop::Forward { label, .. }) = table.forward(black_box(packet)) {
                    packet = label;
                }
            });
        });
        Ok(())
    };
    forward().expect("the table has rows for all destinations");
}

/// The regions of a packet are found by its header, and its bytes are summed.
fn dml(criterion: &mut Criterion) {
    let mut layers = DmlBuilder::new(0x0800);
    let data = Region::new(Kind::DATA, 0, 1000);
    let sum = Region::new(Kind::CHECKSUM, 0, 1020);
    let mut header = vec![0; 64];
    let built = layers.add(data).and_then(|()| layers.push_header(20));
    built.and_then(|()| layers.add(sum)).expect("the regions fit");
    let length = layers.write_to(&mut header).expect("the header fits");
    header.truncate(length);
    let packet = vec![0x5a; 1020];
    let frame = [&header[..], &packet].concat();
    let mut group = criterion.benchmark_group("source_hash/dml");
    group.bench_function("parse", |bencher| {
        bencher.iter(|| DmlHeader::parse(black_box(&frame)).is_ok());
    });
    group.bench_function("checksum", |bencher| {
        bencher.iter(|| Checksum::of(black_box(&packet)));
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = settings::criterion();
    targets = hashes, cache, threaded, dml
}
criterion_main!(benches);
