//! The meters of a run and the export of their records: in this thread, or in several.

use capture::{Macs, Packet};
use flowtable::flow_cache::{Config, Metrics};
use flowtable::{FlowKey, Timestamp};

use super::Meter;
use super::arrival::{Arrival, View};
use super::ending::Linger;
use super::export::{Export, Sink};
use super::options::Options;
use super::record::Record;
use super::workers::Workers;
use crate::program::failure::{Failure, Kind};

/// The meters of a run.
pub(crate) struct Engine {
    view: View,
    meters: Meters,
}

/// One meter, or workers with a meter each.
enum Meters {
    Single(Box<Single>),
    Workers(Box<Workers>),
}

/// A meter, and the export of its records.
struct Single {
    meter: Meter,
    export: Export,
    /// The beginning of the second of the packets' time in which the records were flushed last.
    flushed_ns: u64,
}

impl Single {
    /// Calls a function with the meter, and with that which takes its records.
    #[inline]
    fn with_meter(&mut self, call: impl FnOnce(&mut Meter, &mut dyn FnMut(Record))) {
        let Self { meter, export, .. } = self;
        call(meter, &mut |record| export.take(&record));
    }

    fn settle(&mut self) {
        self.with_meter(|meter, mut take| meter.settle(&mut take));
    }

    fn flush(&mut self) {
        self.settle();
        self.export.flush();
    }
}

impl Engine {
    /// Creates a meter for each configuration.
    ///
    /// # Errors
    ///
    /// If the threads cannot be had.
    pub(crate) fn new(
        configs: Vec<Config>,
        options: &Options,
        outputs: Vec<Box<dyn Sink>>,
    ) -> Result<Self, Failure> {
        let detects_close = options.ending.linger != Linger::Off;
        let view = View { detects_close, by_vlan: options.by_vlan };
        let export = Export::new(outputs, options.top);
        let has_macs = options.columns.mac;
        let mut meters = configs.into_iter().map(|config| Meter::new(config, has_macs));
        let meters = match (meters.next(), meters.len()) {
            (Some(meter), 0) => Meters::Single(Box::new(Single { meter, export, flushed_ns: 0 })),
            (first, _) => {
                let meters: Vec<Meter> = first.into_iter().chain(meters).collect();
                let number = meters.len();
                let workers = Workers::start(meters, export).map_err(|error| {
                    let why = format_args!("--workers {number}: no threads: {error}");
                    Failure::new(Kind::Input, why)
                })?;
                Meters::Workers(Box::new(workers))
            }
        };
        Ok(Self { view, meters })
    }

    /// Counts a packet at this time.
    #[inline]
    pub(crate) fn packet(&mut self, packet: &Packet, now: Timestamp) {
        let view = self.view;
        self.pass(|| view.arrival(packet, now));
    }

    #[inline(always)]
    fn pass(&mut self, arrival: impl FnOnce() -> Arrival) {
        // Each arm makes the arrival that it passes on: a common one would be stored in memory.
        match &mut self.meters {
            Meters::Single(single) => {
                if single.meter.push(arrival()) {
                    single.settle();
                }
            }
            Meters::Workers(workers) => workers.packet(arrival()),
        }
    }

    /// Counts a packet with these MAC addresses, if records have them, at this time.
    #[cold]
    pub(crate) fn packet_with(&mut self, packet: &Packet, macs: Option<Macs>, now: Timestamp) {
        let view = self.view;
        self.pass(|| Arrival { macs, ..view.arrival(packet, now) });
    }

    /// Counts an error of ICMP in the flow of the packet that it quotes, if there is one.
    #[cold]
    pub(crate) fn error(
        &mut self,
        error: &Packet,
        quoted: FlowKey,
        macs: Option<Macs>,
        now: Timestamp,
    ) {
        if let Meters::Single(single) = &mut self.meters {
            let arrival = Arrival { macs, ..self.view.arrival(error, now) };
            let quoted = (arrival.key.0, quoted);
            let mut is_joined = false;
            single.with_meter(|meter, mut take| {
                is_joined = meter.join(&quoted, &arrival, &mut take);
            });
            if is_joined {
                return;
            }
        }
        self.packet_with(error, macs, now);
    }

    /// Ends and reports the flows that are due at this time.
    pub(crate) fn time(&mut self, now: Timestamp) {
        match &mut self.meters {
            Meters::Single(single) => {
                single.with_meter(|meter, mut take| meter.time(now, &mut take));
            }
            Meters::Workers(workers) => workers.time(now),
        }
    }

    /// Sets the clock of the packets to this time: none has passed since the last packet.
    pub(crate) fn reset(&mut self, now: Timestamp) {
        match &mut self.meters {
            Meters::Single(single) => {
                single.with_meter(|meter, mut take| meter.reset(now, &mut take));
            }
            Meters::Workers(workers) => workers.reset(now),
        }
    }

    /// Writes the records and files that are due at this time of the packets, once a tick.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        const SECOND_NS: u64 = 1_000_000_000;
        let Meters::Single(single) = &mut self.meters else { return };
        let now_ns = now.as_nanos();
        if now_ns.wrapping_sub(single.flushed_ns) >= SECOND_NS {
            single.flushed_ns = now_ns - now_ns % SECOND_NS;
            single.flush();
        }
    }

    /// Counts all packets so far, or leaves that to workers, which do it soon.
    pub(crate) fn settle(&mut self) {
        match &mut self.meters {
            Meters::Single(single) => single.settle(),
            Meters::Workers(workers) => workers.settle(),
        }
    }

    /// Writes all records of the packets so far.
    pub(crate) fn flush(&mut self) {
        match &mut self.meters {
            Meters::Single(single) => single.flush(),
            Meters::Workers(workers) => workers.flush(),
        }
    }

    /// Returns whether no result can reach its reader.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        match &self.meters {
            Meters::Single(single) => single.export.is_closed(),
            Meters::Workers(workers) => workers.is_closed(),
        }
    }

    /// Returns the meter, if there is only one.
    pub(crate) fn single(&self) -> Option<&Meter> {
        match &self.meters {
            Meters::Single(single) => Some(&single.meter),
            Meters::Workers(_) => None,
        }
    }

    /// Returns the metrics of all meters; of workers, those after a step of the recent past.
    pub(crate) fn metrics(&self) -> Metrics {
        match &self.meters {
            Meters::Single(single) => single.meter.metrics(),
            Meters::Workers(workers) => workers.metrics(),
        }
    }

    /// Calls a function with the export.
    pub(crate) fn with_export<T>(&mut self, call: impl FnOnce(&mut Export) -> T) -> T {
        match &mut self.meters {
            Meters::Single(single) => call(&mut single.export),
            Meters::Workers(workers) => workers.with_export(call),
        }
    }

    /// Exports the flows that are left, after the last step.
    pub(crate) fn finish(&mut self) {
        match &mut self.meters {
            Meters::Single(single) => {
                let Single { meter, export, .. } = &mut **single;
                meter.settle(&mut |record| export.take(&record));
                meter.remaining(|record| export.take(&record));
                export.finish();
            }
            Meters::Workers(workers) => workers.finish(),
        }
    }
}
