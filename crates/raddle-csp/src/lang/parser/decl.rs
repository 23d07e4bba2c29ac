//! Declarations, and how the parser gets back on its feet after an error in one.

use std::rc::Rc;

use super::Parser;
use crate::lang::ast::{Clause, Decl, DeclId, Expr, ExprId, Variant};
use crate::lang::diagnostic::{Diagnostic, Stage};
use crate::lang::source::Span;
use crate::lang::token::Kind;

impl Parser<'_> {
    /// Reads declarations up to the end of the file or a token for which `ends` holds, which is left unread.
    pub(super) fn decls(&mut self, ends: impl Fn(Kind) -> bool) -> Vec<DeclId> {
        let mut decls: Vec<DeclId> = Vec::new();
        let outer_failed = std::mem::replace(&mut self.failed, false);
        let mut any_failed = false;
        while self.kind() != Kind::End && !ends(self.kind()) {
            let before = self.at;
            if let Some(decl) = self.decl() {
                self.push_clause(&mut decls, decl);
            }
            if !self.failed
                && self.kind() != Kind::End
                && !ends(self.kind())
                && !self.token().after_newline
                && !self.ends_block()
            {
                self.unexpected("the end of the declaration");
            }
            if self.failed {
                any_failed = true;
                self.failed = false;
                self.skip_declaration();
                if self.ends_block() && !ends(self.kind()) {
                    break;
                }
            } else if self.ends_block() && !ends(self.kind()) {
                // The caller reports the wrong closing word, or this is the top level and it is stray.
                if self.nesting > 0 || !self.at_top() {
                    break;
                }
                self.unexpected("a declaration");
                self.bump();
                self.failed = false;
            }
            if self.at == before {
                self.bump();
            }
        }
        self.failed = outer_failed || (any_failed && self.nesting > 0);
        decls
    }

    fn at_top(&self) -> bool {
        self.sequences.len() == 1
    }

    fn ends_block(&self) -> bool {
        matches!(self.kind(), Kind::Within | Kind::Exports | Kind::EndModule | Kind::RBrace)
    }

    /// After an error: forward to the next line that can begin a declaration, or to the end of the block.
    pub(super) fn skip_declaration(&mut self) {
        loop {
            let token = self.token();
            if token.kind == Kind::End || matches!(token.kind, Kind::Exports | Kind::EndModule) {
                return;
            }
            if token.after_newline && self.begins_declaration() {
                return;
            }
            self.bump();
        }
    }

    /// Keywords always do; names do when a `=` or `::` follows before the line after the next begins.
    pub(super) fn begins_declaration(&self) -> bool {
        match self.kind() {
            Kind::Channel
            | Kind::Datatype
            | Kind::Subtype
            | Kind::Nametype
            | Kind::External
            | Kind::Transparent
            | Kind::Assert
            | Kind::Module
            | Kind::Instance
            | Kind::Include
            | Kind::Print
            | Kind::Timed => true,
            Kind::Ident | Kind::LParen | Kind::Lt => {
                let mut ahead = 1;
                loop {
                    let token = self.token_after(ahead);
                    match token.kind {
                        Kind::Define | Kind::Scope => return true,
                        Kind::End => return false,
                        _ if token.after_newline => return false,
                        _ => ahead += 1,
                    }
                }
            }
            _ => false,
        }
    }

    /// Joins the clauses of one function, which stand one after the other.
    fn push_clause(&mut self, decls: &mut Vec<DeclId>, new: DeclId) {
        if let Some(&last) = decls.last() {
            let span = self.ast.decl_span(last).to(self.ast.decl_span(new));
            if let (Decl::Function { name: old, .. }, Decl::Function { name, clauses }) =
                (self.ast.decl(last), self.ast.decl(new))
                && old.name == name.name
                && clauses.iter().all(|c| !c.groups.is_empty())
            {
                let more = clauses.clone();
                if let Decl::Function { clauses, .. } = self.ast.decl_mut(last)
                    && clauses.iter().all(|c| !c.groups.is_empty())
                {
                    clauses.extend(more);
                    self.ast.set_decl_span(last, span);
                    return;
                }
            }
        }
        decls.push(new);
    }

    fn decl(&mut self) -> Option<DeclId> {
        let start = self.span();
        let decl = match self.kind() {
            Kind::Channel => {
                self.bump();
                let names = self.names("the name of a channel");
                let fields = if self.eat(Kind::Colon) { Some(self.expr(0)) } else { None };
                Decl::Channel { names, fields }
            }
            Kind::Datatype | Kind::Subtype => {
                let subtype = self.bump().kind == Kind::Subtype;
                let name = self.ident("the name of a datatype");
                self.expect(Kind::Define, "`=`");
                let variants = self.variants();
                if subtype { Decl::Subtype { name, variants } } else { Decl::Datatype { name, variants } }
            }
            Kind::Nametype => {
                self.bump();
                let name = self.ident("the name of a type");
                self.expect(Kind::Define, "`=`");
                Decl::Nametype { name, set: self.expr(0) }
            }
            Kind::External => {
                self.bump();
                Decl::External(self.names("the name of an external function"))
            }
            Kind::Transparent => {
                self.bump();
                Decl::Transparent(self.names("the name of a transparent function"))
            }
            Kind::Assert => self.assertion()?,
            Kind::Print => {
                self.bump();
                Decl::Print(self.expr(0))
            }
            Kind::Include => self.include()?,
            Kind::Module => self.module(),
            Kind::Instance => {
                self.bump();
                let name = self.ident("the name of the instance");
                self.expect(Kind::Define, "`=`");
                let mut module = vec![self.ident("the name of a module")];
                while self.eat(Kind::Scope) {
                    module.push(self.ident("the name of a module"));
                }
                Decl::Instance { name, module, args: self.instance_args() }
            }
            Kind::Timed => self.timed(),
            _ if self.is_signature() => {
                let names = self.names("a name");
                self.expect(Kind::Scope, "`::`");
                let (classes, ty) = self.signature_type();
                Decl::Signature { names, classes, ty }
            }
            _ => self.definition(start)?,
        };
        if self.failed {
            return None;
        }
        let span = start.to(self.previous_span());
        Some(self.ast.add_decl(decl, span))
    }

    fn is_signature(&self) -> bool {
        let mut ahead = 0;
        while self.kind_after(ahead) == Kind::Ident {
            match self.kind_after(ahead + 1) {
                Kind::Scope => return true,
                Kind::Comma => ahead += 2,
                _ => return false,
            }
        }
        false
    }

    fn definition(&mut self, start: Span) -> Option<Decl> {
        let left = self.expr(1);
        if self.failed {
            return None;
        }
        if self.kind() != Kind::Define {
            self.unexpected("`=` after what is being defined");
            return None;
        }
        self.bump();
        let body = self.expr(0);
        if self.failed {
            return None;
        }
        let span = start.to(self.previous_span());
        // Walk `f(x)(y)` from the outside in to its name.
        let mut groups = Vec::new();
        let mut head = left;
        while let Expr::Call(function, args) = self.ast.expr(head).clone() {
            let pats = args.iter().map(|&arg| self.pattern_of(arg)).collect();
            groups.push(pats);
            head = function;
        }
        groups.reverse();
        match self.ast.expr(head).clone() {
            Expr::Var(mut path) if path.len() == 1 => {
                let name = path.pop()?;
                Some(Decl::Function { name, clauses: vec![Clause { groups, body, span }] })
            }
            Expr::Var(_) => {
                let span = self.ast.span(head);
                self.error(
                    Diagnostic::error(Stage::Syntax, span, "a qualified name cannot be defined")
                        .note("define it inside its module"),
                );
                None
            }
            _ if groups.is_empty() => {
                let pat = self.pattern_of(left);
                Some(Decl::Pattern { pat, body })
            }
            _ => {
                let span = self.ast.span(head);
                self.error(
                    Diagnostic::error(Stage::Syntax, span, "only a name can be defined as a function")
                        .label("not a name"),
                );
                None
            }
        }
    }

    fn variants(&mut self) -> Vec<Variant> {
        let mut variants = Vec::new();
        loop {
            let name = self.ident("a constructor");
            let fields = if self.eat(Kind::Dot) { Some(self.expr(0)) } else { None };
            variants.push(Variant { name, fields });
            if !self.eat(Kind::Pipe) || self.failed {
                return variants;
            }
        }
    }

    fn include(&mut self) -> Option<Decl> {
        self.bump();
        let token = self.token();
        if !self.expect(Kind::Str, "a file name in quotes") {
            return None;
        }
        Some(Decl::Include { path: Rc::from(self.slice(token.span).trim_matches('"')) })
    }

    fn module(&mut self) -> Decl {
        self.bump();
        let name = self.ident("the name of a module");
        let mut params = Vec::new();
        if self.kind() == Kind::LParen && !self.token().after_newline {
            self.bump();
            params = self.names("a module parameter");
            self.expect(Kind::RParen, "`)` after the parameters");
        }
        let private = self.module_decls();
        let mut public = Vec::new();
        if self.eat(Kind::Exports) {
            public = self.module_decls();
        }
        self.expect(Kind::EndModule, "`endmodule`");
        Decl::Module { name, params, private, public }
    }

    fn module_decls(&mut self) -> Vec<DeclId> {
        self.nesting += 1;
        let decls = if self.nesting < super::NESTING_MAX {
            stacker::maybe_grow(64 << 10, 1 << 20, || {
                self.decls(|kind| matches!(kind, Kind::Exports | Kind::EndModule))
            })
        } else {
            self.unexpected("modules that are nested less deeply");
            Vec::new()
        };
        self.nesting -= 1;
        decls
    }

    fn instance_args(&mut self) -> Vec<ExprId> {
        let mut args = Vec::new();
        if self.kind() == Kind::LParen && !self.token().after_newline {
            self.bump();
            self.open();
            if self.kind() == Kind::RParen {
                self.unexpected("an argument (a module without parameters has no parentheses)");
            }
            while self.kind() != Kind::RParen && !self.failed {
                args.push(self.expr(0));
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
            self.close();
            self.expect(Kind::RParen, "`)` after the arguments");
        }
        args
    }

    /// `Timed(duration) { ... }`; without a duration every event takes one unit.
    fn timed(&mut self) -> Decl {
        self.bump();
        let mut duration = None;
        if self.eat(Kind::LParen) {
            self.open();
            duration = Some(self.expr(0));
            self.close();
            self.expect(Kind::RParen, "`)` after the function that says how long events take");
        }
        self.expect(Kind::LBrace, "`{` before the timed definitions");
        self.nesting += 1;
        self.open();
        let decls = stacker::maybe_grow(64 << 10, 1 << 20, || self.decls(|kind| kind == Kind::RBrace));
        self.close();
        self.nesting -= 1;
        self.expect(Kind::RBrace, "`}` after the timed definitions");
        Decl::Timed { duration, decls }
    }
}
