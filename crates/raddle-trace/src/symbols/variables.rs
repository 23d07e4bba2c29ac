//! Global variables of a module, from its symbol table.

use super::Variable;
use super::module::demangle;
use object::{Object, ObjectSymbol, ReadCache, SymbolKind};
use std::fs::File;
use std::path::Path;

/// Most variables of a module that are kept.
const VARIABLES_MAX: usize = 1 << 20;

struct Entry {
    start: u64,
    size: u64,
    /// Mangled.
    name: Box<str>,
}

/// Variables ordered by address.
#[derive(Default)]
pub struct Variables {
    entries: Vec<Entry>,
    name_bytes: u64,
}

impl Variables {
    /// Reads the symbol table; a module without one has no variables.
    pub fn read(path: &Path) -> Variables {
        let Ok(file) = File::open(path) else { return Variables::default() };
        let cache = ReadCache::new(file);
        let Ok(object) = object::File::parse(&cache) else { return Variables::default() };
        let mut entries: Vec<Entry> = object
            .symbols()
            .chain(object.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.size() > 0 && symbol.is_definition())
            .filter_map(|symbol| {
                let name = symbol.name().ok()?;
                Some(Entry { start: symbol.address(), size: symbol.size(), name: name.into() })
            })
            .take(VARIABLES_MAX)
            .collect();
        // Of several names for one place the shortest is usually the programmer's.
        entries.sort_by(|a, b| {
            (a.start, b.size, a.name.len(), &a.name).cmp(&(b.start, a.size, b.name.len(), &b.name))
        });
        entries.dedup_by_key(|entry| entry.start);
        let name_bytes = entries.iter().map(|entry| entry.name.len() as u64).sum();
        Variables { entries, name_bytes }
    }

    /// Estimate of the memory held.
    pub fn cost(&self) -> u64 {
        (self.entries.len() * size_of::<Entry>()) as u64 + self.name_bytes
    }

    pub fn at(&self, address: u64) -> Option<Variable> {
        let after = self.entries.partition_point(|entry| entry.start <= address);
        let entry = self.entries[..after].last()?;
        let offset = address - entry.start;
        (offset < entry.size).then(|| Variable {
            name: without_number(&demangle(&entry.name)).to_owned(),
            offset,
            size: entry.size,
        })
    }
}

/// Compilers number the static variables of functions: `count.0`, `count.1234`.
fn without_number(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, number)) if !stem.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => stem,
        _ => name,
    }
}
