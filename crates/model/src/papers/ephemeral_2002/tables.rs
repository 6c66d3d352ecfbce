//! Figures that the paper published.

/// Microseconds to access 32 bits of SRAM: a find that examines one entry accesses 5 words in 0.5
/// µs.
pub const WORD: f64 = 0.1;

/// Microseconds that a micro-engine spends on a packet besides its instruction: 75 cycles to
/// classify and hash.
pub const OTHER_WORK: f64 = 0.32;

/// Bytes of the smallest packet, with its IP and Ethernet headers.
pub const SMALLEST: u32 = 62;

/// Table 1: an operation, its words when `cl` entries are examined, and its µs when one is.
pub const TABLE_1: [(&str, &str, f64); 4] = [
    ("find", "5 cl", 0.5),
    ("find or create", "5 + 5 cl", 1.4),
    ("read", "2", 0.1),
    ("write", "2", 0.1),
];

/// Table 2: the location of heads and entries, and the µs of COMPARE and COUNT.
pub const TABLE_2: [(&str, [f64; 2]); 3] =
    [("SRAM", [3.98, 2.62]), ("SDRAM", [6.49, 3.54]), ("heads in SRAM", [4.99, 3.47])];

/// Table 3: thousands of packets per second.
pub const TABLE_3: [[u32; 2]; 3] = [[232, 340], [146, 259], [188, 263]];

/// Thousands of packets per second, given the µs of an instruction.
pub fn thousands(latency: f64) -> u32 {
    (1000.0 / (latency + OTHER_WORK)) as u32
}

/// Mb/s, given thousands of smallest packets per second.
pub fn megabits(thousands: u32) -> f64 {
    f64::from(thousands * SMALLEST * 8) / 1000.0
}
