//! The threads of the router: their jobs and their shares of the CPU.

use core::time::Duration;

use flowtable::papers::schedule::ThreadConfig;

use super::cards::RING;
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

    /// The number of jobs.
    pub const COUNT: usize = 2 * Port::ALL.len() + PathId::COUNT;

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
        let buffers = match self {
            // Its packets come from a card, and no thread waits for it.
            Self::Read(_) => RING,
            // The pipeline sets the sizes of its queues.
            Self::Forward(_) => u32::MAX,
            Self::Write(_) => ((Function::ALL.len() * QUEUE_LEN) as u32).min(RING) / 2,
        };
        let timeout = match self {
            Self::Forward(PathId { function: Function::Proxy | Function::Active, .. }) => None,
            _ => Some(Duration::from_nanos(300 * costs.switch)),
        };
        ThreadConfig { timeout, buffers, ..ThreadConfig::new(self.share(), self.cost(costs)) }
    }
}
