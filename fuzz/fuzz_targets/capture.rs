//! The capture reader with arbitrary bytes: it neither panics nor runs forever.
#![no_main]

use capture::{Capture, Frame, Packet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    read_file(bytes);
    if let Some((link, data)) = bytes.split_first_chunk() {
        let link = u16::from_be_bytes(*link);
        read_frame(Frame { time_ns: 0, link, wire_len: data.len() as u32, data });
    }
});

fn read_file(bytes: &[u8]) {
    let Ok(mut capture) = Capture::memory(bytes.to_vec()) else { return };
    let mut frames = 0;
    while let Some(frame) = capture.next_frame() {
        frames += 1;
        read_frame(frame);
        assert!(capture.end().is_none());
    }
    assert!(capture.end().is_some() && capture.next_frame().is_none());
    assert!(capture.whole_packets() <= frames);
}

fn read_frame(frame: Frame<'_>) {
    if let Ok(packet) = Packet::of(&frame) {
        assert_eq!(packet.time_ns, frame.time_ns);
        assert_eq!(packet.key.reversed().reversed(), packet.key);
    }
}
