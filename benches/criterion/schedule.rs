//! *Scheduling computations on a software-based router*: turns by proportional share, the queue
//! estimator and the batching throttle: `cargo bench -- schedule`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use flowtable::papers::schedule::share::{Order, ProportionalShare};
use flowtable::papers::schedule::{Overhead, QueueEstimator, Throttle};

/// Picks a thread and charges it, while all of them have work.
fn proportional_share(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("schedule/turn");
    for (name, order) in [("wf2q", Order::default()), ("start_time", Order::StartTime)] {
        for count in [2_u32, 16, 1024] {
            let mut shares =
                ProportionalShare::new(count as usize, count, order).expect("there is memory");
            for _ in 0..count {
                let thread = shares.add(1).expect("a share of one each");
                shares.set_work(thread, Some(10)).expect("a thread of this scheduler");
            }
            group.bench_function(BenchmarkId::new(name, count), |bencher| {
                bencher.iter(|| {
                    let thread = shares.pick().expect("all threads have work");
                    shares.charge(thread, black_box(10), Some(10))
                });
            });
        }
    }
    group.finish();
}

/// The next sleep of a thread that polls, and the batch size that bounds the overhead.
fn estimator_and_throttle(criterion: &mut Criterion) {
    let mut estimator =
        QueueEstimator::new(10, Duration::from_millis(1)).expect("a batch and a limit");
    criterion.bench_function("schedule/estimator", |bencher| {
        bencher.iter(|| estimator.polled(black_box(9)));
    });
    let overhead = Overhead::from_ppm(100_000).expect("not zero");
    let us = Duration::from_micros;
    let throttle = Throttle::new(us(3), overhead, us(100)).expect("a slice above 30 us");
    criterion.bench_function("schedule/throttle", |bencher| {
        bencher.iter(|| throttle.threshold(black_box(Duration::from_micros(2)), 128));
    });
}

criterion_group! {
    name = benches;
    config = settings::criterion();
    targets = proportional_share, estimator_and_throttle
}
criterion_main!(benches);
