//! One ELF file of a process, as far as its code is concerned.
//!
//! An [`Image`] holds the executable bytes with their addresses, the functions in them ([`functions`]), and the *slots*
//! ([`slots`]): words that the dynamic linker fills with the address of a function, through which `call *slot(%rip)` and the stubs of the
//! procedure linkage table reach other modules. All addresses are in the file's own numbering, as in its symbol table; a
//! trace gets them by subtracting the module's bias.
//!
//! Only 64-bit x86 files are read. What is damaged is left out; only a file that has no sound header is refused.

mod functions;
mod slots;

pub use functions::{Function, FunctionIx};
pub use slots::{NameIx, Slot};

use functions::Functions;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SectionFlags, elf};
use rustc_hash::FxHashMap;
use slots::Slots;
use std::ops::Range;

/// Why a file is not an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("not a sound ELF file: {0}")]
    Unsound(String),
    #[error("not a 64-bit x86 file")]
    OtherProcessor,
}

impl From<object::Error> for Refusal {
    fn from(error: object::Error) -> Refusal {
        Refusal::Unsound(error.to_string())
    }
}

/// A stretch of executable bytes.
#[derive(Clone, Copy, Debug)]
pub struct Code<'data> {
    pub start: u64,
    pub bytes: &'data [u8],
    /// The stubs that the linker makes for calls into other modules.
    pub is_linkage: bool,
}

impl Code<'_> {
    /// The address behind the last byte.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }
}

/// One ELF file.
pub struct Image<'data> {
    /// The name by which others ask for it.
    pub soname: Option<&'data str>,
    /// Loaded at the addresses that the file says, so that code may hold addresses as plain numbers.
    pub is_fixed: bool,
    /// Some of it was compiled by clang.
    pub is_by_clang: bool,
    /// Sorted by address, without overlaps.
    pub code: Vec<Code<'data>>,
    functions: Functions<'data>,
    slots: Slots<'data>,
    exports: FxHashMap<&'data str, u64>,
    /// Memory that the program cannot write once it runs.
    constant: Vec<Range<u64>>,
}

impl<'data> Image<'data> {
    pub fn parse(bytes: &'data [u8]) -> Result<Image<'data>, Refusal> {
        if bytes.get(4) != Some(&elf::ELFCLASS64) && bytes.starts_with(&elf::ELFMAG) {
            return Err(Refusal::OtherProcessor);
        }
        let file = ElfFile64::<Endianness>::parse(bytes)?;
        let endian = file.endian();
        let header = file.elf_header();
        if header.e_machine(endian) != elf::EM_X86_64 || endian != Endianness::Little {
            return Err(Refusal::OtherProcessor);
        }
        let code = code(&file, bytes);
        let functions = Functions::read(&file, &code);
        let slots = Slots::read(&file, &functions);
        Ok(Image {
            soname: soname(&file, bytes),
            is_fixed: header.e_type(endian) == elf::ET_EXEC,
            is_by_clang: is_by_clang(&file),
            exports: exports(&file),
            constant: constant(&file),
            code,
            functions,
            slots,
        })
    }

    /// All functions, sorted by address.
    pub fn functions(&self) -> &[Function<'data>] {
        self.functions.all()
    }

    pub fn function(&self, ix: FunctionIx) -> &Function<'data> {
        &self.functions.all()[ix.0 as usize]
    }

    /// The function that this address is in.
    pub fn function_at(&self, address: u64) -> Option<FunctionIx> {
        self.functions.containing(address)
    }

    /// The function that begins at this address.
    pub fn function_from(&self, address: u64) -> Option<FunctionIx> {
        self.function_at(address).filter(|&ix| self.function(ix).start == address)
    }

    pub fn function_named(&self, name: &str) -> Option<FunctionIx> {
        self.functions.named(name)
    }

    /// What the dynamic linker puts at this address, if it is the address of a function.
    pub fn slot(&self, address: u64) -> Option<Slot> {
        self.slots.at(address)
    }

    /// Names that other modules have to define.
    pub fn imports(&self) -> &[&'data str] {
        self.slots.names()
    }

    pub fn import(&self, ix: NameIx) -> &'data str {
        self.slots.names()[ix.0 as usize]
    }

    /// Functions whose addresses are in the image's data: tables of functions, of virtual ones for instance.
    pub fn addresses_in_data(&self) -> &[Slot] {
        self.slots.in_data()
    }

    /// Where other modules find this name.
    pub fn export(&self, name: &str) -> Option<u64> {
        self.exports.get(name).copied()
    }

    pub fn is_constant(&self, address: u64) -> bool {
        self.constant.iter().any(|range| range.contains(&address))
    }

    /// The code that this address is in.
    pub fn code_at(&self, address: u64) -> Option<&Code<'data>> {
        let after = self.code.partition_point(|code| code.start <= address);
        self.code[..after].last().filter(|code| address < code.end())
    }

    /// The bytes of a function.
    pub fn bytes_of(&self, function: &Function) -> &'data [u8] {
        let Some(code) = self.code_at(function.start) else { return &[] };
        let from = (function.start - code.start) as usize;
        let to = (function.end.min(code.end()).saturating_sub(code.start)) as usize;
        code.bytes.get(from..to).unwrap_or_default()
    }
}

/// Executable sections, or executable segments where the sections were taken away.
fn code<'data>(file: &ElfFile64<'data, Endianness>, bytes: &'data [u8]) -> Vec<Code<'data>> {
    let mut code: Vec<Code<'data>> = Vec::new();
    for section in file.sections() {
        let executable = matches!(section.flags(), SectionFlags::Elf { sh_flags } if sh_flags & u64::from(elf::SHF_EXECINSTR) != 0);
        if executable && let Ok(bytes) = section.data() {
            let is_linkage = section.name().is_ok_and(|name| name.starts_with(".plt"));
            code.push(Code { start: section.address(), bytes, is_linkage });
        }
    }
    if code.is_empty() {
        let endian = file.endian();
        for segment in file.elf_program_headers() {
            if segment.p_type(endian) == elf::PT_LOAD
                && segment.p_flags(endian) & elf::PF_X != 0
                && let Ok(bytes) = segment.data(endian, bytes)
            {
                code.push(Code { start: segment.p_vaddr(endian), bytes, is_linkage: false });
            }
        }
    }
    code.retain(|code| !code.bytes.is_empty() && code.start.checked_add(code.bytes.len() as u64).is_some());
    code.sort_by_key(|code| code.start);
    // Sound files have no overlaps; in others the first one stays.
    let mut end = 0;
    code.retain(|code| {
        let apart = code.start >= end;
        end = end.max(code.end());
        apart
    });
    code
}

/// Compilers leave their names in a section of their own, which the linker joins. Raddle's runtime, which an executable carries, brings rustc's
/// name and that of a clang along, so beside rustc it takes a second one.
fn is_by_clang(file: &ElfFile64<Endianness>) -> bool {
    let Some(text) = file.section_by_name(".comment").and_then(|section| section.data().ok()) else {
        return false;
    };
    let holds = |name: &[u8], word: &[u8]| name.windows(word.len()).any(|part| part == word);
    let count = |word: &[u8]| text.split(|&byte| byte == 0).filter(|name| holds(name, word)).count();
    count(b"clang") > count(b"rustc").min(1)
}

fn exports<'data>(file: &ElfFile64<'data, Endianness>) -> FxHashMap<&'data str, u64> {
    file.dynamic_symbols()
        .filter(|symbol| symbol.is_definition() && symbol.is_global())
        .filter_map(|symbol| Some((symbol.name().ok()?, symbol.address())))
        .collect()
}

/// Segments without the right to write, what is made read-only after relocation, and the tables of the dynamic linker.
fn constant(file: &ElfFile64<Endianness>) -> Vec<Range<u64>> {
    let endian = file.endian();
    let mut ranges: Vec<Range<u64>> = file
        .elf_program_headers()
        .iter()
        .filter(|segment| match segment.p_type(endian) {
            elf::PT_LOAD => segment.p_flags(endian) & elf::PF_W == 0,
            kind => kind == elf::PT_GNU_RELRO,
        })
        .map(|segment| {
            let start = segment.p_vaddr(endian);
            start..start.saturating_add(segment.p_memsz(endian))
        })
        .collect();
    let tables = file.sections().filter(|section| section.name().is_ok_and(|name| name.starts_with(".got")));
    ranges.extend(tables.map(|table| table.address()..table.address().saturating_add(table.size())));
    ranges
}

fn soname<'data>(file: &ElfFile64<'data, Endianness>, bytes: &'data [u8]) -> Option<&'data str> {
    let endian = file.endian();
    let segments = file.elf_program_headers();
    let dynamic = segments.iter().find_map(|segment| segment.dynamic(endian, bytes).ok().flatten())?;
    let value = |tag: u32| {
        dynamic.iter().find(|entry| entry.tag32(endian) == Some(tag)).map(|entry| entry.d_val(endian))
    };
    let (address, size) = (value(elf::DT_STRTAB)?, value(elf::DT_STRSZ)?);
    let strings = segments
        .iter()
        .find_map(|segment| segment.data_range(endian, bytes, address, size).ok().flatten())?;
    let name = strings.get(usize::try_from(value(elf::DT_SONAME)?).ok()?..)?;
    let end = name.iter().position(|&byte| byte == 0)?;
    std::str::from_utf8(&name[..end]).ok()
}
