//! Feeds bytes to the reader of trace files.
//!
//! The first byte chooses: the bytes as they are, or a file put together from them with right checksums, so that the
//! fuzzer need not guess them. Everything that a command would do with a trace is done: index, events, rules, words.

#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_trace::file::TraceFile;
use raddle_trace::file::chunk::{ChunkHeader, FORMAT_VERSION, MAGIC};
use raddle_trace::{EventSource, describe, validate};
use std::io::Write;
use std::os::fd::AsRawFd;

/// Events looked at in one input: enough to reach every path, and an input stays fast.
const EVENTS_MAX: usize = 200_000;

fn assembled(mut data: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend_from_slice(&MAGIC);
    file.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    file.extend_from_slice(&[0; 4]);
    // A chunk: kind and flag, thread, image, ordinal, records, first sequence, payload length (2), payload.
    while let Some((head, rest)) = data.split_first_chunk::<9>() {
        let length = usize::from(u16::from_le_bytes([head[7], head[8]])).min(rest.len());
        let (payload, rest) = rest.split_at(length);
        let compressed = head[0] & 0x80 != 0;
        let records = u32::from(head[4]) << (head[5] & 7);
        let header = ChunkHeader {
            kind: head[0] & 0x0f,
            stored_bytes: payload.len() as u32,
            plain_bytes: if compressed { 1 << (head[0] >> 4 & 7) << 9 } else { payload.len() as u32 },
            compressed,
            thread: u32::from(head[1]),
            image: u32::from(head[2] & 1),
            ordinal: u32::from(head[3]),
            first_record: u32::from(head[2] >> 1),
            records,
            events: 0,
            first_sequence: u64::from(head[6]),
            last_sequence: u64::from(head[6]),
            payload_crc: crc32fast::hash(payload),
        };
        file.extend_from_slice(&header.to_bytes());
        file.extend_from_slice(payload);
        data = rest;
    }
    file
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else { return };
    let bytes = if choice & 1 == 0 { data.to_vec() } else { assembled(data) };
    let memory = rustix::fs::memfd_create("fuzz", rustix::fs::MemfdFlags::CLOEXEC).expect("memfd");
    let mut memory = std::fs::File::from(memory);
    memory.write_all(&bytes).expect("memory is large enough");
    let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
    let path = std::path::Path::new(&path);
    if let Ok(mut file) = TraceFile::open(path) {
        let (mut batch, mut seen) = (Vec::new(), 0);
        while file.next_batch(&mut batch).is_ok() && !batch.is_empty() && seen < EVENTS_MAX {
            for (ix, event) in batch.iter().enumerate().take(16) {
                let line = describe::line(ix as u64, event, file.tables());
                assert!(!line.contains('\n'));
                file.tables().stack(event.context);
            }
            seen += batch.len();
        }
        if seen < EVENTS_MAX
            && let Ok(mut file) = TraceFile::open(path)
        {
            let _ = validate::validate(&mut file);
        }
    }
});
