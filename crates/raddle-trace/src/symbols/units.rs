//! Which units there are in the debug information of a module, and what is kept of each between two questions.
//!
//! All units are listed once: where each begins and ends, the bases of its indexed forms, the code it has. Abbreviation
//! tables are parsed when a unit is looked into, and a bounded number of them is kept.
//!
//! *Bounded work.* Each unit names the place of its abbreviations; nothing keeps a damaged file from sharing one long
//! table among many units at slightly different places, which would cost the product of both sections. A table is
//! therefore read only up to the place where the next unit's table begins: together the tables are never longer than
//! their section. Deeper walks pay for every attribute out of [`Fuel`].

use super::nesting;
use super::sections::{DebugSections, Slice};
use super::unit_root::{Bases, Root, default_bases, unit_with};
use gimli::{
    Abbreviations, DebugInfoOffset, DebugTypeSignature, Dwarf, Reader, Unit, UnitHeader, UnitOffset, UnitType,
};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Abbreviation tables that are kept; a table takes a few ten KiB.
const ABBREVIATIONS_KEPT_MAX: usize = 128;

/// Units that are listed.
const UNITS_MAX: usize = 1 << 20;

/// Code ranges that one unit may have.
const UNIT_RANGES_MAX: usize = 1 << 16;

/// Split files that are opened.
const SPLIT_FILES_MAX: usize = 4096;

/// A unit of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitIx(u32);

/// One of the files that a module's debug information is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIx(u32);

const MAIN: FileIx = FileIx(0);

/// An entry of the debug information of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DieRef {
    pub unit: UnitIx,
    pub offset: UnitOffset<usize>,
}

/// How many more attributes a question may read.
pub struct Fuel(Cell<u64>);

impl Fuel {
    pub fn new(attributes: u64) -> Fuel {
        Fuel(Cell::new(attributes))
    }

    /// Takes the price of one entry with so many attributes; `None` when nothing is left.
    pub fn burn(&self, attributes: usize) -> Option<()> {
        self.0.set(self.0.get().checked_sub(attributes as u64 + 1)?);
        Some(())
    }
}

/// A file of debug information.
struct DebugFile {
    sections: DebugSections,
    /// A split file stands in for this unit of the main file.
    skeleton: Option<UnitIx>,
}

struct UnitRecord {
    file: FileIx,
    /// In `.debug_types`, or else in `.debug_info`.
    types: bool,
    start: usize,
    end: usize,
    abbreviations: std::ops::Range<usize>,
    bases: Bases,
    language: Option<gimli::DwLang>,
}

/// A stretch of code and its unit.
#[derive(Clone, Copy)]
struct CodeRange {
    begin: u64,
    end: u64,
    /// The largest `end` of this and all ranges before it.
    reach: u64,
    unit: UnitIx,
}

/// The units of a module.
pub struct Units {
    files: Vec<DebugFile>,
    records: Vec<UnitRecord>,
    signatures: FxHashMap<u64, DieRef>,
    code: Vec<CodeRange>,
    supplement: Option<FileIx>,
    abbreviations: RefCell<FxHashMap<(u32, usize), Arc<Abbreviations>>>,
    /// Units that were looked at for how deeply they are nested.
    nested: RefCell<FxHashMap<UnitIx, bool>>,
    /// A unit is nested too deeply, and which code it has is not said in its root alone.
    nested_anywhere: bool,
}

impl Units {
    /// Lists the units of a module's debug information; damaged ones are left out.
    pub fn open(path: &Path, supplement: Option<&Path>) -> Option<Units> {
        let main = DebugFile { sections: DebugSections::open(path, false)?, skeleton: None };
        let mut units = Units {
            files: vec![main],
            records: Vec::new(),
            signatures: FxHashMap::default(),
            code: Vec::new(),
            supplement: None,
            abbreviations: RefCell::default(),
            nested: RefCell::default(),
            nested_anywhere: false,
        };
        if let Some(sections) = supplement.and_then(|path| DebugSections::open(path, false)) {
            units.supplement = Some(FileIx(1));
            units.files.push(DebugFile { sections, skeleton: None });
        }
        for ix in 0..units.files.len() {
            units.list(FileIx(ix as u32));
        }
        units.open_split_files(path);
        units.code.sort_unstable_by_key(|range| (range.begin, range.end, range.unit));
        let mut reach = 0;
        for range in &mut units.code {
            reach = reach.max(range.end);
            range.reach = reach;
        }
        Some(units)
    }

    /// Estimate of the memory held.
    pub fn cost(&self) -> u64 {
        let lists = self.records.len() * size_of::<UnitRecord>() + self.code.len() * size_of::<CodeRange>();
        (lists + self.abbreviations.borrow().len() * (32 << 10)) as u64
    }

    /// The module's file, or the file that has its debug information.
    pub fn main_file(&self) -> &DebugSections {
        &self.files[0].sections
    }

    pub fn all(&self) -> impl Iterator<Item = UnitIx> + use<> {
        (0..self.records.len() as u32).map(UnitIx)
    }

    pub fn language(&self, unit: UnitIx) -> Option<gimli::DwLang> {
        self.records.get(unit.0 as usize)?.language
    }

    /// The unit of the main file that a unit of a split file belongs to.
    pub fn skeleton(&self, unit: UnitIx) -> Option<UnitIx> {
        self.files.get(self.file_of(unit)?.0 as usize)?.skeleton
    }

    /// Bytes of the units' entries, of all files.
    pub fn bytes(&self) -> u64 {
        self.records.iter().map(|record| (record.end - record.start) as u64).sum()
    }

    /// Units with code at an address, at most a few.
    pub fn with_code(&self, address: u64) -> impl Iterator<Item = UnitIx> + '_ {
        self.all_with_code(address).take(8)
    }

    /// Can the units with code at an address be read by recursion?
    pub fn nests_boundedly(&self, address: u64) -> bool {
        let is_bounded = |ix: UnitIx| {
            let read = || {
                let dwarf = self.borrow_file(self.file_of(ix)?);
                Some(nesting::is_bounded(&self.unit(&dwarf, ix)?))
            };
            *self.nested.borrow_mut().entry(ix).or_insert_with(|| read().unwrap_or(true))
        };
        !self.nested_anywhere && self.all_with_code(address).all(is_bounded)
    }

    fn all_with_code(&self, address: u64) -> impl Iterator<Item = UnitIx> + '_ {
        let after = self.code.partition_point(|range| range.begin <= address);
        let before = self.code[..after].iter().rev().take_while(move |range| range.reach > address);
        before.take(1024).filter(move |range| address < range.end).map(|range| range.unit)
    }

    pub fn by_signature(&self, signature: DebugTypeSignature) -> Option<DieRef> {
        self.signatures.get(&signature.0).copied()
    }

    /// The entry at a place of `.debug_info` of the file that `unit` is in.
    pub fn by_offset(&self, unit: UnitIx, offset: DebugInfoOffset<usize>) -> Option<DieRef> {
        self.entry_in(self.records.get(unit.0 as usize)?.file, offset)
    }

    /// The same in the file that is shared between several debug files.
    pub fn by_offset_in_supplement(&self, offset: DebugInfoOffset<usize>) -> Option<DieRef> {
        self.entry_in(self.supplement?, offset)
    }

    fn entry_in(&self, file: FileIx, offset: DebugInfoOffset<usize>) -> Option<DieRef> {
        // Units are listed file by file, `.debug_info` first, in the order of the section.
        let key = |record: &UnitRecord| (record.file.0, record.types, record.start);
        let after = self.records.partition_point(|record| key(record) <= (file.0, false, offset.0));
        let ix = after.checked_sub(1)?;
        let record = &self.records[ix];
        let here = record.file == file && !record.types && offset.0 < record.end;
        here.then(|| DieRef { unit: UnitIx(ix as u32), offset: UnitOffset(offset.0 - record.start) })
    }

    /// The sections of a file as gimli reads them.
    pub fn borrow_file(&self, ix: FileIx) -> Dwarf<Slice<'_>> {
        let file = &self.files[ix.0 as usize];
        let mut dwarf = file.sections.borrow();
        if file.skeleton.is_some() {
            dwarf.make_dwo(&self.files[0].sections.borrow());
        } else if ix == MAIN
            && let Some(supplement) = self.supplement
        {
            dwarf.set_sup(self.files[supplement.0 as usize].sections.borrow());
        }
        dwarf
    }

    pub fn file_of(&self, unit: UnitIx) -> Option<FileIx> {
        self.records.get(unit.0 as usize).map(|record| record.file)
    }

    /// A unit, ready to be read.
    pub fn unit<'a>(&self, dwarf: &Dwarf<Slice<'a>>, ix: UnitIx) -> Option<Unit<Slice<'a>>> {
        let record = self.records.get(ix.0 as usize)?;
        let header = header(dwarf, record.types, record.start)?;
        let abbreviations = self.abbreviations(dwarf, record)?;
        Some(unit_with(header, abbreviations, record.bases))
    }

    fn abbreviations(&self, dwarf: &Dwarf<Slice<'_>>, record: &UnitRecord) -> Option<Arc<Abbreviations>> {
        let key = (record.file.0, record.abbreviations.start);
        if let Some(known) = self.abbreviations.borrow().get(&key) {
            return Some(Arc::clone(known));
        }
        let parsed = Arc::new(parse_abbreviations(dwarf, record.abbreviations.clone())?);
        let mut kept = self.abbreviations.borrow_mut();
        if kept.len() >= ABBREVIATIONS_KEPT_MAX {
            kept.clear();
        }
        kept.insert(key, Arc::clone(&parsed));
        Some(parsed)
    }

    /// Adds the units of one file.
    fn list(&mut self, file: FileIx) {
        let mut found: Vec<UnitRecord> = Vec::new();
        let mut signatures = Vec::new();
        let mut code = Vec::new();
        let mut nested = self.nested_anywhere;
        {
            let dwarf = self.borrow_file(file);
            let split = self.files[file.0 as usize].skeleton;
            let headers = headers(&dwarf, UNITS_MAX.saturating_sub(self.records.len()));
            let mut tables: Vec<usize> = headers.iter().map(|(_, header)| abbreviations_at(header)).collect();
            tables.sort_unstable();
            tables.dedup();
            let first = self.records.len() as u32;
            for (types, header) in headers {
                let at = abbreviations_at(&header);
                let next = tables.get(tables.partition_point(|&table| table <= at)).copied();
                let start = section_offset(&header);
                let mut record = UnitRecord {
                    file,
                    types,
                    start,
                    end: start.saturating_add(header.length_including_self()),
                    abbreviations: at..next.unwrap_or(usize::MAX),
                    bases: default_bases(&header, split.is_some()),
                    language: None,
                };
                let Some(abbreviations) = self.abbreviations(&dwarf, &record) else { continue };
                let signature = match header.type_() {
                    UnitType::Type { type_signature, type_offset }
                    | UnitType::SplitType { type_signature, type_offset } => {
                        Some((type_signature, type_offset))
                    }
                    _ => None,
                };
                let Some(root) = Root::read(&header, &abbreviations) else { continue };
                record.language = root.language;
                root.apply(&mut record.bases);
                if let Some(skeleton) = split.and_then(|ix| self.records.get(ix.0 as usize)) {
                    record.bases.low_pc = skeleton.bases.low_pc;
                    record.bases.addresses = skeleton.bases.addresses;
                    if header.version() < 5 {
                        record.bases.ranges = skeleton.bases.ranges;
                    }
                }
                let ix = UnitIx(first + found.len() as u32);
                if let Some((signature, offset)) = signature {
                    signatures.push((signature.0, DieRef { unit: ix, offset }));
                }
                let unit = unit_with(header, abbreviations, record.bases);
                record.bases.low_pc = root.low_pc(&dwarf, &unit).unwrap_or(record.bases.low_pc);
                let unit = Unit { low_pc: record.bases.low_pc, ..unit };
                // addr2line takes the code of such a unit from an index, which may say anything.
                nested |= !root.has_ranges && !nesting::is_bounded(&unit);
                code.extend(code_ranges(&dwarf, &unit).into_iter().map(|(begin, end)| CodeRange {
                    begin,
                    end,
                    reach: 0,
                    unit: ix,
                }));
                found.push(record);
            }
        }
        self.records.extend(found);
        self.signatures.extend(signatures);
        self.code.extend(code);
        self.nested_anywhere = nested;
    }

    /// Opens the `.dwo` files that units of the main file name. A unit's code is then that of its split twin.
    fn open_split_files(&mut self, module: &Path) {
        let named: Vec<(UnitIx, PathBuf)> = {
            let dwarf = self.borrow_file(MAIN);
            let main = self.all().filter(|&ix| self.file_of(ix) == Some(MAIN));
            main.filter_map(|ix| Some((ix, split_path(&dwarf, &self.unit(&dwarf, ix)?, module)?)))
                .take(SPLIT_FILES_MAX)
                .collect()
        };
        for (skeleton, path) in named {
            let Some(sections) = DebugSections::open(&path, true) else { continue };
            let file = FileIx(self.files.len() as u32);
            let first = UnitIx(self.records.len() as u32);
            self.files.push(DebugFile { sections, skeleton: Some(skeleton) });
            self.list(file);
            if self.records.len() as u32 > first.0 && self.same_split(skeleton, first) {
                let of_skeleton = self.code.iter_mut().filter(|range| range.unit == skeleton);
                of_skeleton.for_each(|range| range.unit = first);
            } else {
                // Of another compilation: nothing of it fits.
                self.files.pop();
                self.records.truncate(first.0 as usize);
                self.signatures.retain(|_, entry| entry.unit < first);
                self.code.retain(|range| range.unit < first);
                self.abbreviations.borrow_mut().retain(|key, _| key.0 < file.0);
            }
        }
    }

    fn same_split(&self, skeleton: UnitIx, split: UnitIx) -> bool {
        let id = |ix| {
            let dwarf = self.borrow_file(self.file_of(ix)?);
            split_id(&self.unit(&dwarf, ix)?)
        };
        id(skeleton).is_some() && id(skeleton) == id(split)
    }
}

fn section_offset(header: &UnitHeader<Slice<'_>>) -> usize {
    match header.offset() {
        gimli::UnitSectionOffset::DebugInfoOffset(offset) => offset.0,
        gimli::UnitSectionOffset::DebugTypesOffset(offset) => offset.0,
    }
}

fn abbreviations_at(header: &UnitHeader<Slice<'_>>) -> usize {
    header.debug_abbrev_offset().0
}

fn headers<'a>(dwarf: &Dwarf<Slice<'a>>, max: usize) -> Vec<(bool, UnitHeader<Slice<'a>>)> {
    let mut found = Vec::new();
    let mut units = dwarf.units();
    while let (true, Ok(Some(header))) = (found.len() < max, units.next()) {
        found.push((false, header));
    }
    let mut units = dwarf.type_units();
    while let (true, Ok(Some(header))) = (found.len() < max, units.next()) {
        found.push((true, header));
    }
    found
}

fn header<'a>(dwarf: &Dwarf<Slice<'a>>, types: bool, start: usize) -> Option<UnitHeader<Slice<'a>>> {
    if !types {
        return dwarf.debug_info.header_from_offset(DebugInfoOffset(start)).ok();
    }
    // gimli has no way to a type unit by its place; read the section from there on.
    let section = gimli::Section::reader(&dwarf.debug_types);
    let rest: Slice<'a> = section.range_from(start.min(section.len())..);
    gimli::DebugTypes::new(rest.slice(), rest.endian()).units().next().ok()?
}

fn parse_abbreviations(dwarf: &Dwarf<Slice<'_>>, range: std::ops::Range<usize>) -> Option<Abbreviations> {
    let section = gimli::Section::reader(&dwarf.debug_abbrev);
    let end = range.end.min(section.len());
    let table = section.slice().get(range.start..end)?;
    gimli::DebugAbbrev::new(table, section.endian()).abbreviations(gimli::DebugAbbrevOffset(0)).ok()
}

fn code_ranges(dwarf: &Dwarf<Slice<'_>>, unit: &Unit<Slice<'_>>) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let Ok(mut ranges) = dwarf.unit_ranges(unit) else { return found };
    while let (true, Ok(Some(range))) = (found.len() < UNIT_RANGES_MAX, ranges.next()) {
        if range.begin < range.end {
            found.push((range.begin, range.end));
        }
    }
    found
}

/// Where the other half of a skeleton unit is. gimli's `Unit::new` finds the name also where DWARF 4 has it.
fn split_path(dwarf: &Dwarf<Slice<'_>>, unit: &Unit<Slice<'_>>, module: &Path) -> Option<PathBuf> {
    let name = unit.dwo_name().ok()??;
    let name = dwarf.attr_string(unit, name).ok()?.to_string().ok()?;
    let mut entries = unit.entries();
    let (_, root) = entries.next_dfs().ok()??;
    let folder = root.attr_value(gimli::DW_AT_comp_dir).ok()??;
    let folder = dwarf.attr_string(unit, folder).ok()?.to_string().ok()?;
    let path = Path::new(folder).join(name);
    let beside = || Some(module.parent()?.join(Path::new(name).file_name()?));
    if path.exists() { Some(path) } else { beside().filter(|path| path.exists()) }
}

/// The number that a skeleton unit and its split twin share.
fn split_id(unit: &Unit<Slice<'_>>) -> Option<u64> {
    if let UnitType::Skeleton(id) | UnitType::SplitCompilation(id) = unit.header.type_() {
        return Some(id.0);
    }
    let mut entries = unit.entries();
    let (_, root) = entries.next_dfs().ok()??;
    match root.attr_value(gimli::DW_AT_GNU_dwo_id).ok()?? {
        gimli::AttributeValue::DwoId(id) => Some(id.0),
        _ => None,
    }
}
