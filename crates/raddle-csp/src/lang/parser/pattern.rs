//! Patterns, converted from the expressions they were read as.

use super::Parser;
use crate::lang::ast::{BinOp, Expr, ExprId, Items, Pat, PatId, UnOp};
use crate::lang::diagnostic::{Diagnostic, Stage};

impl Parser<'_> {
    pub(super) fn pattern_of(&mut self, expr: ExprId) -> PatId {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.convert(expr))
    }

    fn patterns_of(&mut self, exprs: &[ExprId]) -> Vec<PatId> {
        exprs.iter().map(|&e| self.pattern_of(e)).collect()
    }

    fn convert(&mut self, expr: ExprId) -> PatId {
        let span = self.ast.span(expr);
        let pat = match self.ast.expr(expr).clone() {
            Expr::Error => Pat::Error,
            Expr::Paren(inner) => return self.pattern_of(inner),
            Expr::Var(mut path) => match (path.pop(), path.is_empty()) {
                (Some(only), true) => Pat::Name(only),
                (Some(last), false) => {
                    path.push(last);
                    Pat::Path(path)
                }
                (None, _) => Pat::Error,
            },
            Expr::Wildcard => Pat::Wildcard,
            Expr::Int(value) => Pat::Int(value),
            Expr::Bool(value) => Pat::Bool(value),
            Expr::Char(value) => Pat::Char(value),
            Expr::Str(value) => Pat::Str(value),
            Expr::Unary(UnOp::Neg, inner) => match self.ast.expr(self.ast.peel(inner)) {
                Expr::Int(value) => Pat::Int(value.wrapping_neg()),
                _ => self.not_a_pattern(expr),
            },
            Expr::Tuple(list) => Pat::Tuple(self.patterns_of(&list)),
            Expr::Seq(Items::List(list), stmts) if stmts.is_empty() => Pat::Seq(self.patterns_of(&list)),
            Expr::Set(Items::List(list), stmts) if stmts.is_empty() && list.len() <= 1 => {
                Pat::Set(self.patterns_of(&list))
            }
            Expr::Binary(BinOp::Concat, left, right) => {
                Pat::Concat(self.pattern_of(left), self.pattern_of(right))
            }
            Expr::Dot(left, right) => Pat::Dot(self.pattern_of(left), self.pattern_of(right)),
            Expr::As(left, right) => Pat::As(self.pattern_of(left), self.pattern_of(right)),
            _ => self.not_a_pattern(expr),
        };
        self.ast.add_pat(pat, span)
    }

    fn not_a_pattern(&mut self, expr: ExprId) -> Pat {
        let span = self.ast.span(expr);
        let diagnostic = Diagnostic::error(Stage::Syntax, span, "this is not a pattern").note(
            "patterns are names, `_`, literals, tuples, dots, sequences, `^`, `{}`, one-element sets, and `p @@ q`",
        );
        self.error(diagnostic);
        Pat::Error
    }
}
