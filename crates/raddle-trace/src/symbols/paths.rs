//! Access paths: from a place inside an object to what a programmer writes for it, `forks[1].lock`.
//!
//! The type of the object is walked from the outside in. In an array the place is divided by the size of an element; in
//! a class it is in one member, which is named, or in a base class or an anonymous member, which is not; in a union
//! several members fit, of which the first is taken whose innermost object has the size of the access, or else the first.
//! The walk ends at numbers, pointers (nothing is dereferenced) and types whose inside is hidden ([`super::opaque`]).
//! A place in padding belongs to the object around it.

use super::dies::{Die, Dies};
use super::opaque::Inside;
use super::types::{Elements, Member, Shape};
use super::units::DieRef;
use std::fmt::Write;

/// Objects inside each other on one path.
const NESTING_MAX: usize = 64;

/// What a member of a union costs, as so many attributes. Unions in unions multiply: this leaves a question about a
/// thousand members, where the largest unions of real programs have some ten.
const ALTERNATIVE_PRICE: usize = 1 << 13;

/// The innermost object at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Innermost {
    /// What to write behind the variable's name.
    pub path: String,
    /// The place, from the first byte of this object.
    pub offset: u64,
    pub size: Option<u64>,
    pub kind: DieRef,
}

impl<'a> Dies<'a> {
    /// Names the object at `offset` in an object of type `kind`; `access` bytes are accessed, if known.
    pub fn innermost(&self, kind: DieRef, offset: u64, access: Option<u64>) -> Innermost {
        self.descend(Innermost { path: String::new(), offset, size: self.size(kind), kind }, access, 0)
    }

    fn descend(&self, object: Innermost, access: Option<u64>, depth: usize) -> Innermost {
        if depth >= NESTING_MAX || object.path.len() > 4096 {
            return object;
        }
        match self.shape(object.kind) {
            Shape::Scalar => object,
            Shape::Array(die) => match self.elements(&die).and_then(|elements| element(&object, &elements)) {
                Some(inner) => self.descend(inner, access, depth + 1),
                None => object,
            },
            Shape::Class(die, inside) => self.descend_class(&die, inside, object, access, depth),
            Shape::Union(die) => self.descend_union(&die, object, access, depth),
        }
    }

    fn descend_class(
        &self,
        die: &Die<'a>,
        inside: Inside,
        object: Innermost,
        access: Option<u64>,
        depth: usize,
    ) -> Innermost {
        let members = self.members(die);
        let covering = |bounded: bool| {
            let offset = object.offset;
            members.iter().filter(move |m| is_bounded(m) == bounded).filter(move |m| covers(m, offset))
        };
        for member in covering(true).chain(covering(false)) {
            if inside == Inside::Transparent {
                let inner = Innermost { path: object.path.clone(), ..self.enter(die, &object, member) };
                return self.descend(inner, access, depth + 1);
            }
            // The pointer to virtual functions: of the object itself, as far as a programmer is concerned.
            if member.artificial {
                return object;
            }
            let found = self.descend_member(die, &object, member, access, depth);
            // Empty base classes and empty members share their byte with what comes next.
            if found != object && !(covering(true).count() > 1 && self.is_empty_class(member.kind)) {
                return found;
            }
        }
        object
    }

    fn is_empty_class(&self, kind: DieRef) -> bool {
        matches!(self.shape(kind), Shape::Class(die, _) if self.members(&die).is_empty())
    }

    fn descend_member(
        &self,
        class: &Die<'a>,
        object: &Innermost,
        member: &Member,
        access: Option<u64>,
        depth: usize,
    ) -> Innermost {
        let inner = self.enter(class, object, member);
        let unnamed = inner.path == object.path;
        let found = self.descend(inner.clone(), access, depth + 1);
        // A base class that is hidden (`std::mutex`), or padding in it, is the object itself.
        if unnamed && found == inner { object.clone() } else { found }
    }

    fn descend_union(
        &self,
        die: &Die<'a>,
        object: Innermost,
        access: Option<u64>,
        depth: usize,
    ) -> Innermost {
        let mut first = None;
        for member in self.members(die).iter().filter(|member| covers(member, object.offset)) {
            let found = self.descend_member(die, &object, member, access, depth);
            if access.is_none() || (found.offset == 0 && found.size == access) {
                return found;
            }
            first.get_or_insert(found);
            if self.fuel.burn(ALTERNATIVE_PRICE).is_none() {
                break;
            }
        }
        first.unwrap_or(object)
    }

    fn enter(&self, class: &Die<'a>, object: &Innermost, member: &Member) -> Innermost {
        let mut path = object.path.clone();
        if let Some(name) = &member.name {
            path.push('.');
            let rust = self.units.language(class.at.unit) == Some(gimli::DW_LANG_Rust);
            path.push_str(if rust { tuple_field(name) } else { name });
        }
        let offset = object.offset.saturating_sub(member.start);
        Innermost { path, offset, size: member.size, kind: member.kind }
    }
}

/// Does the member end somewhere? An array without bound, or of no elements, goes on to the end of the object.
fn is_bounded(member: &Member) -> bool {
    member.size.is_some_and(|size| size > 0)
}

fn covers(member: &Member, offset: u64) -> bool {
    match member.size {
        None => member.start <= offset,
        Some(0) => member.name.is_some() && member.start <= offset,
        Some(size) => offset.checked_sub(member.start).is_some_and(|within| within < size),
    }
}

/// The fields of Rust's tuples have numbers for names.
fn tuple_field(name: &str) -> &str {
    match name.strip_prefix("__") {
        Some(number) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => number,
        _ => name,
    }
}

fn element(array: &Innermost, elements: &Elements) -> Option<Innermost> {
    let (_, inner) = elements.bounds.split_first()?;
    let mut flat = array.offset / elements.size;
    let mut indices = Vec::with_capacity(elements.bounds.len());
    for bound in inner.iter().rev() {
        let bound = bound.filter(|bound| *bound > 0)?;
        indices.push(flat % bound);
        flat /= bound;
    }
    indices.push(flat);
    let mut path = array.path.clone();
    for index in indices.iter().rev() {
        write!(path, "[{index}]").ok()?;
    }
    Some(Innermost {
        path,
        offset: array.offset % elements.size,
        size: Some(elements.size),
        kind: elements.kind,
    })
}
