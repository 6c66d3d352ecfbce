//! The Internet checksum, of bytes and by incremental update.

use flowtable::papers::dml::Checksum;

/// Returns the ones' complement of the ones' complement sum of these bytes (RFC 1071).
pub fn of(bytes: &[u8]) -> u16 {
    u16::from_be_bytes(Checksum::of(bytes).field())
}

/// Returns the checksum after a field of whole words has changed, without the other bytes: `~(~C +
/// ~m + m')` for each word (RFC 1624, equation 3).
pub fn after(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    !sum(sum(!checksum, old, u16::MAX), new, 0)
}

/// Adds words to a sum, after an exclusive or with `mask`. An odd last byte is followed by zero.
fn sum(start: u16, bytes: &[u8], mask: u16) -> u16 {
    let word = |pair: &[u8]| u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]) ^ mask;
    let mut sum = u64::from(start) + bytes.chunks(2).map(|pair| u64::from(word(pair))).sum::<u64>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
