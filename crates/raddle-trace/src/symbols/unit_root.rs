//! The root entry of a unit: what the rest of the unit is read with.

use super::sections::Slice;
use gimli::{
    Abbreviations, DebugAddrBase, DebugLocListsBase, DebugRngListsBase, DebugStrOffsetsBase, Dwarf,
    DwarfFileType, Unit, UnitHeader,
};
use std::sync::Arc;

/// Where the tables begin that the unit's indexed forms count from.
#[derive(Clone, Copy)]
pub struct Bases {
    pub low_pc: u64,
    pub strings: DebugStrOffsetsBase<usize>,
    pub addresses: DebugAddrBase<usize>,
    pub locations: DebugLocListsBase<usize>,
    pub ranges: DebugRngListsBase<usize>,
}

/// What the root entry of a unit says.
#[derive(Default)]
pub struct Root<'a> {
    low_pc: Option<gimli::AttributeValue<Slice<'a>>>,
    strings: Option<DebugStrOffsetsBase<usize>>,
    addresses: Option<DebugAddrBase<usize>>,
    locations: Option<DebugLocListsBase<usize>>,
    ranges: Option<DebugRngListsBase<usize>>,
    pub language: Option<gimli::DwLang>,
    /// Are the stretches of its code listed?
    pub has_ranges: bool,
}

impl<'a> Root<'a> {
    pub fn read(header: &UnitHeader<Slice<'a>>, abbreviations: &Abbreviations) -> Option<Root<'a>> {
        let mut entries = header.entries_raw(abbreviations, None).ok()?;
        let abbreviation = entries.read_abbreviation().ok()??;
        let mut root = Root::default();
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec).ok()?;
            match (attribute.name(), attribute.value()) {
                (gimli::DW_AT_low_pc, value) => root.low_pc = Some(value),
                (gimli::DW_AT_ranges, _) => root.has_ranges = true,
                (_, gimli::AttributeValue::DebugStrOffsetsBase(base)) => root.strings = Some(base),
                (_, gimli::AttributeValue::DebugAddrBase(base)) => root.addresses = Some(base),
                (_, gimli::AttributeValue::DebugLocListsBase(base)) => root.locations = Some(base),
                (_, gimli::AttributeValue::DebugRngListsBase(base)) => root.ranges = Some(base),
                (_, gimli::AttributeValue::Language(language)) => root.language = Some(language),
                _ => {}
            }
        }
        Some(root)
    }

    pub fn apply(&self, bases: &mut Bases) {
        bases.strings = self.strings.unwrap_or(bases.strings);
        bases.addresses = self.addresses.unwrap_or(bases.addresses);
        bases.locations = self.locations.unwrap_or(bases.locations);
        bases.ranges = self.ranges.unwrap_or(bases.ranges);
    }

    pub fn low_pc(&self, dwarf: &Dwarf<Slice<'a>>, unit: &Unit<Slice<'a>>) -> Option<u64> {
        dwarf.attr_address(unit, self.low_pc?).ok()?
    }
}

/// What holds where the root says nothing.
pub fn default_bases(header: &UnitHeader<Slice<'_>>, split: bool) -> Bases {
    let file = if split { DwarfFileType::Dwo } else { DwarfFileType::Main };
    let encoding = header.encoding();
    Bases {
        low_pc: 0,
        strings: DebugStrOffsetsBase::default_for_encoding_and_file(encoding, file),
        addresses: DebugAddrBase(0),
        locations: DebugLocListsBase::default_for_encoding_and_file(encoding, file),
        ranges: DebugRngListsBase::default_for_encoding_and_file(encoding, file),
    }
}

/// A unit as gimli reads it, without its line program.
pub fn unit_with<'a>(
    header: UnitHeader<Slice<'a>>,
    abbreviations: Arc<Abbreviations>,
    bases: Bases,
) -> Unit<Slice<'a>> {
    Unit {
        header,
        abbreviations,
        name: None,
        comp_dir: None,
        low_pc: bases.low_pc,
        str_offsets_base: bases.strings,
        addr_base: bases.addresses,
        loclists_base: bases.locations,
        rnglists_base: bases.ranges,
        line_program: None,
        dwo_id: None,
    }
}
