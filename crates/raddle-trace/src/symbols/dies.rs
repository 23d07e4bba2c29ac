//! Reading entries of debug information for one question: references between units, names with their scopes.
//!
//! A [`Dies`] lives as long as a question. Everything it reads is paid for out of its fuel, so a damaged or hostile file
//! ends the question and nothing else. What is worth keeping longer, the scopes of a unit, is in [`Scopes`].

use super::sections::Slice;
use super::units::{DieRef, FileIx, Fuel, UnitIx, Units};
use gimli::{AttributeValue, DwAt, DwTag, Dwarf, Unit, UnitOffset};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;

/// Attributes that one question may read: a large unit of a C++ program has some hundred thousand.
const QUESTION_ATTRIBUTES_MAX: u64 = 1 << 23;

/// References that are followed from one entry to the next.
pub const REFERENCES_MAX: usize = 32;

/// Scopes inside each other.
const SCOPES_AROUND_MAX: usize = 256;

/// Units whose scopes are kept.
const SCOPES_KEPT_MAX: usize = 256;

/// An entry with its attributes.
pub struct Die<'a> {
    pub at: DieRef,
    pub tag: DwTag,
    attributes: Vec<(DwAt, AttributeValue<Slice<'a>>)>,
}

impl<'a> Die<'a> {
    pub fn value(&self, name: DwAt) -> Option<AttributeValue<Slice<'a>>> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    pub fn number(&self, name: DwAt) -> Option<u64> {
        self.value(name)?.udata_value()
    }

    pub fn flag(&self, name: DwAt) -> bool {
        matches!(self.value(name), Some(AttributeValue::Flag(true)))
    }
}

/// A namespace, class or function of a unit, and the places of the entries in it.
#[derive(Clone, Copy)]
struct Scope {
    start: usize,
    end: usize,
    parent: Option<u32>,
}

/// The scopes of units that were looked at.
#[derive(Default)]
pub struct Scopes(RefCell<FxHashMap<UnitIx, Rc<[Scope]>>>);

/// A question's view of the debug information.
pub struct Dies<'a> {
    pub units: &'a Units,
    scopes: &'a Scopes,
    pub fuel: Fuel,
    files: RefCell<FxHashMap<FileIx, Rc<Dwarf<Slice<'a>>>>>,
    open: RefCell<FxHashMap<UnitIx, Rc<Unit<Slice<'a>>>>>,
}

impl<'a> Dies<'a> {
    pub fn new(units: &'a Units, scopes: &'a Scopes) -> Dies<'a> {
        let fuel = Fuel::new(QUESTION_ATTRIBUTES_MAX);
        Dies { units, scopes, fuel, files: RefCell::default(), open: RefCell::default() }
    }

    pub fn dwarf(&self, unit: UnitIx) -> Option<Rc<Dwarf<Slice<'a>>>> {
        let file = self.units.file_of(unit)?;
        let mut files = self.files.borrow_mut();
        Some(Rc::clone(files.entry(file).or_insert_with(|| Rc::new(self.units.borrow_file(file)))))
    }

    pub fn unit(&self, ix: UnitIx) -> Option<Rc<Unit<Slice<'a>>>> {
        if let Some(unit) = self.open.borrow().get(&ix) {
            return Some(Rc::clone(unit));
        }
        let unit = Rc::new(self.units.unit(&*self.dwarf(ix)?, ix)?);
        self.open.borrow_mut().insert(ix, Rc::clone(&unit));
        Some(unit)
    }

    pub fn read(&self, at: DieRef) -> Option<Die<'a>> {
        let mut found = None;
        self.walk(at, |_, die| {
            found = Some(die);
            Step::Stop
        });
        found
    }

    /// The direct children of an entry.
    pub fn children(&self, of: DieRef, mut visit: impl FnMut(Die<'a>) -> Step) {
        self.walk(of, |depth, die| match depth {
            0 => Step::Into,
            _ => match visit(die) {
                Step::Into => Step::Over,
                step => step,
            },
        });
    }

    /// Walks an entry (depth 0) and everything below it in the order of the file. Stops where the file is damaged.
    pub fn walk(&self, from: DieRef, visit: impl FnMut(isize, Die<'a>) -> Step) {
        // The walk's result is what was visited; that it ended early has no meaning of its own.
        let _ = self.try_walk(from, visit);
    }

    fn try_walk(&self, from: DieRef, mut visit: impl FnMut(isize, Die<'a>) -> Step) -> Option<()> {
        let unit = self.unit(from.unit)?;
        let mut base = 0;
        let mut entries = unit.entries_raw(Some(from.offset)).ok()?;
        let mut skip_below: Option<isize> = None;
        let mut first = true;
        while !entries.is_empty() {
            let offset = entries.next_offset();
            let depth = base + entries.next_depth();
            if !first && depth <= 0 {
                return Some(());
            }
            self.fuel.burn(0)?;
            let Some(abbreviation) = entries.read_abbreviation().ok()? else {
                if first {
                    return None;
                }
                continue;
            };
            self.fuel.burn(abbreviation.attributes().len())?;
            if skip_below.is_some_and(|limit| depth > limit) {
                entries.skip_attributes(abbreviation.attributes()).ok()?;
                continue;
            }
            skip_below = None;
            let mut die = Die {
                at: DieRef { unit: from.unit, offset },
                tag: abbreviation.tag(),
                attributes: Vec::with_capacity(abbreviation.attributes().len().min(64)),
            };
            for spec in abbreviation.attributes() {
                let attribute = entries.read_attribute(*spec).ok()?;
                die.attributes.push((attribute.name(), attribute.value()));
            }
            let sibling = die.value(gimli::DW_AT_sibling);
            first = false;
            match visit(depth, die) {
                Step::Stop => return Some(()),
                Step::Into => {}
                Step::Over if !abbreviation.has_children() => {}
                Step::Over => match sibling {
                    // Only forwards: a reference back would never end.
                    Some(AttributeValue::UnitRef(next)) if next.0 > offset.0 && depth > 0 => {
                        entries = unit.entries_raw(Some(next)).ok()?;
                        base = depth;
                    }
                    _ => skip_below = Some(depth),
                },
            }
        }
        Some(())
    }

    /// The entry that an attribute refers to.
    pub fn reference(&self, die: &Die<'a>, name: DwAt) -> Option<DieRef> {
        match die.value(name)? {
            AttributeValue::UnitRef(offset) => Some(DieRef { unit: die.at.unit, offset }),
            AttributeValue::DebugInfoRef(offset) => self.units.by_offset(die.at.unit, offset),
            AttributeValue::DebugInfoRefSup(offset) => self.units.by_offset_in_supplement(offset),
            AttributeValue::DebugTypesRef(signature) => self.units.by_signature(signature),
            _ => None,
        }
    }

    /// What the entry completes: the declaration of a definition, the original of a copy.
    pub fn origin(&self, die: &Die<'a>) -> Option<Die<'a>> {
        let origin = self.reference(die, gimli::DW_AT_abstract_origin);
        self.read(origin.or_else(|| self.reference(die, gimli::DW_AT_specification))?)
    }

    pub fn text(&self, die: &Die<'a>, name: DwAt) -> Option<String> {
        let value = die.value(name)?;
        let text = self.dwarf(die.at.unit)?.attr_string(&*self.unit(die.at.unit)?, value).ok()?;
        Some(text.to_string_lossy().into_owned()).filter(|text| !text.is_empty())
    }

    /// The name without scopes; that of the original if the entry has none.
    pub fn name(&self, die: &Die<'a>) -> Option<String> {
        self.find_up(die, |die| self.text(die, gimli::DW_AT_name))
    }

    /// Asks an entry, then its original, and so on, until one has an answer.
    pub fn find_up<T>(&self, die: &Die<'a>, ask: impl Fn(&Die<'a>) -> Option<T>) -> Option<T> {
        if let Some(answer) = ask(die) {
            return Some(answer);
        }
        let mut current = self.origin(die)?;
        for _ in 0..REFERENCES_MAX {
            if let Some(answer) = ask(&current) {
                return Some(answer);
            }
            current = self.origin(&current)?;
        }
        None
    }

    /// The name with the namespaces and classes around it, as it is written in the source: without what needs not be
    /// written (anonymous and inline namespaces) and without the function around it.
    pub fn qualified_name(&self, die: &Die<'a>) -> Option<String> {
        let name = self.name(die)?;
        let mut parts = self.scope_names(self.declaration(die));
        parts.push(name);
        Some(parts.join("::"))
    }

    /// The first declaration of what an entry is: its scopes count, definitions may stand anywhere.
    pub fn declaration(&self, die: &Die<'a>) -> DieRef {
        let mut declared = die.at;
        let mut current = self.origin(die);
        for _ in 0..REFERENCES_MAX {
            let Some(origin) = current else { break };
            declared = origin.at;
            current = self.origin(&origin);
        }
        declared
    }

    fn scope_names(&self, at: DieRef) -> Vec<String> {
        let mut names = Vec::new();
        for scope in self.scopes_around(at) {
            let Some(die) = self.read(scope) else { break };
            if is_function(die.tag) {
                break;
            }
            if die.tag == gimli::DW_TAG_namespace && die.flag(gimli::DW_AT_export_symbols) {
                continue;
            }
            names.extend(self.name(&die));
        }
        names.reverse();
        names
    }

    /// The namespaces, classes and functions around an entry, innermost first.
    pub fn scopes_around(&self, at: DieRef) -> Vec<DieRef> {
        let mut around = Vec::new();
        let Some(scopes) = self.scopes_of(at.unit) else { return around };
        let after = scopes.partition_point(|scope| scope.start < at.offset.0);
        let mut current = after.checked_sub(1).map(|ix| ix as u32);
        while let Some(scope) = current.and_then(|ix| scopes.get(ix as usize)) {
            current = scope.parent;
            if at.offset.0 < scope.end {
                around.push(DieRef { unit: at.unit, offset: UnitOffset(scope.start) });
            }
            if around.len() >= SCOPES_AROUND_MAX {
                break;
            }
        }
        around
    }

    fn scopes_of(&self, unit: UnitIx) -> Option<Rc<[Scope]>> {
        if let Some(known) = self.scopes.0.borrow().get(&unit) {
            return Some(Rc::clone(known));
        }
        let scopes: Rc<[Scope]> = self.read_scopes(unit).into();
        let mut kept = self.scopes.0.borrow_mut();
        if kept.len() >= SCOPES_KEPT_MAX {
            kept.clear();
        }
        kept.insert(unit, Rc::clone(&scopes));
        Some(scopes)
    }

    /// One walk over a unit; scopes in the order of the file, each with the place behind its last entry.
    fn read_scopes(&self, ix: UnitIx) -> Vec<Scope> {
        let mut scopes: Vec<Scope> = Vec::new();
        let Some(unit) = self.unit(ix) else { return scopes };
        let Ok(mut entries) = unit.entries_raw(None) else { return scopes };
        let fuel = Fuel::new(QUESTION_ATTRIBUTES_MAX);
        let mut open: Vec<(isize, u32)> = Vec::new();
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset(), entries.next_depth());
            while open.last().is_some_and(|(around, _)| *around >= depth) {
                if let Some((_, done)) = open.pop() {
                    scopes[done as usize].end = offset.0;
                }
            }
            let Ok(abbreviation) = entries.read_abbreviation() else { break };
            let Some(abbreviation) = abbreviation else { continue };
            if fuel.burn(abbreviation.attributes().len()).is_none()
                || entries.skip_attributes(abbreviation.attributes()).is_err()
            {
                break;
            }
            if abbreviation.has_children() && is_scope(abbreviation.tag()) {
                let parent = open.last().map(|(_, ix)| *ix);
                open.push((depth, scopes.len() as u32));
                scopes.push(Scope { start: offset.0, end: usize::MAX, parent });
            }
        }
        scopes
    }
}

/// What a walk does next.
pub enum Step {
    /// Go on, into the children.
    Into,
    /// Go on behind the children.
    Over,
    Stop,
}

pub fn is_function(tag: DwTag) -> bool {
    matches!(tag, gimli::DW_TAG_subprogram | gimli::DW_TAG_inlined_subroutine)
}

fn is_scope(tag: DwTag) -> bool {
    let named = matches!(
        tag,
        gimli::DW_TAG_namespace
            | gimli::DW_TAG_module
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_enumeration_type
    );
    named || is_function(tag)
}
