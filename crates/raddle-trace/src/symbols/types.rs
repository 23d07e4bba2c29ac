//! Sizes, names and shapes of types in debug information.

use super::dies::{Die, Dies, REFERENCES_MAX, Step};
use super::opaque::{self, Inside};
use super::sections::Slice;
use super::units::DieRef;
use gimli::{AttributeValue, Operation};

/// Members of one class that are looked at.
const MEMBERS_MAX: usize = 1 << 16;

/// Dimensions of an array.
const DIMENSIONS_MAX: usize = 16;

/// A type without qualifiers and aliases.
pub enum Shape<'a> {
    /// A number, a pointer, a reference, a function, or a type whose inside is not named.
    Scalar,
    Array(Die<'a>),
    Class(Die<'a>, Inside),
    Union(Die<'a>),
}

/// A piece of a class: a member, a base class, or a member of an anonymous member.
pub struct Member {
    /// Base classes and anonymous members have none.
    pub name: Option<String>,
    /// The pointer to the table of virtual functions is a member that nobody wrote.
    pub artificial: bool,
    pub start: u64,
    /// `None` for an array without bound.
    pub size: Option<u64>,
    pub kind: DieRef,
}

/// An array's elements.
pub struct Elements {
    pub kind: DieRef,
    pub size: u64,
    /// Outermost first; `None` for an unknown bound.
    pub bounds: Vec<Option<u64>>,
}

impl<'a> Dies<'a> {
    /// Looks through aliases and qualifiers, up to a type that has a shape or an alias whose inside is hidden.
    pub fn shape(&self, kind: DieRef) -> Shape<'a> {
        let mut at = kind;
        for _ in 0..REFERENCES_MAX {
            let Some(die) = self.read(at) else { return Shape::Scalar };
            let next = match die.tag {
                gimli::DW_TAG_typedef => {
                    let name = self.qualified_name(&die).unwrap_or_default();
                    // An alias of the library that is one of a user's type, `std::vector<T>::value_type`, hides nothing.
                    if opaque::inside(&name) == Inside::Hidden && !name.contains("::") {
                        return Shape::Scalar;
                    }
                    self.reference(&die, gimli::DW_AT_type)
                }
                gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type
                | gimli::DW_TAG_template_alias => self.reference(&die, gimli::DW_AT_type),
                gimli::DW_TAG_array_type if !die.flag(gimli::DW_AT_GNU_vector) => return Shape::Array(die),
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                    if let Some(full) = self.reference(&die, gimli::DW_AT_signature) {
                        Some(full)
                    } else if die.flag(gimli::DW_AT_declaration) {
                        self.definition(&die)
                    } else {
                        return self.class(die);
                    }
                }
                _ => return Shape::Scalar,
            };
            match next {
                Some(next) => at = next,
                None => return Shape::Scalar,
            }
        }
        Shape::Scalar
    }

    fn class(&self, die: Die<'a>) -> Shape<'a> {
        let name = self.qualified_name(&die).unwrap_or_default();
        match opaque::inside(&name) {
            Inside::Hidden => Shape::Scalar,
            _ if die.tag == gimli::DW_TAG_union_type => Shape::Union(die),
            inside => Shape::Class(die, inside),
        }
    }

    /// The definition of a class that this unit only declares, searched in the other units.
    fn definition(&self, declaration: &Die<'a>) -> Option<DieRef> {
        let name = self.qualified_name(declaration)?;
        if opaque::inside(&name) == Inside::Hidden {
            return None;
        }
        let wanted = self.name(declaration)?;
        self.units.all().filter(|unit| *unit != declaration.at.unit).find_map(|unit| {
            let root = self.unit(unit)?.entries_raw(None).ok()?.next_offset();
            let mut found = None;
            self.walk(DieRef { unit, offset: root }, |_, die| {
                if die.tag == gimli::DW_TAG_subprogram {
                    return Step::Over;
                }
                let complete = die.tag == declaration.tag && !die.flag(gimli::DW_AT_declaration);
                if complete
                    && self.text(&die, gimli::DW_AT_name).as_deref() == Some(&*wanted)
                    && self.qualified_name(&die).as_deref() == Some(&*name)
                {
                    found = Some(die.at);
                    return Step::Stop;
                }
                Step::Into
            });
            found
        })
    }

    /// The size of a type in bytes, if it has one.
    pub fn size(&self, kind: DieRef) -> Option<u64> {
        let mut at = kind;
        let mut count: u64 = 1;
        for _ in 0..REFERENCES_MAX {
            let die = self.read(at)?;
            if let Some(size) = die.number(gimli::DW_AT_byte_size) {
                return size.checked_mul(count);
            }
            at = match die.tag {
                gimli::DW_TAG_pointer_type
                | gimli::DW_TAG_reference_type
                | gimli::DW_TAG_rvalue_reference_type => {
                    return count.checked_mul(u64::from(self.unit(at.unit)?.encoding().address_size));
                }
                gimli::DW_TAG_array_type => {
                    for bound in self.bounds(&die) {
                        count = count.checked_mul(bound?)?;
                    }
                    match die.number(gimli::DW_AT_byte_stride) {
                        Some(stride) => return count.checked_mul(stride),
                        None => self.reference(&die, gimli::DW_AT_type)?,
                    }
                }
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                    let full = self.reference(&die, gimli::DW_AT_signature);
                    full.or_else(|| self.definition(&die))?
                }
                _ => self.reference(&die, gimli::DW_AT_type)?,
            };
        }
        None
    }

    /// The elements of an array; `None` if their size is unknown.
    pub fn elements(&self, array: &Die<'a>) -> Option<Elements> {
        let kind = self.reference(array, gimli::DW_AT_type)?;
        let size =
            array.number(gimli::DW_AT_byte_stride).or_else(|| self.size(kind)).filter(|size| *size > 0)?;
        Some(Elements { kind, size, bounds: self.bounds(array) })
    }

    fn bounds(&self, array: &Die<'a>) -> Vec<Option<u64>> {
        let mut bounds = Vec::new();
        self.children(array.at, |die| {
            if matches!(die.tag, gimli::DW_TAG_subrange_type | gimli::DW_TAG_enumeration_type) {
                let lower = die.number(gimli::DW_AT_lower_bound).unwrap_or(0);
                let upper = die.value(gimli::DW_AT_upper_bound).filter(|_| !is_minus_one(&die));
                let upper = upper.and_then(|upper| upper.udata_value());
                let counted = || upper.and_then(|upper| upper.checked_sub(lower)?.checked_add(1));
                // gcc writes the bound of `a[0]` as -1.
                let empty = is_minus_one(&die).then_some(0);
                bounds.push(die.number(gimli::DW_AT_count).or_else(counted).or(empty));
            }
            if bounds.len() < DIMENSIONS_MAX { Step::Over } else { Step::Stop }
        });
        bounds
    }

    /// Base classes and members of a class with data, in the order of declaration.
    pub fn members(&self, class: &Die<'a>) -> Vec<Member> {
        let mut members = Vec::new();
        self.children(class.at, |die| {
            members.extend(self.member(&die));
            if members.len() < MEMBERS_MAX { Step::Over } else { Step::Stop }
        });
        members
    }

    fn member(&self, die: &Die<'a>) -> Option<Member> {
        let base = die.tag == gimli::DW_TAG_inheritance;
        let data = die.tag == gimli::DW_TAG_member
            && !die.flag(gimli::DW_AT_external)
            && !die.flag(gimli::DW_AT_declaration);
        if !base && !data {
            return None;
        }
        let kind = self.reference(die, gimli::DW_AT_type)?;
        let (start, size) = match self.bit_field(die, kind) {
            Some((start, size)) => (start, Some(size)),
            // Where a virtual base lies, only the object at run time knows.
            None => (self.member_start(die)?, self.size(kind)),
        };
        let name = if base { None } else { self.text(die, gimli::DW_AT_name) };
        Some(Member { name, artificial: die.flag(gimli::DW_AT_artificial), start, size, kind })
    }

    fn member_start(&self, die: &Die<'a>) -> Option<u64> {
        match die.value(gimli::DW_AT_data_member_location) {
            None => Some(0),
            Some(AttributeValue::Exprloc(expression)) => {
                let encoding = self.unit(die.at.unit)?.encoding();
                let mut operations = expression.operations(encoding);
                let first = operations.next().ok()??;
                match (first, operations.next().ok()?) {
                    (
                        Operation::PlusConstant { value } | Operation::UnsignedConstant { value },
                        None | Some(Operation::Plus),
                    ) => Some(value),
                    _ => None,
                }
            }
            Some(value) => value.udata_value(),
        }
    }

    /// First byte and number of bytes that a bit-field touches.
    fn bit_field(&self, die: &Die<'a>, kind: DieRef) -> Option<(u64, u64)> {
        let bits = die.number(gimli::DW_AT_bit_size).filter(|bits| *bits > 0)?;
        let within = self.member_start(die).unwrap_or(0).checked_mul(8)?;
        let first = match die.number(gimli::DW_AT_data_bit_offset) {
            Some(first) => within.checked_add(first)?,
            None => {
                // Before DWARF 4, counted from the most significant bit of the storage unit.
                let from_top = die.number(gimli::DW_AT_bit_offset)?;
                let unit = die.number(gimli::DW_AT_byte_size).or_else(|| self.size(kind))?.checked_mul(8)?;
                within.checked_add(unit)?.checked_sub(from_top)?.checked_sub(bits)?
            }
        };
        let last = first.checked_add(bits - 1)?;
        Some((first / 8, last / 8 - first / 8 + 1))
    }

    /// A type as it is written.
    pub fn type_name(&self, kind: DieRef) -> Option<String> {
        let mut at = kind;
        let (mut before, mut after) = (String::new(), String::new());
        for _ in 0..REFERENCES_MAX {
            let die = self.read(at)?;
            if let Some(name) = self.qualified_name(&die) {
                return Some(format!("{before}{name}{after}"));
            }
            match die.tag {
                gimli::DW_TAG_pointer_type => after.insert_str(0, if after.is_empty() { " *" } else { "*" }),
                gimli::DW_TAG_reference_type => after.insert_str(0, " &"),
                gimli::DW_TAG_rvalue_reference_type => after.insert_str(0, " &&"),
                gimli::DW_TAG_const_type if after.is_empty() => before.push_str("const "),
                gimli::DW_TAG_volatile_type if after.is_empty() => before.push_str("volatile "),
                gimli::DW_TAG_atomic_type if after.is_empty() => before.push_str("_Atomic "),
                gimli::DW_TAG_array_type => {
                    let bounds = self.bounds(&die).into_iter();
                    let text =
                        |bound: Option<u64>| bound.map_or("[]".to_owned(), |bound| format!("[{bound}]"));
                    after.push_str(&bounds.map(text).collect::<String>());
                }
                gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_atomic_type
                | gimli::DW_TAG_restrict_type => {}
                _ => return None,
            }
            match self.reference(&die, gimli::DW_AT_type) {
                Some(next) => at = next,
                None => return Some(format!("{before}void{after}")),
            }
        }
        None
    }
}

fn is_minus_one(die: &Die<'_>) -> bool {
    match die.value(gimli::DW_AT_upper_bound) {
        Some(AttributeValue::Sdata(-1)) => true,
        Some(AttributeValue::Udata(value) | AttributeValue::Data8(value)) => value == u64::MAX,
        Some(AttributeValue::Data4(value)) => value == u32::MAX,
        _ => false,
    }
}

/// The operations of an expression, if there are only a few.
pub fn operations<'a>(
    expression: gimli::Expression<Slice<'a>>,
    encoding: gimli::Encoding,
) -> Option<Vec<Operation<Slice<'a>>>> {
    const OPERATIONS_MAX: usize = 64;
    let mut iterator = expression.operations(encoding);
    let mut found = Vec::new();
    while let Some(operation) = iterator.next().ok()? {
        found.push(operation);
        if found.len() > OPERATIONS_MAX {
            return None;
        }
    }
    Some(found)
}
