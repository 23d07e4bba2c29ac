//! Functions of a module by address: their entry in the debug information and the ranges of their code.

use super::dies::{Die, Dies};
use super::lambdas;
use super::units::{DieRef, Fuel, UnitIx};
use gimli::UnitOffset;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;

/// Units whose functions are kept.
const UNITS_KEPT_MAX: usize = 256;

/// Ranges of one function.
const RANGES_MAX: usize = 4096;

/// Attributes that are read to list one unit's functions.
const UNIT_ATTRIBUTES_MAX: u64 = 1 << 24;

#[derive(Clone, Copy)]
struct Function {
    begin: u64,
    end: u64,
    offset: UnitOffset<usize>,
}

/// The functions of units that were looked at, ordered by address.
#[derive(Default)]
pub struct Functions(RefCell<FxHashMap<UnitIx, Rc<[Function]>>>);

impl Functions {
    /// The function with code at an address.
    pub fn at(&self, dies: &Dies<'_>, address: u64) -> Option<DieRef> {
        dies.units.with_code(address).find_map(|unit| {
            let functions = self.of_unit(dies, unit)?;
            let after = functions.partition_point(|function| function.begin <= address);
            let function = functions[..after].last().filter(|function| address < function.end)?;
            Some(DieRef { unit, offset: function.offset })
        })
    }

    /// Estimate of the memory held.
    pub fn cost(&self) -> u64 {
        self.0.borrow().values().map(|list| (list.len() * size_of::<Function>()) as u64).sum()
    }

    fn of_unit(&self, dies: &Dies<'_>, unit: UnitIx) -> Option<Rc<[Function]>> {
        if let Some(known) = self.0.borrow().get(&unit) {
            return Some(Rc::clone(known));
        }
        let mut functions = Vec::new();
        // What stands before a damaged place is good.
        let _ = list(dies, unit, &mut functions);
        functions.sort_by_key(|function| (function.begin, function.end));
        let functions: Rc<[Function]> = functions.into();
        let mut kept = self.0.borrow_mut();
        if kept.len() >= UNITS_KEPT_MAX {
            kept.clear();
        }
        kept.insert(unit, Rc::clone(&functions));
        Some(functions)
    }
}

fn list(dies: &Dies<'_>, ix: UnitIx, functions: &mut Vec<Function>) -> Option<()> {
    let unit = dies.unit(ix)?;
    let fuel = Fuel::new(UNIT_ATTRIBUTES_MAX);
    let mut entries = unit.entries_raw(None).ok()?;
    while !entries.is_empty() {
        let offset = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation().ok()? else { continue };
        fuel.burn(abbreviation.attributes().len())?;
        let has_code = |name| abbreviation.attributes().iter().any(|attribute| attribute.name() == name);
        entries.skip_attributes(abbreviation.attributes()).ok()?;
        if abbreviation.tag() == gimli::DW_TAG_subprogram
            && (has_code(gimli::DW_AT_low_pc) || has_code(gimli::DW_AT_ranges))
        {
            let ranges = ranges(dies, DieRef { unit: ix, offset });
            functions.extend(ranges.into_iter().map(|(begin, end)| Function { begin, end, offset }));
            fuel.burn(16)?;
        }
    }
    Some(())
}

/// Which unit has a function at this offset with code at this address.
pub fn unit_with(dies: &Dies<'_>, function: UnitOffset<usize>, address: u64) -> Option<UnitIx> {
    dies.units.with_code(address).find(|unit| {
        let at = DieRef { unit: *unit, offset: function };
        dies.read(at).is_some_and(|die| die.tag == gimli::DW_TAG_subprogram)
            && ranges(dies, at).iter().any(|(begin, end)| (*begin..*end).contains(&address))
    })
}

/// The ranges of an entry's code.
pub fn ranges(dies: &Dies<'_>, at: DieRef) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let Some((dwarf, unit)) = dies.dwarf(at.unit).zip(dies.unit(at.unit)) else { return found };
    let Ok(entry) = unit.entry(at.offset) else { return found };
    let Ok(mut ranges) = dwarf.die_ranges(&unit, &entry) else { return found };
    while let (true, Ok(Some(range))) = (found.len() < RANGES_MAX, ranges.next()) {
        // The linker sets the address of functions that it throws away to 0.
        if range.begin < range.end && range.begin != 0 {
            found.push((range.begin, range.end));
        }
    }
    found
}

/// The line where a function was declared; of a function that was declared and defined, that of the definition.
pub fn declaration_line<'a>(dies: &Dies<'a>, die: &Die<'a>) -> Option<u32> {
    let line = dies.find_up(die, |die| die.number(gimli::DW_AT_decl_line).filter(|line| *line > 0));
    line.and_then(|line| u32::try_from(line).ok()).or_else(|| lambdas::declaration_line(dies, die))
}

/// A better name than the one that was found for a function: that of a lambda, or the scopes around a bare name of C++.
pub fn name<'a>(dies: &Dies<'a>, die: &Die<'a>, found: Option<String>) -> Option<String> {
    if let Some(lambda) = lambdas::name(dies, die) {
        return Some(lambda);
    }
    let bare = found.as_ref().is_some_and(|found| dies.name(die).as_ref() == Some(found));
    if bare && is_cxx(dies.units.language(die.at.unit)) {
        return dies.qualified_name(die).or(found);
    }
    found
}

fn is_cxx(language: Option<gimli::DwLang>) -> bool {
    matches!(
        language,
        Some(
            gimli::DW_LANG_C_plus_plus
                | gimli::DW_LANG_C_plus_plus_03
                | gimli::DW_LANG_C_plus_plus_11
                | gimli::DW_LANG_C_plus_plus_14
                | gimli::DW_LANG_C_plus_plus_17
                | gimli::DW_LANG_C_plus_plus_20
        )
    )
}
