//! A reference model of the scheduler's simulator: a loop over all flows, in microseconds.
//!
//! It has parameters for what the paper leaves open: the order of equal flows and the expected
//! length of a run.

/// A flow. A timeout of 0 is none.
#[derive(Clone, Copy, Debug)]
pub struct FlowModel {
    pub period: u64,
    pub phase: u64,
    pub cost: u64,
    pub timeout: u64,
    pub share: u64,
    pub buffers: u64,
}

/// The limit of a turn.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    Packets(u64),
    Slice(u64),
    /// The overhead in percent, the slice; whether thresholds are capped at the buffers.
    Throttle(u64, u64, bool),
}

/// The expected length of a run.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// The queued packets, up to the limit of the turn.
    Queued,
    OnePacket,
    /// The limit of the turn.
    Full,
}

#[derive(Clone, Copy, Debug)]
pub struct SimulationModel {
    pub rule: Rule,
    pub expected: Expected,
    /// Whether the least start is next, by start-time fair queueing, and not WF2Q+.
    pub is_by_start: bool,
    pub is_lower_first: bool,
    pub switch: u64,
    pub whole: u64,
    pub end: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutcomeModel {
    pub processing: u64,
    pub switching: u64,
    pub idle: u64,
    pub dropped: Vec<u64>,
    pub longest: Vec<u64>,
    pub forwarded: Vec<u64>,
}

/// The state of a flow in a simulation.
#[derive(Clone, Debug)]
struct Live {
    flow: FlowModel,
    threshold: u64,
    came: u64,
    queued: u64,
    start: u128,
    finish: u128,
    is_active: bool,
    since: u64,
    dropped: u64,
    longest: u64,
    forwarded: u64,
}

/// Virtual time for each unit of time: all shares of the tests divide 720720 wholes.
const SCALE: u128 = 720_720;

impl Live {
    fn new(flow: FlowModel, model: &SimulationModel) -> Self {
        let threshold = match model.rule {
            Rule::Throttle(percent, _, is_capped) => {
                let threshold = (100 * model.switch).div_ceil(percent * flow.cost);
                if is_capped { threshold.min(flow.buffers) } else { threshold }
            }
            _ => 1,
        };
        let (start, finish) = (0, 0);
        let [came, queued, since, dropped, longest, forwarded] = [0; 6];
        let is_active = false;
        Self {
            flow,
            threshold,
            came,
            queued,
            start,
            finish,
            is_active,
            since,
            dropped,
            longest,
            forwarded,
        }
    }

    fn next(&self, model: &SimulationModel) -> Option<u64> {
        let arrival = self.flow.phase + self.came * self.flow.period;
        (arrival < model.end).then_some(arrival)
    }

    fn deliver(&mut self, now: u64, model: &SimulationModel) {
        while let Some(arrival) = self.next(model).filter(|arrival| *arrival <= now) {
            self.came += 1;
            if self.queued == self.flow.buffers {
                self.dropped += 1;
                continue;
            }
            if self.queued == 0 {
                self.since = arrival;
            }
            self.queued += 1;
            self.longest = self.longest.max(self.queued);
        }
    }

    fn deadline(&self) -> Option<u64> {
        (self.queued > 0 && self.flow.timeout > 0).then(|| self.since + self.flow.timeout)
    }

    fn may_run(&self, now: u64) -> bool {
        let is_late = self.deadline().is_some_and(|deadline| deadline <= now);
        self.queued > 0 && (self.queued >= self.threshold || is_late)
    }

    fn after(&self, run: u64, model: &SimulationModel) -> u128 {
        self.start
            + u128::from(run) * (SCALE * u128::from(model.whole) / u128::from(self.flow.share))
    }

    fn expected(&self, model: &SimulationModel) -> u64 {
        let limit = match model.rule {
            Rule::Packets(limit) => limit,
            Rule::Slice(slice) | Rule::Throttle(_, slice, _) => slice.div_ceil(self.flow.cost),
        };
        self.flow.cost
            * match model.expected {
                Expected::Queued => limit.min(self.queued),
                Expected::OnePacket => 1,
                Expected::Full => limit,
            }
    }
}

impl SimulationModel {
    pub fn run(&self, flows: &[FlowModel]) -> OutcomeModel {
        let mut live: Vec<Live> = flows.iter().map(|flow| Live::new(*flow, self)).collect();
        let (mut now, mut virtual_time, mut outcome) = (0, 0, OutcomeModel::default());
        while now < self.end {
            live.iter_mut().for_each(|flow| flow.deliver(now, self));
            let Some(next) = self.pick(&mut live, now, &mut virtual_time) else {
                let events = live.iter().flat_map(|flow| [flow.next(self), flow.deadline()]);
                let next = events.flatten().min().unwrap_or(self.end).min(self.end);
                outcome.idle += next - now;
                now = next;
                continue;
            };
            now += self.switch;
            outcome.switching += self.switch;
            live.iter_mut().for_each(|flow| flow.deliver(now, self));
            let (mut run, mut packets) = (0, 0);
            loop {
                let cost = live[next].flow.cost;
                (now, run, packets) = (now + cost, run + cost, packets + 1);
                live[next].queued -= 1;
                live.iter_mut().for_each(|flow| flow.deliver(now, self));
                let is_used = match self.rule {
                    Rule::Packets(limit) => packets == limit,
                    Rule::Slice(slice) | Rule::Throttle(_, slice, _) => run >= slice,
                };
                if live[next].queued == 0 || is_used || now >= self.end {
                    break;
                }
            }
            outcome.processing += run;
            let flow = &mut live[next];
            flow.forwarded += packets;
            flow.since = now;
            flow.finish = flow.after(run, self);
            flow.start = flow.finish;
            if !self.is_by_start {
                virtual_time += SCALE * u128::from(run);
            }
        }
        outcome.dropped = live.iter().map(|flow| flow.dropped).collect();
        outcome.longest = live.iter().map(|flow| flow.longest).collect();
        outcome.forwarded = live.iter().map(|flow| flow.forwarded).collect();
        outcome
    }

    fn pick(&self, live: &mut [Live], now: u64, virtual_time: &mut u128) -> Option<usize> {
        for flow in live.iter_mut() {
            let may_run = flow.may_run(now);
            if may_run && !flow.is_active {
                flow.start = flow.finish.max(*virtual_time);
            }
            flow.is_active = may_run;
        }
        let active = || live.iter().enumerate().filter(|(_, flow)| flow.is_active);
        let Some(least) = active().map(|(_, flow)| flow.start).min() else {
            if self.is_by_start {
                let latest = live.iter().map(|flow| flow.finish).max();
                *virtual_time = latest.unwrap_or(0).max(*virtual_time);
            }
            return None;
        };
        *virtual_time = least.max(*virtual_time);
        let eligible = active().filter(|(_, flow)| flow.start <= *virtual_time);
        let first = eligible.min_by_key(|(index, flow)| {
            let tie = if self.is_lower_first { *index } else { live.len() - index };
            let tag =
                if self.is_by_start { flow.start } else { flow.after(flow.expected(self), self) };
            (tag, tie)
        });
        first.map(|(index, _)| index)
    }
}
