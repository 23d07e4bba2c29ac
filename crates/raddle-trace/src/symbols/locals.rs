//! Variables on the stack.
//!
//! Where a variable lies is written relative to its function's frame base, and that relative to the canonical frame
//! address (CFA: the stack pointer before the call) or to a register. A register's value follows from the CFA where the
//! unwind information computes the CFA from that register, which is so for `rbp` in code that keeps frame pointers, and
//! for `rsp` elsewhere. Expressions that need more than that give no name.

use super::dies::{Die, Dies, Step};
use super::functions::{Functions, ranges};
use super::sections::{DebugSections, Slice};
use super::statics::{step_in_function, type_of};
use super::types::operations;
use gimli::{
    AttributeValue, BaseAddresses, CfaRule, EhFrame, EndianSlice, Operation, Register, UnwindContext,
    UnwindSection,
};
use object::{Object, ObjectSection};

const RBP: Register = gimli::X86_64::RBP;

/// Entries of a list of locations that are looked at.
const LOCATIONS_MAX: usize = 4096;

/// A frame on the stack: the code it is in and its canonical frame address.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    pub code: u64,
    pub cfa: u64,
    /// The file with the unwind information.
    pub file: &'a DebugSections,
}

/// The variable of a frame that an address is in, with the path inside it.
pub fn name_at<'a>(dies: &Dies<'a>, functions: &Functions, frame: Frame<'_>, address: u64) -> Option<String> {
    let function = functions.at(dies, frame.code)?;
    let base = frame_base(dies, &dies.read(function)?, frame)?;
    let mut found: Option<String> = None;
    dies.walk(function, |depth, die| {
        if depth == 0 {
            return Step::Into;
        }
        if matches!(die.tag, gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter) {
            // Inner scopes come later in the file and win.
            if let Some(name) = variable_at(dies, &die, frame, base, address) {
                found = Some(name);
            }
            return Step::Over;
        }
        let step = step_in_function(die.tag);
        if matches!(step, Step::Into) {
            let code = ranges(dies, die.at);
            // A block without code of its own is part of the block around it.
            if !code.is_empty() && !code.iter().any(|(begin, end)| (*begin..*end).contains(&frame.code)) {
                return Step::Over;
            }
        }
        step
    });
    found
}

fn variable_at<'a>(
    dies: &Dies<'a>,
    die: &Die<'a>,
    frame: Frame<'_>,
    base: u64,
    address: u64,
) -> Option<String> {
    let unit = dies.unit(die.at.unit)?;
    let location = location(dies, die, frame.code)?;
    let start = match operations(location, unit.encoding())?.as_slice() {
        [Operation::FrameOffset { offset }] => base.wrapping_add(*offset as u64),
        [Operation::RegisterOffset { register, offset, .. }] => {
            register_value(frame, *register)?.wrapping_add(*offset as u64)
        }
        _ => return None,
    };
    let kind = type_of(dies, die)?;
    let offset = address.checked_sub(start)?;
    if offset >= dies.size(kind)? {
        return None;
    }
    Some(format!("{}{}", dies.name(die)?, dies.innermost(kind, offset, None).path))
}

/// The expression that holds at an address of code.
fn location<'a>(dies: &Dies<'a>, die: &Die<'a>, code: u64) -> Option<gimli::Expression<Slice<'a>>> {
    let value = die.value(gimli::DW_AT_location)?;
    if let AttributeValue::Exprloc(expression) = value {
        return Some(expression);
    }
    let (dwarf, unit) = dies.dwarf(die.at.unit).zip(dies.unit(die.at.unit))?;
    let mut entries = dwarf.attr_locations(&unit, value).ok()??;
    for _ in 0..LOCATIONS_MAX {
        let entry = entries.next().ok()??;
        if (entry.range.begin..entry.range.end).contains(&code) {
            return Some(entry.data);
        }
    }
    None
}

fn frame_base(dies: &Dies<'_>, function: &Die<'_>, frame: Frame<'_>) -> Option<u64> {
    let AttributeValue::Exprloc(expression) = function.value(gimli::DW_AT_frame_base)? else { return None };
    let encoding = dies.unit(function.at.unit)?.encoding();
    match operations(expression, encoding)?.as_slice() {
        [Operation::CallFrameCFA] => Some(frame.cfa),
        [Operation::Register { register }] => register_value(frame, *register),
        [Operation::RegisterOffset { register, offset, .. }] => {
            Some(register_value(frame, *register)?.wrapping_add(*offset as u64))
        }
        _ => None,
    }
}

/// What a register held in the frame, where the CFA is computed from it.
fn register_value(frame: Frame<'_>, register: Register) -> Option<u64> {
    match cfa_rule(frame.file, frame.code) {
        Some((known, offset)) if known == register => Some(frame.cfa.wrapping_sub(offset as u64)),
        Some(_) => None,
        // Without unwind information: the saved `rbp` and the return address lie between.
        None => (register == RBP).then(|| frame.cfa.wrapping_sub(16)),
    }
}

fn cfa_rule(file: &DebugSections, code: u64) -> Option<(Register, i64)> {
    let object = object::File::parse(file.file()).ok()?;
    let section = |name: &str| object.section_by_name(name);
    let frames = section(".eh_frame")?;
    let text = section(".text").map_or(0, |text| text.address());
    let bases = BaseAddresses::default().set_eh_frame(frames.address()).set_text(text);
    let mut eh_frame = EhFrame::from(EndianSlice::new(frames.data().ok()?, file.endian()));
    eh_frame.set_address_size(8);
    // Not through the sorted index in `.eh_frame_hdr`: of a damaged one, gimli 0.32 subtracts pointers unchecked.
    let mut context = UnwindContext::new();
    let row = eh_frame.unwind_info_for_address(&bases, &mut context, code, EhFrame::cie_from_offset).ok()?;
    match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => Some((*register, *offset)),
        CfaRule::Expression(_) => None,
    }
}
