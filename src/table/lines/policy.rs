//! When a table grows and shrinks: arithmetic only.
//!
//! ```text
//!     entries per line that has not split        9 ── 10      (8 n + lines, n a power of two)
//!     lines                                      n ── 2 n     then 5 entries per line, up to 9
//! ```

/// Lines of a segment.
pub(super) const SEGMENT: usize = 64;

/// Slots of a segment.
pub(super) const SLOTS: usize = SEGMENT * super::line::SLOTS;

/// The entries beyond which a table of `lines` grows.
///
/// While `n` lines become `2 n`, the limit rises from `9 n` to `10 n`. So each insertion that
/// exceeds the limit adds 64 to it by one split, and lines that have not split have `9 n` to
/// `10 n` entries among `n`, and those that have split half of that.
pub(super) const fn limit(lines: usize) -> usize {
    match lines.checked_ilog2() {
        None => 0,
        Some(log) => (8 << log) + lines,
    }
}

/// Whether a table of `lines` is too large for its entries: below a quarter full. Merging doubles
/// the entries of two segments to six per line, which is below any limit.
pub(super) const fn should_merge(entries: usize, lines: usize) -> bool {
    entries < 3 * lines
}

/// The lines after `lines`.
pub(super) const fn more(lines: usize) -> usize {
    match lines {
        0 => 1,
        1..SEGMENT => 2 * lines,
        _ => lines + SEGMENT,
    }
}

/// The lines before `lines`.
pub(super) const fn fewer(lines: usize) -> usize {
    match lines {
        0..=SEGMENT => lines / 2,
        _ => lines - SEGMENT,
    }
}

/// The lines of a table that does not grow, for a number of entries: six a line, so that one or two
/// of a hundred are not in their home lines, even if entries come and go all the time. With eight
/// it is eight of a hundred, and every second miss goes on beyond its home line.
pub(super) const fn fixed(entries: usize) -> usize {
    match entries.div_ceil(6) {
        0 => 1,
        lines @ 1..=SEGMENT => lines.next_power_of_two(),
        lines => lines.next_multiple_of(SEGMENT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_follows_the_limit_and_merging_stays_away_from_it() {
        let mut lines = 0;
        while lines < 1 << 16 {
            let next = more(lines);
            assert_eq!(fewer(next), lines);
            assert!(next.is_power_of_two() && next <= SEGMENT || next % SEGMENT == 0);
            assert!(limit(next) > limit(lines));
            // Lines that have not split have the most entries.
            let unsplit = 1 << next.ilog2();
            assert!(limit(next) <= 10 * unsplit && limit(next) >= 9 * unsplit, "{next} lines");
            // A table that grows does not merge soon, nor does a table that has merged grow soon.
            assert!(lines == 0 || !should_merge(limit(lines) * 3 / 4, next), "{next} lines");
            assert!(lines == 0 || 3 * next < limit(lines), "{next} lines");
            lines = next;
        }
    }
}
