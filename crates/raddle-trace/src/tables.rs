//! What a trace knows beside its events: threads, locations, call contexts, texts, modules.
//!
//! Tables grow while events are read (a reader interns what it meets), so they are complete only when the last event
//! has been handed out. Indices never change once given.

use crate::decode::Lives;
use crate::ids::{ContextIx, LocationIx, TextIx, ThreadIx};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Foreign locations below this are looked up in a table.
const FOREIGN_TABLE: u32 = 1 << 20;

/// A place in code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    Unknown,
    /// A program counter of the recorded run (the return address of the instrumentation call).
    Pc(u64),
    /// A location of a converted trace, as it was written there.
    Foreign(u32),
}

/// A thread of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Spawn path, stable across runs: `1` is main, `1.2` its second child.
    pub name: String,
    /// Name that the program gave it, if any.
    pub given_name: Option<String>,
    pub parent: Option<ThreadIx>,
    /// How many children it has created so far.
    pub children: u32,
    pub home: Home,
}

/// Where a thread lives, as far as it is known: nothing, in a converted trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Home {
    /// Lowest address of the stack, and its end; an empty range is not known.
    pub stack: Range<u64>,
    /// The thread pointer, from which thread-local memory is counted; 0: not known.
    pub pointer: u64,
    /// Frames of its calls at moments when others could learn where they are, in no order and each once.
    pub frames: Vec<Frame>,
}

/// A call of a thread and the memory that it has on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The calls that the function is in, its own the innermost.
    pub context: ContextIx,
    /// Where in the function it was.
    pub location: LocationIx,
    pub low: u64,
    /// Its canonical address: the end of its memory.
    pub address: u64,
}

/// Frames that are kept of one thread.
const FRAMES_MAX: usize = 1 << 12;

impl Home {
    /// Takes in what the thread tells.
    pub fn learn(&mut self, told: Lives) {
        match told {
            Lives::OnStack { start, end } => self.stack = start..end,
            Lives::AtPointer(pointer) => self.pointer = pointer,
            Lives::InFrame(frame) => {
                if self.frames.len() < FRAMES_MAX && !self.frames.contains(&frame) {
                    self.frames.push(frame);
                }
            }
        }
    }
}

/// A mapped file of the recorded process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    pub path: String,
    /// Address of its first mapped byte.
    pub start: u64,
    pub end: u64,
    /// What to subtract from a program counter to get an address in the file's own numbering.
    pub bias: u64,
    pub build_id: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ContextNode {
    parent: ContextIx,
    call: LocationIx,
    depth: u32,
}

/// All tables of one trace.
#[derive(Clone, Debug)]
pub struct Tables {
    pub threads: Vec<Thread>,
    pub modules: Vec<Module>,
    locations: Vec<Location>,
    pcs: FxHashMap<u64, LocationIx>,
    /// Foreign locations by their number: small ones, nearly all, in a table (0 for none), others in a map.
    foreign_table: Vec<LocationIx>,
    foreign: FxHashMap<u32, LocationIx>,
    contexts: Vec<ContextNode>,
    context_index: FxHashMap<(ContextIx, LocationIx), ContextIx>,
    texts: Vec<String>,
    text_index: FxHashMap<String, TextIx>,
}

impl Default for Tables {
    fn default() -> Self {
        let mut text_index = FxHashMap::default();
        text_index.insert(String::new(), TextIx(0));
        Tables {
            threads: vec![Thread {
                name: "1".into(),
                given_name: None,
                parent: None,
                children: 0,
                home: Home::default(),
            }],
            modules: Vec::new(),
            locations: vec![Location::Unknown],
            pcs: FxHashMap::default(),
            foreign_table: Vec::new(),
            foreign: FxHashMap::default(),
            contexts: vec![ContextNode { parent: ContextIx::ROOT, call: LocationIx::UNKNOWN, depth: 0 }],
            context_index: FxHashMap::default(),
            texts: vec![String::new()],
            text_index,
        }
    }
}

impl Tables {
    pub fn location(&self, ix: LocationIx) -> &Location {
        &self.locations[ix.index()]
    }

    pub fn locations(&self) -> &[Location] {
        &self.locations
    }

    /// The location with this number of a converted trace, if it is known and small.
    #[inline]
    pub fn known_foreign(&self, number: u32) -> Option<LocationIx> {
        self.foreign_table.get(number as usize).copied().filter(|&ix| ix != LocationIx::UNKNOWN)
    }

    pub fn intern_location(&mut self, location: Location) -> LocationIx {
        let next = LocationIx(u32::try_from(self.locations.len()).expect("fewer than 2^32 locations"));
        let ix = match location {
            Location::Unknown => return LocationIx::UNKNOWN,
            Location::Pc(pc) => *self.pcs.entry(pc).or_insert(next),
            Location::Foreign(number) if number < FOREIGN_TABLE => {
                let place = number as usize;
                if self.foreign_table.len() <= place {
                    self.foreign_table.resize(place + 1, LocationIx::UNKNOWN);
                }
                let entry = &mut self.foreign_table[place];
                if *entry == LocationIx::UNKNOWN {
                    *entry = next;
                }
                *entry
            }
            Location::Foreign(number) => *self.foreign.entry(number).or_insert(next),
        };
        if ix == next {
            self.locations.push(location);
        }
        ix
    }

    pub fn intern_context(&mut self, parent: ContextIx, call: LocationIx) -> ContextIx {
        if let Some(&ix) = self.context_index.get(&(parent, call)) {
            return ix;
        }
        let ix = ContextIx(u32::try_from(self.contexts.len()).expect("fewer than 2^32 contexts"));
        let depth = self.contexts[parent.index()].depth + 1;
        self.contexts.push(ContextNode { parent, call, depth });
        self.context_index.insert((parent, call), ix);
        ix
    }

    /// How many contexts there are, the empty one included.
    pub fn contexts(&self) -> usize {
        self.contexts.len()
    }

    /// The calls of a context, innermost first.
    pub fn stack(&self, ix: ContextIx) -> Vec<LocationIx> {
        self.calls(ix).collect()
    }

    /// Is `outer` the context, or one of those that it stands in?
    pub fn is_within(&self, mut ix: ContextIx, outer: ContextIx) -> bool {
        let depth = self.contexts[outer.index()].depth;
        while self.contexts[ix.index()].depth > depth {
            ix = self.contexts[ix.index()].parent;
        }
        ix == outer
    }

    /// The calls of a context, innermost first, one after the other.
    pub fn calls(&self, mut ix: ContextIx) -> impl Iterator<Item = LocationIx> + '_ {
        std::iter::from_fn(move || {
            let node = (ix != ContextIx::ROOT).then(|| &self.contexts[ix.index()])?;
            ix = node.parent;
            Some(node.call)
        })
    }

    /// The calls of a context, outermost first: each with the context in which it was made.
    pub fn chain(&self, mut ix: ContextIx) -> Vec<(ContextIx, LocationIx)> {
        let mut chain = Vec::new();
        while ix != ContextIx::ROOT {
            let node = &self.contexts[ix.index()];
            chain.push((node.parent, node.call));
            ix = node.parent;
        }
        chain.reverse();
        chain
    }

    pub fn text(&self, ix: TextIx) -> &str {
        &self.texts[ix.index()]
    }

    pub fn intern_text(&mut self, text: &str) -> TextIx {
        if let Some(&ix) = self.text_index.get(text) {
            return ix;
        }
        let ix = TextIx(u32::try_from(self.texts.len()).expect("fewer than 2^32 texts"));
        self.texts.push(text.to_owned());
        self.text_index.insert(text.to_owned(), ix);
        ix
    }

    /// Makes a new thread, the next child of `parent`, named by its spawn path.
    pub fn add_thread(&mut self, parent: Option<ThreadIx>) -> ThreadIx {
        let ix = ThreadIx(u32::try_from(self.threads.len()).expect("fewer than 2^32 threads"));
        let name = match parent {
            Some(parent) => {
                let parent = &mut self.threads[parent.index()];
                parent.children += 1;
                format!("{}.{}", parent.name, parent.children)
            }
            // A thread whose creation was not seen: it gets a name that no spawn path can have.
            None => format!("?{}", ix.0),
        };
        self.threads.push(Thread { name, given_name: None, parent, children: 0, home: Home::default() });
        ix
    }

    pub fn module_of(&self, pc: u64) -> Option<&Module> {
        self.modules.iter().find(|module| (module.start..module.end).contains(&pc))
    }
}
