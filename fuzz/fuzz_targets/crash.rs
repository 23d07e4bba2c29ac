//! Feeds words to the reader of crash reports, which refuses them or gives a report within its limits.

#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_trace::crash;

fuzz_target!(|data: &[u8]| {
    let words: Vec<u64> =
        data.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().expect("8 bytes"))).collect();
    if let Some(end) = crash::read(&words, true) {
        assert!(end.threads().iter().all(|thread| thread.frames.len() <= 64));
    }
});
