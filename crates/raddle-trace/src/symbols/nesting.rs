//! How deeply entries are nested. addr2line reads inlined calls by recursion, so a file with a hundred thousand of them
//! inside each other would end the process by a stack overflow; such a unit is not shown to it.

use super::sections::Slice;
use super::units::Fuel;
use gimli::Unit;

/// Compilers stop at some ten inlined calls inside each other; blocks add a few levels to each.
const DEPTH_MAX: isize = 1024;

/// Attributes that are read of one unit.
const UNIT_ATTRIBUTES_MAX: u64 = 1 << 26;

/// Is nothing in the unit nested too deeply? What cannot be read is not: there addr2line stops, too.
pub fn is_bounded(unit: &Unit<Slice<'_>>) -> bool {
    let fuel = Fuel::new(UNIT_ATTRIBUTES_MAX);
    let Ok(mut entries) = unit.entries_raw(None) else { return true };
    while !entries.is_empty() {
        if entries.next_depth() > DEPTH_MAX {
            return false;
        }
        let Ok(abbreviation) = entries.read_abbreviation() else { return true };
        let Some(abbreviation) = abbreviation else { continue };
        if fuel.burn(abbreviation.attributes().len()).is_none() {
            return false;
        }
        if entries.skip_attributes(abbreviation.attributes()).is_err() {
            return true;
        }
    }
    true
}
