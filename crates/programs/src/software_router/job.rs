//! The threads of the router: their jobs and their shares of the CPU.

use core::time::Duration;

use flowtable::schedule::ThreadConfig;

use super::cards::{Receiver, Sender};
use super::{Costs, Function, PathId, Port};

/// Capacity of a queue of a path.
pub(crate) const QUEUE_LEN: usize = 128;

/// The job of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Reads packets, classifies them, and enqueues them to paths.
    Read(Port),
    Forward(PathId),
    /// Selects paths, dequeues packets and writes them.
    Write(Port),
}

impl Job {
    /// The sum of all shares.
    pub const WHOLE: u32 = 1000;

    /// Iterates over all jobs: input, then paths, then output.
    pub fn all() -> impl Iterator<Item = Self> {
        let reads = Port::ALL.into_iter().map(Self::Read);
        reads.chain(PathId::all().map(Self::Forward)).chain(Port::ALL.into_iter().map(Self::Write))
    }

    /// Returns its index among all jobs.
    pub fn index(self) -> usize {
        match self {
            Self::Read(port) => port as usize,
            Self::Forward(path) => Port::ALL.len() + path.index(),
            Self::Write(port) => Port::ALL.len() + PathId::COUNT + port as usize,
        }
    }

    /// Returns the cost per packet.
    pub fn cost(self, costs: &Costs) -> Duration {
        Duration::from_nanos(match self {
            Self::Read(_) => costs.input,
            Self::Forward(path) => costs.functions[path.function as usize],
            Self::Write(_) => costs.output,
        })
    }

    /// Returns the share of the thread. Each of the three ports has a thread for input, for each
    /// function and for output.
    fn share(self) -> u32 {
        match self {
            Self::Read(_) => 66,
            Self::Write(_) => 55,
            Self::Forward(PathId { function, .. }) => match function {
                Function::Fast => 20,
                Function::General => 30,
                Function::Proxy => 110,
                Function::Active => 50,
            },
        }
    }

    /// Returns the configuration of the thread. All but the expensive functions are privileged:
    /// they may run after the time of 300 switches.
    pub fn config(self, costs: &Costs) -> ThreadConfig {
        let config = ThreadConfig::new(self.share(), self.cost(costs));
        let config = match self {
            // Its packets come from a card, and no thread waits for it.
            Self::Read(_) => config.with_unshared_buffers(Receiver::RING, u32::MAX),
            Self::Forward(_) => config.with_buffers(QUEUE_LEN as u32, QUEUE_LEN as u32),
            Self::Write(_) => {
                config.with_buffers((Function::ALL.len() * QUEUE_LEN) as u32, Sender::RING)
            }
        };
        match self {
            Self::Forward(PathId { function: Function::Proxy | Function::Active, .. }) => config,
            _ => config.with_timeout(Duration::from_nanos(300 * costs.switch)),
        }
    }
}
