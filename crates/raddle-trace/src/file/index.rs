//! The index of a trace file: where each thread's chunks are, found by walking from header to header.
//!
//! Nothing is decoded but the JSON chunks, so that opening a trace costs a few bytes of reading a chunk. Chunks of a
//! thread are put into the order in which the thread wrote them (image, ordinal of the slot, place in the slot),
//! whatever their order in the file.

use super::chunk::{CHUNK_HEADER_BYTES, ChunkHeader, ChunkKind, FORMAT_VERSION, MAGIC, PREAMBLE_BYTES};
use super::codec::Decoder;
use super::meta::{Ending, ModuleMeta, ThreadMeta, TraceInfo};
use crate::region::Message;
use crate::source::TraceError;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A chunk of records and where it is.
#[derive(Clone, Copy, Debug)]
pub struct ChunkRef {
    /// Offset of the chunk's header.
    pub offset: u64,
    pub header: ChunkHeader,
}

/// The chunks of one thread, in the order in which it wrote them.
#[derive(Clone, Debug)]
pub struct Stream {
    pub image: u32,
    /// Index of the thread as the runtime counted.
    pub thread: u32,
    pub chunks: Vec<ChunkRef>,
}

/// What a file holds.
#[derive(Clone, Debug, Default)]
pub struct Index {
    pub info: TraceInfo,
    pub modules: Vec<ModuleMeta>,
    pub messages: Vec<Message>,
    pub ending: Option<Ending>,
    /// The thread table of a converted trace.
    pub threads: Vec<ThreadMeta>,
    /// Ordered by image and thread.
    pub streams: Vec<Stream>,
    pub chunks: u64,
    /// Bytes of the file, and up to where it could be read.
    pub file_bytes: u64,
    pub readable_bytes: u64,
    /// Why the rest of the file could not be read, if there is a rest.
    pub damage: Option<String>,
}

/// Most modules and messages that are kept.
const MODULES_MAX: usize = 1 << 16;
const MESSAGES_MAX: usize = 1 << 12;

/// Most threads of a trace.
pub const THREADS_MAX: usize = 1 << 22;

impl Index {
    /// Why the trace does not cover the whole run, if it does not.
    pub fn cut(&self) -> Option<String> {
        match (&self.ending, &self.damage) {
            (Some(ending), None) => ending.cut.clone(),
            (_, Some(damage)) => Some(damage.clone()),
            (None, None) => Some("the recording was interrupted: the file has no last chunk".to_owned()),
        }
    }

    /// Events as the headers count them.
    pub fn events(&self) -> u64 {
        self.chunk_headers().map(|header| u64::from(header.events)).sum()
    }

    pub fn records(&self) -> u64 {
        self.chunk_headers().map(|header| u64::from(header.records)).sum()
    }

    fn chunk_headers(&self) -> impl Iterator<Item = &ChunkHeader> {
        self.streams.iter().flat_map(|stream| stream.chunks.iter().map(|chunk| &chunk.header))
    }
}

/// Makes an error that names file and offset.
pub fn error_at(path: &Path, offset: u64, problem: impl Into<String>) -> TraceError {
    TraceError {
        file: path.display().to_string(),
        place: format!("offset {offset:#x}"),
        problem: problem.into(),
    }
}

/// Is this the beginning of a trace file?
pub fn is_trace(first_bytes: &[u8]) -> bool {
    first_bytes.starts_with(&MAGIC)
}

/// Reads the payload of a chunk and checks it.
pub fn read_payload(
    file: &File,
    path: &Path,
    chunk: &ChunkRef,
    stored: &mut Vec<u8>,
) -> Result<(), TraceError> {
    stored.resize(chunk.header.stored_bytes as usize, 0);
    file.read_exact_at(stored, chunk.offset + CHUNK_HEADER_BYTES as u64)
        .map_err(|error| error_at(path, chunk.offset, format!("cannot read the chunk: {error}")))?;
    if crc32fast::hash(stored) != chunk.header.payload_crc {
        return Err(error_at(
            path,
            chunk.offset,
            "the chunk is damaged (wrong checksum); record the trace again",
        ));
    }
    Ok(())
}

/// Walks through a file.
pub fn scan(file: &File, path: &Path) -> Result<Index, TraceError> {
    let failed = |offset, error: std::io::Error| error_at(path, offset, format!("cannot read: {error}"));
    let file_bytes = file.metadata().map_err(|error| failed(0, error))?.len();
    check_preamble(file, path, file_bytes)?;
    let mut index = Index { file_bytes, ..Index::default() };
    let mut streams: FxHashMap<(u32, u32), Vec<ChunkRef>> = FxHashMap::default();
    let mut decoder = Decoder::default();
    let mut offset = PREAMBLE_BYTES as u64;
    while offset < file_bytes {
        let mut bytes = [0; CHUNK_HEADER_BYTES];
        if file_bytes - offset < CHUNK_HEADER_BYTES as u64 {
            index.damage = Some(format!("the file ends inside a chunk at offset {offset:#x}"));
            break;
        }
        file.read_exact_at(&mut bytes, offset).map_err(|error| failed(offset, error))?;
        let header = match ChunkHeader::from_bytes(&bytes) {
            Ok(header) => header,
            Err(_) if bytes.iter().all(|&byte| byte == 0) => {
                // Allocated ahead by a writer that died.
                index.damage =
                    Some(format!("the recording was interrupted: only zeros from offset {offset:#x}"));
                break;
            }
            Err(problem) => {
                index.damage = Some(format!("damaged at offset {offset:#x}: {problem}"));
                break;
            }
        };
        let next = offset + CHUNK_HEADER_BYTES as u64 + u64::from(header.stored_bytes);
        if next > file_bytes {
            index.damage = Some(format!("the file ends inside a chunk at offset {offset:#x}"));
            break;
        }
        let chunk = ChunkRef { offset, header };
        match ChunkKind::from_u8(header.kind) {
            Some(ChunkKind::Records) => {
                streams.entry((header.image, header.thread)).or_default().push(chunk);
            }
            Some(kind) => read_json(file, path, &chunk, kind, &mut decoder, &mut index)?,
            None => {}
        }
        index.chunks += 1;
        offset = next;
    }
    index.readable_bytes = offset.min(file_bytes);
    index.streams = streams
        .into_iter()
        .map(|((image, thread), mut chunks)| {
            chunks.sort_by_key(|chunk| (chunk.header.ordinal, chunk.header.first_record, chunk.offset));
            Stream { image, thread, chunks }
        })
        .collect();
    index.streams.sort_by_key(|stream| (stream.image, stream.thread));
    Ok(index)
}

fn check_preamble(file: &File, path: &Path, file_bytes: u64) -> Result<(), TraceError> {
    let mut preamble = [0; PREAMBLE_BYTES];
    let there = (file_bytes as usize).min(PREAMBLE_BYTES);
    file.read_exact_at(&mut preamble[..there], 0)
        .map_err(|error| error_at(path, 0, format!("cannot read: {error}")))?;
    if !is_trace(&preamble) || there < PREAMBLE_BYTES {
        return Err(error_at(path, 0, "this is not a Raddle trace (record one with `raddle record`)"));
    }
    let version = u32::from_le_bytes([preamble[8], preamble[9], preamble[10], preamble[11]]);
    if version > FORMAT_VERSION {
        return Err(error_at(
            path,
            8,
            format!(
                "the trace has format version {version} and this raddle reads up to {FORMAT_VERSION}; \
                 use the raddle that wrote it, or a newer one"
            ),
        ));
    }
    Ok(())
}

fn read_json(
    file: &File,
    path: &Path,
    chunk: &ChunkRef,
    kind: ChunkKind,
    decoder: &mut Decoder,
    index: &mut Index,
) -> Result<(), TraceError> {
    let mut stored = Vec::new();
    read_payload(file, path, chunk, &mut stored)?;
    let plain = match chunk.header.compressed {
        true => decoder
            .decompress(&stored, chunk.header.plain_bytes)
            .map_err(|problem| error_at(path, chunk.offset, problem))?,
        false => stored,
    };
    let result = match kind {
        ChunkKind::Info => serde_json::from_slice(&plain).map(|info| index.info = info),
        ChunkKind::Modules => serde_json::from_slice::<Vec<ModuleMeta>>(&plain).map(|modules| {
            let room = MODULES_MAX.saturating_sub(index.modules.len());
            index.modules.extend(modules.into_iter().take(room));
        }),
        ChunkKind::Messages => serde_json::from_slice::<Vec<Message>>(&plain).map(|messages| {
            let room = MESSAGES_MAX.saturating_sub(index.messages.len());
            index.messages.extend(messages.into_iter().take(room));
        }),
        ChunkKind::End => serde_json::from_slice(&plain).map(|ending| index.ending = Some(ending)),
        ChunkKind::Threads => serde_json::from_slice::<Vec<ThreadMeta>>(&plain).map(|threads| {
            let room = THREADS_MAX.saturating_sub(index.threads.len());
            index.threads.extend(threads.into_iter().take(room));
        }),
        ChunkKind::Records => Ok(()),
    };
    result
        .map_err(|error| error_at(path, chunk.offset, format!("the chunk is not what it should be: {error}")))
}
