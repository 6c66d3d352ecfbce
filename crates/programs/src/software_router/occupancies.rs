//! What the scheduler is told: how full the queues of threads are.

use flowtable::schedule::{Occupancy, Policy};

use super::{Function, Job, Plan, Port, Router, Way};

impl Router<'_> {
    pub(crate) fn tell(&mut self, job: Job) {
        let (occupancy, now) = (self.occupancy(job), self.now());
        let told = self.scheduler.set_occupancy(self.threads[job.number()], occupancy, now);
        told.expect("threads are never removed");
    }

    /// How full the queues of a thread are.
    pub(crate) fn occupancy(&self, job: Job) -> Occupancy {
        match job {
            Job::Read(port) => self.waiting(port),
            Job::Forward(way) => {
                let path = &self.paths[way.number()];
                match self.plan {
                    Plan::Interrupts => Occupancy::queued(path.input().len() as u32),
                    _ => path.occupancy(),
                }
            }
            Job::Write(port) => {
                let queued = |function| self.paths[Way { function, port }.number()].output().len();
                let queued = Function::ALL.into_iter().map(queued).sum::<usize>() as u32;
                Occupancy { queued, free: self.senders[port as usize].room() }
            }
        }
    }

    /// What is known of a ring. Without a threshold one does not look before one polls.
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
