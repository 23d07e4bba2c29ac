//! Where functions begin and end.
//!
//! Three sources, the better one first: symbols of type function, which say both; labels of assembly, which say only where something
//! begins; and the unwind table (`.eh_frame`), which is there in stripped files too. What none of them covers but holds more than
//! padding becomes a function without a name, so that no byte of code goes unseen.

use super::Code;
use gimli::UnwindSection;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolFlags, SymbolKind, elf};
use rustc_hash::FxHashMap;

/// A function's number within its image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionIx(pub u32);

/// A stretch of code that is entered at its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function<'data> {
    /// As in the symbol table, mangled. None if only the unwind table knows of it.
    pub name: Option<&'data str>,
    pub start: u64,
    /// The address behind the last byte.
    pub end: u64,
    /// The source file that the symbol table puts before local symbols.
    pub unit: Option<&'data str>,
    pub is_weak: bool,
}

/// What is known about the byte at which something begins; a better kind replaces a worse one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Label,
    Unwind,
    Symbol,
}

#[derive(Clone, Copy)]
struct Start<'data> {
    function: Function<'data>,
    source: Source,
}

pub(super) struct Functions<'data> {
    all: Vec<Function<'data>>,
    by_name: FxHashMap<&'data str, FunctionIx>,
}

impl<'data> Functions<'data> {
    pub(super) fn read(file: &ElfFile64<'data, Endianness>, code: &[Code<'data>]) -> Functions<'data> {
        let mut starts: FxHashMap<u64, Start<'data>> = FxHashMap::default();
        let mut add = |new: Start<'data>| {
            if find(code, new.function.start).is_none() {
                return;
            }
            let known = starts.entry(new.function.start).or_insert(new);
            let longer = new.function.end > known.function.end;
            if (new.source, longer) > (known.source, false) {
                // Aliases: the unit of a local symbol is worth keeping.
                let unit = new.function.unit.or(known.function.unit);
                *known = new;
                known.function.unit = unit;
            } else if known.function.unit.is_none() {
                known.function.unit = new.function.unit;
            }
        };
        symbols(file, &mut add);
        unwind(file, &mut add);
        let mut starts: Vec<Start<'data>> = starts.into_values().collect();
        starts.sort_by_key(|start| start.function.start);
        let all = bounded(&starts, code);
        let mut by_name = FxHashMap::default();
        for (ix, function) in all.iter().enumerate() {
            if let Some(name) = function.name {
                by_name.entry(name).or_insert(FunctionIx(ix as u32));
            }
        }
        Functions { all, by_name }
    }

    pub(super) fn all(&self) -> &[Function<'data>] {
        &self.all
    }

    pub(super) fn containing(&self, address: u64) -> Option<FunctionIx> {
        let after = self.all.partition_point(|function| function.start <= address);
        let ix = after.checked_sub(1)?;
        (address < self.all[ix].end).then_some(FunctionIx(ix as u32))
    }

    pub(super) fn named(&self, name: &str) -> Option<FunctionIx> {
        self.by_name.get(name).copied()
    }
}

fn find<'code, 'data>(code: &'code [Code<'data>], address: u64) -> Option<&'code Code<'data>> {
    let after = code.partition_point(|code| code.start <= address);
    code[..after].last().filter(|code| address < code.end())
}

fn symbols<'data>(file: &ElfFile64<'data, Endianness>, add: &mut impl FnMut(Start<'data>)) {
    let mut unit = None;
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        if symbol.kind() == SymbolKind::File {
            // A file without a name stands before what the linker made itself.
            unit = symbol.name().ok().filter(|name| !name.is_empty());
            continue;
        }
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { continue };
        let source = match st_info & 0xf {
            elf::STT_FUNC | elf::STT_GNU_IFUNC => Source::Symbol,
            elf::STT_NOTYPE => Source::Label,
            _ => continue,
        };
        let Some(name) = symbol.name().ok().filter(|name| !name.is_empty()) else { continue };
        if !symbol.is_definition() && source == Source::Symbol || symbol.section_index().is_none() {
            continue;
        }
        let start = symbol.address();
        let function = Function {
            name: Some(name),
            start,
            end: start.saturating_add(symbol.size()),
            unit: if symbol.is_local() { unit } else { None },
            is_weak: symbol.is_weak(),
        };
        add(Start { function, source });
    }
}

/// What the unwind table covers. Damage ends the walk; what was read before it stays.
fn unwind<'data>(file: &ElfFile64<'data, Endianness>, add: &mut impl FnMut(Start<'data>)) {
    let Some(section) = file.section_by_name(".eh_frame") else { return };
    let Ok(bytes) = section.data() else { return };
    let table = gimli::EhFrame::new(bytes, gimli::LittleEndian);
    let text = file.section_by_name(".text").map_or(0, |text| text.address());
    let bases = gimli::BaseAddresses::default().set_eh_frame(section.address()).set_text(text);
    let mut entries = table.entries(&bases);
    let mut common = FxHashMap::default();
    while let Ok(Some(entry)) = entries.next() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let parsed = partial.parse(|table, bases, offset| match common.get(&offset) {
            Some(known) => Ok(gimli::CommonInformationEntry::clone(known)),
            None => {
                let cie = table.cie_from_offset(bases, offset)?;
                common.insert(offset, cie.clone());
                Ok(cie)
            }
        });
        let Ok(described) = parsed else { continue };
        let start = described.initial_address();
        let end = start.saturating_add(described.len());
        let function = Function { name: None, start, end, unit: None, is_weak: false };
        add(Start { function, source: Source::Unwind });
    }
}

/// Fewer bytes than this between two functions are padding, whatever they hold.
const GAP_BYTES_MIN: usize = 1;

/// Gives every start its end, leaves out labels inside functions, and fills the gaps.
fn bounded<'data>(starts: &[Start<'data>], code: &[Code<'data>]) -> Vec<Function<'data>> {
    let mut all: Vec<Function<'data>> = Vec::with_capacity(starts.len());
    let mut kept: Vec<Function<'data>> = Vec::with_capacity(starts.len());
    let mut covered = 0;
    for start in starts {
        let inside = start.function.start < covered;
        if inside && start.source != Source::Symbol {
            continue;
        }
        covered = covered.max(start.function.end);
        kept.push(start.function);
    }
    let mut next = kept.iter().copied().peekable();
    for code in code {
        let mut at = code.start;
        while let Some(mut function) = next.next_if(|function| function.start < code.end()) {
            add_gap(&mut all, code, at, function.start);
            let following = next.peek().map_or(code.end(), |following| following.start.min(code.end()));
            // No size: up to whatever comes next. Too large a size, or an overlap: likewise.
            if function.end <= function.start || function.end > following {
                function.end = following;
            }
            at = function.end;
            all.push(function);
        }
        add_gap(&mut all, code, at, code.end());
    }
    all
}

fn add_gap<'data>(all: &mut Vec<Function<'data>>, code: &Code<'data>, from: u64, to: u64) {
    if from >= to || code.is_linkage {
        return;
    }
    let bytes = &code.bytes[(from - code.start) as usize..(to - code.start) as usize];
    if bytes.len() >= GAP_BYTES_MIN && !is_padding(bytes) {
        all.push(Function { name: None, start: from, end: to, unit: None, is_weak: false });
    }
}

/// What assemblers fill gaps with: `nop` in its many lengths, `int3`, zeros.
fn is_padding(bytes: &[u8]) -> bool {
    if bytes.iter().all(|&byte| matches!(byte, 0 | 0x90 | 0xcc)) {
        return true;
    }
    let mut decoder = iced_x86::Decoder::new(64, bytes, iced_x86::DecoderOptions::NONE);
    let mut instruction = iced_x86::Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        use iced_x86::Mnemonic::{Int3, Nop};
        let filler = matches!(instruction.mnemonic(), Nop | Int3)
            || instruction.mnemonic() == iced_x86::Mnemonic::Xchg
                && instruction.op_kind(0) == iced_x86::OpKind::Register
                && instruction.op0_register() == instruction.op1_register();
        if !filler {
            return false;
        }
    }
    true
}
