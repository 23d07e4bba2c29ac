//! Where debug information says that the parameters of a function are when it is entered.
//!
//! The calling convention says where arguments are as long as caller and callee keep to it. Compilers do not have to between functions that
//! they see both of: they drop arguments that the callee ignores, leave their registers as they are, move the others up, put constants in
//! their place, or pass what a pointer points to. What is left of a parameter stands in its location at the first address of the function:
//!
//! * a register or a word above the frame: it is there, whatever the calling convention says;
//! * a constant, or the address of a variable: the compiler knows it, nobody passes it;
//! * memory of the frame: the function itself puts it there, from where the calling convention says, if its parameters were left alone;
//! * nothing, or something that is computed: it cannot be known.
//!
//! Compilers say that they changed parameters by `DW_CC_nocall` (LLVM) or by a suffix of the symbol (gcc). LLVM also stops to pass what functions
//! ignore that are visible from outside, without either; then the parameter has no location.

use gimli::{AttributeValue, EndianSlice, Expression, LittleEndian, Operation, Unit};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A parameter when its function is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEntry {
    /// In the register with this number in debug information.
    Register(u16),
    /// In this word of those that the caller left on the stack.
    Stack(u64),
    Constant(i64),
    /// The address of something in the same file.
    Global(u64),
    /// In the frame, where the function puts it.
    Frame,
    /// Computed from something else.
    Computed,
    /// Not there: removed, or ignored.
    Nowhere,
}

/// What offsets of frames count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameBase {
    /// The canonical frame address: the first word that the caller left.
    Canonical,
    /// `rbp`, once it is set up.
    Pointer,
    Other,
}

/// Operations of a location that are looked at.
const OPERATIONS_MAX: usize = 4;
const RSP: u16 = 7;
const RBP: u16 = 6;

pub(super) fn frame_base(unit: &Unit<Slice>, value: Option<AttributeValue<Slice>>) -> FrameBase {
    let Some(AttributeValue::Exprloc(expression)) = value else { return FrameBase::Other };
    match operations(unit, expression)[..] {
        [Operation::CallFrameCFA] => FrameBase::Canonical,
        [Operation::Register { register }] if register.0 == RBP => FrameBase::Pointer,
        _ => FrameBase::Other,
    }
}

/// The place of a parameter at the first address of its function.
pub(super) fn at_entry(
    dwarf: &gimli::Dwarf<Slice>,
    unit: &Unit<Slice>,
    (location, constant): (Option<AttributeValue<Slice>>, Option<AttributeValue<Slice>>),
    base: FrameBase,
    entry: u64,
) -> AtEntry {
    if let Some(value) = constant {
        return number(&value).map_or(AtEntry::Computed, AtEntry::Constant);
    }
    let Some(location) = location else { return AtEntry::Nowhere };
    if let AttributeValue::Exprloc(expression) = location {
        return of_expression(dwarf, unit, expression, base);
    }
    let Ok(Some(mut list)) = dwarf.attr_locations(unit, location) else { return AtEntry::Nowhere };
    while let Ok(Some(piece)) = list.next() {
        // gcc numbers several views of one address: an empty range at the entry is the first of them.
        let (begin, end) = (piece.range.begin, piece.range.end);
        if begin <= entry && (entry < end || begin == end && begin == entry) {
            return of_expression(dwarf, unit, piece.data, base);
        }
    }
    AtEntry::Nowhere
}

fn number(value: &AttributeValue<Slice>) -> Option<i64> {
    match value {
        AttributeValue::Sdata(value) => Some(*value),
        value => value.udata_value().map(|value| value as i64),
    }
}

fn operations<'a>(unit: &Unit<Slice<'a>>, expression: Expression<Slice<'a>>) -> Vec<Operation<Slice<'a>>> {
    let mut found = Vec::new();
    let mut left = expression.operations(unit.encoding());
    while let Ok(Some(operation)) = left.next() {
        found.push(operation);
        if found.len() > OPERATIONS_MAX {
            break;
        }
    }
    found
}

fn of_expression<'a>(
    dwarf: &gimli::Dwarf<Slice<'a>>,
    unit: &Unit<Slice<'a>>,
    expression: Expression<Slice<'a>>,
    base: FrameBase,
) -> AtEntry {
    match operations(unit, expression)[..] {
        [] => AtEntry::Nowhere,
        [Operation::Register { register }] => AtEntry::Register(register.0),
        [Operation::RegisterOffset { register, offset: 0, .. }, Operation::StackValue] => {
            AtEntry::Register(register.0)
        }
        // What the register held at the entry: it still does.
        [Operation::EntryValue { expression }, Operation::StackValue] => {
            match operations(unit, Expression(expression))[..] {
                [Operation::Register { register }] => AtEntry::Register(register.0),
                _ => AtEntry::Computed,
            }
        }
        [Operation::UnsignedConstant { value }, Operation::StackValue] => AtEntry::Constant(value as i64),
        [Operation::SignedConstant { value }, Operation::StackValue] => AtEntry::Constant(value),
        [Operation::Address { address }, Operation::StackValue] => AtEntry::Global(address),
        [Operation::AddressIndex { index }, Operation::StackValue] => {
            dwarf.address(unit, index).map_or(AtEntry::Computed, AtEntry::Global)
        }
        [Operation::FrameOffset { offset }] => in_frame(base, offset),
        [Operation::RegisterOffset { register, .. }] if matches!(register.0, RSP | RBP) => AtEntry::Frame,
        _ => AtEntry::Computed,
    }
}

fn in_frame(base: FrameBase, offset: i64) -> AtEntry {
    /// From a frame's pointer to the caller's words: the caller's own pointer and the return address.
    const ABOVE_POINTER: i64 = 16;
    let above = match base {
        FrameBase::Canonical => offset,
        FrameBase::Pointer => offset.saturating_sub(ABOVE_POINTER),
        FrameBase::Other => return AtEntry::Frame,
    };
    match u64::try_from(above) {
        Ok(bytes) if bytes % 8 == 0 => AtEntry::Stack(bytes / 8),
        _ => AtEntry::Frame,
    }
}
