//! The simulator's naive twin: one loop over all flows, in microseconds, with everything looked at each time.
//!
//! It knows what the paper leaves open, too: which of equal flows is first, and what a run is expected to take.

/// A flow of the twin. A timeout of 0 is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwinFlow {
    pub(crate) period: u64,
    pub(crate) phase: u64,
    pub(crate) cost: u64,
    pub(crate) timeout: u64,
    pub(crate) share: u64,
    pub(crate) buffers: u64,
}

/// What a flow may do in a turn, and when.
#[allow(dead_code, reason = "some of its users have limits only")]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    Packets(u64),
    Slice(u64),
    /// The overhead in percent, the slice; whether thresholds are capped at the buffers.
    Throttle(u64, u64, bool),
}

/// What a run is expected to take.
#[allow(dead_code, reason = "some of its users expect what is queued only")]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected {
    /// What waits, as far as the turn goes.
    Queued,
    OnePacket,
    /// All that a turn may be.
    Full,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Twin {
    pub(crate) rule: Rule,
    pub(crate) expected: Expected,
    pub(crate) is_lower_first: bool,
    pub(crate) switch: u64,
    pub(crate) whole: u64,
    pub(crate) end: u64,
}

#[allow(dead_code, reason = "some of its users ask for times only")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TwinOutcome {
    pub(crate) processing: u64,
    pub(crate) switching: u64,
    pub(crate) idle: u64,
    pub(crate) dropped: Vec<u64>,
    pub(crate) longest: Vec<u64>,
    pub(crate) forwarded: Vec<u64>,
}

/// A flow while it is simulated.
#[derive(Clone, Debug)]
struct Live {
    flow: TwinFlow,
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

/// Virtual time runs so much faster than time: all shares of the tests divide 720720 wholes.
const SCALE: u128 = 720_720;

impl Live {
    fn new(flow: TwinFlow, twin: &Twin) -> Self {
        let threshold = match twin.rule {
            Rule::Throttle(percent, _, is_capped) => {
                let threshold = (100 * twin.switch).div_ceil(percent * flow.cost);
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

    fn next(&self, twin: &Twin) -> Option<u64> {
        let arrival = self.flow.phase + self.came * self.flow.period;
        (arrival < twin.end).then_some(arrival)
    }

    fn deliver(&mut self, now: u64, twin: &Twin) {
        while let Some(arrival) = self.next(twin).filter(|arrival| *arrival <= now) {
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

    fn after(&self, run: u64, twin: &Twin) -> u128 {
        self.start
            + u128::from(run) * (SCALE * u128::from(twin.whole) / u128::from(self.flow.share))
    }

    fn expected(&self, twin: &Twin) -> u64 {
        let limit = match twin.rule {
            Rule::Packets(limit) => limit,
            Rule::Slice(slice) | Rule::Throttle(_, slice, _) => slice.div_ceil(self.flow.cost),
        };
        self.flow.cost
            * match twin.expected {
                Expected::Queued => limit.min(self.queued),
                Expected::OnePacket => 1,
                Expected::Full => limit,
            }
    }
}

impl Twin {
    pub(crate) fn run(&self, flows: &[TwinFlow]) -> TwinOutcome {
        let mut live: Vec<Live> = flows.iter().map(|flow| Live::new(*flow, self)).collect();
        let (mut now, mut virtual_time, mut outcome) = (0, 0, TwinOutcome::default());
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
            virtual_time += SCALE * u128::from(run);
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
        *virtual_time = active().map(|(_, flow)| flow.start).min()?.max(*virtual_time);
        let eligible = active().filter(|(_, flow)| flow.start <= *virtual_time);
        let first = eligible.min_by_key(|(index, flow)| {
            let tie = if self.is_lower_first { *index } else { live.len() - index };
            (flow.after(flow.expected(self), self), tie)
        });
        first.map(|(index, _)| index)
    }
}
