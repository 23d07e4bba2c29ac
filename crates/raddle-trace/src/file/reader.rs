//! Reads a trace file as one stream of events in the observed order.
//!
//! Each thread's events are in order already; what has an order across threads carries a sequence number. Reading is
//! therefore a merge: of all threads, the one whose next sequenced event has the smallest number goes on, with that
//! event and with everything up to its next sequenced event. A thread is looked at only when its first sequence number
//! (known from the chunk's header) is due, and of each thread one decoded chunk is in memory: the memory needed follows
//! the number of threads that are alive at the same time, not the length of the trace.

use super::codec::Decoder;
use super::index::{Index, THREADS_MAX, error_at, read_payload, scan};
use crate::decode::{ChunkScratch, ThreadDecoder, ThreadEvents, in_image};
use crate::event::{Event, Op};
use crate::file::chunk::NO_SEQUENCE;
use crate::ids::ThreadIx;
use crate::ops_beside;
use crate::source::{EventSource, TraceError};
use crate::tables::{Home, Module, Tables, Thread};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Events a batch has, give or take: few enough to stay in the nearest caches.
const BATCH_EVENTS: usize = 512;

/// Most decoded events that may wait in memory for their turn (1.3 GB); only a hostile file needs more.
const WAITING_EVENTS_MAX: usize = 1 << 25;

/// One thread's place in the merge.
struct Cursor {
    stream: usize,
    decoder: ThreadDecoder,
    chunk: usize,
    buffer: ThreadEvents,
    /// Next event of the buffer, and next mark.
    event: usize,
    mark: usize,
    /// The stream has no more chunks, and the decoder was told so.
    ended: bool,
}

/// A trace file, being read.
pub struct TraceFile {
    path: PathBuf,
    file: File,
    index: Index,
    tables: Tables,
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    /// By stream; boxed, because a turn takes the cursor out and puts it back.
    cursors: Vec<Option<Box<Cursor>>>,
    /// The stream whose turn it is.
    active: Option<usize>,
    /// Threads by image and recorded index.
    threads: FxHashMap<(u32, u32), ThreadIx>,
    /// Names given to threads that have not been seen yet.
    names: FxHashMap<(u32, u32), String>,
    spare: Vec<ThreadEvents>,
    decoder: Decoder,
    scratch: ChunkScratch,
    stored: Vec<u8>,
    waiting_events: usize,
    bytes_read: u64,
    bytes_of_records: u64,
    damaged: u64,
}

impl TraceFile {
    pub fn open(path: &Path) -> Result<TraceFile, TraceError> {
        let file =
            File::open(path).map_err(|error| error_at(path, 0, format!("cannot open the trace: {error}")))?;
        let index = scan(&file, path)?;
        let mut tables = Tables::default();
        tables.modules = index
            .modules
            .iter()
            .map(|module| Module {
                path: module.path.clone(),
                start: in_image(module.image, module.start),
                end: in_image(module.image, module.end),
                bias: module.bias.wrapping_add(u64::from(module.image & 0x7fff) << 48),
                build_id: bytes_of_hex(&module.build_id),
            })
            .collect();
        let threads = given_threads(&index, &mut tables);
        let waiting = index
            .streams
            .iter()
            .enumerate()
            .map(|(ix, stream)| {
                let first = stream.chunks.first().map_or(NO_SEQUENCE, |chunk| chunk.header.first_sequence);
                Reverse((if first == NO_SEQUENCE { 0 } else { first }, ix))
            })
            .collect();
        let bytes_of_records = index
            .streams
            .iter()
            .flat_map(|stream| &stream.chunks)
            .map(|chunk| u64::from(chunk.header.stored_bytes))
            .sum();
        let cursors = index.streams.iter().map(|_| None).collect();
        Ok(TraceFile {
            path: path.to_owned(),
            file,
            index,
            tables,
            waiting,
            cursors,
            active: None,
            threads,
            names: FxHashMap::default(),
            spare: Vec::new(),
            decoder: Decoder::default(),
            scratch: ChunkScratch::default(),
            stored: Vec::new(),
            waiting_events: 0,
            bytes_read: 0,
            bytes_of_records,
            damaged: 0,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Events dropped so far because their records are incomplete or make no sense.
    pub fn damaged(&self) -> u64 {
        self.damaged + self.cursors.iter().flatten().map(|cursor| cursor.decoder.damaged).sum::<u64>()
    }

    /// The thread with this recorded index; makes one, child of `parent`, if it is new.
    fn thread(
        &mut self,
        image: u32,
        recorded: u32,
        parent: Option<ThreadIx>,
    ) -> Result<ThreadIx, TraceError> {
        if let Some(&thread) = self.threads.get(&(image, recorded)) {
            return Ok(thread);
        }
        if self.tables.threads.len() >= THREADS_MAX {
            return Err(error_at(&self.path, 0, format!("the trace has more than {THREADS_MAX} threads")));
        }
        let first_image = self.index.streams.first().map_or(0, |stream| stream.image);
        let thread = if recorded == 0 && image == first_image {
            ThreadIx::MAIN
        } else {
            let thread = self.tables.add_thread(parent);
            if recorded == 0 && parent.is_none() {
                self.tables.threads[thread.index()].name = format!("1@{image}");
            }
            thread
        };
        self.threads.insert((image, recorded), thread);
        if let Some(name) = self.names.remove(&(image, recorded)) {
            self.tables.threads[thread.index()].given_name = Some(printable(&name));
        }
        Ok(thread)
    }

    fn begin_stream(&mut self, stream: usize) -> Result<(), TraceError> {
        let (image, recorded) = (self.index.streams[stream].image, self.index.streams[stream].thread);
        let thread = self.thread(image, recorded, None)?;
        let cursor = Cursor {
            stream,
            decoder: ThreadDecoder::new(thread, image, self.index.info.locations),
            chunk: 0,
            buffer: self.spare.pop().unwrap_or_default(),
            event: 0,
            mark: 0,
            ended: false,
        };
        self.cursors[stream] = Some(Box::new(cursor));
        Ok(())
    }

    /// Decodes the next chunk into the cursor's empty buffer.
    fn refill(&mut self, cursor: &mut Cursor) -> Result<(), TraceError> {
        self.waiting_events -= cursor.buffer.len();
        cursor.buffer.clear();
        (cursor.event, cursor.mark) = (0, 0);
        let stream = &self.index.streams[cursor.stream];
        let Some(chunk) = stream.chunks.get(cursor.chunk).copied() else {
            cursor.decoder.finish(&mut self.tables, &mut cursor.buffer);
            cursor.ended = true;
            self.waiting_events += cursor.buffer.len();
            self.damaged += std::mem::take(&mut cursor.decoder.damaged);
            return self.note_names(cursor);
        };
        cursor.chunk += 1;
        read_payload(&self.file, &self.path, &chunk, &mut self.stored)?;
        let header = &chunk.header;
        let mut sink = cursor.decoder.chunk(&mut self.scratch, &mut self.tables, &mut cursor.buffer);
        self.decoder
            .decode(&self.stored, header.compressed, header.plain_bytes, header.records, &mut sink)
            .map_err(|problem| error_at(&self.path, chunk.offset, problem))?;
        sink.end();
        self.bytes_read += u64::from(header.stored_bytes);
        self.waiting_events += cursor.buffer.len();
        if self.waiting_events > WAITING_EVENTS_MAX {
            return Err(error_at(
                &self.path,
                chunk.offset,
                format!("more than {WAITING_EVENTS_MAX} events of threads that run at the same time"),
            ));
        }
        self.note_names(cursor)
    }

    fn note_names(&mut self, cursor: &mut Cursor) -> Result<(), TraceError> {
        let image = self.index.streams[cursor.stream].image;
        if let Some(thread) = self.threads.get(&(image, self.index.streams[cursor.stream].thread)) {
            let home = &mut self.tables.threads[thread.index()].home;
            cursor.buffer.homes.drain(..).for_each(|told| home.learn(told));
        }
        for (recorded, name) in cursor.buffer.names.drain(..) {
            match self.threads.get(&(image, recorded)) {
                Some(thread) => self.tables.threads[thread.index()].given_name = Some(printable(&name)),
                None if self.names.len() < THREADS_MAX => {
                    self.names.insert((image, recorded), name);
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Appends events of the active thread, at most `room`; says whether its turn goes on.
    fn advance(
        &mut self,
        cursor: &mut Cursor,
        room: usize,
        batch: &mut Vec<Event>,
    ) -> Result<bool, TraceError> {
        let end = batch.len() + room;
        // Nobody joins the others who wait while this thread has its turn.
        let due = self.waiting.peek().map_or((u64::MAX, usize::MAX), |Reverse(first)| *first);
        loop {
            let mark = cursor.buffer.marks.get(cursor.mark).copied();
            let stop = mark.map_or(cursor.buffer.len(), |mark| mark.start);
            let count = (stop - cursor.event).min(end - batch.len());
            cursor.buffer.copy_to(cursor.event..cursor.event + count, batch);
            cursor.event += count;
            if cursor.event < stop {
                return Ok(true);
            }
            if let Some(mark) = mark {
                // Go on at once if nobody else is due.
                if due < (mark.sequence, cursor.stream) || batch.len() >= end {
                    return Ok(false);
                }
                self.take_mark(cursor, batch)?;
                continue;
            }
            if cursor.ended {
                return Ok(false);
            }
            self.refill(cursor)?;
        }
    }

    /// Steps over the cursor's next mark, handing out its event.
    #[inline]
    fn take_mark(&mut self, cursor: &mut Cursor, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        cursor.mark += 1;
        let next = cursor.buffer.marks.get(cursor.mark).map_or(cursor.buffer.len(), |mark| mark.start);
        if cursor.event < next {
            let mut event = cursor.buffer.get(cursor.event);
            cursor.event += 1;
            if names_threads(&event.op) {
                let image = self.index.streams[cursor.stream].image;
                self.name_threads(image, &mut event)?;
            }
            batch.push(event);
        }
        Ok(())
    }

    /// Replaces recorded thread indices by those of the trace.
    fn name_threads(&mut self, image: u32, event: &mut Event) -> Result<(), TraceError> {
        let by = event.thread;
        match &mut event.op {
            Op::Fork { child } => *child = self.thread(image, child.0, Some(by))?,
            Op::Start { parent: other }
            | Op::Join { child: other }
            | Op::JoinFailed { child: other }
            | Op::Detach { child: other }
            | Op::Cancel { thread: other } => *other = self.thread(image, other.0, None)?,
            Op::End | ops_beside!(Thread) => {}
        }
        Ok(())
    }
}

impl EventSource for TraceFile {
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        batch.clear();
        while batch.len() < BATCH_EVENTS {
            let resumed = self.active.take();
            let stream = match resumed {
                Some(stream) => stream,
                None => match self.waiting.pop() {
                    Some(Reverse((_, stream))) => stream,
                    None => break,
                },
            };
            if self.cursors[stream].is_none() {
                self.begin_stream(stream)?;
            }
            let Some(mut cursor) = self.cursors[stream].take() else { continue };
            if resumed.is_none() && cursor.mark < cursor.buffer.marks.len() {
                self.take_mark(&mut cursor, batch)?;
            }
            let goes_on = self.advance(&mut cursor, BATCH_EVENTS.saturating_sub(batch.len()), batch)?;
            if goes_on {
                self.active = Some(stream);
            } else if let Some(mark) = cursor.buffer.marks.get(cursor.mark) {
                self.waiting.push(Reverse((mark.sequence, stream)));
            } else {
                self.waiting_events -= cursor.buffer.len();
                cursor.buffer.clear();
                self.spare.push(cursor.buffer);
                continue;
            }
            self.cursors[stream] = Some(cursor);
        }
        Ok(())
    }

    fn tables(&self) -> &Tables {
        &self.tables
    }

    fn progress(&self) -> Option<(u64, u64)> {
        Some((self.bytes_read, self.bytes_of_records))
    }
}

/// Does the operation name another thread?
fn names_threads(op: &Op) -> bool {
    matches!(
        op,
        Op::Fork { .. }
            | Op::Start { .. }
            | Op::Join { .. }
            | Op::JoinFailed { .. }
            | Op::Detach { .. }
            | Op::Cancel { .. }
    )
}

/// Names are printed; a hostile one shall not control the terminal or break a line.
fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Takes over the thread table of a converted trace.
fn given_threads(index: &Index, tables: &mut Tables) -> FxHashMap<(u32, u32), ThreadIx> {
    let mut threads = FxHashMap::default();
    if index.threads.is_empty() {
        return threads;
    }
    tables.threads = index
        .threads
        .iter()
        .map(|thread| Thread {
            name: printable(&thread.name),
            given_name: thread.given_name.as_deref().map(printable),
            parent: thread.parent.filter(|&parent| (parent as usize) < index.threads.len()).map(ThreadIx),
            children: thread.children,
            home: Home::default(),
        })
        .collect();
    threads.extend((0..index.threads.len() as u32).map(|ix| ((0, ix), ThreadIx(ix))));
    threads
}

fn bytes_of_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
