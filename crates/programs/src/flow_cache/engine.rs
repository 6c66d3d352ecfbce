//! The meters of a run and the export of their records: in this thread, or in several.

use flowtable::Timestamp;
use flowtable::flow_cache::{Config, Metrics};

use super::Meter;
use super::ending::Linger;
use super::export::{Export, Sink};
use super::intake::Step;
use super::options::Options;
use super::workers::Workers;
use crate::program::failure::{Failure, Kind};

/// One meter, or workers with a meter each.
pub(crate) enum Engine {
    Single(Box<Single>),
    Workers(Box<Workers>),
}

/// A meter, and the export of its records.
pub(crate) struct Single {
    meter: Meter,
    export: Export,
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
        let export = Export::new(outputs, options.top);
        let meter = |config| Meter::new(config, detects_close, options.by_vlan);
        let mut meters = configs.into_iter().map(meter);
        match (meters.next(), meters.len()) {
            (Some(meter), 0) => Ok(Self::Single(Box::new(Single { meter, export }))),
            (first, _) => {
                let meters: Vec<Meter> = first.into_iter().chain(meters).collect();
                let number = meters.len();
                let workers = Workers::start(meters, export).map_err(|error| {
                    let why = format_args!("--workers {number}: no threads: {error}");
                    Failure::new(Kind::Input, why)
                })?;
                Ok(Self::Workers(Box::new(workers)))
            }
        }
    }

    /// Applies a step to the meter that it concerns, or to all.
    #[inline]
    pub(crate) fn apply(&mut self, step: Step) {
        match self {
            Self::Single(single) => {
                let Single { meter, export } = &mut **single;
                meter.apply(&step, &mut |record| export.take(&record));
            }
            Self::Workers(workers) => workers.apply(step),
        }
    }

    /// Writes what is due at this time of the packets.
    #[inline]
    pub(crate) fn tick(&mut self, now: Timestamp) {
        match self {
            Self::Single(single) => single.export.tick(now),
            Self::Workers(workers) => workers.tick(now),
        }
    }

    /// Writes all records of the steps so far.
    pub(crate) fn flush(&mut self) {
        match self {
            Self::Single(single) => single.export.flush(),
            Self::Workers(workers) => workers.flush(),
        }
    }

    /// Returns whether no result can reach its reader.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Single(single) => single.export.is_closed(),
            Self::Workers(workers) => workers.is_closed(),
        }
    }

    /// Returns the meter, if there is only one.
    pub(crate) fn single(&self) -> Option<&Meter> {
        match self {
            Self::Single(single) => Some(&single.meter),
            Self::Workers(_) => None,
        }
    }

    /// Returns the metrics of all meters; of workers, those after a step of the recent past.
    pub(crate) fn metrics(&self) -> Metrics {
        match self {
            Self::Single(single) => single.meter.metrics(),
            Self::Workers(workers) => workers.metrics(),
        }
    }

    /// Calls a function with the export.
    pub(crate) fn with_export<T>(&mut self, call: impl FnOnce(&mut Export) -> T) -> T {
        match self {
            Self::Single(single) => call(&mut single.export),
            Self::Workers(workers) => workers.with_export(call),
        }
    }

    /// Exports the flows that are left, after the last step.
    pub(crate) fn finish(&mut self) {
        match self {
            Self::Single(single) => {
                let Single { meter, export } = &mut **single;
                meter.remaining(|record| export.take(&record));
                export.finish();
            }
            Self::Workers(workers) => workers.finish(),
        }
    }
}
