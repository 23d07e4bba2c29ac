//! From addresses to what a programmer wrote: functions, files, lines, inlined calls, global variables.
//!
//! A [`Symbolizer`] works on the module table of a trace. It opens a module's file when an address of it is asked for
//! the first time, and reads DWARF lazily, unit by unit (addr2line does that; debug information may be split into
//! `.dwo` or `.dwp` files, compressed, or in a separate file found by build id or debug link). Files are mapped, not
//! read; of what is held in memory an estimate is kept, and when it exceeds [`BUDGET_BYTES`] the modules that were not
//! used for longest are let go.
//!
//! Program counters in a trace are return addresses, so the call lies just before them. The one exception, the entry
//! of a thread's start routine, is recognised by being the first byte of a function.
//!
//! # What can be asked
//!
//! | question | answer |
//! | --- | --- |
//! | [`Symbolizer::frames`], `stack`, `stack_of`, `location` | functions and lines of a return address, whose code it is, where the function was declared |
//! | [`Symbolizer::data`], [`Symbolizer::data_access`] | the access path of a variable with a fixed address: `forks[1].lock` |
//! | [`Symbolizer::thread_local`], [`Symbolizer::thread_local_at`] | the same for thread-local variables |
//! | [`Symbolizer::local`] | the same for a variable on the stack, given its frame |
//! | [`Symbolizer::variable`], `describe`, `raw` | the symbol table's view of a data address |
//! | [`normal_name`] | a function's name in the form that all compilers share |
//!
//! Paths come from DWARF: addr2line knows code only, so this module has a reader of its own for data (gimli does the
//! decoding). Its parts, from the bottom: `sections` (bytes), `units` (what there is), `dies` (entries, references,
//! scopes), `types` and `opaque`, `paths` (from a place in a type to a path), `statics`, `functions` and `locals`.
//!
//! Nothing is invented: an address outside the extent of every variable and symbol has no name.
//!
//! *Hostile files.* Debug information comes from anywhere. Readers are total: no panic, every walk is paid for in advance
//! (see `units` and `dies`), references are followed a bounded number of times, nothing recurses with the file.

mod debug_file;
mod dies;
mod functions;
mod lambdas;
pub mod lines;
mod locals;
mod module;
mod names;
mod nesting;
mod opaque;
mod origin;
mod paths;
mod sections;
mod statics;
mod symbol_table;
mod types;
mod unit_root;
mod units;

pub use names::normal_name;
pub use origin::Origin;

use crate::event::Event;
use crate::ids::{ContextIx, LocationIx};
use crate::tables::{Location, Module, Tables};
use module::ModuleSymbols;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// What all open modules together may hold in memory, by estimate.
const BUDGET_BYTES: u64 = 512 << 20;

/// Answers that are remembered.
const CACHE_ENTRIES_MAX: usize = 1 << 18;

/// A function call on a stack, or a place in code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodeFrame {
    /// Demangled.
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub column: Option<u32>,
    /// `module+0x1234`, or `L12` in a converted trace.
    pub raw: Option<String>,
    /// The compiler inlined this call into the next frame.
    pub inlined: bool,
    /// The line where the function was declared, so that a place can be told relative to its function.
    pub function_line: Option<u32>,
    /// Whose code it is.
    pub origin: Origin,
}

impl CodeFrame {
    /// Is it code of the program under test, not of a library that it uses?
    pub fn is_user(&self) -> bool {
        self.origin == Origin::User
    }
}

impl std::fmt::Display for CodeFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.function, &self.raw) {
            (Some(function), _) => f.write_str(function)?,
            (None, Some(raw)) => f.write_str(raw)?,
            (None, None) => f.write_str("?")?,
        }
        if let Some(file) = &self.file {
            write!(f, " {file}")?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
        }
        Ok(())
    }
}

/// A global variable and a place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    pub offset: u64,
    pub size: u64,
}

impl std::fmt::Display for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.offset {
            0 => f.write_str(&self.name),
            offset => write!(f, "{}+{offset:#x}", self.name),
        }
    }
}

/// The name of an object with a fixed address, or of a thread-local one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DataName {
    /// As a programmer writes it: `forks[1].lock`. From the symbol table alone: `forks+0x28`.
    pub path: String,
    /// The variable that the object is in: `forks`, `bank::total`.
    pub variable: String,
    /// File and line of the variable's declaration.
    pub declared: Option<(String, u32)>,
    /// The type of what `path` names.
    pub type_name: Option<String>,
    /// From the first byte of what `path` names to the address.
    pub offset: u64,
    /// Known from debug information. Otherwise a guess from the symbol table, whose names are compilers' names.
    pub exact: bool,
}

impl From<Variable> for DataName {
    fn from(variable: Variable) -> DataName {
        DataName {
            path: variable.to_string(),
            variable: variable.name,
            declared: None,
            type_name: None,
            offset: variable.offset,
            exact: false,
        }
    }
}

/// An open module and when it was last asked.
struct Open {
    symbols: Option<ModuleSymbols>,
    used_at: u64,
}

/// Looks up addresses of a trace.
pub struct Symbolizer {
    /// Ordered by address.
    modules: Vec<Module>,
    /// Where in `modules` those are that were given, in their order.
    given: Vec<usize>,
    open: FxHashMap<usize, Open>,
    cache: FxHashMap<u64, Rc<[CodeFrame]>>,
    data_cache: FxHashMap<(u64, Option<u64>), Option<DataName>>,
    clock: u64,
    problems: Vec<String>,
}

impl Symbolizer {
    pub fn new(modules: &[Module]) -> Symbolizer {
        let mut order: Vec<usize> = (0..modules.len()).collect();
        order.sort_by_key(|&ix| modules[ix].start);
        let mut given = vec![0; modules.len()];
        order.iter().enumerate().for_each(|(place, &ix)| given[ix] = place);
        Symbolizer {
            modules: order.iter().map(|&ix| modules[ix].clone()).collect(),
            given,
            open: FxHashMap::default(),
            cache: FxHashMap::default(),
            data_cache: FxHashMap::default(),
            clock: 0,
            problems: Vec::new(),
        }
    }

    /// Why some modules could not be looked into: one sentence each.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The frames of one program counter, innermost first: the inlined calls, then the function itself. Never empty.
    pub fn frames(&mut self, pc: u64) -> Rc<[CodeFrame]> {
        if let Some(known) = self.cache.get(&pc) {
            return Rc::clone(known);
        }
        let frames = self.look_up(pc, ModuleSymbols::frames);
        if self.cache.len() >= CACHE_ENTRIES_MAX {
            self.cache.clear();
        }
        let frames: Rc<[CodeFrame]> = frames.into();
        self.cache.insert(pc, Rc::clone(&frames));
        frames
    }

    /// As [`Symbolizer::frames`], for the frames of a crash report ([`crate::crash`]): they are return addresses, also where another
    /// function begins, because the call is the last instruction of its function and never returns.
    pub fn call_frames(&mut self, pc: u64) -> Vec<CodeFrame> {
        self.look_up(pc, ModuleSymbols::call_frames)
    }

    fn look_up(&mut self, pc: u64, ask: fn(&mut ModuleSymbols, u64) -> Vec<CodeFrame>) -> Vec<CodeFrame> {
        let raw = self.raw(pc);
        let mut frames = match self.module_index(pc) {
            Some(ix) => {
                let address = pc.wrapping_sub(self.modules[ix].bias);
                self.symbols(ix).map(|symbols| ask(symbols, address)).unwrap_or_default()
            }
            None => Vec::new(),
        };
        if frames.is_empty() {
            frames.push(CodeFrame::default());
        }
        let module = self.module_index(pc).map_or("", |ix| &self.modules[ix].path);
        for frame in &mut frames {
            frame.raw = Some(raw.clone());
            frame.origin = origin::origin(frame.file.as_deref(), frame.function.as_deref(), module);
        }
        frames
    }

    /// The frames of a location of the trace.
    pub fn location(&mut self, location: &Location) -> Rc<[CodeFrame]> {
        match *location {
            Location::Pc(pc) => self.frames(pc),
            Location::Foreign(number) => {
                Rc::new([CodeFrame { raw: Some(format!("L{number}")), ..CodeFrame::default() }])
            }
            Location::Unknown => Rc::new([CodeFrame::default()]),
        }
    }

    /// The whole stack of an event, innermost first.
    pub fn stack(&mut self, tables: &Tables, location: LocationIx, context: ContextIx) -> Vec<CodeFrame> {
        let mut frames = Vec::new();
        for place in std::iter::once(location).chain(tables.stack(context)) {
            frames.extend(self.location(tables.location(place)).iter().cloned());
        }
        frames
    }

    /// [`Symbolizer::stack`] of an event.
    pub fn stack_of(&mut self, tables: &Tables, event: &Event) -> Vec<CodeFrame> {
        self.stack(tables, event.location, event.context)
    }

    /// The global variable at a data address, if there is one.
    pub fn variable(&mut self, address: u64) -> Option<Variable> {
        let ix = self.module_index(address)?;
        let address = address.wrapping_sub(self.modules[ix].bias);
        self.symbols(ix)?.variable(address)
    }

    /// The object at a data address: a global or static variable, and the path inside it. `None` outside all variables.
    pub fn data(&mut self, address: u64) -> Option<DataName> {
        self.named_data(address, None)
    }

    /// [`Symbolizer::data`] of an access of so many bytes, which decides between the members of a union.
    pub fn data_access(&mut self, address: u64, size: u64) -> Option<DataName> {
        self.named_data(address, Some(size))
    }

    fn named_data(&mut self, address: u64, access: Option<u64>) -> Option<DataName> {
        if let Some(known) = self.data_cache.get(&(address, access)) {
            return known.clone();
        }
        let ix = self.module_index(address)?;
        let in_file = address.wrapping_sub(self.modules[ix].bias);
        let name = self.symbols(ix).and_then(|symbols| symbols.data(in_file, access));
        if self.data_cache.len() >= CACHE_ENTRIES_MAX {
            self.data_cache.clear();
        }
        self.data_cache.insert((address, access), name.clone());
        name
    }

    /// The thread-local object at an offset into a module's block of thread-local storage. Modules are counted as in the
    /// table that [`Symbolizer::new`] was given.
    pub fn thread_local(&mut self, module_index: usize, tls_offset: u64) -> Option<DataName> {
        let ix = *self.given.get(module_index)?;
        self.symbols(ix)?.thread_local(tls_offset, None)
    }

    /// [`Symbolizer::thread_local`] for an offset from the thread pointer (negative on x86-64). Only the block of the
    /// program itself lies at a place that its file tells, so the module must be the program.
    pub fn thread_local_at(&mut self, module_index: usize, thread_pointer_offset: i64) -> Option<DataName> {
        let ix = *self.given.get(module_index)?;
        let symbols = self.symbols(ix)?;
        let offset = symbols.thread_local_block()?.checked_add_signed(thread_pointer_offset)?;
        symbols.thread_local(offset, None)
    }

    /// The local variable, and the path inside it, at an address on the stack. The frame is given by its return address
    /// (`pc`, as in a trace: the instruction behind the call or access) and its canonical frame address: the stack
    /// pointer before the call of the function, which is `rbp + 16` in code with frame pointers.
    pub fn local(&mut self, pc: u64, frame_cfa: u64, address: u64) -> Option<String> {
        let ix = self.module_index(pc)?;
        let return_address = pc.wrapping_sub(self.modules[ix].bias);
        self.symbols(ix)?.local(return_address, frame_cfa, address)
    }

    /// A data address in words: a variable, a place in a module, or the bare number.
    pub fn describe(&mut self, address: u64) -> String {
        match self.variable(address) {
            Some(variable) => variable.to_string(),
            None => self.raw(address),
        }
    }

    /// `module+0x1234`, or the bare number outside all modules.
    pub fn raw(&self, address: u64) -> String {
        match self.module_index(address) {
            Some(ix) => {
                let module = &self.modules[ix];
                let name = module.path.rsplit('/').next().unwrap_or(&module.path);
                format!("{name}+{:#x}", address.wrapping_sub(module.bias))
            }
            None => format!("{address:#x}"),
        }
    }

    fn module_index(&self, address: u64) -> Option<usize> {
        let after = self.modules.partition_point(|module| module.start <= address);
        // Modules may overlap in a damaged table; the one that starts last wins.
        self.modules[..after].iter().rposition(|module| address < module.end)
    }

    fn symbols(&mut self, ix: usize) -> Option<&mut ModuleSymbols> {
        self.clock += 1;
        if !self.open.contains_key(&ix) {
            let symbols = match ModuleSymbols::open(&self.modules[ix]) {
                Ok(symbols) => Some(symbols),
                Err(problem) => {
                    self.problems.push(problem);
                    None
                }
            };
            self.open.insert(ix, Open { symbols, used_at: self.clock });
        }
        self.make_room(ix);
        let open = self.open.get_mut(&ix)?;
        open.used_at = self.clock;
        open.symbols.as_mut()
    }

    /// Lets modules go, the longest unused first, until the estimate is within the budget.
    fn make_room(&mut self, keep: usize) {
        loop {
            let held: u64 =
                self.open.values().filter_map(|open| open.symbols.as_ref()).map(|s| s.cost()).sum();
            if held <= BUDGET_BYTES {
                return;
            }
            let oldest = self
                .open
                .iter()
                .filter(|(ix, open)| **ix != keep && open.symbols.is_some())
                .min_by_key(|(_, open)| open.used_at)
                .map(|(ix, _)| *ix);
            match oldest {
                Some(ix) => drop(self.open.remove(&ix)),
                None => {
                    // Only the module in use is left: open it anew, which forgets what was read of it.
                    if let Some(open) = self.open.get_mut(&keep)
                        && open.symbols.as_ref().is_some_and(ModuleSymbols::worth_reopening)
                    {
                        open.symbols = ModuleSymbols::open(&self.modules[keep]).ok();
                    }
                    return;
                }
            }
        }
    }
}
