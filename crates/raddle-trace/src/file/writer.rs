//! Writes trace files, chunk by chunk, prepared for the disk to be full.
//!
//! Each chunk is one `write`. The writer keeps [`RESERVE_BYTES`] of the disk allocated behind the end of the file: when
//! a chunk of records does not fit any more, there is still room to say how the run ended and that the trace was cut.
//! Where the file system cannot allocate ahead, the file is shortened to its last complete chunk instead. A limit on the size of
//! files (`ulimit -f`) leaves the same room, because allocating behind the end of a file does not ask about it.

use super::chunk::{
    CHUNK_RECORDS_MAX, ChunkHeader, ChunkKind, FORMAT_VERSION, MAGIC, NO_SEQUENCE, PREAMBLE_BYTES,
};
use super::codec::{Encoder, Seen};
use super::meta::{Ending, ModuleMeta, ThreadMeta, TraceInfo};
use crate::region::Message;
use raddle_wire::Record;
use rustix::fs::FallocateFlags;
use rustix::process::Resource;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Room kept for the last chunks: a full module table, all messages, the end.
const RESERVE_BYTES: u64 = 256 * 1024;

/// Allocated ahead at a time, so that most chunks need one system call.
const AHEAD_BYTES: u64 = 4 * 1024 * 1024;

const THREADS_PER_CHUNK: usize = 4096;

/// Whose records a chunk holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub thread: u32,
    pub image: u32,
    pub ordinal: u32,
    pub first_record: u32,
}

/// How much has been written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub chunks: u64,
    pub records: u64,
    pub events: u64,
    pub bytes: u64,
}

/// A trace file that is being written.
pub struct TraceWriter {
    file: File,
    encoder: Encoder,
    written: Written,
    /// End of the part of the disk that is ours; `None` where the file system cannot allocate ahead.
    allocated: Option<u64>,
}

impl TraceWriter {
    pub fn create(path: &Path, info: &TraceInfo) -> io::Result<TraceWriter> {
        let mut file = File::create(path)?;
        let mut preamble = [0; PREAMBLE_BYTES];
        preamble[..8].copy_from_slice(&MAGIC);
        preamble[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        file.write_all(&preamble)?;
        let written = Written { bytes: PREAMBLE_BYTES as u64, ..Written::default() };
        let mut writer = TraceWriter { file, encoder: Encoder::default(), written, allocated: Some(0) };
        writer.make_room(0)?;
        writer.json(ChunkKind::Info, info)?;
        Ok(writer)
    }

    pub fn written(&self) -> Written {
        self.written
    }

    /// Writes records of one thread. After an error the file is as it was before the call, and the last chunks can
    /// still be written.
    pub fn records(&mut self, origin: Origin, records: &[Record]) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let (payload, compressed, plain_bytes, seen) = self.encoder.encode_compressed(records);
        let header = ChunkHeader {
            kind: ChunkKind::Records as u8,
            stored_bytes: payload.len() as u32,
            plain_bytes,
            compressed,
            thread: origin.thread,
            image: origin.image,
            ordinal: origin.ordinal,
            first_record: origin.first_record,
            records: records.len() as u32,
            events: seen.events,
            first_sequence: seen.first_sequence,
            last_sequence: seen.last_sequence,
            payload_crc: crc32fast::hash(&payload),
        };
        self.stay_below_the_limit(payload.len() as u64)?;
        self.make_room(payload.len() as u64)?;
        self.chunk(&header, &payload)?;
        self.written.records += records.len() as u64;
        self.written.events += u64::from(seen.events);
        Ok(())
    }

    pub fn modules(&mut self, modules: &[ModuleMeta]) -> io::Result<()> {
        self.json(ChunkKind::Modules, &modules)
    }

    pub fn threads(&mut self, threads: &[ThreadMeta]) -> io::Result<()> {
        // In parts, so that no chunk becomes larger than chunks may be.
        threads.chunks(THREADS_PER_CHUNK).try_for_each(|part| self.json(ChunkKind::Threads, &part))
    }

    pub fn messages(&mut self, messages: &[Message]) -> io::Result<()> {
        self.json(ChunkKind::Messages, &messages)
    }

    /// Writes the last chunk and gives back what was allocated ahead.
    pub fn finish(mut self, ending: &Ending) -> io::Result<Written> {
        self.json(ChunkKind::End, ending)?;
        self.file.set_len(self.written.bytes)?;
        self.file.sync_data()?;
        Ok(self.written)
    }

    fn json<T: serde::Serialize>(&mut self, kind: ChunkKind, value: &T) -> io::Result<()> {
        let plain = serde_json::to_vec(value)?;
        let compressed = self.encoder.compress(&plain);
        let payload = compressed.as_deref().unwrap_or(&plain);
        let seen = Seen::default();
        let header = ChunkHeader {
            kind: kind as u8,
            stored_bytes: payload.len() as u32,
            plain_bytes: plain.len() as u32,
            compressed: compressed.is_some(),
            first_sequence: seen.first_sequence,
            last_sequence: seen.last_sequence,
            payload_crc: crc32fast::hash(payload),
            ..ChunkHeader::default()
        };
        debug_assert_eq!(header.first_sequence, NO_SEQUENCE);
        self.chunk(&header, payload)
    }

    fn chunk(&mut self, header: &ChunkHeader, payload: &[u8]) -> io::Result<()> {
        // What a reader finds out about a damaged file, and what nobody else can be blamed for here.
        assert_eq!(header.stored_bytes as usize, payload.len(), "a chunk says how long it is");
        assert!(header.events <= header.records && header.records <= CHUNK_RECORDS_MAX, "its counts fit");
        let mut bytes = Vec::with_capacity(size_of_val(&header.to_bytes()) + payload.len());
        bytes.extend_from_slice(&header.to_bytes());
        bytes.extend_from_slice(payload);
        if let Err(error) = self.file.write_all(&bytes) {
            // Half a chunk is worth nothing, and its bytes may be what the last chunk needs.
            self.file.set_len(self.written.bytes)?;
            std::io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.written.bytes))?;
            self.allocated = self.allocated.map(|_| self.written.bytes);
            return Err(error);
        }
        self.written.bytes += bytes.len() as u64;
        self.written.chunks += 1;
        Ok(())
    }

    /// Makes sure that `payload_bytes` more and the reserve, or a quarter of the limit if that is less, may be written.
    fn stay_below_the_limit(&self, payload_bytes: u64) -> io::Result<()> {
        match rustix::process::getrlimit(Resource::Fsize).current {
            Some(limit) if self.written.bytes + payload_bytes + RESERVE_BYTES.min(limit / 4) > limit => {
                Err(rustix::io::Errno::FBIG.into())
            }
            _ => Ok(()),
        }
    }

    /// Makes sure that `payload_bytes` more and the reserve fit onto the disk.
    fn make_room(&mut self, payload_bytes: u64) -> io::Result<()> {
        let Some(allocated) = self.allocated else { return Ok(()) };
        let needed = self.written.bytes + payload_bytes + RESERVE_BYTES;
        if needed <= allocated {
            return Ok(());
        }
        for end in [needed + AHEAD_BYTES, needed] {
            let allocate =
                || rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, allocated, end - allocated);
            match rustix::io::retry_on_intr(allocate) {
                Ok(()) => {
                    self.allocated = Some(end);
                    return Ok(());
                }
                Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                    self.allocated = None;
                    return Ok(());
                }
                Err(error) if end == needed => return Err(error.into()),
                Err(_) => {}
            }
        }
        Ok(())
    }
}
