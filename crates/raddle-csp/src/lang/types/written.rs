//! Types that somebody wrote: signatures, and the table of built-in names.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::Checker;
use super::ty::{Class, Ty, Type};
use crate::lang::ast::{DeclId, TypeExpr};
use crate::lang::builtin::Builtin;
use crate::lang::parser::parse_type;
use crate::lang::source::Span;

impl Checker<'_> {
    /// The type of a built-in name at one use.
    pub(super) fn builtin(&mut self, builtin: Builtin, span: Span) -> Ty {
        let written = self.builtin_types.entry(builtin).or_insert_with(|| parse_type(builtin.ty())).clone();
        let mut vars = FxHashMap::default();
        let ty = self.written(&written, None, &mut vars, span);
        let var = |name: &str| vars.get(name).copied();
        match builtin {
            Builtin::Card
            | Builtin::Empty
            | Builtin::Member
            | Builtin::SeqOf
            | Builtin::Elem
            | Builtin::TransitiveClosure => {
                if let Some(a) = var("a") {
                    self.require(span, Class::Eq, a);
                }
            }
            Builtin::Productions => {
                if let (Some(a), Some(b)) = (var("a"), var("b")) {
                    self.require(span, Class::Extends(b), a);
                }
            }
            Builtin::SetOf | Builtin::PowerSet | Builtin::AllSeqs => {
                if let Some(a) = var("a") {
                    self.require(span, Class::Element, a);
                }
            }
            Builtin::MapFromList | Builtin::MapUpdate | Builtin::AllMaps | Builtin::MapUpdateMultiple => {
                if let Some(k) = var("k") {
                    self.require(span, Class::Eq, k);
                }
            }
            _ => {}
        }
        ty
    }

    /// Converts a written type; `decl` is the signature it stands in, `vars` the type variables met so far.
    pub(super) fn written(
        &mut self,
        written: &TypeExpr,
        decl: Option<DeclId>,
        vars: &mut FxHashMap<Rc<str>, Ty>,
        span: Span,
    ) -> Ty {
        let ty = match written {
            TypeExpr::Name(path) => {
                let shown: Rc<str> = path.iter().map(|i| &*i.name).collect::<Vec<_>>().join("::").into();
                return self.written_name(&shown, decl, vars, span);
            }
            TypeExpr::Set(a) => Type::Set(self.written(a, decl, vars, span)),
            TypeExpr::Seq(a) => Type::Seq(self.written(a, decl, vars, span)),
            TypeExpr::Tuple(list) => {
                let parts: Vec<Ty> = list.iter().map(|t| self.written(t, decl, vars, span)).collect();
                if let [only] = parts[..] {
                    return only;
                }
                Type::Tuple(parts)
            }
            TypeExpr::Map(k, v) => {
                let key = self.written(k, decl, vars, span);
                Type::Map(key, self.written(v, decl, vars, span))
            }
            TypeExpr::Function(args, result) => {
                let args = args.iter().map(|t| self.written(t, decl, vars, span)).collect();
                Type::Function(args, self.written(result, decl, vars, span))
            }
            TypeExpr::Dot(list) => {
                Type::Dot(list.iter().map(|t| self.written(t, decl, vars, span)).collect())
            }
            TypeExpr::Dotable(a, b) => {
                let arg = self.written(a, decl, vars, span);
                let result = self.written(b, decl, vars, span);
                let args = self.unifier.table.parts(arg);
                match self.unifier.table.get(result) {
                    Type::Dotable(more, end) => Type::Dotable([args, more].concat(), end),
                    _ => Type::Dotable(args, result),
                }
            }
            TypeExpr::Extendable(_, b) => {
                let target = self.written(b, decl, vars, span);
                let var = self.fresh();
                self.require(span, Class::Extends(target), var);
                return var;
            }
            TypeExpr::Error => return self.error,
        };
        self.add(ty)
    }

    fn written_name(
        &mut self,
        name: &Rc<str>,
        decl: Option<DeclId>,
        vars: &mut FxHashMap<Rc<str>, Ty>,
        span: Span,
    ) -> Ty {
        let simple = match &**name {
            "Int" => Some(Type::Int),
            "Bool" => Some(Type::Bool),
            "Char" => Some(Type::Char),
            "Proc" => Some(Type::Proc),
            "Event" => Some(Type::Event),
            _ => None,
        };
        if let Some(simple) = simple {
            return self.add(simple);
        }
        if let Some(&var) = decl.and_then(|d| self.resolved.signature_types.get(&(d, name.clone()))) {
            let set = self.instantiate(var, span);
            return match self.unifier.table.get(set) {
                Type::Set(element) => element,
                _ => self.error,
            };
        }
        if name.starts_with(|c: char| c.is_lowercase()) {
            if let Some(&ty) = vars.get(name) {
                return ty;
            }
            let ty = self.fresh();
            vars.insert(name.clone(), ty);
            return ty;
        }
        self.type_error(span, format!("there is no type `{name}`"));
        self.error
    }
}
