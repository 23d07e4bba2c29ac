//! Names and source lines of places, for those that somebody asks about.

use super::place::SourceLine;
use super::process::{Module, ModuleIx, Standing};
use crate::image::FunctionIx;
use std::borrow::Cow;
use std::cell::RefCell;
use std::path::Path;

/// A function without the file that it came from.
struct Known {
    start: u64,
    end: u64,
    name: Option<String>,
}

/// The functions of the modules that are judged function by function, and their debug information once it is needed.
pub struct Names {
    modules: Vec<Vec<Known>>,
    /// None: not looked for yet. Some(None): there is none.
    lines: RefCell<Vec<Option<Option<addr2line::Loader>>>>,
}

impl Names {
    pub fn of(modules: &[Module], standings: &[Standing]) -> Names {
        let functions = |(module, standing): (&Module, &Standing)| match (&module.image, standing) {
            (Some(image), Standing::Rebuilt) => image
                .functions()
                .iter()
                .map(|function| Known {
                    start: function.start,
                    end: function.end,
                    name: function.name.map(str::to_owned),
                })
                .collect(),
            _ => Vec::new(),
        };
        let lines = RefCell::new(modules.iter().map(|_| None).collect());
        Names { modules: modules.iter().zip(standings).map(functions).collect(), lines }
    }

    pub fn function_at(&self, module: ModuleIx, address: u64) -> Option<FunctionIx> {
        let functions = &self.modules[module.0 as usize];
        let ix = functions.partition_point(|function| function.start <= address).checked_sub(1)?;
        // A call that does not return may be the last instruction: its return address is the end.
        (address <= functions[ix].end).then_some(FunctionIx(ix as u32))
    }

    /// Where the function of this name begins.
    pub fn address(&self, module: ModuleIx, name: &str) -> Option<u64> {
        let functions = &self.modules[module.0 as usize];
        functions
            .iter()
            .find(|function| function.name.as_deref() == Some(name))
            .map(|function| function.start)
    }

    /// Demangled.
    pub fn function(&self, module: ModuleIx, function: FunctionIx) -> Option<String> {
        self.modules[module.0 as usize][function.0 as usize].name.as_deref().map(demangle)
    }

    pub fn source(&self, module: ModuleIx, path: &Path, address: u64) -> Option<SourceLine> {
        let mut lines = self.lines.borrow_mut();
        let loader =
            lines[module.0 as usize].get_or_insert_with(|| addr2line::Loader::new(path).ok()).as_ref()?;
        let location = loader.find_location(address).ok()??;
        Some(SourceLine { file: location.file?.to_owned(), line: location.line.filter(|&line| line > 0)? })
    }
}

/// Names without a mangler's prefix are left alone: to C++ demanglers the function `m` would be a type.
fn demangle(symbol: &str) -> String {
    match symbol.starts_with("_Z") || symbol.starts_with("__Z") || symbol.starts_with("_R") {
        true => addr2line::demangle_auto(Cow::Borrowed(symbol), None).into_owned(),
        false => symbol.to_owned(),
    }
}
