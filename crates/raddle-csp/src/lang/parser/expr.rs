//! Expressions and processes: one precedence-climbing loop over the table in [`binary`].

use std::rc::Rc;

use super::Parser;
use crate::lang::ast::{
    BinOp, Expr, ExprId, Field, FieldKind, Ident, Items, PatId, ProcOp, RepOp, Stmt, SyncOp, UnOp,
};
use crate::lang::diagnostic::{Diagnostic, Stage};
use crate::lang::token::Kind;

/// Binding strength of prefix and guard.
const PREFIX: u8 = 10;
/// Binding strength of the dot.
const DOT: u8 = 12;
/// Binding strength of `or`: the loosest operator that a set after `?x:` may contain.
const OR: u8 = 13;
const NOT: u8 = 15;
const COMPARE: u8 = 16;
const TIMES: u8 = 18;
const CONCAT: u8 = 20;

/// Binary operators between operands, with their binding strength. Prefix and guard are read by
/// [`Parser::arrow`], application and renaming by [`Parser::postfix`].
fn binary(kind: Kind) -> Option<u8> {
    Some(match kind {
        Kind::AtAt => 1,
        Kind::Backslash | Kind::Project => 2,
        Kind::Interleave => 3,
        Kind::LPar | Kind::LSquare => 4,
        Kind::IntChoice => 5,
        Kind::ExtChoice | Kind::LSyncChoice => 6,
        Kind::Interrupt | Kind::LSyncInterrupt => 7,
        Kind::Sliding => 8,
        Kind::Semi => 9,
        Kind::Dot => DOT,
        Kind::Or => OR,
        Kind::And => 14,
        Kind::Eq | Kind::Ne | Kind::Lt | Kind::Gt | Kind::Le | Kind::Ge => COMPARE,
        Kind::Plus | Kind::Minus => 17,
        Kind::Star | Kind::Slash | Kind::Percent => TIMES,
        Kind::Caret => CONCAT,
        _ => return None,
    })
}

fn bin_op(kind: Kind) -> Option<BinOp> {
    Some(match kind {
        Kind::Or => BinOp::Or,
        Kind::And => BinOp::And,
        Kind::Eq => BinOp::Eq,
        Kind::Ne => BinOp::Ne,
        Kind::Lt => BinOp::Lt,
        Kind::Gt => BinOp::Gt,
        Kind::Le => BinOp::Le,
        Kind::Ge => BinOp::Ge,
        Kind::Plus => BinOp::Add,
        Kind::Minus => BinOp::Sub,
        Kind::Star => BinOp::Mul,
        Kind::Slash => BinOp::Div,
        Kind::Percent => BinOp::Mod,
        Kind::Caret => BinOp::Concat,
        _ => return None,
    })
}

fn proc_op(kind: Kind) -> Option<ProcOp> {
    Some(match kind {
        Kind::Interleave => ProcOp::Interleave,
        Kind::IntChoice => ProcOp::IntChoice,
        Kind::ExtChoice => ProcOp::ExtChoice,
        Kind::Interrupt => ProcOp::Interrupt,
        Kind::Sliding => ProcOp::Sliding,
        Kind::Semi => ProcOp::Then,
        _ => return None,
    })
}

enum Link {
    Prefix(ExprId, Vec<Field>),
    Guard(ExprId),
}

impl Parser<'_> {
    /// Reads an expression whose operators bind at least as strongly as `min`.
    pub(super) fn expr(&mut self, min: u8) -> ExprId {
        self.nested(|parser| parser.climb(min))
    }

    fn climb(&mut self, min: u8) -> ExprId {
        let mut left = if min <= PREFIX { self.arrow() } else { self.operand() };
        loop {
            let kind = self.kind();
            let Some(level) = binary(kind) else { return left };
            if level < min || self.failed || (kind == Kind::Gt && self.closes_sequence()) {
                return left;
            }
            // `<x>^s = ...` on a line of its own is the next declaration, not a comparison.
            if kind == Kind::Lt && self.token().after_newline && self.begins_declaration() {
                return left;
            }
            left = self.binary_rest(left, kind, level);
        }
    }

    fn binary_rest(&mut self, left: ExprId, kind: Kind, level: u8) -> ExprId {
        let expr = match kind {
            Kind::AtAt => {
                self.bump();
                Expr::As(left, self.expr(level + 1))
            }
            // The only right-associative operator: `a.b.c` is `a.(b.c)`.
            Kind::Dot => {
                self.bump();
                Expr::Dot(left, self.expr(DOT))
            }
            // What follows is a set, never a process: as in FDR, `P \ A ||| Q` is `(P \ A) ||| Q`.
            Kind::Backslash => {
                self.bump();
                Expr::Hide(left, self.expr(DOT))
            }
            Kind::Project => {
                self.bump();
                Expr::Project(left, self.expr(DOT))
            }
            Kind::LPar => self.synchronised(left, level),
            Kind::LSyncChoice => {
                self.sync_rest(left, level, SyncOp::SyncChoice, Kind::RSyncChoice, "`+]` after the set")
            }
            Kind::LSyncInterrupt => self.sync_rest(
                left,
                level,
                SyncOp::SyncInterrupt,
                Kind::RSyncInterrupt,
                "`+\\` after the set",
            ),
            Kind::LSquare => self.square(left, level),
            _ => {
                self.bump();
                let right = self.expr(level + 1);
                match (bin_op(kind), proc_op(kind)) {
                    (Some(op), _) => Expr::Binary(op, left, right),
                    (None, Some(op)) => Expr::Process(op, left, right),
                    (None, None) => Expr::Error,
                }
            }
        };
        let span = self.ast.span(left).to(self.previous_span());
        let id = self.ast.add_expr(expr, span);
        if level == COMPARE && self.kind() != Kind::Gt && binary(self.kind()) == Some(COMPARE) {
            self.unexpected("an end to the comparison (comparisons do not chain; use `and`)");
        }
        id
    }

    /// `P [|A|] Q` and `P [|A|> Q`
    fn synchronised(&mut self, left: ExprId, level: u8) -> Expr {
        self.bump();
        self.open();
        let set = self.expr(0);
        self.close();
        let op = if self.eat(Kind::RException) {
            SyncOp::Exception
        } else {
            self.expect(Kind::RPar, "`|]` or `|>` after the set");
            SyncOp::Parallel
        };
        Expr::Sync(op, left, set, self.expr(level + 1))
    }

    fn sync_rest(&mut self, left: ExprId, level: u8, op: SyncOp, end: Kind, wanted: &str) -> Expr {
        self.bump();
        self.open();
        let set = self.expr(0);
        self.close();
        self.expect(end, wanted);
        Expr::Sync(op, left, set, self.expr(level + 1))
    }

    /// `P [A || B] Q` and `P [a <-> b, ... | statements] Q`
    fn square(&mut self, left: ExprId, level: u8) -> Expr {
        self.bump();
        self.open();
        let first = self.expr(0);
        if self.kind() == Kind::Tie {
            let (ties, stmts) = self.ties(first);
            self.close();
            self.expect(Kind::RSquare, "`]` after the tied channels");
            return Expr::Linked { left, ties, stmts, right: self.expr(level + 1) };
        }
        self.expect(Kind::Parallel, "`||` between the alphabets, or `<->` between tied channels");
        let second = self.expr(0);
        self.close();
        self.expect(Kind::RSquare, "`]` after the alphabets");
        Expr::Alphabetised { left, left_set: first, right_set: second, right: self.expr(level + 1) }
    }

    fn ties(&mut self, first: ExprId) -> (Vec<(ExprId, ExprId)>, Vec<Stmt>) {
        let mut ties = Vec::new();
        let mut left = first;
        loop {
            self.expect(Kind::Tie, "`<->`");
            ties.push((left, self.expr(0)));
            if !self.eat(Kind::Comma) || self.failed {
                break;
            }
            left = self.expr(0);
        }
        let stmts = if self.eat(Kind::Pipe) { self.statements() } else { Vec::new() };
        (ties, stmts)
    }

    /// Chains of prefixes and guards, read by a loop because they may be very long.
    fn arrow(&mut self) -> ExprId {
        let mut chain: Vec<Link> = Vec::new();
        let last = loop {
            let head = self.expr(DOT);
            let fields = self.fields();
            if self.eat(Kind::Arrow) {
                chain.push(Link::Prefix(head, fields));
            } else if !fields.is_empty() {
                self.unexpected("`->` after the fields of an event");
                break head;
            } else if self.eat(Kind::Amp) {
                chain.push(Link::Guard(head));
            } else {
                break head;
            }
            if self.failed {
                break self.error_expr(self.span());
            }
        };
        let end = self.previous_span();
        chain.into_iter().rev().fold(last, |then, link| {
            let (head, expr) = match link {
                Link::Prefix(channel, fields) => (channel, Expr::Prefix { channel, fields, then }),
                Link::Guard(condition) => (condition, Expr::Guard(condition, then)),
            };
            let span = self.ast.span(head).to(end);
            self.ast.add_expr(expr, span)
        })
    }

    fn fields(&mut self) -> Vec<Field> {
        let mut fields = Vec::new();
        loop {
            let start = self.span();
            let kind = self.kind();
            if !matches!(kind, Kind::Question | Kind::Dollar | Kind::Bang) || self.failed {
                return fields;
            }
            self.bump();
            let value = self.expr(DOT);
            let kind = if kind == Kind::Bang {
                FieldKind::Output(value)
            } else {
                let pat = self.pattern_of(value);
                let set = if self.eat(Kind::Colon) { Some(self.restriction()) } else { None };
                if kind == Kind::Question { FieldKind::Input(pat, set) } else { FieldKind::Choose(pat, set) }
            };
            fields.push(Field { kind, span: start.to(self.previous_span()) });
        }
    }

    fn restriction(&mut self) -> ExprId {
        let set = self.expr(OR);
        if self.kind() == Kind::Dot {
            let span = self.span();
            self.error(
                Diagnostic::error(Stage::Syntax, span, "a dot cannot follow the set of an input").note(
                    "write `!value` for the next field, or put parentheses around a set of dotted values",
                ),
            );
        }
        set
    }

    /// Whether a `>` in operator position ends the sequence it stands in rather than compares.
    ///
    /// It compares when something follows on the same line that can only be its right operand. `<a> <b>` is not an
    /// expression, so `<` does not count; a line break before the next token means that a declaration has ended.
    fn closes_sequence(&self) -> bool {
        if self.sequences.last() == Some(&0) {
            return false;
        }
        let next = self.token_after(1);
        if next.after_newline {
            return true;
        }
        !matches!(
            next.kind,
            Kind::Ident | Kind::Int | Kind::Char | Kind::Str | Kind::LParen | Kind::LBrace | Kind::LPipeBrace
        ) && !matches!(next.kind, Kind::Minus | Kind::Hash | Kind::EmptySeq | Kind::True | Kind::False)
    }

    /// A prefix operator, a binding form or an atom with what is applied to it.
    fn operand(&mut self) -> ExprId {
        let start = self.span();
        let expr = match self.kind() {
            Kind::Minus => {
                self.bump();
                Expr::Unary(UnOp::Neg, self.expr(TIMES))
            }
            Kind::Not => {
                self.bump();
                Expr::Unary(UnOp::Not, self.expr(NOT))
            }
            Kind::Hash => {
                self.bump();
                Expr::Unary(UnOp::Length, self.expr(CONCAT))
            }
            Kind::Let => self.let_within(),
            Kind::If => {
                self.bump();
                let condition = self.expr(0);
                self.expect(Kind::Then, "`then`");
                let yes = self.expr(0);
                self.expect(Kind::Else, "`else` (an `if` always has one in CSPM)");
                Expr::If(condition, yes, self.expr(0))
            }
            Kind::Backslash => {
                self.bump();
                let pats = self.lambda_patterns();
                self.expect(Kind::At, "`@` after the arguments of the function");
                Expr::Lambda(pats, self.expr(0))
            }
            Kind::ExtChoice => self.replicated(RepOp::ExtChoice),
            Kind::IntChoice => self.replicated(RepOp::IntChoice),
            Kind::Interleave => self.replicated(RepOp::Interleave),
            Kind::Semi => self.replicated(RepOp::Then),
            Kind::LPar | Kind::LSyncChoice => self.replicated_sync(),
            Kind::Parallel => self.replicated_alphabetised(),
            Kind::LSquare => self.replicated_linked(),
            _ => return self.postfix(),
        };
        let span = start.to(self.previous_span());
        self.ast.add_expr(expr, span)
    }

    fn lambda_patterns(&mut self) -> Vec<PatId> {
        let mut pats = Vec::new();
        loop {
            let pat = self.expr(1);
            pats.push(self.pattern_of(pat));
            if !self.eat(Kind::Comma) || self.failed {
                return pats;
            }
        }
    }

    fn let_within(&mut self) -> Expr {
        self.bump();
        self.open();
        let decls = self.decls(|kind| kind == Kind::Within);
        self.close();
        self.expect(Kind::Within, "`within` after the local definitions");
        Expr::Let(decls, self.expr(0))
    }

    fn replicated(&mut self, op: RepOp) -> Expr {
        self.bump();
        let stmts = self.statements();
        self.expect(Kind::At, "`@` after the generators of a replicated operator");
        Expr::Replicated { op, stmts, body: self.expr(0) }
    }

    fn replicated_sync(&mut self) -> Expr {
        let choice = self.bump().kind == Kind::LSyncChoice;
        self.open();
        let sync = self.expr(0);
        self.close();
        let op = if choice {
            self.expect(Kind::RSyncChoice, "`+]` after the set");
            RepOp::SyncChoice { sync }
        } else {
            self.expect(Kind::RPar, "`|]` after the set");
            RepOp::Parallel { sync }
        };
        let stmts = self.statements();
        self.expect(Kind::At, "`@` after the generators of a replicated operator");
        Expr::Replicated { op, stmts, body: self.expr(0) }
    }

    fn replicated_alphabetised(&mut self) -> Expr {
        self.bump();
        let stmts = self.statements();
        self.expect(Kind::At, "`@` after the generators of a replicated operator");
        self.expect(Kind::LSquare, "`[` before the alphabet of each component");
        self.open();
        let alphabet = self.expr(0);
        self.close();
        self.expect(Kind::RSquare, "`]` after the alphabet");
        Expr::Replicated { op: RepOp::Alphabetised { alphabet }, stmts, body: self.expr(0) }
    }

    fn replicated_linked(&mut self) -> Expr {
        self.bump();
        self.open();
        let first = self.expr(0);
        let (ties, tie_stmts) = self.ties(first);
        self.close();
        self.expect(Kind::RSquare, "`]` after the tied channels");
        let stmts = self.statements();
        self.expect(Kind::At, "`@` after the generators of a replicated operator");
        Expr::Replicated { op: RepOp::Linked { ties, tie_stmts }, stmts, body: self.expr(0) }
    }

    pub(super) fn statements(&mut self) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        loop {
            let value = self.expr(0);
            if self.eat(Kind::From) || self.eat(Kind::Colon) {
                let pat = self.pattern_of(value);
                stmts.push(Stmt::Generator(pat, self.expr(0)));
            } else {
                stmts.push(Stmt::Condition(value));
            }
            if !self.eat(Kind::Comma) || self.failed {
                return stmts;
            }
        }
    }

    fn postfix(&mut self) -> ExprId {
        let mut expr = self.atom();
        loop {
            match self.kind() {
                // A parenthesis on a new line begins a declaration such as `(a,b) = f(x)`.
                Kind::LParen if !self.token().after_newline && !self.failed => {
                    self.bump();
                    self.open();
                    let args = if self.kind() == Kind::RParen { Vec::new() } else { self.comma_list() };
                    self.close();
                    self.expect(Kind::RParen, "`)` after the arguments");
                    let span = self.ast.span(expr).to(self.previous_span());
                    expr = self.ast.add_expr(Expr::Call(expr, args), span);
                }
                Kind::LRename if !self.failed => {
                    self.bump();
                    self.open();
                    let mut pairs = Vec::new();
                    loop {
                        let from = self.expr(0);
                        self.expect(Kind::From, "`<-` between the old and the new event");
                        pairs.push((from, self.expr(0)));
                        if !self.eat(Kind::Comma) || self.failed {
                            break;
                        }
                    }
                    let stmts = if self.eat(Kind::Pipe) { self.statements() } else { Vec::new() };
                    self.close();
                    self.expect(Kind::RRename, "`]]` after the renaming");
                    let span = self.ast.span(expr).to(self.previous_span());
                    expr = self.ast.add_expr(Expr::Rename { process: expr, pairs, stmts }, span);
                }
                _ => return expr,
            }
        }
    }

    fn comma_list(&mut self) -> Vec<ExprId> {
        let mut list = Vec::new();
        loop {
            list.push(self.expr(0));
            if !self.eat(Kind::Comma) || self.failed {
                return list;
            }
        }
    }

    fn atom(&mut self) -> ExprId {
        let token = self.token();
        let expr = match token.kind {
            Kind::Ident => return self.name(),
            Kind::Wildcard => {
                self.bump();
                Expr::Wildcard
            }
            Kind::True | Kind::False => {
                self.bump();
                Expr::Bool(token.kind == Kind::True)
            }
            Kind::Int => {
                self.bump();
                match self.slice(token.span).parse::<i64>() {
                    Ok(value) => Expr::Int(value),
                    Err(_) => {
                        self.error(
                            Diagnostic::error(Stage::Syntax, token.span, "this number is too large")
                                .note(format!("the largest integer is {}", i64::MAX)),
                        );
                        Expr::Error
                    }
                }
            }
            Kind::Char => {
                self.bump();
                let text = unescape(self.slice(token.span));
                Expr::Char(text.chars().next().unwrap_or('\''))
            }
            Kind::Str => {
                self.bump();
                Expr::Str(Rc::from(unescape(self.slice(token.span)).as_str()))
            }
            Kind::EmptySeq => {
                self.bump();
                Expr::Seq(Items::List(Vec::new()), Vec::new())
            }
            Kind::Lt => self.sequence(),
            Kind::LBrace => self.set(),
            Kind::LPipeBrace => self.productions(),
            Kind::LParen => self.parenthesised(),
            _ => {
                self.unexpected("an expression");
                Expr::Error
            }
        };
        let span = token.span.to(if self.at == 0 { token.span } else { self.previous_span() });
        self.ast.add_expr(expr, span)
    }

    fn name(&mut self) -> ExprId {
        let start = self.span();
        let mut path = vec![self.ident("a name")];
        while self.kind() == Kind::Scope && self.kind_after(1) == Kind::Ident {
            self.bump();
            path.push(self.ident("a name"));
        }
        let span = start.to(self.previous_span());
        self.ast.add_expr(Expr::Var(path), span)
    }

    fn sequence(&mut self) -> Expr {
        self.bump();
        self.sequences_open();
        let (items, stmts) = self.items(Kind::Gt);
        self.sequences_close();
        self.expect(Kind::Gt, "`>` after the elements of a sequence");
        Expr::Seq(items, stmts)
    }

    fn sequences_open(&mut self) {
        if let Some(top) = self.sequences.last_mut() {
            *top += 1;
        }
    }

    fn sequences_close(&mut self) {
        if let Some(top) = self.sequences.last_mut() {
            *top = top.saturating_sub(1);
        }
    }

    fn set(&mut self) -> Expr {
        self.bump();
        self.open();
        let (items, stmts) = self.items(Kind::RBrace);
        self.close();
        self.expect(Kind::RBrace, "`}` after the elements of a set");
        Expr::Set(items, stmts)
    }

    fn productions(&mut self) -> Expr {
        self.bump();
        self.open();
        let list = match self.kind() {
            Kind::RPipeBrace | Kind::Pipe => Vec::new(),
            _ => self.comma_list(),
        };
        let stmts = if self.eat(Kind::Pipe) { self.statements() } else { Vec::new() };
        self.close();
        self.expect(Kind::RPipeBrace, "`|}` after the channels");
        Expr::Productions(list, stmts)
    }

    /// What stands between the brackets of a set or a sequence.
    fn items(&mut self, end: Kind) -> (Items, Vec<Stmt>) {
        if self.kind() == end {
            return (Items::List(Vec::new()), Vec::new());
        }
        // libcspm's grammar allows no elements before the generators (`ExpCommaList`).
        if self.eat(Kind::Pipe) {
            return (Items::List(Vec::new()), self.statements());
        }
        let first = self.expr(0);
        let items = if self.eat(Kind::DotDot) {
            if self.kind() == end || self.kind() == Kind::Pipe {
                Items::From(first)
            } else {
                Items::Range(first, self.expr(0))
            }
        } else {
            let mut list = vec![first];
            while self.eat(Kind::Comma) && !self.failed {
                list.push(self.expr(0));
            }
            Items::List(list)
        };
        let stmts = if self.eat(Kind::Pipe) { self.statements() } else { Vec::new() };
        (items, stmts)
    }

    fn parenthesised(&mut self) -> Expr {
        let paren = self.bump();
        let next = self.token();
        let adjacent = next.span.start == paren.span.end;
        if adjacent && next.kind == Kind::Pipe {
            self.bump();
            return self.map();
        }
        if adjacent && next.kind == Kind::Parallel && self.kind_after(1) == Kind::RParen {
            self.bump();
            self.bump();
            return Expr::Map(Vec::new());
        }
        self.open();
        let mut list = self.comma_list();
        self.close();
        self.expect(Kind::RParen, "`)`");
        match (list.pop(), list.is_empty()) {
            (Some(only), true) => Expr::Paren(only),
            (Some(last), false) => {
                list.push(last);
                Expr::Tuple(list)
            }
            (None, _) => Expr::Error,
        }
    }

    /// `(| key => value, ... |)`
    fn map(&mut self) -> Expr {
        self.open();
        let mut entries = Vec::new();
        while self.kind() != Kind::Pipe && !self.failed {
            let key = self.expr(0);
            self.expect(Kind::FatArrow, "`=>` between a key and its value");
            entries.push((key, self.expr(0)));
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.close();
        self.expect(Kind::Pipe, "`|)` after the entries of a map");
        self.expect(Kind::RParen, "`|)` after the entries of a map");
        Expr::Map(entries)
    }

    /// A bare name where a declaration wants one.
    pub(super) fn names(&mut self, what: &str) -> Vec<Ident> {
        let mut names = Vec::new();
        loop {
            names.push(self.ident(what));
            if !self.eat(Kind::Comma) || self.failed {
                return names;
            }
        }
    }
}

/// Takes the quotes off and resolves backslash escapes.
fn unescape(quoted: &str) -> String {
    let inner = quoted.strip_prefix(['"', '\'']).unwrap_or(quoted);
    let inner = inner.strip_suffix(['"', '\'']).unwrap_or(inner);
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('0') => out.push('\0'),
                Some(other) => out.push(other),
                None => {}
            },
            c => out.push(c),
        }
    }
    out
}
