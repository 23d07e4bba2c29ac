//! Trace files that were cut, damaged or forged: never a panic, and what is whole is read.

use raddle_trace::convert::write_trace;
use raddle_trace::describe::kind;
use raddle_trace::file::chunk::{CHUNK_HEADER_BYTES, ChunkHeader, ChunkKind, PREAMBLE_BYTES};
use raddle_trace::file::{ProgramInfo, TraceFile};
use raddle_trace::generate::{Rng, Shape, generate};
use raddle_trace::info::info;
use raddle_trace::{Event, MemoryTrace, ThreadIx, TraceError};
use std::path::{Path, PathBuf};

struct Sample {
    folder: tempfile::TempDir,
    bytes: Vec<u8>,
    /// Offsets of the chunks, and the end of the file.
    chunks: Vec<usize>,
    events: Vec<Event>,
}

impl Sample {
    fn new(threads: u32, events: u64, seed: u64) -> Sample {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whole");
        let trace = generate(&Shape::everything(threads, events), seed);
        write_trace(&mut trace.source(), &path, ProgramInfo::default()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let mut chunks = vec![PREAMBLE_BYTES];
        while *chunks.last().unwrap() < bytes.len() {
            let at = *chunks.last().unwrap();
            let header =
                ChunkHeader::from_bytes(bytes[at..at + CHUNK_HEADER_BYTES].try_into().unwrap()).unwrap();
            chunks.push(at + CHUNK_HEADER_BYTES + header.stored_bytes as usize);
        }
        Sample { folder, bytes, chunks, events: trace.events }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("damaged")
    }

    fn read(&self, bytes: &[u8]) -> Result<(TraceFile, MemoryTrace), TraceError> {
        std::fs::write(self.path(), bytes).unwrap();
        read(&self.path())
    }
}

fn kinds_of(events: &[Event], thread: ThreadIx) -> Vec<&'static str> {
    events.iter().filter(|event| event.thread == thread).map(|event| kind(&event.op)).collect()
}

fn read(path: &Path) -> Result<(TraceFile, MemoryTrace), TraceError> {
    let mut file = TraceFile::open(path)?;
    let trace = MemoryTrace::read(&mut file)?;
    Ok((file, trace))
}

#[test]
fn a_file_cut_anywhere_is_read_up_to_the_last_complete_chunk() {
    let sample = Sample::new(5, 30_000, 3);
    let whole: Vec<Vec<&str>> = (0..5).map(|thread| kinds_of(&sample.events, ThreadIx(thread))).collect();
    let cuts = (0..sample.bytes.len()).step_by(sample.bytes.len() / 300).chain(sample.chunks.iter().copied());
    for cut in cuts {
        let result = sample.read(&sample.bytes[..cut]);
        if cut < PREAMBLE_BYTES {
            assert!(result.is_err(), "cut at {cut}");
            continue;
        }
        let (file, trace) = result.unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        let complete = sample.chunks.iter().filter(|&&end| end <= cut).count() - 1;
        assert_eq!(file.index().chunks, complete as u64, "cut at {cut}");
        assert_eq!(file.index().cut().is_some(), cut < sample.bytes.len(), "cut at {cut}");
        assert_eq!(trace.events.len() as u64, file.index().events(), "cut at {cut}");
        // Each thread's events are the beginning of what some thread did.
        for thread in 0..trace.tables.threads.len() as u32 {
            let found = kinds_of(&trace.events, ThreadIx(thread));
            assert!(whole.iter().any(|all| all.starts_with(&found)), "cut at {cut}, thread {thread}");
        }
    }
}

#[test]
fn errors_name_the_file_and_the_offset() {
    let sample = Sample::new(3, 3_000, 1);
    let records =
        sample.chunks.iter().copied().find(|&at| sample.bytes[at + 4] == ChunkKind::Records as u8).unwrap();
    let mut damaged = sample.bytes.clone();
    damaged[records + CHUNK_HEADER_BYTES + 3] ^= 0x10;
    let error = sample.read(&damaged).err().unwrap().to_string();
    let expected = format!("{}: offset {records:#x}: the chunk is damaged", sample.path().display());
    assert!(error.starts_with(&expected), "{error}");

    let mut newer = sample.bytes.clone();
    newer[8] = 7;
    let error = sample.read(&newer).err().unwrap().to_string();
    assert!(error.contains("format version 7"), "{error}");
    assert!(sample.read(b"hello").err().unwrap().to_string().contains("not a Raddle trace"));
    assert!(read(Path::new("/nonexistent")).err().unwrap().to_string().contains("/nonexistent"));
}

/// Makes the checksums of every chunk right again, so that damage reaches the layers below.
fn repair(bytes: &mut [u8]) {
    let mut at = PREAMBLE_BYTES;
    while at + CHUNK_HEADER_BYTES <= bytes.len() {
        let stored = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        let payload = at + CHUNK_HEADER_BYTES;
        let end = payload.saturating_add(stored).min(bytes.len());
        let crc = crc32fast::hash(&bytes[payload..end]);
        bytes[at + 36..at + 40].copy_from_slice(&crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[at..at + 60]);
        bytes[at + 60..at + 64].copy_from_slice(&crc.to_le_bytes());
        at = end;
    }
}

#[test]
fn mutated_files_never_panic() {
    let count = std::env::var("RADDLE_TEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(600u64);
    let sample = Sample::new(4, 4_000, 2);
    let (mut read_well, mut refused) = (0, 0);
    for seed in 0..count {
        let mut rng = Rng::new(seed);
        let mut bytes = sample.bytes.clone();
        for _ in 0..1 + rng.below(6) {
            let at = rng.below(bytes.len() as u32) as usize;
            match rng.below(5) {
                0 => bytes[at] ^= 1 << rng.below(8),
                1 => bytes[at] = rng.next_u64() as u8,
                2 => bytes.truncate(at.max(20)),
                3 => {
                    let end = (at + rng.below(200) as usize).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    let target = rng.below(bytes.len() as u32) as usize;
                    bytes.splice(target..target, piece);
                }
                _ => {
                    let end = (at + 8).min(bytes.len());
                    bytes[at..end].fill(0xff);
                }
            }
        }
        if seed % 4 != 0 {
            repair(&mut bytes);
        }
        // A panic here prints the seed through this guard.
        let guard = PrintSeed(seed);
        match sample.read(&bytes) {
            Ok((file, _)) => {
                read_well += 1;
                file.damaged();
                info(&sample.path(), &mut |_| {}).unwrap();
            }
            Err(_) => refused += 1,
        }
        std::mem::forget(guard);
    }
    assert!(read_well > 0 && refused > 0, "{read_well} read, {refused} refused");
}

struct PrintSeed(u64);

impl Drop for PrintSeed {
    fn drop(&mut self) {
        eprintln!("seed {}", self.0);
    }
}
