//! Types and the table that holds them.
//!
//! Besides the usual ones CSPM has two kinds of types for dots. A channel `c : A.B` is *dotable*: it becomes an event
//! once dotted with an `A` and a `B` ([`Type::Dotable`]). Two values that no constructor absorbs form a plain dot
//! ([`Type::Dot`]). Dots are flat: `a.(b.c)` and `(a.b).c` are the same.
//!
//! Type variables carry a level; variables deeper than the level of a definition are the ones it generalises.

use std::collections::HashMap;

use crate::lang::ast::DeclId;

/// A type in a [`Table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ty(pub u32);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Var {
        level: u32,
    },
    Link(Ty),
    Int,
    Bool,
    Char,
    Proc,
    Event,
    /// The values of a datatype.
    Data(DeclId),
    Set(Ty),
    Seq(Ty),
    Tuple(Vec<Ty>),
    Map(Ty, Ty),
    Function(Vec<Ty>, Ty),
    /// At least two parts.
    Dot(Vec<Ty>),
    /// At least one argument.
    Dotable(Vec<Ty>, Ty),
    /// The type of something that has been reported already; agrees with everything.
    Error,
}

/// What a type has to satisfy beyond its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Compared by `==`.
    Eq,
    /// Compared by `<`.
    Ord,
    /// Kept in a set.
    Element,
    /// Is the given type, or becomes it once dotted with something.
    Extends(Ty),
    /// Lacks no fields: what an input may receive, and what a part of a dotted pattern other than the last may match. An
    /// event or a value of a datatype is one thing there: `_.b` does not take it apart.
    Complete,
}

#[derive(Debug, Default)]
pub struct Table {
    types: Vec<Type>,
}

impl Table {
    pub fn add(&mut self, ty: Type) -> Ty {
        self.types.push(ty);
        Ty((self.types.len() - 1) as u32)
    }

    pub fn fresh(&mut self, level: u32) -> Ty {
        self.add(Type::Var { level })
    }

    /// Follows links, shortening the chain on the way.
    pub fn find(&mut self, ty: Ty) -> Ty {
        let mut root = ty;
        while let Type::Link(next) = self.types[root.0 as usize] {
            root = next;
        }
        let mut at = ty;
        while let Type::Link(next) = self.types[at.0 as usize] {
            self.types[at.0 as usize] = Type::Link(root);
            at = next;
        }
        root
    }

    pub fn get(&mut self, ty: Ty) -> Type {
        let root = self.find(ty);
        self.types[root.0 as usize].clone()
    }

    pub fn is_var(&mut self, ty: Ty) -> bool {
        matches!(self.get(ty), Type::Var { .. })
    }

    pub fn link(&mut self, var: Ty, to: Ty) {
        let root = self.find(var);
        debug_assert!(matches!(self.types[root.0 as usize], Type::Var { .. }));
        self.types[root.0 as usize] = Type::Link(to);
    }

    /// A variable leaves the scope of the definition it came from when it meets an older one.
    pub fn lower(&mut self, ty: Ty, level: u32) {
        let root = self.find(ty);
        if let Type::Var { level: old } = &mut self.types[root.0 as usize] {
            *old = (*old).min(level);
        }
    }

    pub fn children(&mut self, ty: Ty) -> Vec<Ty> {
        match self.get(ty) {
            Type::Set(a) | Type::Seq(a) => vec![a],
            Type::Tuple(list) | Type::Dot(list) => list,
            Type::Map(a, b) => vec![a, b],
            Type::Function(mut args, result) | Type::Dotable(mut args, result) => {
                args.push(result);
                args
            }
            _ => Vec::new(),
        }
    }

    /// The parts of a dot, nested dots spread out; a single part for everything else.
    pub fn parts(&mut self, ty: Ty) -> Vec<Ty> {
        match self.get(ty) {
            Type::Dot(list) => list.iter().flat_map(|&part| self.parts(part)).collect(),
            _ => vec![ty],
        }
    }

    /// One type of several parts.
    pub fn dot(&mut self, parts: &[Ty]) -> Ty {
        match parts {
            [only] => *only,
            _ => self.add(Type::Dot(parts.to_vec())),
        }
    }
}

/// Writes types the way scripts do, naming variables `a`, `b`, ... in order of appearance.
pub struct Printer<'a> {
    pub names: &'a dyn Fn(DeclId) -> String,
    pub vars: HashMap<Ty, String>,
}

impl<'a> Printer<'a> {
    pub fn new(names: &'a dyn Fn(DeclId) -> String) -> Printer<'a> {
        Printer { names, vars: HashMap::new() }
    }

    pub fn show(&mut self, table: &mut Table, ty: Ty) -> String {
        self.nested(table, ty, 0)
    }

    fn list(&mut self, table: &mut Table, list: &[Ty], depth: u32) -> Vec<String> {
        list.iter().map(|&t| self.nested(table, t, depth)).collect()
    }

    fn nested(&mut self, table: &mut Table, ty: Ty, depth: u32) -> String {
        if depth > 20 {
            return "...".into();
        }
        let root = table.find(ty);
        match table.get(root) {
            Type::Link(_) | Type::Error => "?".into(),
            Type::Var { .. } => {
                let next = self.vars.len();
                let letter = char::from(b'a' + (next % 26) as u8);
                let name = if next < 26 { letter.to_string() } else { format!("{letter}{}", next / 26) };
                self.vars.entry(root).or_insert(name).clone()
            }
            Type::Int => "Int".into(),
            Type::Bool => "Bool".into(),
            Type::Char => "Char".into(),
            Type::Proc => "Proc".into(),
            Type::Event => "Event".into(),
            Type::Data(decl) => (self.names)(decl),
            Type::Set(a) => format!("{{{}}}", self.nested(table, a, depth + 1)),
            Type::Seq(a) => format!("<{}>", self.nested(table, a, depth + 1)),
            Type::Tuple(list) => format!("({})", self.list(table, &list, depth + 1).join(", ")),
            Type::Map(k, v) => {
                format!("(| {} => {} |)", self.nested(table, k, depth + 1), self.nested(table, v, depth + 1))
            }
            Type::Function(args, result) => format!(
                "({}) -> {}",
                self.list(table, &args, depth + 1).join(", "),
                self.nested(table, result, depth + 1)
            ),
            Type::Dot(list) => {
                let mut parts = self.list(table, &list, depth + 1);
                for (part, &ty) in parts.iter_mut().zip(&list) {
                    if matches!(table.get(ty), Type::Dotable(..)) {
                        *part = format!("({part})");
                    }
                }
                parts.join(".")
            }
            Type::Dotable(args, result) => format!(
                "{} => {}",
                self.list(table, &args, depth + 1).join("."),
                self.nested(table, result, depth + 1)
            ),
        }
    }
}
