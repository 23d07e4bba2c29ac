//! A total, error-recovering parser for CSPM.
//!
//! The grammar is FDR4's. Binding strengths, tightest first: qualified names; application and renaming `[[ ]]`; `^`;
//! `#`; `* / %`; `+ -`; comparisons; `not`; `and`; `or`; `.`; prefix `->` and guard `&`; `;`; `[>`; `/\` and `/+ +\`;
//! `[]` and `[+ +]`; `|~|`; the parallels and the exception `[| |>`; `|||`; `\` and `|\`; replicated operators,
//! `let`, `if`, lambda, which all reach as far to the right as they can.
//!
//! Parsing never fails and never panics: it returns a tree in which [`Expr::Error`] stands for what could not be
//! read, plus diagnostics. After an error in a declaration it resumes at the next line that can begin one. Nesting is
//! limited to [`NESTING_MAX`]; chains of prefixes and of left-associative operators are read by loops and have no
//! limit, because a recorded trace is exactly such a chain.

mod assertion;
mod decl;
mod expr;
mod pattern;
mod types;

use std::rc::Rc;

use super::ast::{Ast, DeclId, Expr, ExprId, Ident};
use super::diagnostic::{Diagnostic, Stage};
use super::source::{FileId, Span};
use super::token::{Kind, Token, lex};

/// Deepest nesting of brackets, `let`s and `if`s that is read.
pub const NESTING_MAX: u32 = 2_000;

/// Most diagnostics reported for one file; a file that is not CSPM at all should not fill the screen.
pub const DIAGNOSTICS_MAX: usize = 50;

/// Parses one file into the tree; includes are left as declarations for the loader to splice.
pub fn parse_file(ast: &mut Ast, file: FileId, text: &str) -> (Vec<DeclId>, Vec<Diagnostic>) {
    let mut parser = Parser::new(ast, file, text);
    let decls = parser.decls(|_| false);
    (decls, parser.finish())
}

/// Parses a single expression, as `raddle csp eval` takes it.
pub fn parse_expr(ast: &mut Ast, file: FileId, text: &str) -> (ExprId, Vec<Diagnostic>) {
    let mut parser = Parser::new(ast, file, text);
    let expr = parser.expr(0);
    if parser.kind() != Kind::End {
        parser.unexpected("the end of the expression");
    }
    (expr, parser.finish())
}

/// Parses a written type; for the table of built-in names.
pub(crate) fn parse_type(text: &str) -> super::ast::TypeExpr {
    let mut ast = Ast::default();
    Parser::new(&mut ast, FileId(0), text).type_expr()
}

/// `True` and `False`, which old scripts may declare as constructors of their own. `true` and `false` they may not.
fn is_capital_truth(token: Token, text: &str) -> bool {
    matches!(token.kind, Kind::True | Kind::False)
        && text[token.span.start as usize..].starts_with(['T', 'F'])
}

/// Whether a datatype of the file has a constructor `True` or `False`.
fn declares_truth(tokens: &[Token], text: &str) -> bool {
    let mut in_datatype = false;
    tokens.windows(2).any(|pair| {
        match pair[0].kind {
            Kind::Datatype | Kind::Subtype => in_datatype = true,
            Kind::Define | Kind::Pipe => return in_datatype && is_capital_truth(pair[1], text),
            _ if pair[0].after_newline && !matches!(pair[0].kind, Kind::Ident) => in_datatype = false,
            _ => {}
        }
        false
    })
}

struct Parser<'a> {
    ast: &'a mut Ast,
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    diagnostics: Vec<Diagnostic>,
    nesting: u32,
    /// For every open bracket: how many sequences `<` are open directly inside it. Decides what `>` means.
    sequences: Vec<u32>,
    /// The declaration being read has a diagnostic already; further ones in it would be noise.
    failed: bool,
}

impl<'a> Parser<'a> {
    fn new(ast: &'a mut Ast, file: FileId, text: &'a str) -> Parser<'a> {
        let mut lexed = lex(file, text);
        ast.truth_is_declared |= declares_truth(&lexed.tokens, text);
        if ast.truth_is_declared {
            for token in &mut lexed.tokens {
                if is_capital_truth(*token, text) {
                    token.kind = Kind::Ident;
                }
            }
        }
        Parser {
            ast,
            text,
            tokens: lexed.tokens,
            at: 0,
            diagnostics: lexed.diagnostics,
            nesting: 0,
            sequences: vec![0],
            failed: false,
        }
    }

    fn finish(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|d| d.span);
        self.diagnostics.truncate(DIAGNOSTICS_MAX);
        self.diagnostics
    }

    fn token(&self) -> Token {
        self.tokens[self.at]
    }

    fn kind(&self) -> Kind {
        self.tokens[self.at].kind
    }

    fn kind_after(&self, ahead: usize) -> Kind {
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].kind
    }

    fn token_after(&self, ahead: usize) -> Token {
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    fn span(&self) -> Span {
        self.token().span
    }

    /// The end of the token before the current one, for spans that run up to here.
    fn previous_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn slice(&self, span: Span) -> &'a str {
        &self.text[span.start as usize..span.end as usize]
    }

    fn bump(&mut self) -> Token {
        let token = self.token();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let hit = self.kind() == kind;
        if hit {
            self.bump();
        }
        hit
    }

    fn expect(&mut self, kind: Kind, what: &str) -> bool {
        let hit = self.eat(kind);
        if !hit {
            self.unexpected(what);
        }
        hit
    }

    fn error(&mut self, diagnostic: Diagnostic) {
        if !self.failed {
            self.diagnostics.push(diagnostic);
        }
        self.failed = true;
    }

    fn unexpected(&mut self, wanted: &str) {
        let token = self.token();
        let found = match token.kind {
            Kind::End => "the end of the file".to_owned(),
            // The lexer has reported it already.
            Kind::Junk => {
                self.failed = true;
                return;
            }
            _ => format!("`{}`", self.slice(token.span)),
        };
        self.error(
            Diagnostic::error(Stage::Syntax, token.span, format!("expected {wanted}, found {found}"))
                .label("not expected here"),
        );
    }

    fn error_expr(&mut self, span: Span) -> ExprId {
        self.ast.add_expr(Expr::Error, span)
    }

    fn ident(&mut self, what: &str) -> Ident {
        let token = self.token();
        if self.expect(Kind::Ident, what) {
            Ident { name: Rc::from(self.slice(token.span)), span: token.span }
        } else {
            Ident { name: Rc::from("?"), span: token.span }
        }
    }

    /// Enters a bracket: `>` inside it compares until a `<` opens a sequence there.
    fn open(&mut self) {
        self.sequences.push(0);
    }

    fn close(&mut self) {
        self.sequences.pop();
        debug_assert!(!self.sequences.is_empty());
    }

    /// Runs `read` one nesting level deeper, on a stack that is grown if needed.
    fn nested(&mut self, read: impl FnOnce(&mut Self) -> ExprId) -> ExprId {
        if self.nesting >= NESTING_MAX {
            let span = self.span();
            self.error(
                Diagnostic::error(Stage::Syntax, span, "this is nested too deeply")
                    .note(format!("at most {NESTING_MAX} levels are read; name a part of the expression")),
            );
            self.skip_declaration();
            return self.error_expr(span);
        }
        self.nesting += 1;
        let result = stacker::maybe_grow(64 << 10, 1 << 20, || read(self));
        self.nesting -= 1;
        result
    }
}

#[cfg(test)]
mod tests;
