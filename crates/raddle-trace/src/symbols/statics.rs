//! Variables with a fixed address, and thread-local ones, of a module.
//!
//! Compilers do not index data by address, so the first question walks all units once and keeps for each variable where
//! it lies and where its entry is. Names and types are read when a place in the variable is asked for. An optimiser may
//! break a variable into pieces that lie apart; each piece is listed with its place in the variable.

use super::dies::{Die, Dies, Step};
use super::types::operations;
use super::units::{DieRef, Fuel, UnitIx};
use gimli::{AttributeValue, Operation, UnitOffset};

/// Variables that are listed.
const STATICS_MAX: usize = 1 << 21;

/// Variables before an address that may reach to it.
const CANDIDATES_MAX: usize = 8;

/// Something that lies at a fixed place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    start: u64,
    /// Bytes of it; 0 for the whole variable.
    size: u64,
    /// Its place in the variable.
    within: u64,
    variable: DieRef,
}

/// A variable and a place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceIn {
    pub variable: DieRef,
    pub offset: u64,
    /// How far the place is from where the piece begins; bounded by the symbol table where the type has no size.
    pub from_start: u64,
    pub piece_size: u64,
}

/// Pieces ordered by address.
#[derive(Default)]
pub struct Statics {
    data: Vec<Piece>,
    thread_local: Vec<Piece>,
}

impl Statics {
    pub fn read(dies: &Dies<'_>) -> Statics {
        let mut statics = Statics::default();
        // A few attributes for each byte: more is no compiler's work.
        let fuel = Fuel::new(dies.units.bytes().saturating_mul(4));
        for unit in dies.units.all() {
            let full = statics.data.len() + statics.thread_local.len() >= STATICS_MAX;
            if full || statics.read_unit(dies, unit, &fuel).is_none() && fuel.burn(0).is_none() {
                break;
            }
        }
        for list in [&mut statics.data, &mut statics.thread_local] {
            list.sort_by_key(|piece| piece.start);
            list.dedup_by_key(|piece| (piece.start, piece.within));
            list.shrink_to_fit();
        }
        statics
    }

    /// Estimate of the memory held.
    pub fn cost(&self) -> u64 {
        ((self.data.len() + self.thread_local.len()) * size_of::<Piece>()) as u64
    }

    /// Variables that begin at or before an address, nearest first.
    pub fn data(&self, address: u64) -> impl Iterator<Item = PlaceIn> + '_ {
        candidates(&self.data, address)
    }

    /// The same for an offset into the module's block of thread-local storage.
    pub fn thread_local(&self, offset: u64) -> impl Iterator<Item = PlaceIn> + '_ {
        candidates(&self.thread_local, offset)
    }

    /// `None` where the unit is damaged; what was found before it stays.
    fn read_unit(&mut self, dies: &Dies<'_>, ix: UnitIx, fuel: &Fuel) -> Option<()> {
        let unit = dies.unit(ix)?;
        let mut entries = unit.entries_raw(None).ok()?;
        while !entries.is_empty() {
            let offset = entries.next_offset();
            let Some(abbreviation) = entries.read_abbreviation().ok()? else { continue };
            fuel.burn(abbreviation.attributes().len())?;
            if abbreviation.tag() != gimli::DW_TAG_variable {
                entries.skip_attributes(abbreviation.attributes()).ok()?;
                continue;
            }
            let mut location = None;
            for spec in abbreviation.attributes() {
                let attribute = entries.read_attribute(*spec).ok()?;
                if attribute.name() == gimli::DW_AT_location
                    && let AttributeValue::Exprloc(expression) = attribute.value()
                {
                    location = Some(expression);
                }
            }
            if let Some(operations) = location.and_then(|location| operations(location, unit.encoding())) {
                self.add(dies, DieRef { unit: ix, offset: UnitOffset(offset.0) }, &operations);
            }
        }
        Some(())
    }

    fn add(
        &mut self,
        dies: &Dies<'_>,
        variable: DieRef,
        operations: &[Operation<super::sections::Slice<'_>>],
    ) {
        let (mut place, mut within, mut local) = (None, 0u64, false);
        let (mut data, mut thread_local) = (Vec::new(), Vec::new());
        for operation in operations {
            match *operation {
                Operation::Address { address } => place = Some(address),
                Operation::AddressIndex { index } | Operation::ConstantIndex { index } => {
                    let known = dies.dwarf(variable.unit).zip(dies.unit(variable.unit));
                    place = known.and_then(|(dwarf, unit)| dwarf.address(&unit, index).ok());
                }
                Operation::UnsignedConstant { value } => place = Some(value),
                Operation::SignedConstant { value } => place = Some(value as u64),
                Operation::PlusConstant { value } => {
                    place = place.map(|place: u64| place.wrapping_add(value))
                }
                Operation::TLS => local = true,
                Operation::Piece { size_in_bits, bit_offset: None } => {
                    let size = size_in_bits / 8;
                    if let Some(start) = place.take() {
                        let list = if local { &mut thread_local } else { &mut data };
                        list.push(Piece { start, size, within, variable });
                    }
                    (within, local) = (within.wrapping_add(size), false);
                }
                // A value that is computed, or in a register: not a place.
                _ => return,
            }
        }
        if let Some(start) = place {
            let list = if local { &mut thread_local } else { &mut data };
            list.push(Piece { start, size: 0, within: 0, variable });
        }
        self.data.extend(data);
        self.thread_local.extend(thread_local);
    }
}

fn candidates(pieces: &[Piece], address: u64) -> impl Iterator<Item = PlaceIn> + '_ {
    let after = pieces.partition_point(|piece| piece.start <= address);
    pieces[..after].iter().rev().take(CANDIDATES_MAX).filter_map(move |piece| {
        let from_start = address - piece.start;
        let reached = piece.size == 0 || from_start < piece.size;
        reached.then(|| PlaceIn {
            variable: piece.variable,
            offset: piece.within.wrapping_add(from_start),
            from_start,
            piece_size: piece.size,
        })
    })
}

/// The file and line where an entry was declared.
pub fn declared<'a>(dies: &Dies<'a>, die: &Die<'a>) -> Option<(String, u32)> {
    let (unit_ix, file, line) = dies.find_up(die, |die| {
        let line = die.number(gimli::DW_AT_decl_line).filter(|line| *line > 0)?;
        let file = match die.value(gimli::DW_AT_decl_file)? {
            AttributeValue::FileIndex(file) => file,
            value => value.udata_value()?,
        };
        Some((die.at.unit, file, u32::try_from(line).ok()?))
    })?;
    // The line program of split debug information stays in the program.
    let unit_ix = dies.units.skeleton(unit_ix).unwrap_or(unit_ix);
    let dwarf = dies.dwarf(unit_ix)?;
    // Only here the list of files is needed, so only here the unit is read with its line program.
    let header = dies.unit(unit_ix)?.header;
    let abbreviations = std::sync::Arc::clone(&dies.unit(unit_ix)?.abbreviations);
    let unit = gimli::Unit::new_with_abbreviations(&dwarf, header, abbreviations).ok()?;
    let program = unit.line_program.as_ref()?.header();
    let entry = program.file(file)?;
    let text = |value| Some(dwarf.attr_string(&unit, value).ok()?.to_string_lossy().into_owned());
    let mut path = text(entry.path_name())?;
    if !path.starts_with('/')
        && let Some(folder) = entry.directory(program).and_then(text)
    {
        path = format!("{folder}/{path}");
    }
    if !path.starts_with('/')
        && let Some(folder) = unit.comp_dir
    {
        path = format!("{}/{path}", folder.to_string_lossy());
    }
    Some((super::module::tidy_path(&path), line))
}

/// Where a variable's type is: its own, or that of the declaration it completes.
pub fn type_of<'a>(dies: &Dies<'a>, die: &Die<'a>) -> Option<DieRef> {
    dies.find_up(die, |die| dies.reference(die, gimli::DW_AT_type))
}

/// The variable's name with its namespaces.
pub fn variable_name<'a>(dies: &Dies<'a>, die: &Die<'a>) -> Option<String> {
    let name = dies.qualified_name(die)?;
    match dies.units.language(die.at.unit) == Some(gimli::DW_LANG_Rust) {
        true => Some(rust_name(&name)),
        false => Some(name),
    }
}

/// A path of Rust without the scopes that the compiler made up, `{closure#0}`. `thread_local!` puts the variable into
/// such a scope under a name of its own; what a programmer wrote is the name around it.
fn rust_name(name: &str) -> String {
    const NAMES_OF_THE_LIBRARY: [&str; 3] = ["VAL", "__KEY", "__RUST_STD_INTERNAL_VAL"];
    let last = name.rsplit("::").next().unwrap_or(name);
    match name.find("::{") {
        None => name.to_owned(),
        Some(made_up) if NAMES_OF_THE_LIBRARY.contains(&last) => name[..made_up].to_owned(),
        Some(_) => {
            let written = name.split("::").filter(|part| !(part.starts_with('{') && part.ends_with('}')));
            written.collect::<Vec<_>>().join("::")
        }
    }
}

/// Children of a function that are scopes or variables, for whoever walks them.
pub fn is_scope_in_function(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_lexical_block
            | gimli::DW_TAG_inlined_subroutine
            | gimli::DW_TAG_try_block
            | gimli::DW_TAG_catch_block
    )
}

/// Skips what has no variables of a function in it.
pub fn step_in_function(tag: gimli::DwTag) -> Step {
    if is_scope_in_function(tag) { Step::Into } else { Step::Over }
}

#[cfg(test)]
mod tests {
    use super::rust_name;

    #[test]
    fn names_of_rust_are_those_that_were_written() {
        assert_eq!(rust_name("bank::TOTAL"), "bank::TOTAL");
        assert_eq!(rust_name("bank::main::{closure#0}::COUNT"), "bank::main::COUNT");
        assert_eq!(rust_name("bank::CACHE::{constant#0}::{closure#1}::VAL"), "bank::CACHE");
        assert_eq!(rust_name("bank::VAL"), "bank::VAL");
    }
}
