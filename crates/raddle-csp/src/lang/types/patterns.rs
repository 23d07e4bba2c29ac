//! Types of patterns.

use super::Checker;
use super::Scheme;
use super::ty::{Class, Ty, Type};
use crate::lang::ast::{Pat, PatId};
use crate::lang::resolve::PatRef;

impl Checker<'_> {
    /// Infers the type of a pattern; its variables get monomorphic types.
    pub(super) fn pattern(&mut self, id: PatId) -> Ty {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.pattern_type(id))
    }

    fn pattern_type(&mut self, id: PatId) -> Ty {
        let span = self.ast.pat_span(id);
        match self.ast.pat(id).clone() {
            Pat::Error => self.error,
            Pat::Name(_) | Pat::Path(_) => match self.resolved.pat_ref(id) {
                PatRef::Constructor(var) => self.instantiate(var, span),
                PatRef::Bind { var, .. } => {
                    // Global patterns and `let` patterns have been given a type by the group they belong to.
                    if let Some(scheme) = self.schemes.get(&var) {
                        return scheme.ty;
                    }
                    let ty = self.fresh();
                    self.schemes.insert(var, Scheme { vars: Vec::new(), classes: Vec::new(), ty });
                    ty
                }
                PatRef::None => self.error,
            },
            Pat::Wildcard => self.fresh(),
            Pat::Int(_) => self.add(Type::Int),
            Pat::Bool(_) => self.add(Type::Bool),
            Pat::Char(_) => self.add(Type::Char),
            Pat::Str(_) => {
                let char = self.add(Type::Char);
                self.add(Type::Seq(char))
            }
            Pat::Tuple(list) => {
                let parts = list.iter().map(|&p| self.pattern(p)).collect();
                self.add(Type::Tuple(parts))
            }
            Pat::Seq(list) => {
                let element = self.elements(&list, "an element of a sequence pattern");
                self.add(Type::Seq(element))
            }
            Pat::Set(list) => {
                let element = self.elements(&list, "an element of a set pattern");
                self.require(span, Class::Element, element);
                self.add(Type::Set(element))
            }
            Pat::Concat(a, b) => {
                let element = self.fresh();
                let seq = self.add(Type::Seq(element));
                for part in [a, b] {
                    let ty = self.pattern(part);
                    self.demand(self.ast.pat_span(part), ty, seq, "an operand of `^`");
                }
                seq
            }
            Pat::Dot(..) => {
                // All parts at once: a variable at the end may reach over the fields of several constructors.
                let mut parts = Vec::new();
                let mut todo = vec![id];
                while let Some(pat) = todo.pop() {
                    match *self.ast.pat(pat) {
                        Pat::Dot(a, b) => todo.extend([b, a]),
                        _ => parts.push(self.pattern(pat)),
                    }
                }
                for &part in &parts[..parts.len() - 1] {
                    if self.unifier.table.is_var(part) {
                        self.require(span, Class::Complete, part);
                    }
                }
                self.dotted(span, &parts)
            }
            Pat::As(a, b) => {
                let ty = self.pattern(a);
                let other = self.pattern(b);
                self.demand(self.ast.pat_span(b), other, ty, "the other half of `@@`");
                ty
            }
        }
    }

    fn elements(&mut self, list: &[PatId], why: &str) -> Ty {
        let element = self.fresh();
        for &pat in list {
            let ty = self.pattern(pat);
            self.demand(self.ast.pat_span(pat), ty, element, why);
        }
        element
    }
}
