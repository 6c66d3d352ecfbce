//! MPLS, whose payload has no type: IP, or a pseudo-wire of Ethernet with or without control word.
//!
//! The first four bits do not tell them apart: the address of a pseudo-wire's first host may begin
//! with 4 or 6, as RFC 8469 warns. A payload is IP if it has a valid IP header.

use super::guess::{guessed, is_exact_v6, is_plausible};
use super::not_ip::NotIp;
use super::reject::Reject;
use super::span::Span;
use super::step::{Next, Step};

/// The maximum number of labels in a stack.
const MAX_LABELS: usize = 64;

/// Reads a stack of labels.
pub(crate) fn payload(span: Span<'_>) -> Result<Step<'_>, Reject> {
    const LABEL: usize = 4;
    for index in 0..MAX_LABELS {
        let is_bottom = span.u32(index * LABEL)? & 0x100 != 0;
        if is_bottom {
            return labelled(span.after((index + 1) * LABEL)?);
        }
    }
    Err(Reject::TooManyHeaders)
}

/// Returns the payload below the labels.
fn labelled(span: Span<'_>) -> Result<Step<'_>, Reject> {
    const CONTROL_WORD: usize = 4;
    match span.u8(0)? >> 4 {
        // That of Ethernet begins with two zeros, as few addresses do.
        0 => {
            let mut offsets = [0, CONTROL_WORD];
            if span.starts_with(&[0, 0]) {
                offsets.reverse();
            }
            let found = offsets.into_iter().find_map(|offset| guessed(span.after(offset).ok()?));
            found.ok_or(Reject::NotIp(NotIp::Labelled))
        }
        // Too short for a decision: the header is cut.
        4 | 6 if span.captured().len() < 20 => Ok((Next::Raw, span)),
        6 if !is_exact_v6(span) && is_plausible(span) => Ok((Next::Ethernet, span)),
        _ => guessed(span).ok_or(Reject::NotIp(NotIp::Labelled)),
    }
}
