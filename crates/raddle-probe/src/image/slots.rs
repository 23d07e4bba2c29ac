//! Slots: words that the dynamic linker fills with addresses of functions.
//!
//! A call into another module goes through a word of the global offset table, and so does one by name inside a shared library. The
//! relocation of the word says which function is meant. Words elsewhere (tables of callbacks, virtual functions) are not called
//! by name; their functions are merely known to have their address taken.

use super::functions::{FunctionIx, Functions};
use object::read::elf::{ElfFile64, SectionHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, elf};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// An imported name's number within its image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameIx(pub u32);

/// Whose address a slot gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// Whoever defines the name, this module included.
    Name(NameIx),
    /// A function of this module.
    Own(FunctionIx),
}

/// More relocations than any real program has; a damaged file may claim many from few bytes.
const RELOCATIONS_MAX: usize = 1 << 24;

#[derive(Default)]
pub(super) struct Slots<'data> {
    at: FxHashMap<u64, Slot>,
    names: Vec<&'data str>,
    in_data: Vec<Slot>,
}

impl<'data> Slots<'data> {
    pub(super) fn read(file: &ElfFile64<'data, Endianness>, functions: &Functions<'data>) -> Slots<'data> {
        let mut slots = Slots::default();
        let own = |address: u64| {
            let ix = functions.containing(address)?;
            (functions.all()[ix.0 as usize].start == address).then_some(Slot::Own(ix))
        };
        let quiet = quiet_sections(file);
        let mut by_name: FxHashMap<&'data str, NameIx> = FxHashMap::default();
        let symbols = file.dynamic_symbol_table();
        for (address, relocation) in file.dynamic_relocations().into_iter().flatten().take(RELOCATIONS_MAX) {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let named = match relocation.target() {
                RelocationTarget::Symbol(ix) => symbols.as_ref().and_then(|table| {
                    use object::ObjectSymbolTable;
                    table.symbol_by_index(ix).ok()
                }),
                _ => None,
            };
            let slot = match r_type {
                elf::R_X86_64_RELATIVE | elf::R_X86_64_IRELATIVE => own(relocation.addend() as u64),
                elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_64 => {
                    named.and_then(|symbol| {
                        let is_function =
                            matches!(symbol.kind(), object::SymbolKind::Text | object::SymbolKind::Unknown);
                        let name = symbol.name().ok().filter(|name| is_function && !name.is_empty())?;
                        let ix = *by_name.entry(name).or_insert_with(|| {
                            slots.names.push(name);
                            NameIx(slots.names.len() as u32 - 1)
                        });
                        Some(Slot::Name(ix))
                    })
                }
                _ => None,
            };
            if let Some(slot) = slot {
                slots.add(address, slot, &quiet);
            }
        }
        for (address, value) in packed(file) {
            if let Some(slot) = own(value) {
                slots.add(address, slot, &quiet);
            }
        }
        for (address, value) in words_of_fixed(file) {
            if let Some(slot) = own(value) {
                slots.add(address, slot, &quiet);
            }
        }
        slots.in_data.sort_by_key(|slot| match slot {
            Slot::Name(ix) => (0, ix.0),
            Slot::Own(ix) => (1, ix.0),
        });
        slots.in_data.dedup();
        slots
    }

    fn add(&mut self, address: u64, slot: Slot, quiet: &[Range<u64>]) {
        self.at.insert(address, slot);
        if !quiet.iter().any(|range| range.contains(&address)) {
            self.in_data.push(slot);
        }
    }

    pub(super) fn at(&self, address: u64) -> Option<Slot> {
        self.at.get(&address).copied()
    }

    pub(super) fn names(&self) -> &[&'data str] {
        &self.names
    }

    pub(super) fn in_data(&self) -> &[Slot] {
        &self.in_data
    }
}

/// Tables whose words only the linker's code and start-up code use: who takes an address from them does so by an instruction that
/// names the word.
fn quiet_sections(file: &ElfFile64<Endianness>) -> Vec<Range<u64>> {
    const QUIET: &[&str] =
        &[".got", ".got.plt", ".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors"];
    file.sections()
        .filter(|section| section.name().is_ok_and(|name| QUIET.contains(&name)))
        .map(|section| section.address()..section.address().saturating_add(section.size()))
        .collect()
}

/// Relative relocations in the packed form (`DT_RELR`): addresses of words, with what the words hold.
fn packed(file: &ElfFile64<Endianness>) -> Vec<(u64, u64)> {
    let endian = file.endian();
    let mut found = Vec::new();
    for section in file.sections() {
        if let Ok(Some(words)) = section.elf_section_header().relr(endian, file.data()) {
            let addresses = words.take(RELOCATIONS_MAX);
            found.extend(addresses.filter_map(|address| Some((address, word_at(file, address)?))));
        }
    }
    found
}

/// A program with fixed addresses has no relocations: every aligned word of its data may be the address of a function.
fn words_of_fixed(file: &ElfFile64<Endianness>) -> Vec<(u64, u64)> {
    use object::read::elf::FileHeader;
    if file.elf_header().e_type(file.endian()) != elf::ET_EXEC {
        return Vec::new();
    }
    let mut found = Vec::new();
    for section in file.sections().filter(|section| section.kind() != object::SectionKind::Text) {
        let is_loaded = section.address() != 0;
        let Some(bytes) = section.data().ok().filter(|_| is_loaded) else { continue };
        for (number, word) in bytes.chunks_exact(8).enumerate() {
            let value = u64::from_le_bytes(word.try_into().expect("chunks of eight bytes"));
            if value != 0 {
                found.push((section.address().wrapping_add(number as u64 * 8), value));
            }
        }
    }
    found
}

fn word_at(file: &ElfFile64<Endianness>, address: u64) -> Option<u64> {
    use object::read::elf::ProgramHeader;
    let endian = file.endian();
    let data = file.data();
    let bytes = file
        .elf_program_headers()
        .iter()
        .find_map(|segment| segment.data_range(endian, data, address, 8).ok().flatten())?;
    Some(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?))
}
