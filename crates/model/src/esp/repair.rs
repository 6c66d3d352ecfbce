//! Arbitrary bytes made more like packets, so that more of them are accepted.

/// The bytes with a valid checksum, computed independently of the library.
pub fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[6..8].fill(0);
    let words = bytes.chunks(2).map(|word| u64::from(word[0]) << 8 | u64::from(word[1]));
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    bytes[6..8].copy_from_slice(&(!sum as u16).to_be_bytes());
    bytes
}

/// Bytes with the length and checksum of a packet, if they have an opcode.
pub fn repaired(mut bytes: Vec<u8>) -> Vec<u8> {
    if let [_, opcode, ..] = bytes[..] {
        let length = match opcode {
            1 => 28,
            2 | 4 => 32,
            3 => 40,
            _ => 56,
        };
        if bytes.len() >= length {
            (bytes[0], bytes[4]) = (1, length as u8 / 4);
            let rest = bytes.split_off(length);
            return [summed(bytes), rest].concat();
        }
    }
    bytes
}

/// Numbers after the flags reduced to a few bits, so that tags and children repeat.
pub fn narrowed(mut bytes: Vec<u8>) -> Vec<u8> {
    let few = bytes.len().min(56);
    for (place, byte) in bytes[..few].iter_mut().enumerate().skip(8) {
        // The last bytes of numbers, and of the threshold.
        *byte &= if place % 8 == 7 || place == 27 { 7 } else { 0 };
    }
    bytes
}
