//! Meters with a thread each, and a thread that exports their records.
//!
//! ```text
//!               symmetric hash            bounded queues           bounded queue
//!     packets, ──► Card ───┬─► batches ─────────────► worker: Meter ──────┬───► exporter: Export
//!     time                 ├─► batches ─────────────► worker: Meter ──────┤
//!                          └─► batches ─────────────► worker: Meter ──────┘
//! ```
//!
//! Both directions of a flow have one worker, as if a network card had several queues: see
//! [`flowtable::flow_cache::cores`]. All workers have all steps of time. So the records are those
//! of one meter, in another order, unless a cache is full: each has its part of the capacity.
//!
//! A full queue stops the thread before it: reading waits for workers, and these for the exporter,
//! which waits for none. So memory is bounded, and no threads wait for each other. If a thread
//! panics, those before it find its queue closed and end, and the reading thread goes on with the
//! panic.

use std::io;
use std::mem;
use std::num::NonZero;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use flowtable::Timestamp;
use flowtable::flow_cache::Metrics;

use super::Meter;
use super::arrival::Arrival;
use super::card::Card;
use super::export::Export;
use super::record::Record;

/// Steps or records that are sent together: a wake-up of a thread costs as much as many of them.
const BATCH: usize = 1024;

/// Batches in a queue.
const QUEUE: usize = 8;

/// The time in which packets reach workers, and records the outputs.
const PATIENCE: Duration = Duration::from_millis(250);

/// A step of time.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Time has passed: flows that are due end.
    Time(Timestamp),
    /// The clock of the packets was set to this time, and no time has passed since the last packet.
    Reset(Timestamp),
}

/// The packets and steps of time of a worker.
#[derive(Debug, Default)]
struct Batch {
    packets: Vec<Arrival>,
    /// Each with the number of packets before it.
    steps: Vec<(usize, Step)>,
}

impl Batch {
    fn new() -> Self {
        Self { packets: Vec::with_capacity(BATCH), steps: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.packets.len() + self.steps.len() == 0
    }

    fn is_full(&self) -> bool {
        self.packets.len() + self.steps.len() >= BATCH
    }

    fn clear(&mut self) {
        self.packets.clear();
        self.steps.clear();
    }
}

/// Workers and the exporter.
pub(crate) struct Workers {
    card: Card,
    queues: Vec<Queue>,
    /// The metrics of each worker after its last batch.
    metrics: Vec<Arc<Mutex<Metrics>>>,
    threads: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
    /// The time at which all batches were sent last.
    sent: Instant,
}

/// The queue of a worker.
struct Queue {
    batches: SyncSender<Batch>,
    /// The batch that is being filled.
    batch: Batch,
    /// Batches that the worker has emptied, whose memory is used again.
    emptied: Receiver<Batch>,
}

/// The data that the exporter shares with the reading thread.
struct Shared {
    export: Mutex<Export>,
    is_closed: AtomicBool,
}

impl Shared {
    fn export(&self) -> MutexGuard<'_, Export> {
        self.export.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_export<T>(&self, call: impl FnOnce(&mut Export) -> T) -> T {
        let mut export = self.export();
        let result = call(&mut export);
        // Relaxed: the flag publishes no other data.
        self.is_closed.store(export.is_closed(), Ordering::Relaxed);
        result
    }
}

impl Workers {
    /// Starts a thread for each meter, and one for the export.
    ///
    /// # Errors
    ///
    /// If the operating system refuses a thread.
    pub(crate) fn start(meters: Vec<Meter>, export: Export) -> io::Result<Self> {
        let count = NonZero::new(meters.len()).expect("there are workers");
        let shared = Arc::new(Shared { export: export.into(), is_closed: AtomicBool::new(false) });
        let (records, received) = sync_channel(QUEUE * meters.len());
        let (mut queues, mut metrics, mut threads) = (Vec::new(), Vec::new(), Vec::new());
        let mut rests = Vec::new();
        for (number, meter) in meters.into_iter().enumerate() {
            let (queue, batches) = sync_channel(QUEUE);
            let (rest, last) = sync_channel(QUEUE);
            let (empty, emptied) = sync_channel(QUEUE);
            let shown = Arc::new(Mutex::new(meter.metrics()));
            let ids = Ids { worker: number as u64, workers: count.get() as u64 };
            let worker = Worker { meter, shown: Arc::clone(&shown), ids };
            let records = records.clone();
            let run = move || worker.run(&batches, &empty, records, rest);
            threads.push(thread::Builder::new().name(format!("worker {number}")).spawn(run)?);
            queues.push(Queue { batches: queue, batch: Batch::new(), emptied });
            metrics.push(shown);
            rests.push(last);
        }
        let of_exporter = Arc::clone(&shared);
        let run = move || export_all(&received, rests, &of_exporter);
        threads.push(thread::Builder::new().name("exporter".to_owned()).spawn(run)?);
        let card = Card::new(count);
        Ok(Self { card, queues, metrics, threads, shared, sent: Instant::now() })
    }

    /// Sends a packet to its worker. Waits for a full queue.
    #[inline]
    pub(crate) fn packet(&mut self, arrival: Arrival) {
        let worker = self.card.worker(&arrival.key.1);
        let batch = &mut self.queues[worker].batch;
        batch.packets.push(arrival);
        if batch.is_full() {
            self.send(worker);
        }
    }

    /// Sends the time to all workers.
    pub(crate) fn time(&mut self, now: Timestamp) {
        self.push_to_all(Step::Time(now));
    }

    /// Sends the time to all workers that the clock of the packets was set to.
    pub(crate) fn reset(&mut self, now: Timestamp) {
        self.push_to_all(Step::Reset(now));
    }

    fn push_to_all(&mut self, step: Step) {
        for worker in 0..self.queues.len() {
            let batch = &mut self.queues[worker].batch;
            batch.steps.push((batch.packets.len(), step));
            if batch.is_full() {
                self.send(worker);
            }
        }
    }

    fn send(&mut self, worker: usize) {
        let Queue { batches, batch, emptied } = &mut self.queues[worker];
        if batch.is_empty() {
            return;
        }
        let next = emptied.try_recv().unwrap_or_else(|_| Batch::new());
        if batches.send(mem::replace(batch, next)).is_err() {
            // This worker has panicked, or ended as the exporter has panicked.
            self.join();
        }
    }

    /// Sends all batches, unless that was done a moment ago.
    pub(crate) fn settle(&mut self) {
        if self.sent.elapsed() >= PATIENCE {
            self.flush();
        }
    }

    /// Sends all batches.
    pub(crate) fn flush(&mut self) {
        self.sent = Instant::now();
        (0..self.queues.len()).for_each(|worker| self.send(worker));
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::Relaxed)
    }

    /// Returns the sums of the metrics of all workers.
    pub(crate) fn metrics(&self) -> Metrics {
        let mut sum = Metrics::default();
        for metrics in &self.metrics {
            sum += *metrics.lock().unwrap_or_else(PoisonError::into_inner);
        }
        sum
    }

    pub(crate) fn with_export<T>(&self, call: impl FnOnce(&mut Export) -> T) -> T {
        self.shared.with_export(call)
    }

    /// Ends the workers, which export the flows that are left, and the exporter.
    pub(crate) fn finish(&mut self) {
        self.flush();
        self.join();
    }

    /// Waits for the ends of all threads.
    fn join(&mut self) {
        self.queues.clear();
        for thread in self.threads.drain(..) {
            if let Err(reason) = thread.join() {
                panic::resume_unwind(reason);
            }
        }
    }
}

/// The IDs of the flows of a worker: no other worker has them.
#[derive(Clone, Copy)]
struct Ids {
    worker: u64,
    workers: u64,
}

impl Ids {
    const fn unique(self, id: u64) -> u64 {
        (id - 1) * self.workers + self.worker + 1
    }
}

/// A meter in its thread.
struct Worker {
    meter: Meter,
    shown: Arc<Mutex<Metrics>>,
    ids: Ids,
}

impl Worker {
    /// Processes all batches, and then sends the records of the flows that are left to `rest`, in
    /// order.
    fn run(
        mut self,
        batches: &Receiver<Batch>,
        emptied: &SyncSender<Batch>,
        records: SyncSender<Vec<Record>>,
        rest: SyncSender<Vec<Record>>,
    ) {
        let mut records = Outbox::new(records, self.ids);
        for mut batch in batches {
            let take = &mut |record| records.push(record);
            let Batch { packets, steps } = &batch;
            let mut from = 0;
            for (before, step) in steps {
                if matches!(step, Step::Time(now) if !self.meter.needs(*now)) {
                    continue;
                }
                self.meter.count(&packets[from..*before], take);
                from = *before;
                match *step {
                    Step::Time(now) => self.meter.time(now, take),
                    Step::Reset(now) => self.meter.reset(now, take),
                }
            }
            self.meter.count(&packets[from..], take);
            batch.clear();
            // Without space, or at the end, it is dropped.
            let _ = emptied.try_send(batch);
            // First, so that a report has the counts of all records that were written before it.
            *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = self.meter.metrics();
            records.send();
            if !records.is_open {
                return;
            }
        }
        // The exporter waits until no worker has records but these.
        drop(records);
        let mut rest = Outbox::new(rest, self.ids);
        self.meter.remaining(|record| rest.push(record));
        rest.send();
    }
}

/// The records of a worker on their way to the exporter.
struct Outbox {
    queue: SyncSender<Vec<Record>>,
    batch: Vec<Record>,
    ids: Ids,
    /// Whether the exporter receives; if not, it has panicked.
    is_open: bool,
}

impl Outbox {
    const fn new(queue: SyncSender<Vec<Record>>, ids: Ids) -> Self {
        Self { queue, batch: Vec::new(), ids, is_open: true }
    }

    fn push(&mut self, record: Record) {
        self.batch.push(Record { id: self.ids.unique(record.id), ..record });
        if self.batch.len() == BATCH {
            self.send();
        }
    }

    fn send(&mut self) {
        if !self.batch.is_empty() {
            self.is_open &= self.queue.send(mem::take(&mut self.batch)).is_ok();
        }
    }
}

/// Exports the records of all workers, and at the end the rests, merged.
fn export_all(records: &Receiver<Vec<Record>>, rests: Vec<Receiver<Vec<Record>>>, shared: &Shared) {
    let mut flushed = Instant::now();
    loop {
        let batch = match records.recv_timeout(PATIENCE) {
            Ok(batch) => batch,
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        shared.with_export(|export| {
            batch.iter().for_each(|record| export.take(record));
            if flushed.elapsed() >= PATIENCE {
                flushed = Instant::now();
                export.flush();
            }
        });
    }
    let mut rests: Vec<_> =
        rests.into_iter().map(|rest| rest.into_iter().flatten().peekable()).collect();
    shared.with_export(|export| {
        loop {
            let firsts = rests.iter_mut().enumerate();
            let firsts = firsts.filter_map(|(at, rest)| Some((rest.peek()?.order(), at)));
            let Some((_, at)) = firsts.min() else { break };
            if let Some(record) = rests[at].next() {
                export.take(&record);
            }
        }
        export.finish();
    });
}
