//! The symbol table of a module: functions, variables and thread-local variables, each with its extent.
//!
//! An address between two symbols belongs to neither. The nearest symbol before it would be a guess that looks like an
//! answer, so a symbol answers for its own bytes only, and one without a size only for its first byte.

use super::Variable;
use super::names::demangle;
use object::{Object, ObjectSymbol, ObjectSymbolTable, SymbolIndex, SymbolKind};

/// Most symbols of a module and kind that are kept.
const SYMBOLS_MAX: usize = 1 << 20;

/// A symbol's extent and where its name is; names stay in the file.
#[derive(Clone, Copy)]
struct Entry {
    start: u64,
    size: u64,
    index: u32,
    file: u8,
    dynamic: bool,
}

/// Symbols of one kind, ordered by address.
#[derive(Default)]
pub struct SymbolTable {
    entries: Vec<Entry>,
}

/// A symbol and a place in it.
#[derive(Clone, Copy)]
pub struct SymbolAt {
    entry: Entry,
    pub offset: u64,
    pub size: u64,
}

impl SymbolTable {
    /// Reads the symbols of a kind from the bytes of a module's file, and of the one with its debug information, which is
    /// where stripped programs have theirs.
    pub fn read(kind: SymbolKind, files: &[&[u8]]) -> SymbolTable {
        let mut found = Vec::new();
        for (file, bytes) in files.iter().enumerate() {
            let Ok(object) = object::File::parse(*bytes) else { continue };
            for (dynamic, table) in [(false, object.symbol_table()), (true, object.dynamic_symbol_table())] {
                let Some(table) = table else { continue };
                let wanted = table.symbols().filter(|symbol| is_wanted(symbol, kind)).filter_map(|symbol| {
                    let name = symbol.name_bytes().ok().filter(|name| !name.is_empty())?;
                    let (start, size) = (symbol.address(), symbol.size());
                    let index = u32::try_from(symbol.index().0).ok()?;
                    Some((Entry { start, size, index, file: file as u8, dynamic }, name))
                });
                let room = SYMBOLS_MAX.saturating_sub(found.len());
                found.extend(wanted.take(room));
            }
        }
        // Of several names for one place the shortest is usually the programmer's.
        found.sort_by(|(a, a_name), (b, b_name)| {
            (a.start, b.size, a_name.len(), a_name).cmp(&(b.start, a.size, b_name.len(), b_name))
        });
        found.dedup_by_key(|(entry, _)| entry.start);
        SymbolTable { entries: found.into_iter().map(|(entry, _)| entry).collect() }
    }

    /// Estimate of the memory held.
    pub fn cost(&self) -> u64 {
        (self.entries.len() * size_of::<Entry>()) as u64
    }

    /// The symbol whose extent an address is in.
    pub fn at(&self, address: u64) -> Option<SymbolAt> {
        let after = self.entries.partition_point(|entry| entry.start <= address);
        let entry = *self.entries[..after].last()?;
        let offset = address - entry.start;
        (offset < entry.size.max(1)).then_some(SymbolAt { entry, offset, size: entry.size })
    }

    /// Does a symbol begin here?
    pub fn starts_at(&self, address: u64) -> bool {
        self.entries.binary_search_by_key(&address, |entry| entry.start).is_ok()
    }
}

impl SymbolAt {
    /// As a function's name. The files are those that the table was read from.
    pub fn function(&self, files: &[&[u8]]) -> Option<String> {
        Some(demangle(&self.name(files)?))
    }

    /// As a variable's name.
    pub fn variable(&self, files: &[&[u8]]) -> Option<Variable> {
        let name = self.name(files)?;
        let demangled = demangle(&name);
        let name = if demangled == name { local_name(&demangled).to_owned() } else { demangled };
        Some(Variable { name, offset: self.offset, size: self.size })
    }

    fn name(&self, files: &[&[u8]]) -> Option<String> {
        let object = object::File::parse(*files.get(usize::from(self.entry.file))?).ok()?;
        let table = if self.entry.dynamic { object.dynamic_symbol_table() } else { object.symbol_table() };
        let symbol = table?.symbol_by_index(SymbolIndex(self.entry.index as usize)).ok()?;
        Some(symbol.name().ok()?.to_owned())
    }
}

fn is_wanted<'data>(symbol: &impl ObjectSymbol<'data>, kind: SymbolKind) -> bool {
    symbol.kind() == kind && (symbol.size() > 0 || kind == SymbolKind::Text) && symbol.is_definition()
}

/// Compilers number and prefix the static variables of functions: `count.0` is gcc's, `deposit.count` clang's. No name
/// of C has a dot in it.
fn local_name(name: &str) -> &str {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut stem = name;
    while let Some((before, last)) = stem.rsplit_once('.') {
        if before.is_empty() || !(is_number(last) || matches!(last, "llvm" | "lto_priv")) {
            break;
        }
        stem = before;
    }
    match stem.rsplit_once('.') {
        Some((before, last)) if !before.is_empty() && !last.is_empty() => last,
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_variables_have_the_name_that_was_written() {
        for (symbol, written) in [
            ("count", "count"),
            ("count.0", "count"),
            ("count.1234", "count"),
            ("deposit.count", "count"),
            ("deposit.count.3", "count"),
            ("count.llvm.8732648", "count"),
            (".hidden", ".hidden"),
            ("0", "0"),
        ] {
            assert_eq!(local_name(symbol), written);
        }
    }

    #[test]
    fn symbols_answer_for_their_own_bytes() {
        let entry = |start, size, index| Entry { start, size, index, file: 0, dynamic: false };
        let table = SymbolTable { entries: vec![entry(10, 4, 1), entry(20, 0, 2), entry(30, 1, 3)] };
        let index = |address| table.at(address).map(|symbol| symbol.entry.index);
        for (address, expected) in
            [(9, None), (10, Some(1)), (13, Some(1)), (14, None), (20, Some(2)), (21, None), (31, None)]
        {
            assert_eq!(index(address), expected, "{address}");
        }
    }
}
