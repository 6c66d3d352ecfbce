//! Reference results of the simulation: all settings, for the three costs of flow 13.

/// Results of one run. The efficiency index is in tenths of a percent, idle time in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub efficiency: u32,
    /// Dropped packets of flow 13, of 10,000.
    pub dropped: u64,
    /// Longest queues of flows 3, 6 and 9.
    pub longest: [u32; 3],
    /// Dropped packets of all other flows.
    pub others_dropped: u64,
    pub idle: u32,
}

const fn cell(efficiency: u32, dropped: u64, longest: [u32; 3]) -> Cell {
    Cell { efficiency, dropped, longest, others_dropped: 0, idle: 0 }
}

impl Cell {
    const fn with_others(self, others_dropped: u64) -> Self {
        Self { others_dropped, ..self }
    }

    const fn with_idle(self, idle: u32) -> Self {
        Self { idle, ..self }
    }
}

/// Results by packet limit.
pub const BY_LIMIT: [[Cell; 3]; 5] = [
    [
        cell(581, 8942, [128, 128, 128]).with_others(51),
        cell(593, 9587, [104, 104, 104]),
        cell(596, 9776, [94, 94, 93]),
    ],
    [cell(655, 7872, [2, 2, 2]), cell(728, 8536, [4, 3, 3]), cell(813, 9144, [12, 10, 9])],
    [cell(691, 6672, [3, 3, 2]), cell(780, 8016, [7, 7, 6]), cell(877, 8928, [21, 19, 18])],
    [cell(755, 4541, [5, 3, 3]), cell(848, 7344, [15, 14, 11]), cell(915, 8789, [41, 38, 34])],
    [cell(787, 3462, [7, 7, 5]), cell(887, 6928, [31, 27, 24]), cell(950, 8656, [75, 67, 62])],
];

/// Results by timeslice.
pub const BY_SLICE: [[Cell; 3]; 5] = [
    [cell(659, 7732, [2, 2, 2]), cell(659, 9230, [2, 2, 2]), cell(659, 9658, [2, 2, 2])],
    [cell(782, 3634, [6, 5, 5]), cell(783, 7997, [9, 7, 6]), cell(783, 9247, [9, 7, 6])],
    [cell(844, 1586, [11, 10, 9]), cell(845, 7362, [15, 12, 10]), cell(845, 9035, [15, 12, 10])],
    [cell(872, 665, [19, 17, 13]), cell(873, 7072, [25, 21, 19]), cell(879, 8920, [26, 22, 18])],
    [cell(868, 784, [21, 19, 17]), cell(927, 6512, [47, 42, 35]), cell(915, 8791, [47, 42, 34])],
];

/// Results by overhead and timeslice of the throttle.
pub const BY_THROTTLE: [[Cell; 3]; 5] = [
    [cell(785, 3552, [11, 5, 5]), cell(777, 8047, [11, 5, 4]), cell(810, 9153, [12, 5, 5])],
    [cell(848, 1447, [17, 6, 5]), cell(859, 7230, [17, 6, 6]), cell(871, 8951, [17, 7, 6])],
    [
        cell(909, 0, [34, 11, 11]).with_idle(2),
        cell(909, 6716, [34, 12, 11]),
        cell(909, 8819, [34, 12, 11]),
    ],
    [
        cell(949, 0, [66, 22, 13]).with_idle(6),
        cell(949, 6308, [68, 23, 14]),
        cell(949, 8682, [68, 23, 14]),
    ],
    [
        cell(973, 80, [128, 59, 16]).with_others(3116).with_idle(13),
        cell(974, 5672, [128, 58, 16]).with_others(3116),
        cell(974, 8467, [128, 59, 20]).with_others(3116),
    ],
];
