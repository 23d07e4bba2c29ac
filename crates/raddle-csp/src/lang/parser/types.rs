//! Written types, as in `f :: (Int, {Event}) -> Proc`.

use super::Parser;
use crate::lang::ast::{Ident, TypeExpr};
use crate::lang::diagnostic::{Diagnostic, Stage};
use crate::lang::token::Kind;

/// Deepest nesting of a written type.
const TYPE_NESTING_MAX: u32 = 100;

/// The classes that a written type may demand of its variables.
const CLASSES: [&str; 6] = ["Eq", "Ord", "Set", "Complete", "Yieldable", "Inputable"];

impl Parser<'_> {
    pub(super) fn type_expr(&mut self) -> TypeExpr {
        self.signature_type().1
    }

    /// A type with the classes demanded of its variables.
    pub(super) fn signature_type(&mut self) -> (Vec<(Ident, Ident)>, TypeExpr) {
        let classes = self.constraints();
        (classes, self.type_arrow(0))
    }

    /// `Eq a =>` and `(Eq a, Set b) =>`
    fn constraints(&mut self) -> Vec<(Ident, Ident)> {
        let is_class = |parser: &Self, ahead: usize| {
            let token = parser.token_after(ahead);
            token.kind == Kind::Ident
                && CLASSES.contains(&parser.slice(token.span))
                && parser.kind_after(ahead + 1) == Kind::Ident
        };
        let mut classes = Vec::new();
        if is_class(self, 0) {
            classes.push((self.ident("a class"), self.ident("a type variable")));
        } else if self.kind() == Kind::LParen && is_class(self, 1) {
            self.bump();
            while is_class(self, 0) {
                classes.push((self.ident("a class"), self.ident("a type variable")));
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
            self.expect(Kind::RParen, "`)` after the constraints");
        } else {
            return classes;
        }
        self.expect(Kind::FatArrow, "`=>` after the constraints");
        classes
    }

    fn type_arrow(&mut self, depth: u32) -> TypeExpr {
        if depth >= TYPE_NESTING_MAX {
            self.unexpected("a type that is nested less deeply");
            return TypeExpr::Error;
        }
        let start = self.span();
        let left = self.type_dot(depth);
        if self.kind() == Kind::Arrow {
            let TypeExpr::Tuple(args) = left else {
                let message = "the arguments of a function type stand in parentheses";
                self.error(
                    Diagnostic::error(Stage::Syntax, start.to(self.span()), message)
                        .note("write `(Int) -> Int`, and `(Int, Bool) -> Int` for two"),
                );
                return TypeExpr::Error;
            };
            self.bump();
            return TypeExpr::Function(args, Box::new(self.type_arrow(depth + 1)));
        }
        let left = unparenthesise(left);
        if self.eat(Kind::FatArrow) {
            return TypeExpr::Dotable(Box::new(left), Box::new(self.type_arrow(depth + 1)));
        }
        if self.eat(Kind::FatArrowStar) {
            return TypeExpr::Extendable(Box::new(left), Box::new(self.type_arrow(depth + 1)));
        }
        left
    }

    fn type_dot(&mut self, depth: u32) -> TypeExpr {
        let first = self.type_atom(depth);
        if self.kind() != Kind::Dot {
            return first;
        }
        let mut parts = vec![unparenthesise(first)];
        while self.eat(Kind::Dot) {
            parts.push(unparenthesise(self.type_atom(depth)));
        }
        TypeExpr::Dot(parts)
    }

    fn type_atom(&mut self, depth: u32) -> TypeExpr {
        match self.kind() {
            Kind::Ident => {
                let mut path = vec![self.ident("a type")];
                while self.eat(Kind::Scope) {
                    path.push(self.ident("a type"));
                }
                TypeExpr::Name(path)
            }
            Kind::LBrace => {
                self.bump();
                let inner = self.type_arrow(depth + 1);
                self.expect(Kind::RBrace, "`}` after the type of the elements");
                TypeExpr::Set(Box::new(inner))
            }
            Kind::Lt => {
                self.bump();
                let inner = self.type_arrow(depth + 1);
                self.expect(Kind::Gt, "`>` after the type of the elements");
                TypeExpr::Seq(Box::new(inner))
            }
            Kind::LParen => {
                let paren = self.bump();
                if self.kind() == Kind::Pipe && self.span().start == paren.span.end {
                    self.bump();
                    let key = self.type_dot(depth + 1);
                    self.expect(Kind::FatArrow, "`=>` between the types of keys and values");
                    let value = self.type_arrow(depth + 1);
                    self.expect(Kind::Pipe, "`|)` after the type of a map");
                    self.expect(Kind::RParen, "`|)` after the type of a map");
                    return TypeExpr::Map(Box::new(unparenthesise(key)), Box::new(value));
                }
                let mut parts = Vec::new();
                while self.kind() != Kind::RParen && !self.failed {
                    parts.push(self.type_arrow(depth + 1));
                    if !self.eat(Kind::Comma) {
                        break;
                    }
                }
                self.expect(Kind::RParen, "`)` after the types");
                // A single type in parentheses stays a one-tuple until it is known not to be an argument list.
                TypeExpr::Tuple(parts)
            }
            _ => {
                self.unexpected("a type");
                TypeExpr::Error
            }
        }
    }
}

fn unparenthesise(ty: TypeExpr) -> TypeExpr {
    match ty {
        TypeExpr::Tuple(mut parts) if parts.len() == 1 => parts.pop().unwrap_or(TypeExpr::Error),
        other => other,
    }
}
