//! RAPID's STD text format, read and written.
//!
//! One event a line: `thread|operation(object)|location`, for example `T0|w(V1)|12`. Names are arbitrary, the location
//! is a number. The *strict form* has six operations; other tools and hand-written tests use more:
//!
//! | operation | meaning |
//! | --- | --- |
//! | `r(V)`, `w(V)` | plain read, plain write of 8 bytes |
//! | `acq(L)`, `rel(L)` | lock and unlock |
//! | `fork(T)`, `join(T)`, `detach(T)` | thread creation, thread joined, will not be joined |
//! | `req(L)`, `reqr(L)` | began to wait for the lock (in read mode) |
//! | `acqr(L)`, `acqw(L)`, `relr(L)`, `relw(L)` | read-write lock |
//! | `try(L)`, `tryfail(L)` | try-lock that succeeded, that failed |
//! | `waitbegin(C,L)`, `wait(C,L)`, `waitfail(C,L)` | began to wait on a condition; was woken; timed out. `wait(C)` alone takes C for the mutex too, as in Java |
//! | `notify(C)`, `notifyall(C)` | signal, broadcast |
//! | `post(S)`, `semreq(S)`, `semwait(S)` | semaphore |
//! | `enter(B)`, `exit(B)` | barrier |
//! | `ar(V)`, `aw(V)`, `arw(V)` | atomic load, store, read-modify-write, sequentially consistent |
//! | `send(X)`, `recv(X)` | annotated happens-before |
//! | `alloc(V)`, `free(V)` | memory of a variable begins, ends |
//! | `begin`, `begin(N)`, `end`, `end(N)` | atomic region; RAPID writes them with and without a name |
//! | `call(N,X)`, `call(N,X,Y)`, `call(N)` | a call of N on the object X, on several, on none; `call(N_return)` is its return |
//! | `yield`, `start`, `exitthread` | the thread let others go, began, ended |
//!
//! Other tools' dialects are recognised: see [`dialect`]. A location may be missing or negative: the place is then unknown.
//!
//! Empty lines and lines that begin with `#` or `//` are skipped. Anything else is an error that names line and column; what
//! can be read and cannot be so (see [`faults`]) is noted with its line ([`StdReader::remarks`]).
//! Names become dense numbers in the order in which they appear: a variable is 8 bytes at its number times eight, all
//! other objects share one space (a Java object is both a lock and a condition). [`StdReader::names`] has the way back.
//!
//! The reader streams: memory is bounded by the number of names, and a line by [`LINE_BYTES_MAX`].

mod dialect;
mod faults;
mod meaning;
mod numbers;
mod writer;

pub use dialect::InputDialect;
pub use faults::LineFault;

pub use writer::{Dialect, Unwritten, write_std};

use crate::event::{AccessFlags, AtomicKind, Event, LockFlags, Op, Order, Patience};
use crate::ids::{Addr, ContextIx, LocationIx, ObjectId, ThreadIx};
use crate::source::{EventSource, TraceError};
use crate::tables::{Location, Tables};
use dialect::{Marks, Waiting};
use faults::Faults;
use meaning::{is_number, join_wait};
use numbers::{Numbers, take_numbered};
use rustc_hash::FxHashMap;
use std::io::Read;

/// Longer lines are an error: they would have to be held in memory.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

const CHUNK_BYTES: usize = 1 << 20;
/// Few enough to stay in the nearest caches.
const BATCH_EVENTS: usize = 512;

/// What the dense numbers of a converted trace were called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StdNames {
    pub variables: Vec<String>,
    pub objects: Vec<String>,
}

impl StdNames {
    pub fn variable(&self, addr: Addr) -> Option<&str> {
        let index = (addr.0 / 8).checked_sub(1)?;
        self.variables.get(usize::try_from(index).ok()?).map(String::as_str)
    }

    pub fn object(&self, object: ObjectId) -> Option<&str> {
        self.objects.get(usize::try_from(object.0).ok()?).map(String::as_str)
    }
}

/// Reads STD text as a stream of events; see the module's text.
pub struct StdReader<R> {
    input: R,
    file: String,
    size: Option<u64>,
    consumed: u64,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
    line: u64,
    tables: Tables,
    threads: Numbers,
    thread_ix: Vec<ThreadIx>,
    variables: Numbers,
    objects: Numbers,
    failed: bool,
    dialect: InputDialect,
    marks: Marks,
    faults: Faults,
    /// Further names of threads.
    aliases: FxHashMap<Box<[u8]>, ThreadIx>,
    /// Every name of a thread so far is `T` and a number.
    numbered_threads: bool,
    /// The wait that each thread is in, and how many are.
    waiting: Vec<Option<Waiting>>,
    waiting_count: usize,
    /// Locks that each thread has, outermost first, as far as a dialect needs to know.
    held: Vec<Vec<ObjectId>>,
    /// Operations that a line means beside its own, before and behind it.
    before: Vec<Op>,
    behind: Vec<Op>,
}

/// What is wrong with a line: column from 0, and a sentence.
struct Fault(usize, String);

impl<R: Read> StdReader<R> {
    /// `file` is the name used in error messages; `size` the number of bytes, for a progress display.
    pub fn new(input: R, file: impl Into<String>, size: Option<u64>) -> StdReader<R> {
        StdReader {
            input,
            file: file.into(),
            size,
            consumed: 0,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            at_end: false,
            line: 0,
            tables: Tables::default(),
            threads: Numbers::default(),
            thread_ix: Vec::new(),
            variables: Numbers::default(),
            objects: Numbers::default(),
            failed: false,
            dialect: InputDialect::Auto,
            marks: Marks::default(),
            faults: Faults::default(),
            aliases: FxHashMap::default(),
            numbered_threads: true,
            waiting: Vec::new(),
            waiting_count: 0,
            held: Vec::new(),
            before: Vec::new(),
            behind: Vec::new(),
        }
    }

    /// Takes the text as this dialect.
    pub fn with_dialect(mut self, dialect: InputDialect) -> StdReader<R> {
        self.dialect = dialect;
        self
    }

    /// What whoever reads results about this trace should know: its dialect, and lines that do not fit what came before them.
    /// Complete when the trace has been read.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = vec![self.marks.sentence(self.dialect)];
        let (faults, more) = self.faults.told(|thread| self.thread_name(thread));
        let file = &self.file;
        remarks.extend(faults.iter().map(|fault| format!("{file}: line {}: {}", fault.line, fault.text)));
        if more > 0 {
            remarks.push(format!("{file}: {more} further lines do not fit those before them"));
        }
        remarks
    }

    fn thread_name(&self, thread: ThreadIx) -> String {
        let known = &self.tables.threads[thread.index()];
        known.given_name.clone().unwrap_or_else(|| known.name.clone())
    }

    /// Names of variables and objects seen so far.
    pub fn names(&self) -> StdNames {
        StdNames { variables: self.variables.names().to_vec(), objects: self.objects.names().to_vec() }
    }

    fn error(&self, place: String, problem: String) -> TraceError {
        TraceError { file: self.file.clone(), place, problem }
    }

    /// Reads more bytes behind what is left of the buffer.
    fn refill(&mut self) -> Result<(), TraceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < self.end + CHUNK_BYTES {
            self.buffer.resize(self.end + CHUNK_BYTES, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.at_end = true;
                    return Ok(());
                }
                Ok(count) => {
                    self.end += count;
                    self.consumed += count as u64;
                    return Ok(());
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let place = format!("offset {}", self.consumed);
                    return Err(self.error(place, format!("cannot read: {error}")));
                }
            }
        }
    }

    /// Takes the next line out of the buffer: its bounds without the line end.
    #[inline]
    fn take_line(&mut self) -> Result<Option<(usize, usize)>, TraceError> {
        let mut searched = 0;
        loop {
            let found = memchr::memchr(b'\n', &self.buffer[self.start + searched..self.end]);
            if let Some(len) = found {
                let bounds = (self.start, self.start + searched + len);
                self.start = bounds.1 + 1;
                self.line += 1;
                return Ok(Some(bounds));
            }
            searched = self.end - self.start;
            if searched > LINE_BYTES_MAX {
                let problem =
                    format!("the line is longer than {LINE_BYTES_MAX} bytes; this is not an STD trace");
                return Err(self.error(format!("line {}, column 1", self.line + 1), problem));
            }
            if self.at_end {
                if searched == 0 {
                    return Ok(None);
                }
                let bounds = (self.start, self.end);
                self.start = self.end;
                self.line += 1;
                return Ok(Some(bounds));
            }
            self.refill()?;
        }
    }

    fn fill(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        // A release may turn out to be the first half of a wait in the next line.
        let unfinished = |batch: &Vec<Event>| {
            batch.len() < 2 * BATCH_EVENTS
                && matches!(batch.last(), Some(Event { op: Op::Unlock { .. }, .. }))
        };
        while batch.len() < BATCH_EVENTS || unfinished(batch) {
            if let Some(event) = self.usual_line() {
                batch.push(event);
                continue;
            }
            let Some((from, to)) = self.take_line()? else { break };
            // The line is parsed out of the buffer while names are entered into the tables.
            let buffer = std::mem::take(&mut self.buffer);
            let parsed = self.parse(&buffer[from..to]);
            self.buffer = buffer;
            match parsed {
                Ok(Some(event)) => {
                    if matches!(event.op, Op::WaitBegin { .. }) {
                        join_wait(batch, &event);
                    }
                    batch.extend(self.before.drain(..).map(|op| Event { op, ..event }));
                    batch.push(event);
                    batch.extend(self.behind.drain(..).map(|op| Event { op, ..event }));
                }
                Ok(None) => {}
                Err(Fault(column, problem)) => {
                    let place = format!("line {}, column {}", self.line, column + 1);
                    return Err(self.error(place, problem));
                }
            }
        }
        Ok(())
    }

    /// The short way for what nearly all lines are: `T1|w(V23)|45`, with names and a location that were seen before.
    /// `None`, and nothing taken, for any other line.
    #[inline]
    fn usual_line(&mut self) -> Option<Event> {
        let line = &self.buffer[self.start..self.end];
        let (thread, rest) = take_numbered(line)?;
        let thread = *self.thread_ix.get(self.threads.known(thread)? as usize)?;
        let (access, write, rest) = match rest {
            [b'|', b'r', b'(', rest @ ..] => (true, false, rest),
            [b'|', b'w', b'(', rest @ ..] => (true, true, rest),
            [b'|', b'a', b'c', b'q', b'(', rest @ ..] => (false, false, rest),
            [b'|', b'r', b'e', b'l', b'(', rest @ ..] => (false, true, rest),
            _ => return None,
        };
        let (object, rest) = take_numbered(rest)?;
        let [b')', b'|', rest @ ..] = rest else { return None };
        let (number, rest) = numbers::take_decimal(rest)?;
        let [b'\n', rest @ ..] = rest else { return None };
        let location = self.tables.known_foreign(number)?;
        let op = if access {
            let addr = Addr(8 * (u64::from(self.variables.known(object)?) + 1));
            let flags = AccessFlags::default();
            if write { Op::Write { addr, size: 8, flags } } else { Op::Read { addr, size: 8, flags } }
        } else {
            let lock = ObjectId(u64::from(self.objects.known(object)?));
            if self.waiting_count > 0 {
                return None;
            }
            let flags = LockFlags::default();
            if write { Op::Unlock { lock, flags } } else { Op::Lock { lock, flags } }
        };
        self.start = self.end - rest.len();
        self.line += 1;
        self.check(thread, &op);
        Some(Event { thread, location, context: ContextIx::ROOT, kept_calls: 0, op })
    }

    /// Parses one line; `None` for a comment or an empty line.
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Event>, Fault> {
        let lead = line.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let line = line.trim_ascii_end();
        let Some(&first) = line.get(lead) else { return Ok(None) };
        if first == b'#' || line[lead..].starts_with(b"//") {
            return Ok(None);
        }
        if line[lead..].starts_with(b"pthread(") {
            return self.alias(&line[lead..]).map(|()| None);
        }
        let thread_end = find(line, lead, b'|')
            .ok_or_else(|| Fault(line.len(), "expected `|` after the thread's name".into()))?;
        let thread_name = name(line, lead, thread_end, "a thread's name")?;
        let thread = self.thread(thread_name, None);
        let op_start = thread_end + 1;
        let word_len =
            line[op_start..].iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'_').count();
        let mut at = op_start + word_len;
        let word = &line[op_start..at];
        let mut arguments = (&[][..], &[][..]);
        let mut columns = (at, at);
        if line.get(at) == Some(&b'(') {
            let close = find(line, at, b')')
                .ok_or_else(|| Fault(line.len(), "expected `)` after the operation's object".into()))?;
            let is_access = matches!(word, b"r" | b"w" | b"ar" | b"aw" | b"arw");
            let equals = if is_access { find(&line[..close], at, b'=') } else { None };
            let comma = find(&line[..close], at, b',').or(equals);
            let first_end = comma.unwrap_or(close);
            if close > at + 1 {
                arguments.0 = name(line, at + 1, first_end, "an object's name")?;
            }
            if let Some(comma) = comma {
                let blanks = line[comma + 1..close].iter().take_while(|byte| **byte == b' ').count();
                columns.1 = comma + 1 + blanks;
                arguments.1 = name(line, columns.1, close, "an object's name")?;
            }
            columns.0 = at + 1;
            at = close + 1;
        }
        let location = match line.get(at) {
            None => LocationIx::UNKNOWN,
            Some(b'|') => self.location(line, at + 1)?,
            Some(_) => return Err(Fault(at, "expected `|` and the location after the operation".into())),
        };
        let op = self.op(word, op_start, arguments, columns, thread)?;
        let op = self.meant(word, arguments.1.is_empty(), thread, op);
        self.check(thread, &op);
        Ok(Some(Event { thread, location, context: ContextIx::ROOT, kept_calls: 0, op }))
    }

    fn location(&mut self, line: &[u8], start: usize) -> Result<LocationIx, Fault> {
        // Nothing, or a negative number: not known.
        let text = &line[start..];
        let (negative, digits) = match text {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        if let Some(place) = digits.iter().position(|byte| !byte.is_ascii_digit()) {
            let place = start + place + usize::from(negative);
            return Err(Fault(place, "expected a digit: the location is a number".into()));
        }
        if negative && digits.is_empty() {
            return Err(Fault(start + 1, "expected a digit: the location is a number".into()));
        }
        if negative || digits.is_empty() {
            return Ok(LocationIx::UNKNOWN);
        }
        let mut number: u64 = 0;
        for &byte in digits {
            let next = number.checked_mul(10).and_then(|number| number.checked_add(u64::from(byte - b'0')));
            number = next.ok_or_else(|| Fault(start, "the location does not fit into 64 bits".into()))?;
        }
        self.marks.long_locations |= number > u64::from(u32::MAX);
        let number = number as u32;
        Ok(self.tables.intern_location(Location::Foreign(number)))
    }

    #[inline]
    fn thread(&mut self, name: &[u8], parent: Option<ThreadIx>) -> ThreadIx {
        if !self.aliases.is_empty()
            && let Some(&thread) = self.aliases.get(name)
        {
            return thread;
        }
        let number = self.threads.number(name) as usize;
        if number == self.thread_ix.len() {
            // The first thread of the file is main; others appear by a fork or out of nowhere.
            let ix = if number == 0 { ThreadIx::MAIN } else { self.tables.add_thread(parent) };
            self.tables.threads[ix.index()].given_name = Some(self.threads.names()[number].clone());
            self.thread_ix.push(ix);
            self.numbered_threads &= matches!(name, [b'T', digits @ ..] if is_number(digits));
        }
        self.thread_ix[number]
    }

    fn variable(&mut self, name: &[u8]) -> Addr {
        Addr(8 * (u64::from(self.variables.number(name)) + 1))
    }

    fn object(&mut self, name: &[u8]) -> ObjectId {
        ObjectId(u64::from(self.objects.number(name)))
    }

    #[inline]
    fn op(
        &mut self,
        word: &[u8],
        column: usize,
        (first, second): (&[u8], &[u8]),
        columns: (usize, usize),
        thread: ThreadIx,
    ) -> Result<Op, Fault> {
        let thread_name;
        let (mut first, mut second) = (first, second);
        match word {
            // Threads of one tool are `T9` where they act and `9` where they are forked.
            b"fork" | b"join" if self.means_numbered(first) => {
                self.marks.sunhang = true;
                thread_name = [b"T", first].concat();
                first = &thread_name;
            }
            b"wait_sleep" | b"wait_wake" | b"sig" | b"signal" | b"sigAll" | b"malloc" => {
                // The second argument (a thread, a size) follows from what else is known.
                self.marks.rff = true;
                second = b"";
            }
            b"r" | b"w" | b"ar" | b"aw" | b"arw" if !second.is_empty() => self.marks.values = true,
            _ => {}
        }
        let value =
            || std::str::from_utf8(second).ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let wants = match word {
            b"begin" | b"end" | b"yield" | b"start" | b"exitthread" => 0,
            b"waitbegin" => 2,
            _ => 1,
        };
        if wants >= 1 && first.is_empty() {
            return Err(Fault(columns.0, "the operation needs an object in parentheses".into()));
        }
        if wants == 2 && second.is_empty() {
            return Err(Fault(columns.0, "the operation needs two objects in parentheses".into()));
        }
        let two_allowed = wants == 2
            || matches!(word, b"wait" | b"waitfail" | b"call" | b"r" | b"w" | b"ar" | b"aw" | b"arw");
        if !second.is_empty() && !two_allowed {
            return Err(Fault(columns.1, "the operation takes one object only".into()));
        }
        let flags = LockFlags::default();
        let rwlock = LockFlags { rwlock: true, ..flags };
        let tried = LockFlags { patience: Patience::Try, ..flags };
        let access = AccessFlags::default();
        Ok(match word {
            b"r" => Op::Read { addr: self.variable(first), size: 8, flags: access },
            b"w" => Op::Write { addr: self.variable(first), size: 8, flags: access },
            b"acq" => Op::Lock { lock: self.object(first), flags },
            b"rel" => Op::Unlock { lock: self.object(first), flags },
            b"fork" | b"join" | b"detach" => {
                let child = self.thread(first, (word == b"fork").then_some(thread));
                if child == thread && word != b"detach" {
                    return Err(Fault(columns.0, "a thread cannot fork or join itself".into()));
                }
                if word == b"detach" {
                    return Ok(Op::Detach { child });
                }
                if word == b"fork" { Op::Fork { child } } else { Op::Join { child } }
            }
            b"wait_sleep" | b"wait_wake" => {
                let cond = self.object(first);
                let lock = self.lock_of_wait(thread, cond);
                if word == b"wait_sleep" { Op::WaitBegin { cond, lock } } else { Op::Wait { cond, lock } }
            }
            b"sig" | b"signal" => Op::Signal { cond: self.object(first) },
            b"sigAll" | b"broadcast" => Op::Broadcast { cond: self.object(first) },
            b"malloc" => Op::Alloc { addr: self.variable(first), size: 8 },
            b"req" => Op::Request { lock: self.object(first), read: false, flags },
            b"reqr" => Op::Request { lock: self.object(first), read: true, flags: rwlock },
            b"acqr" => Op::ReadLock { lock: self.object(first), flags: rwlock },
            b"acqw" => Op::Lock { lock: self.object(first), flags: rwlock },
            b"relr" | b"relw" => Op::Unlock { lock: self.object(first), flags: rwlock },
            b"try" => Op::Lock { lock: self.object(first), flags: tried },
            b"tryfail" => Op::LockFailed { lock: self.object(first), flags: tried },
            b"waitbegin" => Op::WaitBegin { cond: self.object(first), lock: self.object(second) },
            b"wait" | b"waitfail" => {
                let cond = self.object(first);
                let lock = if second.is_empty() { cond } else { self.object(second) };
                if word == b"wait" { Op::Wait { cond, lock } } else { Op::WaitFailed { cond, lock } }
            }
            b"notify" => Op::Signal { cond: self.object(first) },
            b"notifyall" | b"notifyAll" => Op::Broadcast { cond: self.object(first) },
            b"post" => Op::SemPost { sem: self.object(first) },
            b"semreq" => Op::SemRequest { sem: self.object(first) },
            b"semwait" => Op::SemWait { sem: self.object(first) },
            b"enter" => Op::BarrierEnter { barrier: self.object(first) },
            b"exit" => Op::BarrierExit { barrier: self.object(first) },
            b"ar" | b"aw" | b"arw" => {
                let kind = match word {
                    b"ar" => AtomicKind::Load,
                    b"aw" => AtomicKind::Store,
                    _ => AtomicKind::Rmw,
                };
                let (addr, value) = (self.variable(first), value());
                let (read, written) = if kind == AtomicKind::Load { (value, 0) } else { (0, value) };
                Op::Atomic { addr, size: 8, kind, order: Order::SeqCst, read, written }
            }
            b"send" => Op::Release { object: self.object(first) },
            b"recv" => Op::Acquire { object: self.object(first) },
            b"alloc" => Op::Alloc { addr: self.variable(first), size: 8 },
            b"free" => Op::Free { addr: self.variable(first) },
            b"begin" => Op::AtomicBegin { name: self.text(first) },
            b"end" => Op::AtomicEnd { name: self.text(first) },
            b"call" => self.call(first, second),
            b"yield" => Op::Yield,
            b"start" => {
                let parent = self.tables.threads[thread.index()].parent.unwrap_or(ThreadIx::MAIN);
                Op::Start { parent }
            }
            b"exitthread" => Op::End,
            _ => {
                let word = String::from_utf8_lossy(word);
                let problem =
                    format!("unknown operation `{word}`; known are r, w, acq, rel, fork, join and others");
                return Err(Fault(column, problem));
            }
        })
    }

    /// A call on one object has it beside its name, any other has its objects' numbers in the text, as aspects write their fields.
    fn call(&mut self, name: &[u8], objects: &[u8]) -> Op {
        if !objects.is_empty() && !objects.contains(&b',') {
            return Op::Custom { name: self.text(name), object: self.object(objects) };
        }
        let names = objects.split(|&byte| byte == b',').filter(|name| !name.is_empty());
        let numbers: Vec<String> = names.map(|name| self.object(name).0.to_string()).collect();
        let text = format!("{}({})", String::from_utf8_lossy(name), numbers.join(","));
        Op::Custom { name: self.tables.intern_text(&text), object: ObjectId(0) }
    }

    fn text(&mut self, name: &[u8]) -> crate::ids::TextIx {
        self.tables.intern_text(&String::from_utf8_lossy(name))
    }
}

fn find(line: &[u8], from: usize, wanted: u8) -> Option<usize> {
    memchr::memchr(wanted, &line[from..]).map(|place| from + place)
}

/// Checks that `line[from..to]` can be a name.
#[inline]
fn name<'l>(line: &'l [u8], from: usize, to: usize, what: &str) -> Result<&'l [u8], Fault> {
    let name = &line[from..to];
    if name.is_empty() {
        return Err(Fault(from, format!("expected {what}")));
    }
    let bad = |byte: u8| byte <= b' ' || byte == 0x7f || matches!(byte, b'|' | b'(' | b')');
    match name.iter().position(|&byte| bad(byte)) {
        Some(place) => Err(Fault(from + place, format!("{what} cannot contain this character"))),
        None => Ok(name),
    }
}

impl<R: Read> EventSource for StdReader<R> {
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        batch.clear();
        if self.failed {
            return Ok(());
        }
        let result = self.fill(batch);
        self.failed = result.is_err();
        result
    }

    fn tables(&self) -> &Tables {
        &self.tables
    }

    fn progress(&self) -> Option<(u64, u64)> {
        self.size.map(|size| (self.consumed - (self.end - self.start) as u64, size))
    }
}

/// Does a file begin like STD text? The first line that is no comment has two bars and a known beginning.
pub fn looks_like_std(head: &[u8]) -> bool {
    let lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let Some(line) =
        lines.into_iter().find(|line| !line.is_empty() && line[0] != b'#' && !line.starts_with(b"//"))
    else {
        return head.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    };
    let bars = line.iter().filter(|&&byte| byte == b'|').count();
    let shaped = bars == 2 || (bars == 1 && line.ends_with(b")")) || line.starts_with(b"pthread(");
    shaped && line.iter().all(|byte| !byte.is_ascii_control())
}

#[cfg(test)]
mod tests;
