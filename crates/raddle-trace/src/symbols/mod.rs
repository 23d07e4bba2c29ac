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

mod debug_file;
pub mod lines;
mod module;
mod variables;

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

/// An open module and when it was last asked.
struct Open {
    symbols: Option<ModuleSymbols>,
    used_at: u64,
}

/// Looks up addresses of a trace.
pub struct Symbolizer {
    modules: Vec<Module>,
    open: FxHashMap<usize, Open>,
    cache: FxHashMap<u64, Rc<[CodeFrame]>>,
    clock: u64,
    problems: Vec<String>,
}

impl Symbolizer {
    pub fn new(modules: &[Module]) -> Symbolizer {
        let mut modules = modules.to_vec();
        modules.sort_by_key(|module| module.start);
        Symbolizer {
            modules,
            open: FxHashMap::default(),
            cache: FxHashMap::default(),
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
        let raw = self.raw(pc);
        let mut frames = match self.module_index(pc) {
            Some(ix) => {
                let address = pc.wrapping_sub(self.modules[ix].bias);
                self.symbols(ix).map(|symbols| symbols.frames(address)).unwrap_or_default()
            }
            None => Vec::new(),
        };
        if frames.is_empty() {
            frames.push(CodeFrame::default());
        }
        for frame in &mut frames {
            frame.raw = Some(raw.clone());
        }
        if self.cache.len() >= CACHE_ENTRIES_MAX {
            self.cache.clear();
        }
        let frames: Rc<[CodeFrame]> = frames.into();
        self.cache.insert(pc, Rc::clone(&frames));
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
