//! The turns of input, forwarding and output threads.

use core::time::Duration;

use super::stages::{InputStage, OutputStage, Pipeline, Stage};
use super::{Device, Reading};
use crate::papers::schedule::ScheduleError;
use crate::papers::schedule::share::{ShareError, Thread};
use crate::papers::schedule::thread::Turn;
use crate::papers::schedule::thread::{Occupancy, State};
use crate::timestamp::Timestamp;

impl<P> Pipeline<P> {
    /// Runs a turn, and finishes it with the time that has passed on the clock of the device.
    /// Returns the number of packets. O(packets × (log threads + log paths)).
    ///
    /// # Errors
    ///
    /// If its thread does not run here: the turn is of another scheduler. Nothing is run then.
    ///
    /// # Panics
    ///
    /// If the device reads a packet for a path that does not exist. After a panic of the device the
    /// packet in hand is lost, and the thread still has its turn: run it again.
    pub fn run<D: Device<Packet = P>>(
        &mut self,
        turn: Turn,
        device: &mut D,
    ) -> Result<u32, ScheduleError> {
        if self.scheduler.state(turn.thread) != Some(State::Running) {
            return Err(ShareError::NotRunning.into());
        }
        let stage = self.stages[turn.thread.index()];
        let begun = device.now();
        let (packets, charged) = match stage {
            Stage::Input(input) => self.poll(input, &turn, device),
            Stage::Path(path) => (self.forward(path, &turn, device), Duration::ZERO),
            Stage::Output(output) => (self.write(output, &turn, device), Duration::ZERO),
        };
        let now = device.now();
        let processing = now.since(begun);
        let occupancy = self.occupancy(stage);
        self.scheduler.finish_charged(turn, processing, charged, occupancy, now)?;
        match stage {
            Stage::Input(_) => {}
            Stage::Path(path) => self.forwarded(path, packets, processing, now),
            Stage::Output(output) => self.report(Stage::Output(output), now),
        }
        Ok(packets)
    }

    /// Reads packets. Returns their number, and the time to charge for an empty poll.
    fn poll<D: Device<Packet = P>>(
        &mut self,
        input: usize,
        turn: &Turn,
        device: &mut D,
    ) -> (u32, Duration) {
        let (begun, mut packets, mut is_drained) = (device.now(), 0, false);
        let has_room = |pipeline: &Self| pipeline.occupancy(Stage::Input(input)).free > 0;
        while has_room(self) {
            match device.read(input) {
                Reading::Empty => {
                    is_drained = true;
                    break;
                }
                Reading::Discarded => {}
                // The queue counts drops.
                Reading::Packet { path, packet } => {
                    drop(self.enqueue(path, packet, device.now()));
                }
            }
            packets += 1;
            if !turn.budget.allows_more(packets, device.now().since(begun)) {
                break;
            }
        }
        let charged =
            if packets == 0 && is_drained { device.empty_poll(input) } else { Duration::ZERO };
        let stage = &mut self.inputs[input];
        if stage.is_notified {
            stage.expected = device.waiting(input);
        } else if let Some(estimator) = &mut stage.estimator {
            // A turn that was cut short, or has filled its path, may have left packets: it counts
            // as a full batch.
            let sleep = estimator.polled(if is_drained { packets } else { u32::MAX });
            stage.expected = (estimator.average() as u32).max(1);
            let set = self.scheduler.set_timeout(stage.thread, Some(sleep));
            debug_assert!(set.is_ok(), "no thread is ever removed");
        } else {
            stage.expected = packets.max(1);
        }
        (packets, charged)
    }

    /// Forwards packets. Returns their number.
    fn forward<D: Device<Packet = P>>(&mut self, at: usize, turn: &Turn, device: &mut D) -> u32 {
        let (begun, mut packets) = (device.now(), 0);
        let path = &mut self.paths[at];
        loop {
            let before = path.queues.output.len();
            if !path.queues.forward(|packet| device.forward(at, packet)) {
                break;
            }
            packets += 1;
            if let Some((output, queue)) = path.output {
                // At once, as the device may panic at the next packet.
                let added = path.queues.output.len() - before;
                self.outputs[output].queued += added as u32;
                if let Some(first) = path.queues.output.front().filter(|_| before == 0) {
                    let set = self.outputs[output].link.set_work(queue, Some(device.length(first)));
                    debug_assert!(set.is_ok(), "it was empty, so its queue is idle");
                }
            } else {
                // It leads nowhere.
                drop(path.queues.output.pop());
            }
            if !turn.budget.allows_more(packets, device.now().since(begun)) {
                break;
            }
        }
        packets
    }

    /// Updates the neighbours of a path after a turn, and its average cost.
    fn forwarded(&mut self, at: usize, packets: u32, processing: Duration, now: Timestamp) {
        let path = &mut self.paths[at];
        let cost = path.queues.update_cost(packets, processing);
        let set = self.scheduler.set_cost(path.thread, cost);
        debug_assert!(set.is_ok(), "no thread is ever removed, and no average is zero");
        self.report_neighbours(at, now);
    }

    /// Reports the output queue of a path to its output, and its room to its inputs.
    fn report_neighbours(&mut self, at: usize, now: Timestamp) {
        if let Some((output, _)) = self.paths[at].output {
            self.report(Stage::Output(output), now);
        }
        self.report_feeders(at, now);
    }

    /// Reports the room of a path to the inputs whose only path it is.
    pub(super) fn report_feeders(&mut self, path: usize, now: Timestamp) {
        for feeder in 0..self.paths[path].fed_by.len() {
            self.report(Stage::Input(self.paths[path].fed_by[feeder]), now);
        }
    }

    /// Writes packets. Returns their number.
    fn write<D: Device<Packet = P>>(&mut self, at: usize, turn: &Turn, device: &mut D) -> u32 {
        let (begun, mut packets) = (device.now(), 0);
        while device.room(at) > 0 {
            let output = &mut self.outputs[at];
            let Some(queue) = output.link.pick() else { break };
            let path = output.paths[queue.index()];
            let Some(packet) = self.paths[path].queues.output.pop() else { break };
            output.queued -= 1;
            let length = device.length(&packet);
            let next = self.paths[path].queues.output.front();
            let next = next.map(|packet| device.length(packet));
            let charged = output.link.charge(queue, length, next);
            debug_assert!(charged.is_ok(), "it was picked");
            // At once, as the device may panic.
            self.report(Stage::Path(path), device.now());
            device.write(at, path, packet);
            packets += 1;
            if !turn.budget.allows_more(packets, device.now().since(begun)) {
                break;
            }
        }
        self.outputs[at].room = device.room(at);
        packets
    }

    /// Reports the occupancy of a stage to the scheduler.
    pub(super) fn report(&mut self, stage: Stage, now: Timestamp) {
        let thread = self.thread(stage);
        let set = self.scheduler.set_occupancy(thread, self.occupancy(stage), now);
        debug_assert!(set.is_ok(), "no thread is ever removed");
    }

    fn thread(&self, stage: Stage) -> Thread {
        match stage {
            Stage::Input(input) => self.inputs[input].thread,
            Stage::Path(path) => self.paths[path].thread,
            Stage::Output(output) => self.outputs[output].thread,
        }
    }

    fn occupancy(&self, stage: Stage) -> Occupancy {
        match stage {
            Stage::Input(input) => {
                let InputStage { only_path, expected: queued, .. } = self.inputs[input];
                let free = only_path.map_or(u32::MAX, |path| self.paths[path].queues.input.free());
                Occupancy { queued, free }
            }
            Stage::Path(path) => self.paths[path].queues.occupancy(),
            Stage::Output(output) => {
                let OutputStage { queued, room, .. } = self.outputs[output];
                Occupancy { queued, free: room }
            }
        }
    }
}
