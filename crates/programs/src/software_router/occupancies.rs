//! Occupancy of the queues, as input of the scheduler.

use flowtable::schedule::{Occupancy, Policy};

use super::{Function, Job, PathId, Plan, Port, Router};

impl Router<'_> {
    pub(crate) fn report_occupancy(&mut self, job: Job) {
        let (occupancy, now) = (self.occupancy(job), self.now());
        let updated = self.scheduler.set_occupancy(self.threads[job.index()], occupancy, now);
        updated.expect("threads are never removed");
    }

    /// Returns the occupancy of the queues of a thread.
    pub(crate) fn occupancy(&self, job: Job) -> Occupancy {
        match job {
            Job::Read(port) => self.waiting(port),
            Job::Forward(id) => {
                let path = &self.paths[id.index()];
                match self.plan {
                    Plan::Interrupts => Occupancy::queued(path.input().len() as u32),
                    _ => path.occupancy(),
                }
            }
            Job::Write(port) => {
                let queued =
                    |function| self.paths[PathId { function, port }.index()].output().len();
                let queued = Function::ALL.into_iter().map(queued).sum::<usize>() as u32;
                Occupancy { queued, free: self.senders[port as usize].free() }
            }
        }
    }

    /// Returns the occupancy of a ring. Without a threshold, its length is unknown until it is
    /// polled.
    fn waiting(&self, port: Port) -> Occupancy {
        let receiver = &self.receivers[port as usize];
        let length = receiver.ring.len() as u32;
        match self.scheduler.policy() {
            _ if !receiver.is_due(self.now_ns) => Occupancy::queued(0),
            Policy::Budget(_) => Occupancy::queued(length.max(1)),
            Policy::Throttle(_) => Occupancy::queued(length),
        }
    }
}
