//! Turns the records of one thread into events.
//!
//! Records are what the runtime can afford to write; events are what analyses want to read. Between them: the call
//! stack, of which records tell only the changes, becomes a node of the trace's tree of contexts; program counters
//! become locations; texts that follow an event are put together; the mutex of a condition wait, which only the
//! beginning of the wait names, is remembered for its end.
//!
//! Records are not trusted. An event whose records are incomplete or make no sense is dropped and counted in
//! [`ThreadDecoder::damaged`]; limits bound what a hostile file can make us keep.
//!
//! # Images
//!
//! A program can replace itself by `exec`. Addresses and program counters of the new image have nothing to do with
//! those of the old one, so that those of image n > 0 carry n in their upper 16 bits, here and in the module table.

use crate::event::{AccessFlags, AtomicKind, Event, Op, Order, has_text};
use crate::file::codec::RecordSink;
use crate::file::meta::LocationKind;
use crate::ids::{Addr, ContextIx, LocationIx, ObjectId, TextIx, ThreadIx};
use crate::payload::WordReader;
use crate::tables::{Frame, Location, Tables};
use raddle_wire::record::{LOW48, Record, SyncOp, Tag, access, atomic};
use raddle_wire::report::home;

/// Deepest stack that is kept; calls beyond it are counted, not kept.
pub const STACK_DEPTH_MAX: usize = 1 << 16;

/// Most nodes of the tree of contexts; beyond it events get the context of a caller.
pub const CONTEXTS_MAX: usize = 1 << 25;

/// Longest text that belongs to an event.
const TEXT_BYTES_MAX: usize = 4096;

/// Bytes of text in one record.
const TEXT_RECORD_BYTES: usize = 14;

/// Tags the addresses of an image.
pub const fn in_image(image: u32, address: u64) -> u64 {
    address | (image as u64 & 0x7fff) << 48
}

/// Where, among the events of a thread, one stands that has a place in the global order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub sequence: u64,
    /// Index of the first event that belongs to it.
    pub start: usize,
}

/// An event of one thread, small: most are plain accesses, which fit; others stand in a list beside.
#[derive(Clone, Copy, Debug)]
struct Slim {
    /// Address of an access, or index of another event.
    word: u64,
    location: LocationIx,
    context: ContextIx,
    kept_calls: u32,
    /// The record's `aux`, or [`OTHER`].
    aux: u8,
}

/// Not a valid `aux` of an access: its size code is above all sizes.
const OTHER: u8 = u8::MAX;

/// Events of one thread. Thread indices inside operations (`Fork`, `Join`, ...) are still the recorded ones.
///
/// A trace has one of these for each thread that is alive, and reading goes round among them: they are kept half as
/// large as events so that the caches are left to the analyses.
#[derive(Clone, Debug, Default)]
pub struct ThreadEvents {
    thread: ThreadIx,
    slim: Vec<Slim>,
    others: Vec<Event>,
    pub marks: Vec<Mark>,
    /// Names given to threads: recorded index, name.
    pub names: Vec<(u32, String)>,
    /// What the thread has told about where it lives.
    pub homes: Vec<Lives>,
}

/// A piece of what a thread tells about where it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lives {
    OnStack { start: u64, end: u64 },
    AtPointer(u64),
    InFrame(Frame),
}

impl ThreadEvents {
    pub fn clear(&mut self) {
        self.slim.clear();
        self.others.clear();
        self.marks.clear();
        self.names.clear();
        self.homes.clear();
    }

    pub fn len(&self) -> usize {
        self.slim.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slim.is_empty()
    }

    pub fn get(&self, index: usize) -> Event {
        self.expand(&self.slim[index])
    }

    /// Appends a part of the events to `batch`.
    #[inline]
    pub fn copy_to(&self, range: std::ops::Range<usize>, batch: &mut Vec<Event>) {
        for slim in &self.slim[range] {
            batch.push(self.expand(slim));
        }
    }

    #[inline(always)]
    fn expand(&self, slim: &Slim) -> Event {
        let (location, context, kept_calls) = (slim.location, slim.context, slim.kept_calls);
        match access_op(slim.aux, Addr(slim.word), 1 << (slim.aux & access::SIZE_MASK)) {
            Some(op) => Event { thread: self.thread, location, context, kept_calls, op },
            None => self.others[slim.word as usize],
        }
    }

    fn push(&mut self, event: Event) {
        let word = self.others.len() as u64;
        let Event { location, context, kept_calls, .. } = event;
        self.slim.push(Slim { word, location, context, kept_calls, aux: OTHER });
        self.others.push(event);
    }
}

/// An event whose text may not be complete yet.
#[derive(Debug)]
struct Unfinished {
    op: SyncOp,
    object: u64,
    location: LocationIx,
    context: ContextIx,
    kept_calls: u32,
    sequence: u64,
    text: Vec<u8>,
}

/// The state of one thread's stream of records.
#[derive(Debug)]
pub struct ThreadDecoder {
    image: u32,
    locations: LocationKind,
    thread: ThreadIx,
    stack: Vec<ContextIx>,
    /// Calls of the stack that were there at the last event and have not returned since.
    kept_calls: u32,
    /// Calls beyond [`STACK_DEPTH_MAX`].
    too_deep: u64,
    /// Mutex of the condition wait that is going on.
    wait_lock: ObjectId,
    unfinished: Option<Unfinished>,
    /// Events that were dropped because their records are incomplete or make no sense.
    pub damaged: u64,
}

impl ThreadDecoder {
    pub fn new(thread: ThreadIx, image: u32, locations: LocationKind) -> ThreadDecoder {
        ThreadDecoder {
            image,
            locations,
            thread,
            stack: Vec::new(),
            kept_calls: 0,
            too_deep: 0,
            wait_lock: ObjectId(0),
            unfinished: None,
            damaged: 0,
        }
    }

    fn context(&self) -> ContextIx {
        self.stack.last().copied().unwrap_or(ContextIx::ROOT)
    }

    /// [`Event::kept_calls`] of an event that stands here.
    #[inline(always)]
    fn keep_calls(&mut self) -> u32 {
        std::mem::replace(&mut self.kept_calls, self.stack.len() as u32)
    }

    fn intern_location(&self, pc: u64, tables: &mut Tables) -> LocationIx {
        match (self.locations, pc) {
            (_, 0) => LocationIx::UNKNOWN,
            (LocationKind::Pc, pc) => tables.intern_location(Location::Pc(self.addr(pc).0)),
            (LocationKind::Foreign, code) => match u32::try_from(code - 1) {
                Ok(number) => match tables.known_foreign(number) {
                    Some(known) => known,
                    None => tables.intern_location(Location::Foreign(number)),
                },
                Err(_) => LocationIx::UNKNOWN,
            },
        }
    }

    /// A sink for the records of the next chunk of this thread: their events are appended to `out`. Call
    /// [`ChunkSink::end`] after the last record.
    pub fn chunk<'a>(
        &'a mut self,
        scratch: &'a mut ChunkScratch,
        tables: &'a mut Tables,
        out: &'a mut ThreadEvents,
    ) -> ChunkSink<'a> {
        scratch.pending.clear();
        ChunkSink { thread: self, scratch, tables, out }
    }

    /// Call after the last chunk: hands out an event that was still waiting for text.
    pub fn finish(&mut self, tables: &mut Tables, out: &mut ThreadEvents) {
        self.finish_text(tables, out);
    }

    fn pop(&mut self, depth: u64) {
        let known = self.stack.len() as u64 + self.too_deep;
        if depth > known {
            // The stack cannot become deeper by returning; keep what we have.
            self.damaged += 1;
        } else {
            self.too_deep = depth.saturating_sub(STACK_DEPTH_MAX as u64).min(self.too_deep);
            self.stack.truncate(usize::try_from(depth).unwrap_or(usize::MAX));
            self.kept_calls = self.kept_calls.min(self.stack.len() as u32);
        }
    }

    fn push(&mut self, call: LocationIx, tables: &mut Tables) {
        if self.stack.len() >= STACK_DEPTH_MAX {
            self.too_deep += 1;
        } else {
            let context = match tables.contexts() < CONTEXTS_MAX {
                true => tables.intern_context(self.context(), call),
                false => self.context(),
            };
            self.stack.push(context);
        }
    }

    fn home(&mut self, record: Record) -> Option<Lives> {
        match u32::from(record.aux()) {
            home::STACK => {
                let (start, end) = (self.addr(record.low48()).0, self.addr(record.word1).0);
                Some(Lives::OnStack { start, end })
            }
            home::THREAD_LOCAL => Some(Lives::AtPointer(self.addr(record.word1).0)),
            // Of a newer runtime.
            _ => None,
        }
    }

    fn text(&mut self, record: Record) {
        let Some(unfinished) = &mut self.unfinished else {
            self.damaged += 1;
            return;
        };
        let used = usize::from(record.aux()).min(TEXT_RECORD_BYTES);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&record.low48().to_le_bytes());
        bytes[6..14].copy_from_slice(&record.word1.to_le_bytes());
        if unfinished.text.len() + used <= TEXT_BYTES_MAX {
            unfinished.text.extend_from_slice(&bytes[..used]);
        }
    }

    /// Decodes an event from a record and its extensions; returns how many records it took.
    fn event(&mut self, records: &[Record], out: &mut ThreadEvents) -> usize {
        let (head, Some(tag)) = (records[0], Tag::from_u8(records[0].tag_byte())) else { return 0 };
        let location = LocationIx(head.word0 as u32);
        let extensions = (records.len() - 1).min(5);
        let ext = |n: usize| (n < extensions).then(|| records[1 + n]);
        let thread = self.thread;
        let context = self.context();
        let kept_calls = self.keep_calls();
        let count = out.len();
        let mut plain = |op| out.push(Event { thread, location, context, kept_calls, op });
        let (used, understood) = match tag {
            Tag::Free => {
                plain(Op::Free { addr: self.addr(head.word1) });
                (1, true)
            }
            Tag::Lost => {
                plain(Op::Lost { count: head.word1 });
                (1, true)
            }
            Tag::Alloc => match ext(0) {
                Some(size) => {
                    plain(Op::Alloc { addr: self.addr(head.word1), size: size.word1 });
                    (2, true)
                }
                None => (1, false),
            },
            Tag::Range => match ext(0).map(|size| u32::try_from(size.word1).unwrap_or(u32::MAX)) {
                Some(size) => match access_op(head.aux() & !access::SIZE_MASK, self.addr(head.word1), size) {
                    Some(op) => {
                        plain(op);
                        (2, true)
                    }
                    None => (2, false),
                },
                None => (1, false),
            },
            Tag::Atomic => {
                let wide = usize::from(head.aux() & atomic::SIZE_MASK == 4);
                let count = 3 + 2 * wide;
                match (ext(0), ext(1), ext(2), extensions >= count) {
                    (Some(first), Some(read), Some(written), true) => {
                        match atomic_op(
                            head.aux(),
                            first.low48(),
                            self.addr(head.word1),
                            read.word1,
                            written.word1,
                        ) {
                            Some(op) => {
                                out.marks.push(Mark { sequence: first.word1, start: out.len() });
                                out.push(Event { thread, location, context, kept_calls, op });
                                (1 + count, true)
                            }
                            None => (1 + count, false),
                        }
                    }
                    _ => (1 + extensions, false),
                }
            }
            Tag::Sync => match (SyncOp::from_u8(head.aux()), ext(0)) {
                (Some(op), Some(first)) => {
                    let event = Unfinished {
                        op,
                        object: head.word1,
                        location,
                        context,
                        kept_calls,
                        sequence: first.word1,
                        text: Vec::new(),
                    };
                    (2, self.sync(event, first.low48(), out))
                }
                _ => (1 + extensions, false),
            },
            Tag::Frame => match ext(0) {
                Some(low) => {
                    // A frame so deep that its calls are not kept is nothing to name things after.
                    let depth = usize::from(head.aux());
                    if let Some(&context) = depth.checked_sub(1).and_then(|ix| self.stack.get(ix)) {
                        let (low, address) = (self.addr(low.word1).0, self.addr(head.word1).0);
                        out.homes.push(Lives::InFrame(Frame { context, location, low, address }));
                    }
                    (2, true)
                }
                None => (1, false),
            },
            Tag::End | Tag::Access | Tag::Pop | Tag::Push | Tag::Text | Tag::Ext | Tag::Home => (1, false),
        };
        self.damaged += u64::from(!understood);
        if out.len() == count && self.unfinished.is_none() {
            // Not an event: what was kept since the last one is still to be told.
            self.kept_calls = kept_calls;
        }
        used
    }

    /// Hands out a synchronisation event, or keeps it until its text is complete. False if it makes no sense.
    fn sync(&mut self, event: Unfinished, arg: u64, out: &mut ThreadEvents) -> bool {
        let mark = Mark { sequence: event.sequence, start: out.len() };
        if has_text(event.op) {
            self.unfinished = Some(event);
            return true;
        }
        // Not events: a place in the global order, and nothing more.
        let mark_alone = matches!(event.op, SyncOp::ModuleLoad | SyncOp::Other);
        // The main thread has no parent that could have forked it.
        let first_start = event.op == SyncOp::Start && self.thread == ThreadIx::MAIN;
        if mark_alone || first_start {
            out.marks.push(mark);
            return true;
        }
        let Some(op) = Op::from_sync_words(event.op, event.object, arg, TextIx(0), self) else {
            return false;
        };
        out.marks.push(mark);
        let Unfinished { location, context, kept_calls, .. } = event;
        out.push(Event { thread: self.thread, location, context, kept_calls, op });
        true
    }

    /// The text of the unfinished event, if there is one, is complete: hands the event out.
    #[inline(always)]
    fn finish_text(&mut self, tables: &mut Tables, out: &mut ThreadEvents) {
        if self.unfinished.is_some() {
            self.finish_text_now(tables, out);
        }
    }

    fn finish_text_now(&mut self, tables: &mut Tables, out: &mut ThreadEvents) {
        let Some(event) = self.unfinished.take() else { return };
        out.marks.push(Mark { sequence: event.sequence, start: out.len() });
        let text = String::from_utf8_lossy(&event.text);
        if event.op == SyncOp::ThreadName {
            self.kept_calls = self.kept_calls.min(event.kept_calls);
            match u32::try_from(event.object) {
                Ok(index) => out.names.push((index, text.into_owned())),
                Err(_) => self.damaged += 1,
            }
            return;
        }
        let name: TextIx = tables.intern_text(&text);
        let Some(op) = Op::from_sync_words(event.op, event.object, 0, name, self) else {
            self.damaged += 1;
            return;
        };
        let Unfinished { location, context, kept_calls, .. } = event;
        out.push(Event { thread: self.thread, location, context, kept_calls, op });
    }
}

impl WordReader for ThreadDecoder {
    fn addr(&self, word: u64) -> Addr {
        Addr(if self.image == 0 { word } else { in_image(self.image, word) })
    }

    fn wait_mutex(&mut self) -> &mut ObjectId {
        &mut self.wait_lock
    }
}

/// What decoding a chunk needs in between; one serves all threads, so that it stays in the cache.
#[derive(Debug, Default)]
pub struct ChunkScratch {
    /// A record that begins an event, and the extensions that have come after it.
    pending: Vec<Record>,
}

/// Largest code of an access's size: 16 bytes.
const ACCESS_SIZE_MAX: u8 = 4;

/// Turns the records of one chunk into events as they come out of the [codec](crate::file::codec).
pub struct ChunkSink<'a> {
    thread: &'a mut ThreadDecoder,
    scratch: &'a mut ChunkScratch,
    tables: &'a mut Tables,
    out: &'a mut ThreadEvents,
}

impl RecordSink for ChunkSink<'_> {
    fn begin(&mut self, records: usize) {
        self.out.thread = self.thread.thread;
        self.out.slim.reserve(records);
    }

    /// Replaces the program counter by the location.
    fn site(&mut self, word0: u64) -> u64 {
        let record = Record { word0, word1: 0 };
        match Tag::from_u8(record.tag_byte()) {
            Some(
                Tag::Access
                | Tag::Range
                | Tag::Sync
                | Tag::Atomic
                | Tag::Alloc
                | Tag::Free
                | Tag::Lost
                | Tag::Frame
                | Tag::Push,
            ) => {
                let location = self.thread.intern_location(record.low48(), self.tables);
                word0 & !LOW48 | u64::from(location.0)
            }
            Some(Tag::Ext | Tag::Text | Tag::Pop | Tag::Home | Tag::End) | None => word0,
        }
    }

    #[inline(always)]
    fn record(&mut self, record: Record) {
        if record.tag_byte() != Tag::Access as u8 {
            return self.other(record);
        }
        if !self.scratch.pending.is_empty() {
            self.flush();
        }
        let (aux, addr) = (record.aux(), self.thread.addr(record.word1));
        if aux & access::SIZE_MASK > ACCESS_SIZE_MAX {
            self.thread.damaged += 1;
            return;
        }
        let location = LocationIx(record.word0 as u32);
        self.thread.finish_text(self.tables, self.out);
        let (context, kept_calls) = (self.thread.context(), self.thread.keep_calls());
        self.out.slim.push(Slim { word: addr.0, location, context, kept_calls, aux });
    }
}

impl ChunkSink<'_> {
    /// The chunk is complete.
    pub fn end(mut self) {
        self.flush();
    }

    /// A record that is not a plain access.
    fn other(&mut self, record: Record) {
        let tag = Tag::from_u8(record.tag_byte());
        if tag == Some(Tag::Ext) && !self.scratch.pending.is_empty() {
            self.scratch.pending.push(record);
            return;
        }
        self.flush();
        match tag {
            Some(Tag::Text) => self.thread.text(record),
            Some(Tag::Pop) => self.thread.pop(record.word1),
            Some(Tag::Push) => self.thread.push(LocationIx(record.word0 as u32), self.tables),
            Some(Tag::Home) => self.out.homes.extend(self.thread.home(record)),
            Some(Tag::Range | Tag::Sync | Tag::Atomic | Tag::Alloc | Tag::Free | Tag::Lost | Tag::Frame) => {
                self.thread.finish_text(self.tables, self.out);
                self.scratch.pending.push(record);
            }
            Some(Tag::Ext | Tag::End | Tag::Access) | None => self.thread.damaged += 1,
        }
    }

    /// All extensions of the pending record have come.
    fn flush(&mut self) {
        let count = self.scratch.pending.len();
        if count > 0 {
            let used = self.thread.event(&self.scratch.pending, self.out);
            self.thread.damaged += (count - used) as u64;
            self.scratch.pending.clear();
        }
    }
}

#[inline(always)]
fn access_op(aux: u8, addr: Addr, size: u32) -> Option<Op> {
    if aux & access::SIZE_MASK > ACCESS_SIZE_MAX {
        return None;
    }
    let flags = AccessFlags {
        volatile: aux & access::VOLATILE != 0,
        vptr: aux & access::VPTR != 0,
        library: aux & access::LIBRARY != 0,
    };
    Some(match aux & access::WRITE != 0 {
        true => Op::Write { addr, size, flags },
        false => Op::Read { addr, size, flags },
    })
}

fn atomic_op(aux: u8, first_arg: u64, addr: Addr, read: u64, written: u64) -> Option<Op> {
    let order = Order::from_u8((first_arg & atomic::ORDER_MASK) as u8)?;
    let kind = match aux >> atomic::OP_SHIFT & atomic::OP_MASK {
        atomic::LOAD => AtomicKind::Load,
        atomic::STORE => AtomicKind::Store,
        atomic::EXCHANGE..=atomic::CAS => AtomicKind::Rmw,
        atomic::CAS_FAILED => AtomicKind::CasFailed,
        atomic::FENCE => return Some(Op::Fence { order }),
        _ => return None,
    };
    let code = aux & atomic::SIZE_MASK;
    if code > 4 {
        return None;
    }
    Some(Op::Atomic { addr, size: 1 << code, kind, order, read, written })
}
