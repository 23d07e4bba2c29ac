//! Where in a program's files an aspect applies.
//!
//! The program and its own libraries are searched; libraries of the system only where a target names one (`libz.so*!deflate`), and there for
//! `body` alone, because a call *of* a library's function stands in the program. From symbols come functions, from disassembly
//! the calls ([`calls`]), from debug information lines, fields of globals, and why a function is not there ([`debug`]).
//!
//! An aspect that applies nowhere is never silent: a [`Note`] says what is known about its target and what to do.

mod callee;
mod calls;
mod debug;
mod entry;
mod names;

pub use callee::{Described, Knowledge};
pub use calls::{CallSite, Callee};
pub use debug::{Class, Definition, Signature};
pub use entry::AtEntry;

use crate::aspect::{Aspect, JoinPoint, Target, TargetName};
use crate::image::{Image, Refusal};
use debug::DebugInfo;
use memmap2::Mmap;
use object::{Object, ObjectSymbol, SymbolKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// A place where an event happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub module: usize,
    /// In the file's own numbering.
    pub address: u64,
    /// How many bytes of data, for globals.
    pub bytes: u64,
    /// What is called, entered or accessed there.
    pub what: String,
    /// The function in which a call or a line stands.
    pub within: Option<String>,
    pub is_tail_call: bool,
    /// Of a call through a register: where the register was loaded.
    pub loaded_at: Option<u64>,
    /// Where the function that is called or entered begins, in the same module.
    pub entry: Option<u64>,
}

/// Something that the user should know about an aspect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub message: String,
    pub help: String,
    /// Events are missing or may be wrong: what they seem to show is not certain.
    pub is_doubt: bool,
}

impl Note {
    pub fn told(message: impl Into<String>, help: impl Into<String>) -> Note {
        Note { message: message.into(), help: help.into(), is_doubt: false }
    }

    pub fn doubt(message: impl Into<String>, help: impl Into<String>) -> Note {
        Note { message: message.into(), help: help.into(), is_doubt: true }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located {
    pub places: Vec<Place>,
    pub notes: Vec<Note>,
}

/// One file of the program.
pub struct Module {
    pub path: PathBuf,
    /// Belongs to the system, not to the program.
    pub is_system: bool,
    bytes: Mmap,
    debug: OnceCell<DebugInfo>,
}

/// Folders whose libraries are not the user's own.
const SYSTEM_FOLDERS: &[&str] = &["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/libexec"];

impl Module {
    pub fn open(path: &Path) -> std::io::Result<Module> {
        let file = std::fs::File::open(path)?;
        // SAFETY: as with every reader of programs here: a file that is changed meanwhile gives wrong answers or ends this process.
        let bytes = unsafe { Mmap::map(&file)? };
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_system = SYSTEM_FOLDERS.iter().any(|folder| real.starts_with(folder));
        Ok(Module { path: path.to_owned(), is_system, bytes, debug: OnceCell::new() })
    }

    pub fn image(&self) -> Result<Image<'_>, Refusal> {
        Image::parse(&self.bytes)
    }

    pub fn build_id(&self) -> Option<Vec<u8>> {
        object::File::parse(&self.bytes[..]).ok()?.build_id().ok()?.map(<[u8]>::to_vec)
    }

    fn debug(&self) -> &DebugInfo {
        self.debug.get_or_init(|| DebugInfo::read(&self.bytes))
    }

    fn file_name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Finds the places of aspects in the modules of one program; what is expensive to find is kept.
pub struct Locator<'modules> {
    modules: &'modules [Module],
    views: Vec<Option<View<'modules>>>,
}

/// What is kept of one module.
struct View<'module> {
    image: Image<'module>,
    /// All names of each function: several symbols may have one address.
    names: FxHashMap<u64, Vec<Symbol>>,
    calls: OnceCell<Vec<CallSite<'module>>>,
    without_trace: OnceCell<Vec<String>>,
}

impl View<'_> {
    fn own_names(&self) -> FxHashSet<&str> {
        self.names.values().flatten().map(|symbol| symbol.spellings[0].as_str()).collect()
    }
}

struct Symbol {
    /// As in the symbol table.
    name: String,
    spellings: Vec<String>,
}

impl<'modules> Locator<'modules> {
    pub fn new(modules: &'modules [Module]) -> Locator<'modules> {
        let views = modules
            .iter()
            .map(|module| {
                let image = module.image().ok()?;
                let names = symbols(module, &image);
                Some(View { image, names, calls: OnceCell::new(), without_trace: OnceCell::new() })
            })
            .collect();
        Locator { modules, views }
    }

    pub fn locate(&self, aspect: &Aspect) -> Located {
        let mut located = Located::default();
        for number in 0..self.modules.len() {
            if self.is_searched(number, aspect) {
                self.locate_in(number, aspect, &mut located);
            }
        }
        located.places.sort_by_key(|place| (place.module, place.address));
        located.places.dedup();
        if located.places.is_empty() && located.notes.is_empty() {
            located.notes.push(self.why_nothing(aspect));
        }
        let folded: Vec<Note> = located.places.iter().filter_map(|place| self.folded(place)).collect();
        for note in folded {
            if !located.notes.contains(&note) {
                located.notes.push(note);
            }
        }
        self.tell_of_inlining(aspect, &mut located);
        located
    }

    fn is_searched(&self, number: usize, aspect: &Aspect) -> bool {
        let module = &self.modules[number];
        match &aspect.target.module {
            Some(pattern) if aspect.join_point != JoinPoint::Call => {
                names::matches(pattern, &module.file_name())
            }
            _ => !module.is_system,
        }
    }

    fn locate_in(&self, number: usize, aspect: &Aspect, located: &mut Located) {
        let Some(view) = &self.views[number] else { return };
        match &aspect.target.name {
            TargetName::Function(pattern) if aspect.join_point == JoinPoint::Body => {
                for (&address, symbols) in &view.names {
                    if let Some(symbol) = matching(symbols, pattern) {
                        let what = symbol.spellings[0].clone();
                        let place = Place {
                            module: number,
                            address,
                            bytes: 0,
                            what,
                            within: None,
                            is_tail_call: false,
                            loaded_at: None,
                            entry: Some(address),
                        };
                        located.places.push(place);
                    }
                }
            }
            TargetName::Function(pattern) => {
                self.locate_calls(number, view, &aspect.target, pattern, located)
            }
            TargetName::Global(path) => self.locate_global(number, path, located),
            TargetName::Line { file, line } => self.locate_line(number, view, file, *line, located),
        }
    }

    fn locate_calls(
        &self,
        number: usize,
        view: &View<'modules>,
        target: &Target,
        pattern: &str,
        located: &mut Located,
    ) {
        let calls = view.calls.get_or_init(|| {
            let is_linkage = |address| view.image.code_at(address).is_none_or(|code| code.is_linkage);
            let functions = view.image.functions().iter().filter(|function| !is_linkage(function.start));
            functions.flat_map(|function| calls::sites(&view.image, function)).collect()
        });
        let own_module = |pattern: &String| names::matches(pattern, &self.modules[number].file_name());
        for call in calls {
            let (what, entry) = match call.callee {
                Callee::Own(address) => {
                    if !target.module.as_ref().is_none_or(own_module) {
                        continue;
                    }
                    let found = view
                        .names
                        .get(&address)
                        .and_then(|symbols| matching(symbols, pattern))
                        .map(|found| found.spellings[0].clone());
                    (found, Some(address))
                }
                Callee::Import(name) => {
                    let defined = |wanted: &String| self.defines(wanted, name);
                    let spellings = names::spellings(name);
                    let fits = target.module.as_ref().is_none_or(defined)
                        && spellings.iter().any(|spelling| names::matches(pattern, spelling));
                    // Compilers may look into what a library exports when they compile its own calls.
                    (fits.then(|| spellings[0].clone()), view.image.export(name))
                }
            };
            if let Some(what) = what {
                let within = self.function_at(view, call.address);
                let (address, is_tail_call) = (call.address, call.is_tail);
                let loaded_at = call.loaded_at;
                located.places.push(Place {
                    module: number,
                    address,
                    bytes: 0,
                    what,
                    within,
                    is_tail_call,
                    loaded_at,
                    entry,
                });
            }
        }
    }

    /// Is there a module of this name that defines the function?
    fn defines(&self, pattern: &str, name: &str) -> bool {
        self.modules.iter().zip(&self.views).any(|(module, view)| {
            names::matches(pattern, &module.file_name())
                && view.as_ref().is_some_and(|view| view.image.export(name).is_some())
        })
    }

    fn function_at(&self, view: &View, address: u64) -> Option<String> {
        let function = view.image.function(view.image.function_at(address)?);
        let name = function.name?;
        names::spellings(name).into_iter().next()
    }

    fn locate_global(&self, number: usize, path: &str, located: &mut Located) {
        let module = &self.modules[number];
        let debug = module.debug();
        let found = match debug.global(path) {
            Ok(extent) if extent.bytes != 0 => Ok((extent.address, extent.bytes)),
            other => match symbol_extent(module, path) {
                Some(extent) => Ok(extent),
                None => Err(other.err().unwrap_or_else(|| "its size is not known".to_owned())),
            },
        };
        match found {
            Ok((address, bytes)) => located.places.push(Place {
                module: number,
                address,
                bytes,
                what: path.to_owned(),
                within: None,
                is_tail_call: false,
                loaded_at: None,
                entry: None,
            }),
            // Only where the global itself is known is the reason about this module.
            Err(reason)
                if debug
                    .globals()
                    .any(|name| path.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', '[']))) =>
            {
                let message = format!("`{path}` in {}: {reason}", module.path.display());
                located.notes.push(Note::told(message, "see the declaration of its type"));
            }
            Err(_) => {}
        }
    }

    /// The first statement of the line in each function.
    fn locate_line(&self, number: usize, view: &View, file: &str, line: u32, located: &mut Located) {
        let debug = self.modules[number].debug();
        let wanted: Vec<bool> = debug.files.iter().map(|path| is_file(file, path)).collect();
        let mut functions = Vec::new();
        for row in debug.rows.iter().filter(|row| row.line == line && wanted[row.file as usize]) {
            let Some(function) = view.image.function_at(row.address) else { continue };
            let piece =
                view.image.function(function).name.is_some_and(|name| names::original(name).is_none());
            if functions.contains(&function) || piece {
                continue;
            }
            functions.push(function);
            located.places.push(Place {
                module: number,
                address: row.address,
                bytes: 0,
                what: format!("{}:{line}", debug.files[row.file as usize]),
                within: self.function_at(view, row.address),
                is_tail_call: false,
                loaded_at: None,
                entry: None,
            });
        }
    }

    fn why_nothing(&self, aspect: &Aspect) -> Note {
        let searched = || (0..self.modules.len()).filter(|&number| self.is_searched(number, aspect));
        if let Some(pattern) = &aspect.target.module
            && !self.modules.iter().any(|module| names::matches(pattern, &module.file_name()))
        {
            let known: Vec<String> = self.modules.iter().map(Module::file_name).collect();
            let message = format!("the program loads no file `{pattern}` when it starts");
            return Note::told(message, format!("it loads {}", known.join(", ")));
        }
        let described = searched().any(|number| self.modules[number].debug().exists);
        match &aspect.target.name {
            TargetName::Function(pattern) => {
                let defined = searched().any(|number| {
                    let view = self.views[number].as_ref();
                    view.is_some_and(|view| {
                        view.names.values().any(|symbols| matching(symbols, pattern).is_some())
                    })
                });
                if defined {
                    let message = format!("`{pattern}` is defined, but nothing calls it by name");
                    return Note::told(message, "calls through pointers are seen by `body`");
                }
                let message = match aspect.join_point {
                    JoinPoint::Body => format!("no function `{pattern}` is defined"),
                    _ => format!("nothing calls `{pattern}`"),
                };
                let near = self.similar(pattern);
                let help = match near.is_empty() {
                    true => "`raddle aspects list` shows what there is".to_owned(),
                    false => format!("did you mean {}?", near.join(", ")),
                };
                Note::told(message, help)
            }
            TargetName::Global(path) if described || path.contains(['.', '[']) => {
                let message = format!("no global `{path}` is known");
                let help = if described {
                    "`raddle aspects list --globals` shows what there is".to_owned()
                } else {
                    "fields of globals need debug information: compile with -g".to_owned()
                };
                Note::told(message, help)
            }
            TargetName::Global(path) => Note::told(
                format!("no global `{path}` is in the symbol table"),
                "compile with -g, and do not strip the program",
            ),
            TargetName::Line { .. } if !described => Note::told(
                "the program has no debug information, so no line is known".to_owned(),
                "compile with -g".to_owned(),
            ),
            TargetName::Line { file, line } => self.nearest_line(file, *line),
        }
    }

    fn nearest_line(&self, file: &str, line: u32) -> Note {
        let mut near: Option<u32> = None;
        for module in self.modules {
            let debug = module.debug();
            let rows = debug.rows.iter().filter(|row| is_file(file, &debug.files[row.file as usize]));
            for row in rows {
                let nearer = near.is_none_or(|near| near.abs_diff(line) > row.line.abs_diff(line));
                near = if nearer { Some(row.line) } else { near };
            }
        }
        match near {
            Some(near) => Note::told(
                format!("line {line} of {file} has no code of its own"),
                format!("the nearest line that has is {near}"),
            ),
            None => Note::told(
                format!("no code comes from a file `{file}`"),
                "write the file as the compiler was given it, or `*` and its end".to_owned(),
            ),
        }
    }

    /// Names that a slip of the keyboard or a missing namespace may have meant.
    fn similar(&self, pattern: &str) -> Vec<String> {
        let mut near: Vec<String> = Vec::new();
        let wanted = pattern.trim_matches('*');
        for (number, module) in self.modules.iter().enumerate() {
            let Some(view) = &self.views[number] else { continue };
            if module.is_system {
                continue;
            }
            let own = view.names.values().flatten().map(|symbol| &symbol.spellings[0]);
            let known = own
                .cloned()
                .chain(view.image.imports().iter().map(|name| names::spellings(name).swap_remove(0)));
            near.extend(known.filter(|name| {
                let last = name.rsplit("::").next().unwrap_or(name);
                wanted.len() > 2 && (last == wanted || name.eq_ignore_ascii_case(wanted))
                    || wanted.len() > 3
                        && (name.contains(wanted) || wanted.contains(name.as_str()) && name.len() > 3)
            }));
        }
        near.sort();
        near.dedup();
        near.truncate(5);
        near.iter().map(|name| format!("`{name}`")).collect()
    }

    /// Inlined copies have neither a call nor a body.
    fn tell_of_inlining(&self, aspect: &Aspect, located: &mut Located) {
        let TargetName::Function(pattern) = &aspect.target.name else { return };
        let mut places: Vec<String> = Vec::new();
        for number in (0..self.modules.len()).filter(|&number| self.is_searched(number, aspect)) {
            let inlined = self.modules[number].debug().inlined.iter();
            let fits =
                |name: &String| names::spellings(name).iter().any(|name| names::matches(pattern, name));
            places.extend(
                inlined
                    .filter(|copy| copy.names.iter().any(fits))
                    .map(|copy| format!("{}:{}", copy.file, copy.line)),
            );
        }
        places.sort();
        places.dedup();
        if places.is_empty() {
            let searched = (0..self.modules.len()).filter(|&number| self.is_searched(number, aspect));
            let gone: Vec<Note> = searched.filter_map(|number| self.gone(number, pattern)).collect();
            located.notes.extend(gone);
        }
        if let Some(first) = places.first() {
            let message = match places.len() {
                1 => format!("`{pattern}` was inlined at {first}, where no event will be seen"),
                count => format!(
                    "`{pattern}` was inlined at {count} places, where no event will be seen; one is {first}"
                ),
            };
            let help =
                "compile with -fno-inline, or give the function `__attribute__((noinline))`".to_owned();
            located.notes.push(Note::doubt(message, help));
        }
    }

    /// The file of a module, as far as its code is concerned.
    pub fn image(&self, module: usize) -> Option<&Image<'modules>> {
        self.views.get(module)?.as_ref().map(|view| &view.image)
    }

    /// Where the first row of each line of a function is, for finding jump tables' targets.
    pub fn rows_within(&self, module: usize, range: std::ops::Range<u64>) -> Vec<u64> {
        let rows = &self.modules[module].debug().rows;
        let from = rows.partition_point(|row| row.address < range.start);
        rows[from..].iter().map(|row| row.address).take_while(|address| *address < range.end).collect()
    }

    /// File and line of the code at a place.
    pub fn source_line(&self, place: &Place) -> Option<String> {
        let view = self.views[place.module].as_ref()?;
        let debug = self.modules[place.module].debug();
        let after = debug.rows.partition_point(|row| row.address <= place.address);
        let row = debug.rows[..after].last()?;
        let function = view.image.function_at(place.address)?;
        let same = view.image.function_at(row.address) == Some(function);
        same.then(|| format!("{}:{}", debug.files[row.file as usize], row.line))
    }

    /// Functions that can be named, for lists and completion.
    pub fn functions(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for (module, view) in self.modules.iter().zip(&self.views) {
            let Some(view) = view.as_ref().filter(|_| !module.is_system) else { continue };
            all.extend(view.names.values().flatten().map(|symbol| symbol.spellings[0].clone()));
            all.extend(view.image.imports().iter().map(|name| names::spellings(name).swap_remove(0)));
        }
        all.sort();
        all.dedup();
        all
    }

    /// Globals that debug information knows.
    pub fn globals(&self) -> Vec<String> {
        let own = self.modules.iter().filter(|module| !module.is_system);
        let mut all: Vec<String> =
            own.flat_map(|module| module.debug().globals().map(str::to_owned)).collect();
        all.sort();
        all.dedup();
        all
    }
}

fn matching<'symbols>(symbols: &'symbols [Symbol], pattern: &str) -> Option<&'symbols Symbol> {
    let fits = |symbol: &&Symbol| symbol.spellings.iter().any(|name| names::matches(pattern, name));
    symbols.iter().find(fits)
}

fn symbols(module: &Module, image: &Image) -> FxHashMap<u64, Vec<Symbol>> {
    let mut names: FxHashMap<u64, Vec<Symbol>> = FxHashMap::default();
    let Ok(file) = object::File::parse(&module.bytes[..]) else { return names };
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let Ok(name) = symbol.name() else { continue };
        let usable = symbol.is_definition() && symbol.kind() == SymbolKind::Text && !name.is_empty();
        if !usable || names::original(name).is_none() || image.function_from(symbol.address()).is_none() {
            continue;
        }
        let known = names.entry(symbol.address()).or_default();
        let spellings = names::spellings(name);
        if !known.iter().any(|known| known.name == name) {
            known.push(Symbol { name: name.to_owned(), spellings });
        }
    }
    names
}

/// A global without debug information: its whole extent.
fn symbol_extent(module: &Module, path: &str) -> Option<(u64, u64)> {
    let file = object::File::parse(&module.bytes[..]).ok()?;
    let found = file.symbols().chain(file.dynamic_symbols()).find(|symbol| {
        symbol.is_definition()
            && symbol.kind() == SymbolKind::Data
            && symbol.size() != 0
            && symbol.name().is_ok_and(|name| names::spellings(name).iter().any(|name| name == path))
    })?;
    Some((found.address(), found.size()))
}

/// Is the path, or the end of it from a `/` on, what the user wrote?
fn is_file(written: &str, path: &str) -> bool {
    names::matches(written, path)
        || path.match_indices('/').any(|(at, _)| names::matches(written, &path[at + 1..]))
}
