//! What debug information says about functions, lines and globals: DWARF, read by gimli.
//!
//! Damage ends the reading of a unit; what was read before it stays.

use super::entry::{self, AtEntry, FrameBase};
use gimli::{AttributeValue, DebuggingInformationEntry, DwarfSections, EndianSlice, LittleEndian, Unit};
use object::{Object, ObjectSection};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A function that was inlined, at one of the places where that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inlined {
    /// Names in source and symbol table.
    pub names: Vec<String>,
    pub file: String,
    pub line: u32,
}

/// A place of code that begins a statement of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub file: u32,
    pub line: u32,
    pub address: u64,
}

/// A part of a global: where it is and how large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub address: u64,
    pub bytes: u64,
}

#[derive(Default)]
pub struct DebugInfo {
    /// There is some.
    pub exists: bool,
    /// gcc may have made one of functions with equal code.
    pub may_fold: bool,
    pub inlined: Vec<Inlined>,
    pub files: Vec<String>,
    /// Sorted by address.
    pub rows: Vec<Row>,
    globals: FxHashMap<String, (u64, TypeRef)>,
    /// By the most readable name.
    signatures: FxHashMap<String, Signature>,
    /// By their first address; several where a linker folded equal code.
    definitions: FxHashMap<u64, Vec<Definition>>,
    /// Names of all functions that are defined here, with code of their own or not.
    defined: FxHashSet<String>,
    types: FxHashMap<TypeRef, Type>,
}

/// Offset in `.debug_info`.
type TypeRef = usize;

/// How a function is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    pub parameters: Vec<(String, Option<usize>)>,
    pub returns: Option<usize>,
}

/// A function that has code, as it was compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// As in the source, in its order.
    pub signature: Signature,
    /// By parameter.
    pub at_entry: Vec<AtEntry>,
    /// The compiler says that it is not called as its type says.
    pub is_changed: bool,
    /// Compiled from Rust, which has a calling convention of its own.
    pub is_rust: bool,
    names: Vec<String>,
}

impl Definition {
    pub fn is_called(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }
}

/// How a value is passed and looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Integer { bytes: u8, signed: bool },
    Pointer,
    Float { bytes: u64 },
    Aggregate { bytes: u64 },
    Unknown,
}

#[derive(Default)]
struct Type {
    /// Of an array: how many elements.
    bytes: u64,
    members: Vec<(String, u64, TypeRef)>,
    /// What it is a typedef, a qualified form or an array of.
    of: Option<TypeRef>,
    is_array: bool,
    dimensions: u32,
    kind: TypeKind,
    /// What it points to.
    to: Option<TypeRef>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum TypeKind {
    Signed,
    Unsigned,
    Float,
    Pointer,
    Aggregate,
    #[default]
    Other,
}

/// Chains of typedefs and nestings longer than this are cycles of damaged files.
const DEPTH_MAX: usize = 64;
/// More entries than any real program has.
const ENTRIES_MAX: usize = 1 << 26;

impl DebugInfo {
    pub fn read(bytes: &[u8]) -> DebugInfo {
        let mut info = DebugInfo::default();
        let Ok(file) = object::File::parse(bytes) else { return info };
        let load = |id: gimli::SectionId| -> Result<Cow<[u8]>, gimli::Error> {
            let section = file.section_by_name(id.name());
            Ok(section.and_then(|section| section.uncompressed_data().ok()).unwrap_or_default())
        };
        let Ok(sections) = DwarfSections::load(load) else { return info };
        let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
        let mut origins = Origins::default();
        let mut units = dwarf.units();
        let mut left = ENTRIES_MAX;
        while let Ok(Some(header)) = units.next() {
            let Ok(unit) = dwarf.unit(header) else { continue };
            info.exists = true;
            let _ = info.read_unit(&dwarf, &unit, &mut origins, &mut left);
            let _ = info.read_lines(&dwarf, &unit);
        }
        info.rows.sort_by_key(|row| row.address);
        for (origin, file, line) in std::mem::take(&mut origins.inlined) {
            let names = origins.names_of(origin);
            info.inlined.push(Inlined { names, file, line });
        }
        for concrete in std::mem::take(&mut origins.concrete) {
            let definition = origins.definition(&concrete);
            info.definitions.entry(concrete.entry).or_default().push(definition);
        }
        for (function, signature) in &origins.signatures {
            let is_defined = !origins.declared.contains(function);
            for name in origins.spellings_of(*function) {
                if is_defined {
                    info.defined.insert(name.clone());
                }
                info.signatures.entry(name).or_insert_with(|| signature.clone());
            }
        }
        info
    }

    fn read_unit<'a>(
        &mut self,
        dwarf: &gimli::Dwarf<Slice<'a>>,
        unit: &Unit<Slice<'a>>,
        origins: &mut Origins,
        left: &mut usize,
    ) -> Result<(), gimli::Error> {
        let base = unit.header.offset().as_debug_info_offset().map_or(0, |offset| offset.0);
        let mut entries = unit.entries();
        // Namespaces around, and the structure whose members are read, by depth.
        let mut scopes: Vec<(isize, String)> = Vec::new();
        let mut structures: Vec<(isize, TypeRef)> = Vec::new();
        // Functions whose parameters are read, by depth, with their places among the signatures.
        let mut functions: Vec<(isize, usize)> = Vec::new();
        let mut is_rust = false;
        let mut depth = 0isize;
        while let Some((delta, entry)) = entries.next_dfs()? {
            depth += delta;
            if *left == 0 {
                return Ok(());
            }
            *left -= 1;
            while scopes.last().is_some_and(|(at, _)| *at >= depth) {
                scopes.pop();
            }
            while structures.last().is_some_and(|(at, _)| *at >= depth) {
                structures.pop();
            }
            while functions.last().is_some_and(|(at, _)| *at >= depth) {
                functions.pop();
            }
            let here = base + entry.offset().0;
            let name = text(dwarf, unit, entry, gimli::DW_AT_name);
            match entry.tag() {
                gimli::DW_TAG_compile_unit => {
                    let language = entry.attr_value(gimli::DW_AT_language)?;
                    let producer = text(dwarf, unit, entry, gimli::DW_AT_producer);
                    self.may_fold |= producer.is_some_and(|producer| folds(&producer));
                    is_rust = matches!(language, Some(AttributeValue::Language(gimli::DW_LANG_Rust)));
                }
                gimli::DW_TAG_namespace => scopes.push((depth, name.unwrap_or_default())),
                gimli::DW_TAG_subprogram => {
                    let linkage = text(dwarf, unit, entry, gimli::DW_AT_linkage_name);
                    let origin = reference(base, entry, gimli::DW_AT_abstract_origin)
                        .or_else(|| reference(base, entry, gimli::DW_AT_specification));
                    origins.functions.insert(here, (name.into_iter().chain(linkage).collect(), origin));
                    let returns = reference(base, entry, gimli::DW_AT_type);
                    functions.push((depth, origins.signatures.len()));
                    if entry.attr_value(gimli::DW_AT_declaration)?.is_some() {
                        origins.declared.insert(here);
                    }
                    if let Some(first) = first_address(dwarf, unit, entry) {
                        let convention = entry.attr_value(gimli::DW_AT_calling_convention)?;
                        let nocall = Some(AttributeValue::CallingConvention(gimli::DW_CC_nocall));
                        origins.concrete.push(Concrete {
                            signature: origins.signatures.len(),
                            origin: reference(base, entry, gimli::DW_AT_abstract_origin),
                            entry: first,
                            base: entry::frame_base(unit, entry.attr_value(gimli::DW_AT_frame_base)?),
                            is_changed: convention == nocall,
                            is_rust,
                            parameters: Vec::new(),
                        });
                    }
                    origins.by_entry.insert(here, origins.signatures.len());
                    origins.signatures.push((here, Signature { parameters: Vec::new(), returns }));
                    origins.parameter_entries.push(Vec::new());
                }
                gimli::DW_TAG_formal_parameter => {
                    if let Some(&(at, function)) = functions.last()
                        && at + 1 == depth
                    {
                        let of = reference(base, entry, gimli::DW_AT_type);
                        let origin = reference(base, entry, gimli::DW_AT_abstract_origin);
                        let (known_name, known_type) = origin
                            .and_then(|origin| origins.parameters.get(&origin))
                            .cloned()
                            .unwrap_or_default();
                        let parameter = (name.unwrap_or(known_name), of.or(known_type));
                        origins.parameters.insert(here, parameter.clone());
                        origins.signatures[function].1.parameters.push(parameter);
                        origins.parameter_entries[function].push(here);
                        if let Some(concrete) =
                            origins.concrete.last_mut().filter(|concrete| concrete.signature == function)
                        {
                            let places = (
                                entry.attr_value(gimli::DW_AT_location)?,
                                entry.attr_value(gimli::DW_AT_const_value)?,
                            );
                            let place = entry::at_entry(dwarf, unit, places, concrete.base, concrete.entry);
                            concrete.parameters.push((origin.unwrap_or(here), place));
                        }
                    }
                }
                gimli::DW_TAG_inlined_subroutine => {
                    if let Some(origin) = reference(base, entry, gimli::DW_AT_abstract_origin) {
                        let line = number(entry, gimli::DW_AT_call_line).unwrap_or(0) as u32;
                        let file = number(entry, gimli::DW_AT_call_file).unwrap_or(0);
                        origins.inlined.push((origin, file_name(dwarf, unit, file), line));
                    }
                }
                gimli::DW_TAG_variable => {
                    if let (Some(address), Some(of)) =
                        (fixed_address(dwarf, unit, entry), reference(base, entry, gimli::DW_AT_type))
                        && let Some(name) = name
                    {
                        let scope: String = scopes.iter().map(|(_, scope)| format!("{scope}::")).collect();
                        self.globals.entry(scope + &name).or_insert((address, of));
                    }
                }
                gimli::DW_TAG_member => {
                    if let (Some(&(_, owner)), Some(of)) =
                        (structures.last(), reference(base, entry, gimli::DW_AT_type))
                    {
                        let offset = number(entry, gimli::DW_AT_data_member_location).unwrap_or(0);
                        if let Some(owner) = self.types.get_mut(&owner) {
                            owner.members.push((name.unwrap_or_default(), offset, of));
                        }
                    }
                }
                gimli::DW_TAG_subrange_type => {
                    let count = number(entry, gimli::DW_AT_count).or_else(|| {
                        number(entry, gimli::DW_AT_upper_bound).and_then(|last| last.checked_add(1))
                    });
                    if let (Some(&(_, owner)), Some(count)) = (structures.last(), count)
                        && let Some(owner) = self.types.get_mut(&owner)
                        && owner.is_array
                    {
                        owner.bytes = owner.bytes.max(1).saturating_mul(count);
                        owner.dimensions += 1;
                    }
                }
                tag if is_type(tag) => {
                    let is_array = tag == gimli::DW_TAG_array_type;
                    let pointer = matches!(tag, gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type);
                    let known = number(entry, gimli::DW_AT_byte_size).filter(|_| !is_array);
                    let bytes = known.unwrap_or(if pointer { 8 } else { 0 });
                    let target = reference(base, entry, gimli::DW_AT_type);
                    let (of, to) = if pointer { (None, target) } else { (target, None) };
                    let kind = match tag {
                        _ if pointer => TypeKind::Pointer,
                        gimli::DW_TAG_structure_type
                        | gimli::DW_TAG_class_type
                        | gimli::DW_TAG_union_type => TypeKind::Aggregate,
                        gimli::DW_TAG_enumeration_type => TypeKind::Unsigned,
                        gimli::DW_TAG_base_type => base_kind(entry),
                        _ => TypeKind::Other,
                    };
                    self.types.insert(here, Type { bytes, of, is_array, kind, to, ..Type::default() });
                    structures.push((depth, here));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read_lines<'a>(
        &mut self,
        dwarf: &gimli::Dwarf<Slice<'a>>,
        unit: &Unit<Slice<'a>>,
    ) -> Result<(), gimli::Error> {
        let Some(program) = unit.line_program.clone() else { return Ok(()) };
        let mut known: FxHashMap<u64, u32> = FxHashMap::default();
        let mut rows = program.rows();
        let mut last = None;
        while let Some((_, row)) = rows.next_row()? {
            let line = row.line().map_or(0, |line| line.get() as u32);
            let begins = row.is_stmt() && !row.end_sequence() && line != 0;
            if begins && last != Some((row.file_index(), line)) {
                let file = *known.entry(row.file_index()).or_insert_with(|| {
                    self.files.push(file_name(dwarf, unit, row.file_index()));
                    self.files.len() as u32 - 1
                });
                self.rows.push(Row { file, line, address: row.address() });
            }
            last = (!row.end_sequence()).then_some((row.file_index(), line));
        }
        Ok(())
    }

    /// The size of a type.
    fn bytes_of(&self, of: TypeRef) -> u64 {
        let mut at = of;
        let mut count = 1u64;
        for _ in 0..DEPTH_MAX {
            let Some(found) = self.types.get(&at) else { return 0 };
            if found.is_array {
                count = count.saturating_mul(found.bytes);
            } else if found.bytes != 0 {
                return count.saturating_mul(found.bytes);
            }
            let Some(next) = found.of else { return 0 };
            at = next;
        }
        0
    }

    /// The type behind typedefs and qualifiers.
    fn plain(&self, of: TypeRef) -> Option<&Type> {
        let mut found = self.types.get(&of)?;
        for _ in 0..DEPTH_MAX {
            match found.of {
                Some(next) if !found.is_array && found.members.is_empty() => found = self.types.get(&next)?,
                _ => return Some(found),
            }
        }
        None
    }

    /// A global, or a part of one, by its name; or why there is none.
    pub fn global(&self, path: &str) -> Result<Extent, String> {
        let head = path.find(['.', '[']).unwrap_or(path.len());
        let (name, mut rest) = path.split_at(head);
        let Some(&(mut address, mut of)) = self.globals.get(name) else {
            return Err(format!("debug information has no global `{name}`"));
        };
        while !rest.is_empty() {
            let Some(found) = self.plain(of) else {
                return Err(format!("the type of `{name}` is not described"));
            };
            if let Some(index) = rest.strip_prefix('[') {
                let Some((index, after)) = index.split_once(']') else {
                    return Err("`[` is not closed".to_owned());
                };
                let (Ok(index), Some(element), true) =
                    (index.trim().parse::<u64>(), found.of, found.is_array && found.dimensions == 1)
                else {
                    return Err(format!("`[{index}]` is no element of an array with one dimension"));
                };
                address = address.wrapping_add(index.wrapping_mul(self.bytes_of(element)));
                (of, rest) = (element, after);
                continue;
            }
            let member = rest.trim_start_matches('.');
            let end = member.find(['.', '[']).unwrap_or(member.len());
            let (member, after) = member.split_at(end);
            let Some((_, offset, next)) = found.members.iter().find(|(name, ..)| name == member) else {
                let known: Vec<&str> =
                    found.members.iter().map(|(name, ..)| name.as_str()).take(12).collect();
                return Err(match known.is_empty() {
                    true => format!("`{member}` is no field: `{name}` is not a structure"),
                    false => format!("there is no field `{member}`; there are {}", known.join(", ")),
                });
            };
            address = address.wrapping_add(*offset);
            (of, rest) = (*next, after);
        }
        Ok(Extent { address, bytes: self.bytes_of(of) })
    }

    pub fn signature(&self, name: &str) -> Option<&Signature> {
        self.signatures.get(name)
    }

    /// The functions whose code begins here.
    pub fn definitions(&self, address: u64) -> &[Definition] {
        self.definitions.get(&address).map_or(&[], Vec::as_slice)
    }

    /// Functions that the source defines, whatever became of them.
    pub fn defined(&self) -> impl Iterator<Item = &str> {
        self.defined.iter().map(String::as_str)
    }

    /// Does the source define a function of this name?
    pub fn defines(&self, name: &str) -> bool {
        self.defined.contains(name)
    }

    /// What a value of a type is, after some dereferences.
    pub fn class(&self, of: Option<usize>, dereferences: u8) -> Class {
        let Some(mut found) = of.and_then(|of| self.plain(of)) else { return Class::Unknown };
        for _ in 0..dereferences {
            let Some(next) = found.to.and_then(|to| self.plain(to)) else { return Class::Unknown };
            found = next;
        }
        match (found.kind, found.bytes) {
            (TypeKind::Pointer, _) => Class::Pointer,
            (TypeKind::Float, bytes) => Class::Float { bytes },
            (TypeKind::Signed, bytes @ 1..=8) => Class::Integer { bytes: bytes as u8, signed: true },
            (TypeKind::Unsigned, bytes @ 1..=8) => Class::Integer { bytes: bytes as u8, signed: false },
            (_, bytes) if !found.members.is_empty() || found.kind == TypeKind::Aggregate => {
                Class::Aggregate { bytes }
            }
            _ => Class::Unknown,
        }
    }

    pub fn globals(&self) -> impl Iterator<Item = &str> {
        self.globals.keys().map(String::as_str)
    }
}

/// Functions by their entries, and where they were inlined.
#[derive(Default)]
struct Origins {
    functions: FxHashMap<usize, (Vec<String>, Option<usize>)>,
    inlined: Vec<(usize, String, u32)>,
    signatures: Vec<(usize, Signature)>,
    /// Entries of the parameters of each signature.
    parameter_entries: Vec<Vec<usize>>,
    /// Signatures by the entries of their functions.
    by_entry: FxHashMap<usize, usize>,
    declared: FxHashSet<usize>,
    concrete: Vec<Concrete>,
    parameters: FxHashMap<usize, (String, Option<usize>)>,
}

/// A function that has code.
struct Concrete {
    signature: usize,
    origin: Option<usize>,
    entry: u64,
    base: FrameBase,
    is_changed: bool,
    is_rust: bool,
    /// Entries of the parameters that these are, in the source's order or not.
    parameters: Vec<(usize, AtEntry)>,
}

impl Origins {
    /// The parameters in the order of the source: a copy that a compiler made lists them as it likes.
    fn definition(&self, concrete: &Concrete) -> Definition {
        let source = concrete.origin.and_then(|origin| self.by_entry.get(&origin).copied());
        let source = source.unwrap_or(concrete.signature);
        let mut signature = self.signatures[source].1.clone();
        signature.returns = signature.returns.or(self.signatures[concrete.signature].1.returns);
        let place = |entry: &usize| {
            let own = concrete.parameters.iter().find(|(origin, _)| origin == entry);
            own.map_or(AtEntry::Nowhere, |(_, place)| *place)
        };
        Definition {
            signature,
            at_entry: self.parameter_entries[source].iter().map(place).collect(),
            is_changed: concrete.is_changed,
            is_rust: concrete.is_rust,
            names: self.spellings_of(self.signatures[concrete.signature].0),
        }
    }

    /// The most readable spelling of each name.
    fn spellings_of(&self, function: usize) -> Vec<String> {
        self.names_of(function).iter().map(|name| super::names::spellings(name).swap_remove(0)).collect()
    }

    fn names_of(&self, mut origin: usize) -> Vec<String> {
        let mut names = Vec::new();
        for _ in 0..DEPTH_MAX {
            let Some((found, next)) = self.functions.get(&origin) else { break };
            names.extend(found.iter().cloned());
            let Some(next) = next else { break };
            origin = *next;
        }
        names
    }
}

/// Does gcc fold equal functions with the options that it notes? It does from -O2 on.
fn folds(producer: &str) -> bool {
    let mut folding = false;
    for option in producer.split_whitespace().filter(|_| producer.starts_with("GNU ")) {
        match option {
            "-O2" | "-O3" | "-Os" | "-Ofast" | "-fipa-icf" => folding = true,
            "-O0" | "-O1" | "-Og" | "-fno-ipa-icf" => folding = false,
            _ => {}
        }
    }
    folding
}

fn base_kind(entry: &Entry) -> TypeKind {
    match entry.attr_value(gimli::DW_AT_encoding) {
        Ok(Some(AttributeValue::Encoding(encoding))) => match encoding {
            gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => TypeKind::Signed,
            gimli::DW_ATE_float | gimli::DW_ATE_complex_float => TypeKind::Float,
            _ => TypeKind::Unsigned,
        },
        _ => TypeKind::Other,
    }
}

fn is_type(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_base_type
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_enumeration_type
            | gimli::DW_TAG_array_type
            | gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_atomic_type
            | gimli::DW_TAG_restrict_type
    )
}

type Entry<'abbrev, 'unit, 'a> = DebuggingInformationEntry<'abbrev, 'unit, Slice<'a>>;

fn text(dwarf: &gimli::Dwarf<Slice>, unit: &Unit<Slice>, entry: &Entry, name: gimli::DwAt) -> Option<String> {
    let value = entry.attr_value(name).ok()??;
    Some(dwarf.attr_string(unit, value).ok()?.to_string_lossy().into_owned())
}

fn number(entry: &Entry, name: gimli::DwAt) -> Option<u64> {
    let value = entry.attr_value(name).ok()??;
    match value {
        AttributeValue::FileIndex(index) => Some(index),
        value => value.udata_value(),
    }
}

fn reference(base: usize, entry: &Entry, name: gimli::DwAt) -> Option<usize> {
    match entry.attr_value(name).ok()?? {
        AttributeValue::UnitRef(offset) => base.checked_add(offset.0),
        AttributeValue::DebugInfoRef(offset) => Some(offset.0),
        _ => None,
    }
}

/// Where the code of a function begins.
fn first_address(dwarf: &gimli::Dwarf<Slice>, unit: &Unit<Slice>, entry: &Entry) -> Option<u64> {
    match entry.attr_value(gimli::DW_AT_low_pc).ok()? {
        Some(value) => dwarf.attr_address(unit, value).ok()?,
        // In several pieces: the first one has the beginning.
        None => {
            let mut ranges = dwarf.die_ranges(unit, entry).ok()?;
            Some(ranges.next().ok()??.begin)
        }
    }
    .filter(|&address| address != 0)
}

/// The address of a variable that is always at the same place.
fn fixed_address(dwarf: &gimli::Dwarf<Slice>, unit: &Unit<Slice>, entry: &Entry) -> Option<u64> {
    let AttributeValue::Exprloc(expression) = entry.attr_value(gimli::DW_AT_location).ok()?? else {
        return None;
    };
    match expression.operations(unit.encoding()).next().ok()?? {
        gimli::Operation::Address { address } => Some(address),
        gimli::Operation::AddressIndex { index } => dwarf.address(unit, index).ok(),
        _ => None,
    }
}

fn file_name(dwarf: &gimli::Dwarf<Slice>, unit: &Unit<Slice>, index: u64) -> String {
    let header = unit.line_program.as_ref().map(|program| program.header());
    let Some((header, file)) = header.and_then(|header| Some((header, header.file(index)?))) else {
        return "?".to_owned();
    };
    let shown = |value| dwarf.attr_string(unit, value).map(|text| text.to_string_lossy().into_owned()).ok();
    let name = shown(file.path_name()).unwrap_or_default();
    match file.directory(header).and_then(shown) {
        Some(folder) if !name.starts_with('/') && !folder.is_empty() => format!("{folder}/{name}"),
        _ => name,
    }
}
