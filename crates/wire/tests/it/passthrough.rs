//! Passthrough: spec 2.8.

use streamkeeper_wire::{Decoder, Format, Passthrough};

use crate::streams::{self, Stream};

/// Lets everything pass; the bytes come `size` at a time.
fn identity(format: Format, body: &[u8], size: usize) -> Vec<u8> {
    let mut pass = Passthrough::new(Decoder::new(format));
    let (mut chunks, mut out) = (Vec::new(), Vec::new());
    let mut drain = |pass: &mut Passthrough| {
        // Whether the format fits is for others to say.
        while pass.next_frame(&mut chunks).unwrap_or(false) {
            pass.write(&chunks, &mut out).expect("nothing was changed");
        }
    };
    for bytes in body.chunks(size) {
        pass.push(bytes).expect("the stream can be read");
        drain(&mut pass);
    }
    pass.finish().expect("the stream can be read");
    drain(&mut pass);
    out
}

/// The bytes that can be read: the last event of a stream that was broken off never leaves.
fn whole(stream: &Stream) -> &[u8] {
    let cut_off = stream.path.starts_with("cut-off");
    let end = if cut_off {
        stream.body.windows(2).rposition(|two| two == b"\n\n").map_or(0, |at| at + 2)
    } else {
        stream.body.len()
    };
    &stream.body[..end]
}

// spec 2.8
#[test]
fn what_nobody_changed_leaves_byte_for_byte_however_it_is_cut() {
    for stream in streams::all() {
        for size in [1, 2, 3, 7, 64, usize::MAX] {
            let out = identity(stream.format, &stream.body, size);
            assert!(out == whole(&stream), "{}, {size} bytes at a time", stream.path);
        }
    }
}
