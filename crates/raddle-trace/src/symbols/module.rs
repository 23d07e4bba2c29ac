//! The symbols of one module.

use super::debug_file::{self, DebugFiles};
use super::variables::Variables;
use super::{CodeFrame, Variable};
use crate::tables::Module;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Estimate of what one lookup adds to memory: it may read a unit's functions and lines.
const LOOKUP_COST_BYTES: u64 = 64 * 1024;

/// One open module.
pub struct ModuleSymbols {
    path: PathBuf,
    loader: addr2line::Loader,
    variables: Option<Variables>,
    open_cost: u64,
    lookups: u64,
}

impl ModuleSymbols {
    pub fn open(module: &Module) -> Result<ModuleSymbols, String> {
        let path = Path::new(&module.path);
        let DebugFiles { dwarf, supplement, open_cost } = debug_file::find(path, &module.build_id)?;
        let loader = addr2line::Loader::new_with_sup(&dwarf, supplement.as_ref())
            .map_err(|error| format!("no symbols of {}: {error}", dwarf.display()))?;
        Ok(ModuleSymbols { path: path.to_owned(), loader, variables: None, open_cost, lookups: 0 })
    }

    /// Estimate of the memory that this module holds.
    pub fn cost(&self) -> u64 {
        let variables = self.variables.as_ref().map_or(0, Variables::cost);
        self.open_cost + variables + self.lookups * LOOKUP_COST_BYTES
    }

    /// Does most of the cost come from lookups?
    pub fn worth_reopening(&self) -> bool {
        self.lookups * LOOKUP_COST_BYTES > self.cost() / 2
    }

    /// Frames of a return address in the file's own numbering; empty if nothing is known.
    pub fn frames(&mut self, address: u64) -> Vec<CodeFrame> {
        self.lookups += 1;
        let symbol = self.loader.find_symbol_info(address);
        let entry = symbol.as_ref().is_some_and(|symbol| symbol.address() == address);
        let probe = if entry { address } else { address.wrapping_sub(1) };
        let mut frames = self.dwarf_frames(probe);
        let symbol = self.loader.find_symbol(probe).map(demangle);
        match frames.last_mut() {
            Some(outermost) => {
                if outermost.function.is_none() {
                    outermost.function = symbol;
                }
            }
            None => {
                frames.extend(symbol.map(|name| CodeFrame { function: Some(name), ..CodeFrame::default() }))
            }
        }
        let inlined = frames.len().saturating_sub(1);
        frames[..inlined].iter_mut().for_each(|frame| frame.inlined = true);
        frames
    }

    fn dwarf_frames(&self, probe: u64) -> Vec<CodeFrame> {
        let Ok(mut found) = self.loader.find_frames(probe) else { return Vec::new() };
        // Damaged debug information ends the walk; what was found before it stays.
        let mut frames = Vec::new();
        while let Ok(Some(frame)) = found.next() {
            let function =
                frame.function.as_ref().and_then(|function| function.demangle().ok()).map(Cow::into_owned);
            let location = frame.location.as_ref();
            frames.push(CodeFrame {
                function,
                file: location.and_then(|location| location.file).map(tidy_path),
                line: location.and_then(|location| location.line).filter(|&line| line > 0),
                column: location.and_then(|location| location.column).filter(|&column| column > 0),
                ..CodeFrame::default()
            });
        }
        frames.retain(|frame| frame.function.is_some() || frame.file.is_some());
        frames
    }

    pub fn variable(&mut self, address: u64) -> Option<Variable> {
        let path = &self.path;
        self.variables.get_or_insert_with(|| Variables::read(path)).at(address)
    }
}

/// A symbol as a programmer wrote it. Names without a mangler's prefix are left alone: to C++ demanglers the variable
/// `m` would be the type `unsigned long`.
pub fn demangle(symbol: &str) -> String {
    match symbol.starts_with("_Z") || symbol.starts_with("__Z") || symbol.starts_with("_R") {
        true => addr2line::demangle_auto(Cow::Borrowed(symbol), None).into_owned(),
        false => symbol.to_owned(),
    }
}

/// Removes `.` and resolves `..` without asking the file system.
fn tidy_path(path: &str) -> String {
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
    fn names_are_demangled() {
        assert_eq!(demangle("_ZN4bank8withdrawEi"), "bank::withdraw(int)");
        assert_eq!(demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"), "core::fmt::Formatter::pad");
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("m"), "m", "a variable, not the C++ type `unsigned long`");
    }

    #[test]
    fn paths_are_tidied() {
        assert_eq!(tidy_path("/work/./a/../b//c.c"), "/work/b/c.c");
        assert_eq!(tidy_path("../x.c"), "../x.c");
        assert_eq!(tidy_path("./x.c"), "x.c");
    }
}
