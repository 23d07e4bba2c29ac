//! The symbols of one module.

use super::debug_file::{self, DebugFiles};
use super::dies::{Dies, Scopes};
use super::functions::{self, Functions};
use super::names::{demangle, is_mangled};
use super::sections::DebugSections;
use super::statics::{self, PlaceIn, Statics};
use super::symbol_table::{SymbolAt, SymbolTable};
use super::units::{DieRef, Units};
use super::{CodeFrame, DataName, Variable, locals};
use crate::tables::Module;
use object::SymbolKind;
use object::read::elf::ProgramHeader;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// Estimate of what one lookup adds to memory: it may read a unit's functions and lines.
const LOOKUP_COST_BYTES: u64 = 64 * 1024;

/// One open module. What is not asked for is not read.
pub struct ModuleSymbols {
    path: PathBuf,
    files: DebugFiles,
    loader: addr2line::Loader,
    data_symbols: OnceCell<SymbolTable>,
    code_symbols: OnceCell<SymbolTable>,
    thread_local_symbols: OnceCell<SymbolTable>,
    units: OnceCell<Option<Units>>,
    /// The module itself, where its debug information is in another file.
    own_file: OnceCell<Option<DebugSections>>,
    statics: OnceCell<Statics>,
    scopes: Scopes,
    functions: Functions,
    lookups: u64,
}

impl ModuleSymbols {
    pub fn open(module: &Module) -> Result<ModuleSymbols, String> {
        let path = Path::new(&module.path);
        let files = debug_file::find(path, &module.build_id)?;
        let loader = addr2line::Loader::new_with_sup(&files.dwarf, files.supplement.as_ref())
            .map_err(|error| format!("no symbols of {}: {error}", files.dwarf.display()))?;
        Ok(ModuleSymbols {
            path: path.to_owned(),
            files,
            loader,
            data_symbols: OnceCell::new(),
            code_symbols: OnceCell::new(),
            thread_local_symbols: OnceCell::new(),
            units: OnceCell::new(),
            own_file: OnceCell::new(),
            statics: OnceCell::new(),
            scopes: Scopes::default(),
            functions: Functions::default(),
            lookups: 0,
        })
    }

    /// Estimate of the memory that this module holds.
    pub fn cost(&self) -> u64 {
        let tables = [&self.data_symbols, &self.code_symbols, &self.thread_local_symbols];
        let tables: u64 = tables.iter().filter_map(|table| table.get()).map(SymbolTable::cost).sum();
        let units = self.units.get().and_then(Option::as_ref).map_or(0, Units::cost);
        let statics = self.statics.get().map_or(0, Statics::cost);
        let lookups = self.lookups * LOOKUP_COST_BYTES;
        self.files.open_cost + tables + units + statics + self.functions.cost() + lookups
    }

    /// Does most of the cost come from lookups?
    pub fn worth_reopening(&self) -> bool {
        self.lookups * LOOKUP_COST_BYTES > self.cost() / 2
    }

    /// Frames of a return address in the file's own numbering; empty if nothing is known.
    pub fn frames(&mut self, address: u64) -> Vec<CodeFrame> {
        self.lookups += 1;
        let starts = self.symbols(&self.code_symbols, SymbolKind::Text).starts_at(address);
        self.frames_at(if starts { address } else { address.wrapping_sub(1) })
    }

    /// As [`ModuleSymbols::frames`], of an address that is no function's beginning, even if one begins there: the call may be the
    /// last instruction of its function.
    pub fn call_frames(&mut self, address: u64) -> Vec<CodeFrame> {
        self.lookups += 1;
        self.frames_at(address.wrapping_sub(1))
    }

    fn frames_at(&mut self, probe: u64) -> Vec<CodeFrame> {
        let symbols = self.symbols(&self.code_symbols, SymbolKind::Text);
        let symbol = || symbols.at(probe)?.function(&self.mapped_files());
        let mut frames = self.dwarf_frames(probe, symbol);
        match frames.last_mut() {
            Some(outermost) => outermost.function = outermost.function.take().or_else(symbol),
            None => {
                frames.extend(symbol().map(|name| CodeFrame { function: Some(name), ..CodeFrame::default() }))
            }
        }
        let inlined = frames.len().saturating_sub(1);
        frames[..inlined].iter_mut().for_each(|frame| frame.inlined = true);
        frames
    }

    fn dwarf_frames(&self, probe: u64, symbol: impl Fn() -> Option<String>) -> Vec<CodeFrame> {
        // addr2line counts one further, and recurses.
        if probe == u64::MAX || self.units().is_some_and(|units| !units.nests_boundedly(probe)) {
            return Vec::new();
        }
        let Ok(mut found) = self.loader.find_frames(probe) else { return Vec::new() };
        // Damaged debug information ends the walk; what was found before it stays.
        let mut frames = Vec::new();
        let mut entries = Vec::new();
        let mut mangled = false;
        while let Ok(Some(frame)) = found.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let location = frame.location.as_ref();
            mangled = name.as_ref().is_some_and(|name| is_mangled(name));
            frames.push(CodeFrame {
                // By its prefix: addr2line does not know the languages of later standards (C++17, C++20).
                function: name.map(|name| demangle(&name)),
                file: location.and_then(|location| location.file).map(tidy_path),
                line: location.and_then(|location| location.line).filter(|&line| line > 0),
                column: location.and_then(|location| location.column).filter(|&column| column > 0),
                ..CodeFrame::default()
            });
            entries.push(frame.dw_die_offset);
        }
        // gcc leaves the symbols of what is local to a function out; `run` is `main::Local::run()`.
        if let Some(outermost) = frames.last_mut().filter(|_| !mangled) {
            let fuller = symbol().filter(|symbol| symbol.contains(['(', ':']));
            outermost.function = fuller.or(outermost.function.take());
        }
        // Inlined calls are in the unit of the function around them. addr2line does not say which unit that is.
        if let Some(dies) = self.dies()
            && let Some(Some(outermost)) = entries.last()
            && let Some(unit) = functions::unit_with(&dies, *outermost, probe)
        {
            for (frame, offset) in frames.iter_mut().zip(&entries) {
                let entry = offset.map(|offset| DieRef { unit, offset });
                if let Some(entry) = entry.and_then(|entry| dies.read(entry)) {
                    frame.function_line = functions::declaration_line(&dies, &entry);
                    frame.function = functions::name(&dies, &entry, frame.function.take());
                }
            }
            if let (Some(innermost), Some(Some(offset))) = (frames.first_mut(), entries.first())
                && innermost.line.is_none()
            {
                let code = functions::ranges(&dies, DieRef { unit, offset: *offset });
                self.take_line_before(innermost, &code, probe);
            }
        }
        frames.retain(|frame| frame.function.is_some() || frame.file.is_some());
        frames
    }

    /// Code that belongs to no line (line 0) is ascribed to the nearest line before it in the same function.
    fn take_line_before(&self, frame: &mut CodeFrame, code: &[(u64, u64)], probe: u64) {
        let Some(&(begin, _)) = code.iter().find(|(begin, end)| (*begin..*end).contains(&probe)) else {
            return;
        };
        let Ok(lines) = self.loader.find_location_range(begin, probe.saturating_add(1)) else { return };
        let last = lines.filter(|(_, _, place)| place.line.is_some_and(|line| line > 0)).last();
        if let Some((_, _, place)) = last {
            frame.line = place.line;
            frame.file = place.file.map(tidy_path).or(frame.file.take());
        }
    }

    /// The variable of the symbol table at an address.
    pub fn variable(&self, address: u64) -> Option<Variable> {
        self.symbols(&self.data_symbols, SymbolKind::Data).at(address)?.variable(&self.mapped_files())
    }

    /// The object at a data address; `access` bytes of it are accessed, if known.
    pub fn data(&self, address: u64, access: Option<u64>) -> Option<DataName> {
        let symbol = self.symbols(&self.data_symbols, SymbolKind::Data).at(address);
        self.object(symbol, access, |statics| statics.data(address).collect())
    }

    /// The thread-local object at an offset into the module's block.
    pub fn thread_local(&self, offset: u64, access: Option<u64>) -> Option<DataName> {
        let symbol = self.symbols(&self.thread_local_symbols, SymbolKind::Tls).at(offset);
        self.object(symbol, access, |statics| statics.thread_local(offset).collect())
    }

    fn object(
        &self,
        symbol: Option<SymbolAt>,
        access: Option<u64>,
        places: impl Fn(&Statics) -> Vec<PlaceIn>,
    ) -> Option<DataName> {
        let found = self.dies().and_then(|dies| {
            places(self.statics(&dies)).into_iter().find_map(|place| {
                // Flexible arrays are longer than their type.
                let whole = symbol.filter(|symbol| symbol.offset == place.from_start);
                name(&dies, place, whole.map_or(0, |symbol| symbol.size), access)
            })
        });
        found.or_else(|| Some(symbol?.variable(&self.mapped_files())?.into()))
    }

    /// How many bytes below the thread pointer the block of the program itself begins (x86-64 has it there).
    pub fn thread_local_block(&self) -> Option<u64> {
        let object = object::File::parse(self.own_file()?.file()).ok()?;
        let object::File::Elf64(elf) = &object else { return None };
        let endian = elf.endian();
        let header =
            elf.elf_program_headers().iter().find(|header| header.p_type(endian) == object::elf::PT_TLS)?;
        header.p_memsz(endian).checked_next_multiple_of(header.p_align(endian).max(1))
    }

    /// The local variable at an address in the frame of a return address.
    pub fn local(&self, return_address: u64, cfa: u64, address: u64) -> Option<String> {
        let frame = locals::Frame { code: return_address.checked_sub(1)?, cfa, file: self.own_file()? };
        locals::name_at(&self.dies()?, &self.functions, frame, address)
    }

    fn symbols<'a>(&self, table: &'a OnceCell<SymbolTable>, kind: SymbolKind) -> &'a SymbolTable {
        table.get_or_init(|| SymbolTable::read(kind, &self.mapped_files()))
    }

    /// The bytes of the file with the debug information, and of the module where that is another one.
    fn mapped_files(&self) -> Vec<&[u8]> {
        let dwarf = self.units().map(|units| units.main_file().file());
        let own = if self.path == self.files.dwarf { None } else { self.own_file().map(DebugSections::file) };
        dwarf.into_iter().chain(own).collect()
    }

    fn units(&self) -> Option<&Units> {
        let open = || Units::open(&self.files.dwarf, self.files.supplement.as_deref());
        self.units.get_or_init(open).as_ref()
    }

    fn dies(&self) -> Option<Dies<'_>> {
        Some(Dies::new(self.units()?, &self.scopes))
    }

    fn statics(&self, dies: &Dies<'_>) -> &Statics {
        self.statics.get_or_init(|| Statics::read(dies))
    }

    fn own_file(&self) -> Option<&DebugSections> {
        if self.path == self.files.dwarf {
            return self.units().map(Units::main_file);
        }
        self.own_file.get_or_init(|| DebugSections::open(&self.path, false)).as_ref()
    }
}

fn name(dies: &Dies<'_>, place: PlaceIn, symbol_size: u64, access: Option<u64>) -> Option<DataName> {
    let die = dies.read(place.variable)?;
    let kind = statics::type_of(dies, &die)?;
    let size = match place.piece_size {
        0 => dies.size(kind).unwrap_or(0).max(symbol_size),
        size => size,
    };
    if place.from_start >= size {
        return None;
    }
    let variable = statics::variable_name(dies, &die)?;
    let innermost = dies.innermost(kind, place.offset, access);
    Some(DataName {
        path: format!("{variable}{}", innermost.path),
        variable,
        declared: statics::declared(dies, &die),
        type_name: dies.type_name(innermost.kind),
        offset: innermost.offset,
        exact: true,
    })
}

/// Removes `.` and resolves `..` without asking the file system.
pub fn tidy_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !last.is_empty() && *last != "..") => {
                parts.pop();
            }
            "" if !parts.is_empty() => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_tidied() {
        assert_eq!(tidy_path("/work/./a/../b//c.c"), "/work/b/c.c");
        assert_eq!(tidy_path("../x.c"), "../x.c");
        assert_eq!(tidy_path("./x.c"), "x.c");
    }
}
