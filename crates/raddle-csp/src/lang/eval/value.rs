//! Values of CSPM expressions.
//!
//! Values are immutable, shared and totally ordered: sets keep their elements sorted, so that equal sets are equal
//! vectors and enumeration is deterministic. Every compound value knows how deeply it is nested, because comparing,
//! hashing and dropping are recursive and a script may build arbitrarily deep values ([`VALUE_DEPTH_MAX`]).
//!
//! Tuples, sequences, maps and dots may also be *lazy* ([`Value::Lazy`], [`Value::Stream`], [`Value::LazyMap`],
//! [`Value::LazyDot`]; see [`super::lazy`]). Those are no part of other values and are never compared: their equality is
//! that of places in memory.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use super::env::{Env, Slot};
use crate::lang::ast::{DeclId, ExprId};
use crate::lang::builtin::Builtin;
use crate::lang::resolve::VarId;
use crate::process::ProcId;

/// Deepest nesting of values.
pub const VALUE_DEPTH_MAX: u32 = 2_000;

/// Values side by side, and the depth of the deepest plus one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct List {
    pub items: Vec<Value>,
    depth: u32,
}

impl List {
    pub fn new(items: Vec<Value>) -> List {
        let depth = 1 + items.iter().map(Value::depth).max().unwrap_or(0);
        List { items, depth }
    }

    /// A set: sorted, each element once.
    pub fn sorted(mut items: Vec<Value>) -> List {
        items.sort_unstable();
        items.dedup();
        List::new(items)
    }

    pub fn contains(&self, value: &Value) -> bool {
        self.items.binary_search(value).is_ok()
    }
}

/// A sequence: a view into shared elements, so that `tail` costs nothing.
#[derive(Clone, Debug)]
pub struct Seq {
    list: Rc<List>,
    start: usize,
}

impl Seq {
    pub fn new(items: Vec<Value>) -> Seq {
        Seq { list: Rc::new(List::new(items)), start: 0 }
    }

    /// The elements that this and other views share.
    pub fn shared(&self) -> &Rc<List> {
        &self.list
    }

    pub fn items(&self) -> &[Value] {
        &self.list.items[self.start..]
    }

    /// Without the first `n` elements.
    pub fn skip(&self, n: usize) -> Seq {
        Seq { list: self.list.clone(), start: (self.start + n).min(self.list.items.len()) }
    }
}

impl PartialEq for Seq {
    fn eq(&self, other: &Seq) -> bool {
        self.items() == other.items()
    }
}

impl Eq for Seq {}

impl PartialOrd for Seq {
    fn partial_cmp(&self, other: &Seq) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Seq {
    fn cmp(&self, other: &Seq) -> Ordering {
        self.items().cmp(other.items())
    }
}

impl Hash for Seq {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.items().hash(state);
    }
}

/// A tuple of which some component has not been evaluated, or the parts of a dot of which one is lazy.
#[derive(Debug)]
pub struct Lazy {
    pub slots: Vec<Slot>,
    depth: u32,
}

impl Lazy {
    pub fn new(slots: Vec<Slot>) -> Lazy {
        let depth = 1 + slots.iter().map(slot_depth).max().unwrap_or(0);
        Lazy { slots, depth }
    }
}

/// A sequence with at least one element, of which not everything has been evaluated.
#[derive(Debug)]
pub struct Stream {
    pub head: Slot,
    /// A sequence.
    pub rest: Slot,
    depth: u32,
}

impl Stream {
    pub fn new(head: Slot, rest: Slot) -> Stream {
        // The rest is dropped by a loop; only what is nested counts.
        let depth = (1 + slot_depth(&head)).max(slot_depth(&rest));
        Stream { head, rest, depth }
    }
}

/// A map of which some value has not been evaluated. Its keys are complete.
#[derive(Debug)]
pub struct LazyMap {
    pub entries: BTreeMap<Value, Slot>,
    depth: u32,
}

impl LazyMap {
    pub fn new(entries: BTreeMap<Value, Slot>) -> LazyMap {
        let depth = 1 + entries.iter().map(|(k, v)| k.depth().max(slot_depth(v))).max().unwrap_or(0);
        LazyMap { entries, depth }
    }
}

fn slot_depth(slot: &Slot) -> u32 {
    match slot {
        Slot::Value(value) => value.depth(),
        // A thunk is dropped by a loop, and what it becomes is measured where it is used.
        Slot::Thunk(_) | Slot::Empty => 0,
    }
}

macro_rules! compared_by_place {
    ($name:ident) => {
        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                std::ptr::eq(self, other)
            }
        }

        impl Eq for $name {}

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &$name) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &$name) -> Ordering {
                std::ptr::from_ref(self).cmp(&std::ptr::from_ref(other))
            }
        }

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                std::ptr::from_ref(self).hash(state);
            }
        }
    };
}

compared_by_place!(Lazy);
compared_by_place!(Stream);
compared_by_place!(LazyMap);

/// A set: listed, or described where it has no end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Set {
    List(Rc<List>),
    Integers,
    From(i64),
    Chars,
    Processes,
    /// All finite sequences over a set.
    Sequences(Rc<Set>),
    /// The values of a recursive datatype.
    Datatype(DeclId),
    /// The values of dotted fields of which one has no end.
    Dots(Rc<Vec<Set>>),
    /// Tuples of which one component has no end.
    Tuples(Rc<Vec<Set>>),
    /// All subsets of an endless set.
    Subsets(Rc<Set>),
    /// All maps with keys and values from sets of which one has no end.
    Maps(Rc<Set>, Rc<Set>),
    /// The union of two sets of which one has no end.
    Either(Rc<Set>, Rc<Set>),
}

impl Set {
    pub fn of(items: Vec<Value>) -> Set {
        Set::List(Rc::new(List::sorted(items)))
    }

    fn depth(&self) -> u32 {
        match self {
            Set::List(list) => list.depth,
            Set::Sequences(s) | Set::Subsets(s) => 1 + s.depth(),
            Set::Dots(sets) | Set::Tuples(sets) => 1 + sets.iter().map(Set::depth).max().unwrap_or(0),
            Set::Maps(k, v) | Set::Either(k, v) => 1 + k.depth().max(v.depth()),
            _ => 1,
        }
    }
}

/// A function value: a definition or a lambda with its environment and the argument groups it already has.
#[derive(Debug)]
pub struct Closure {
    /// Tells function values apart; they cannot be compared by what they do.
    pub id: u64,
    pub code: Code,
    pub env: Env,
    pub args: Vec<Vec<Slot>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Definition(DeclId, VarId),
    Lambda(ExprId),
}

impl PartialEq for Closure {
    fn eq(&self, other: &Closure) -> bool {
        self.id == other.id
    }
}

impl Eq for Closure {}

impl PartialOrd for Closure {
    fn partial_cmp(&self, other: &Closure) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Closure {
    fn cmp(&self, other: &Closure) -> Ordering {
        self.id.cmp(&other.id)
    }
}

impl Hash for Closure {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    Int(i64),
    Bool(bool),
    Char(char),
    Tuple(Rc<List>),
    Seq(Seq),
    /// `<n..>`
    SeqFrom(i64),
    Lazy(Rc<Lazy>),
    Stream(Rc<Stream>),
    Set(Set),
    Map(Rc<BTreeMap<Value, Value>>),
    LazyMap(Rc<LazyMap>),
    /// A constructor or channel with the fields it has so far.
    Data(VarId, Rc<List>),
    /// Two or more values that no constructor takes as its fields.
    Dot(Rc<List>),
    /// The same, where a part is lazy; every part has been evaluated as far as its kind is known.
    LazyDot(Rc<Lazy>),
    Function(Rc<Closure>),
    Builtin(Builtin),
    /// `relational_image(R)`: waits for its second argument.
    Image(Rc<List>),
    Process(ProcId),
}

impl Value {
    pub fn depth(&self) -> u32 {
        match self {
            Value::Tuple(list) | Value::Data(_, list) | Value::Dot(list) | Value::Image(list) => list.depth,
            Value::Seq(seq) => seq.list.depth,
            Value::Lazy(lazy) | Value::LazyDot(lazy) => lazy.depth,
            Value::LazyMap(map) => map.depth,
            Value::Stream(cell) => cell.depth,
            Value::Set(set) => set.depth(),
            Value::Map(map) => 1 + map.iter().map(|(k, v)| k.depth().max(v.depth())).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// About how many bytes the value takes beyond itself. The rest of a sequence counts nothing: it shares the elements
    /// of the whole.
    pub fn fresh_bytes(&self) -> u64 {
        let list = |items: &[Value]| -> u64 {
            let inner: u64 = items.iter().map(Value::fresh_bytes).sum();
            48 + inner + size_of_val(items) as u64
        };
        match self {
            Value::Tuple(items) | Value::Data(_, items) | Value::Dot(items) => list(&items.items),
            Value::Seq(seq) if seq.start == 0 => list(seq.items()),
            Value::Set(Set::List(items)) => list(&items.items),
            Value::Map(map) => map.iter().map(|(k, v)| 64 + k.fresh_bytes() + v.fresh_bytes()).sum(),
            _ => 0,
        }
    }

    /// Whether something in the value may not have been evaluated.
    pub fn is_lazy(&self) -> bool {
        matches!(self, Value::Lazy(_) | Value::Stream(_) | Value::LazyMap(_) | Value::LazyDot(_))
    }

    pub fn string(text: &str) -> Value {
        Value::Seq(Seq::new(text.chars().map(Value::Char).collect()))
    }

    pub fn empty_set() -> Value {
        Value::Set(Set::of(Vec::new()))
    }

    /// The parts of a dot; a single part for everything else.
    pub fn parts(&self) -> &[Value] {
        match self {
            Value::Dot(list) => &list.items,
            other => std::slice::from_ref(other),
        }
    }

    /// One value of several parts.
    pub fn dotted(mut parts: Vec<Value>) -> Value {
        match parts.len() {
            1 => parts.swap_remove(0),
            _ => Value::Dot(Rc::new(List::new(parts))),
        }
    }
}
