//! What the paper says, in numbers.

/// Microseconds for 32 bits of SRAM: a find of one entry takes 5 of them, and 0.5 µs.
pub const WORD: f64 = 0.1;

/// Microseconds that a micro-engine spends on a packet beside its instruction: 75 cycles, to classify and to hash.
pub const OTHER_WORK: f64 = 0.32;

/// Bytes of the smallest packet, with the headers of IP and Ethernet.
pub const SMALLEST: u32 = 62;

/// Operations, their words where `cl` entries are examined, and their µs where it is one: table 1.
pub const TABLE_1: [(&str, &str, f64); 4] = [
    ("find", "5 cl", 0.5),
    ("find or create", "5 + 5 cl", 1.4),
    ("read", "2", 0.1),
    ("write", "2", 0.1),
];

/// Where heads and entries are, and the µs of COMPARE and COUNT: table 2.
pub const TABLE_2: [(&str, [f64; 2]); 3] =
    [("SRAM", [3.98, 2.62]), ("SDRAM", [6.49, 3.54]), ("heads in SRAM", [4.99, 3.47])];

/// Thousands of packets in a second: table 3.
pub const TABLE_3: [[u32; 2]; 3] = [[232, 340], [146, 259], [188, 263]];

/// Thousands of packets in a second, if an instruction takes so many µs.
pub fn thousands(latency: f64) -> u32 {
    (1000.0 / (latency + OTHER_WORK)) as u32
}

/// Mb/s of so many thousand packets of the smallest size in a second.
pub fn megabits(thousands: u32) -> f64 {
    f64::from(thousands * SMALLEST * 8) / 1000.0
}
