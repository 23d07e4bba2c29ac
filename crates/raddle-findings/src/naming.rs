//! From numbers to names: the one place where addresses, program counters and thread numbers of a run become the
//! [`Object`]s, [`Frame`]s and [`Thread`]s of a finding. Prediction, detectors, online reports and explored runs all use it,
//! so that the same thing is called the same in every command.

#![warn(clippy::wildcard_enum_match_arm)]

use crate::finding::{Frame, Thread};
use crate::object::{Allocation, Object, Place, What};
use raddle_trace::std_format::StdNames;
use raddle_trace::symbols::{CodeFrame, Symbolizer};
use raddle_trace::tables::{Frame as StackFrame, Home, Module};
use raddle_trace::{
    Addr, ContextIx, Event, Location, LocationIx, MemoryTrace, ObjectId, Op, Tables, ThreadIx,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

/// A block of the heap that was seen being allocated.
#[derive(Clone, Copy)]
struct Block {
    bytes: u64,
    thread: ThreadIx,
    location: LocationIx,
    context: ContextIx,
}

/// Lines of a source file, or that it cannot be read.
type Lines = Option<Rc<Vec<String>>>;

/// Larger sources are not read: no person wrote them.
const SOURCE_BYTES_MAX: u64 = 16 << 20;
/// Source files that are kept in memory.
const SOURCES_MAX: usize = 256;

/// See the module's text.
pub struct Namer {
    symbols: Symbolizer,
    modules: Vec<Module>,
    sources: FxHashMap<String, Lines>,
    /// By address of the first byte; they do not overlap. Where an address was allocated more than once, the last time
    /// counts.
    heap: BTreeMap<u64, Block>,
    foreign: Option<StdNames>,
    /// Frames whose memory its thread has used for other calls, too: what lies there has no one name. Nothing, if nobody looked.
    reused: Option<FxHashSet<(ThreadIx, StackFrame)>>,
}

/// A call of a function: a program counter in it, and its canonical frame address.
#[derive(Clone, Copy)]
pub struct Call {
    pub pc: u64,
    pub address: u64,
}

/// Thread-local memory farther below the thread pointer than this is not looked for.
const THREAD_LOCAL_MAX: u64 = 1 << 20;

impl Namer {
    /// Names for a run of a program with these modules.
    pub fn new(modules: &[Module]) -> Namer {
        Namer {
            symbols: Symbolizer::new(modules),
            modules: modules.to_vec(),
            sources: FxHashMap::default(),
            heap: BTreeMap::new(),
            foreign: None,
            reused: None,
        }
    }

    /// Names of a converted trace: those that its text has.
    pub fn foreign(names: StdNames) -> Namer {
        Namer { foreign: Some(names), ..Namer::new(&[]) }
    }

    /// Names for a trace in memory, with the blocks that it allocates.
    pub fn of(trace: &MemoryTrace) -> Namer {
        let mut namer = Namer::new(&trace.tables.modules);
        for event in &trace.events {
            namer.learn(event.thread, event.location, event.context, &event.op);
        }
        namer.check_frames(&trace.tables, &trace.events);
        namer
    }

    /// Looks which memory of known frames their threads use for other calls as well. Variables on stacks have names only once all events
    /// of a trace were looked at, with the trace's complete tables.
    pub fn check_frames(&mut self, tables: &Tables, events: &[Event]) {
        let reused = self.reused.get_or_insert_default();
        for event in events {
            let home = &tables.threads[event.thread.index()].home;
            if let Op::Read { addr, .. } | Op::Write { addr, .. } = event.op
                && home.stack.contains(&addr.0)
            {
                let covers = |frame: &&StackFrame| (frame.low..frame.address).contains(&addr.0);
                for frame in home.frames.iter().filter(covers) {
                    if !tables.is_within(event.context, frame.context) {
                        reused.insert((event.thread, *frame));
                    }
                }
            }
        }
    }

    /// Remembers an allocation. Blocks that were learnt before and overlap it must have been freed.
    pub fn learn(&mut self, thread: ThreadIx, location: LocationIx, context: ContextIx, op: &Op) {
        let Op::Alloc { addr, size } = *op else { return };
        let end = addr.0.saturating_add(size);
        while let Some((&start, block)) = self.heap.range(..end).next_back()
            && start.saturating_add(block.bytes) > addr.0
        {
            self.heap.remove(&start);
        }
        self.heap.insert(addr.0, Block { bytes: size, thread, location, context });
    }

    /// Why some modules could not be looked into: one sentence each.
    pub fn problems(&self) -> &[String] {
        self.symbols.problems()
    }

    /// The calls of one program counter, innermost first: inlined ones, then the function itself.
    pub fn frames(&mut self, pc: u64) -> Vec<Frame> {
        let frames = self.symbols.frames(pc);
        frames.iter().filter(|frame| !is_runtime(frame)).map(|frame| self.frame(frame)).collect()
    }

    /// A stack of program counters, innermost first.
    pub fn stack(&mut self, pcs: &[u64]) -> Vec<Frame> {
        pcs.iter().flat_map(|&pc| self.frames(pc)).collect()
    }

    /// A stack of a crash report, innermost first: its addresses are those of calls even where a function begins.
    pub fn call_stack(&mut self, pcs: &[u64]) -> Vec<Frame> {
        let mut stack = Vec::new();
        for &pc in pcs {
            for frame in self.symbols.call_frames(pc).iter().filter(|frame| !is_runtime(frame)) {
                stack.push(self.frame(frame));
            }
        }
        stack
    }

    /// The stack of a place in a trace.
    pub fn stack_of(&mut self, tables: &Tables, location: LocationIx, context: ContextIx) -> Vec<Frame> {
        let calls: Vec<LocationIx> = std::iter::once(location).chain(tables.stack(context)).collect();
        let mut stack = Vec::new();
        for call in calls {
            match *tables.location(call) {
                Location::Pc(pc) => stack.extend(self.frames(pc)),
                Location::Foreign(number) => {
                    stack.push(Frame { raw: Some(format!("L{number}")), ..Frame::default() });
                }
                Location::Unknown => {}
            }
        }
        stack
    }

    fn frame(&mut self, frame: &CodeFrame) -> Frame {
        let library = !frame.is_user();
        let source = match (&frame.file, frame.line) {
            (Some(file), Some(line)) if !library && frame.function.is_some() => self.line(file, line),
            _ => None,
        };
        // Code of no known function, an assembly stub for example, has no line either: what the tables give for it is the end
        // of the code before it.
        let placed = frame.function.is_some();
        Frame {
            function: frame.function.clone(),
            file: frame.file.clone().filter(|_| placed),
            line: frame.line.filter(|_| placed),
            column: frame.column.filter(|_| placed),
            raw: frame.raw.clone(),
            source,
            library,
        }
    }

    fn line(&mut self, file: &str, line: u32) -> Option<String> {
        if self.sources.len() >= SOURCES_MAX {
            self.sources.clear();
        }
        let lines = self.sources.entry(file.to_owned()).or_insert_with(|| read_lines(Path::new(file)));
        let at = usize::try_from(line).ok()?.checked_sub(1)?;
        lines.as_ref()?.get(at).map(|line| line.trim().to_owned())
    }

    /// A thread of a trace.
    pub fn thread(&self, tables: &Tables, thread: ThreadIx) -> Thread {
        match tables.threads.get(thread.index()) {
            // What the trace calls it, and nothing else, is what its reader knows.
            Some(known) if self.foreign.is_some() && known.given_name.is_some() => {
                Thread::at(known.given_name.clone().unwrap_or_default())
            }
            Some(known) => Thread { path: known.name.clone(), entry: None, name: known.given_name.clone() },
            None => Thread::at(format!("?{}", thread.0)),
        }
    }

    /// The memory at an address. `tables` name the thread and the place of its allocation.
    pub fn memory(&mut self, tables: &Tables, address: u64) -> Object {
        if let Some(names) = &self.foreign {
            let name = names.variable(Addr(address)).map(str::to_owned);
            return Object { name, what: What::Memory, place: Place::Foreign };
        }
        if let Some((&start, &block)) = self.heap.range(..=address).next_back()
            && address - start < block.bytes
        {
            let allocated = Some(Box::new(Allocation {
                thread: self.thread(tables, block.thread),
                stack: self.stack_of(tables, block.location, block.context),
            }));
            let place = Place::Heap { bytes: block.bytes, offset: address - start, allocated };
            return Object { name: None, what: What::Memory, place };
        }
        let data = self.data(address);
        match data.place {
            Place::Unknown { .. } => self.lives_of(tables, address).unwrap_or(data),
            Place::Global { .. }
            | Place::Heap { .. }
            | Place::Stack { .. }
            | Place::ThreadLocal { .. }
            | Place::Thread { .. }
            | Place::Foreign
            | Place::Nowhere => data,
        }
    }

    /// Memory in which a thread of the trace lives. Threads that follow each other may live in the same place: then it is somebody's.
    fn lives_of(&mut self, tables: &Tables, address: u64) -> Option<Object> {
        let (mut found, mut owners): (Option<Object>, u32) = (None, 0);
        for (ix, thread) in (0..).map(ThreadIx).zip(&tables.threads) {
            let home = &thread.home;
            let frame = match self.reused.as_ref().filter(|_| home.stack.contains(&address)) {
                Some(reused) => {
                    let covers = |frame: &&StackFrame| (frame.low..frame.address).contains(&address);
                    let usable = |frame: &&StackFrame| !reused.contains(&(ix, **frame));
                    home.frames.iter().filter(covers).filter(usable).copied().collect()
                }
                None => Vec::new(),
            };
            let calls: Vec<Call> = frame
                .iter()
                .filter_map(|frame| match *tables.location(frame.location) {
                    Location::Pc(pc) => Some(Call { pc, address: frame.address }),
                    Location::Foreign(_) | Location::Unknown => None,
                })
                .collect();
            let owner = self.thread(tables, ix);
            let Some(object) = self.lived_in(home, &calls, owner, address) else { continue };
            (found, owners) = (Some(object), owners + 1);
        }
        let object = found?;
        Some(match (owners, object.place) {
            (1, place) => Object { place, ..object },
            (_, Place::Stack { .. }) => {
                Object { name: None, place: Place::Stack { thread: None, function: None }, ..object }
            }
            (_, _) => Object { place: Place::ThreadLocal { thread: None }, ..object },
        })
    }

    /// The object at an address, if this is where a thread lives: on its stack, where the calls are those whose frames may hold the
    /// address, or in its thread-local memory.
    pub fn lived_in(&mut self, home: &Home, calls: &[Call], owner: Thread, address: u64) -> Option<Object> {
        let what = What::Memory;
        if home.stack.contains(&address) {
            let mut names = calls.iter().filter_map(|call| {
                let name = self.symbols.local(call.pc, call.address, address)?;
                // The function itself, not what is inlined into it.
                let function = self.symbols.frames(call.pc).last()?.function.clone()?;
                Some((name, function))
            });
            let first = names.next();
            // A name that is right for one of two calls is no name.
            let agreed = first.clone().filter(|first| names.all(|other| other == *first));
            let (name, function) = agreed.unzip();
            return Some(Object { name, what, place: Place::Stack { thread: Some(owner), function } });
        }
        let below =
            home.pointer.checked_sub(address).filter(|&below| 0 < below && below <= THREAD_LOCAL_MAX)?;
        let name = self.symbols.thread_local_at(0, -(below as i64)).map(|data| data.path);
        let between = (home.stack.end..home.pointer).contains(&address)
            && home.pointer - home.stack.end <= THREAD_LOCAL_MAX;
        let place = Place::ThreadLocal { thread: Some(owner) };
        (name.is_some() || between).then_some(Object { name, what, place })
    }

    /// Static data at an address.
    pub fn data(&mut self, address: u64) -> Object {
        let name = self.symbols.data(address).map(|data| data.path);
        let module = self.modules.iter().find(|module| (module.start..module.end).contains(&address));
        let place = match module {
            Some(module) => Place::Global {
                module: file_name(&module.path).to_owned(),
                offset: address.wrapping_sub(module.bias),
            },
            None => Place::Unknown { address },
        };
        Object { name, what: What::Memory, place }
    }

    /// A synchronisation object.
    pub fn object(&mut self, tables: &Tables, object: ObjectId, what: What) -> Object {
        if let Some(names) = &self.foreign {
            let name = names.object(object).map(str::to_owned);
            return Object { name, what, place: Place::Foreign };
        }
        Object { what, ..self.memory(tables, object.0) }
    }

    /// A location of a trace for people: `bank.c:20 deposit`, or what is known instead.
    pub fn location(&mut self, tables: &Tables, location: LocationIx) -> String {
        match *tables.location(location) {
            Location::Pc(pc) => {
                let raw = self.raw(pc);
                self.place(&raw).unwrap_or(raw)
            }
            Location::Foreign(number) => format!("L{number}"),
            Location::Unknown => String::new(),
        }
    }

    /// `bank.c:20 deposit` for a place in the code written as `module+0x1234`.
    pub fn place(&mut self, raw: &str) -> Option<String> {
        let (module, offset) = raw.rsplit_once("+0x")?;
        let offset = u64::from_str_radix(offset, 16).ok()?;
        let module = self.modules.iter().find(|known| file_name(&known.path) == module)?;
        let frames = self.frames(offset.wrapping_add(module.bias));
        let frame = crate::finding::headline_frame(&frames)?;
        let mut text = format!("{}:{}", file_name(frame.file.as_deref()?), frame.line?);
        if let Some(function) = &frame.function {
            text.push(' ');
            text.push_str(function);
        }
        Some(text.replace(char::is_control, " "))
    }

    /// `module+0x1234`, or the bare number outside all modules.
    pub fn raw(&self, address: u64) -> String {
        self.symbols.raw(address)
    }
}

/// Between a signal handler and what it interrupted, and below an operation that crashed, stands the runtime, which is nobody's
/// business.
fn is_runtime(frame: &CodeFrame) -> bool {
    frame.function.as_ref().is_some_and(|name| {
        name.starts_with("raddle_rt::") || name.starts_with("__tsan_") || name.starts_with("raddle_")
    })
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn read_lines(path: &Path) -> Lines {
    let bytes = std::fs::metadata(path).ok().filter(|found| found.is_file())?.len();
    if bytes > SOURCE_BYTES_MAX {
        return None;
    }
    let text = std::fs::read(path).ok()?;
    Some(Rc::new(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()))
}
