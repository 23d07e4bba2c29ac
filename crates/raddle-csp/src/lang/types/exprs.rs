//! Types of expressions and processes.

use super::ty::{Class, Ty, Type};
use super::{Checker, Scope};
use crate::lang::ast::{BinOp, Expr, ExprId, FieldKind, Items, RepOp, Stmt, UnOp};
use crate::lang::resolve::Ref;
use crate::lang::source::Span;

impl Checker<'_> {
    pub(super) fn infer(&mut self, id: ExprId) -> Ty {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.expression(id))
    }

    fn check(&mut self, id: ExprId, expected: Ty, why: &str) {
        let found = self.infer(id);
        self.demand(self.ast.span(id), found, expected, why);
    }

    fn process(&mut self, id: ExprId, why: &str) {
        let proc = self.add(Type::Proc);
        self.check(id, proc, why);
    }

    fn events(&mut self, id: ExprId) {
        let found = self.infer(id);
        self.demand_events(id, found);
    }

    fn expression(&mut self, id: ExprId) -> Ty {
        let span = self.ast.span(id);
        let ast = self.ast;
        match ast.expr(id) {
            Expr::Error | Expr::Wildcard | Expr::As(..) => self.error,
            Expr::Int(_) => self.add(Type::Int),
            Expr::Bool(_) => self.add(Type::Bool),
            Expr::Char(_) => self.add(Type::Char),
            Expr::Str(_) => {
                let char = self.add(Type::Char);
                self.add(Type::Seq(char))
            }
            Expr::Var(_) => match self.resolved.expr_ref(id) {
                Ref::Unresolved => self.error,
                Ref::Builtin(builtin) => self.builtin(builtin, span),
                Ref::Global(var) | Ref::Local { var, .. } => self.instantiate(var, span),
            },
            Expr::Paren(inner) => self.infer(*inner),
            Expr::Tuple(list) => {
                let parts = list.iter().map(|&e| self.infer(e)).collect();
                self.add(Type::Tuple(parts))
            }
            Expr::Dot(a, b) => {
                let mut parts = vec![self.infer(*a)];
                let mut rest = *b;
                while let Expr::Dot(a, b) = ast.expr(rest) {
                    parts.push(self.infer(*a));
                    rest = *b;
                }
                parts.push(self.infer(rest));
                self.dotted(span, &parts)
            }
            Expr::Call(f, args) => self.call(*f, args),
            Expr::Lambda(pats, body) => {
                let args = pats.iter().map(|&p| self.pattern(p)).collect();
                let result = self.infer(*body);
                self.add(Type::Function(args, result))
            }
            Expr::Let(decls, body) => {
                self.group(decls, Scope::Let);
                self.infer(*body)
            }
            Expr::If(condition, yes, no) => {
                let bool = self.add(Type::Bool);
                self.check(*condition, bool, "the condition of an `if`");
                let ty = self.infer(*yes);
                self.check(*no, ty, "the `else` branch, which has to agree with the `then` branch");
                ty
            }
            Expr::Binary(op, a, b) => self.binary(*op, *a, *b, id),
            Expr::Unary(op, a) => match op {
                UnOp::Neg => {
                    let int = self.add(Type::Int);
                    self.check(*a, int, "the operand of `-`");
                    int
                }
                UnOp::Not => {
                    let bool = self.add(Type::Bool);
                    self.check(*a, bool, "the operand of `not`");
                    bool
                }
                UnOp::Length => {
                    let element = self.fresh();
                    let seq = self.add(Type::Seq(element));
                    self.check(*a, seq, "the operand of `#`");
                    self.add(Type::Int)
                }
            },
            Expr::Seq(items, stmts) => {
                self.stmts(stmts, true);
                let element = self.items(items, "an element of the same sequence as the ones before it");
                self.add(Type::Seq(element))
            }
            Expr::Set(items, stmts) => {
                self.stmts(stmts, false);
                let element = self.items(items, "an element of the same set as the ones before it");
                self.require(span, Class::Element, element);
                self.add(Type::Set(element))
            }
            Expr::Productions(list, stmts) => {
                self.stmts(stmts, false);
                let result = self.fresh();
                for &e in list {
                    let ty = self.infer(e);
                    self.require(self.ast.span(e), Class::Extends(result), ty);
                }
                self.add(Type::Set(result))
            }
            Expr::Map(entries) => {
                let (key, value) = (self.fresh(), self.fresh());
                for &(k, v) in entries {
                    self.check(k, key, "a key of the same map as the ones before it");
                    self.check(v, value, "a value of the same map as the ones before it");
                }
                self.require(span, Class::Eq, key);
                self.add(Type::Map(key, value))
            }
            Expr::Prefix { channel, fields, then } => {
                let mut parts = vec![self.infer(*channel)];
                for field in fields {
                    let ty = match field.kind {
                        FieldKind::Input(pat, set) | FieldKind::Choose(pat, set) => {
                            let from = set.map(|set| {
                                let element = self.fresh();
                                let ty = self.add(Type::Set(element));
                                self.check(set, ty, "the set an input is restricted to");
                                element
                            });
                            let ty = self.pattern(pat);
                            self.require(self.ast.pat_span(pat), Class::Complete, ty);
                            if let Some(element) = from {
                                self.demand(
                                    self.ast.pat_span(pat),
                                    ty,
                                    element,
                                    "matched with elements of the set",
                                );
                            }
                            ty
                        }
                        FieldKind::Output(value) => self.infer(value),
                    };
                    parts.push(ty);
                }
                let end = fields.last().map_or(self.ast.span(*channel), |f| f.span);
                let whole = self.ast.span(*channel).to(end);
                let found = self.unifier.table.dot(&parts);
                let event = self.add(Type::Event);
                self.demand(whole, found, event, "what a prefix `->` begins with");
                self.process(*then, "what follows `->`");
                self.add(Type::Proc)
            }
            Expr::Guard(condition, then) => {
                let bool = self.add(Type::Bool);
                self.check(*condition, bool, "the guard of `&`");
                self.process(*then, "what follows `&`");
                self.add(Type::Proc)
            }
            Expr::Process(op, a, b) => {
                let why = format!("an operand of `{}`", op.symbol());
                self.process(*a, &why);
                self.process(*b, &why);
                self.add(Type::Proc)
            }
            Expr::Sync(op, a, set, b) => {
                let (open, close) = op.symbols();
                let why = format!("an operand of `{open} {close}`");
                self.process(*a, &why);
                self.events(*set);
                self.process(*b, &why);
                self.add(Type::Proc)
            }
            Expr::Alphabetised { left, left_set, right_set, right } => {
                self.process(*left, "an operand of `[ || ]`");
                self.events(*left_set);
                self.events(*right_set);
                self.process(*right, "an operand of `[ || ]`");
                self.add(Type::Proc)
            }
            Expr::Linked { left, ties, stmts, right } => {
                self.process(*left, "an operand of `[ <-> ]`");
                self.process(*right, "an operand of `[ <-> ]`");
                self.stmts(stmts, false);
                self.pairs(ties);
                self.add(Type::Proc)
            }
            Expr::Hide(a, set) | Expr::Project(a, set) => {
                self.process(*a, "the process whose events are hidden");
                self.events(*set);
                self.add(Type::Proc)
            }
            Expr::Rename { process, pairs, stmts } => {
                self.process(*process, "the process whose events are renamed");
                self.stmts(stmts, false);
                self.pairs(pairs);
                self.add(Type::Proc)
            }
            Expr::Replicated { op, stmts, body } => {
                let sequence = matches!(op, RepOp::Then | RepOp::Linked { .. });
                if let RepOp::Parallel { sync } | RepOp::SyncChoice { sync } = op {
                    self.events(*sync);
                }
                self.stmts(stmts, sequence);
                match op {
                    RepOp::Alphabetised { alphabet } => self.events(*alphabet),
                    RepOp::Linked { ties, tie_stmts } => {
                        self.stmts(tie_stmts, false);
                        self.pairs(ties);
                    }
                    _ => {}
                }
                self.process(*body, "what a replicated operator composes");
                self.add(Type::Proc)
            }
        }
    }

    /// The type of several parts with dots between them.
    pub(super) fn dotted(&mut self, span: Span, parts: &[Ty]) -> Ty {
        let dot = self.unifier.table.add(Type::Dot(parts.to_vec()));
        match self.unifier.normalise(dot, 0) {
            Ok(ty) => ty,
            Err(_) => {
                let shown = self.show_all(parts);
                let message = format!("`{}` cannot be dotted with `{}`", shown[0], shown[1..].join("."));
                self.type_error(span, message);
                self.error
            }
        }
    }

    /// What is being called, for messages.
    fn callee(&self, id: ExprId) -> String {
        match self.ast.expr(self.ast.peel(id)) {
            Expr::Var(path) => format!("`{}`", path.iter().map(|i| &*i.name).collect::<Vec<_>>().join("::")),
            _ => "this function".into(),
        }
    }

    fn call(&mut self, f: ExprId, args: &[ExprId]) -> Ty {
        let function = self.infer(f);
        let name = self.callee(f);
        match self.unifier.table.get(function) {
            Type::Function(wanted, result) => {
                if wanted.len() != args.len() {
                    let plural = if wanted.len() == 1 { "" } else { "s" };
                    self.type_error(
                        self.ast.span(f),
                        format!(
                            "{name} takes {} argument{plural}, but is given {}",
                            wanted.len(),
                            args.len()
                        ),
                    );
                    args.iter().for_each(|&arg| {
                        self.infer(arg);
                    });
                    return result;
                }
                for (i, (&arg, &ty)) in args.iter().zip(&wanted).enumerate() {
                    let why = if args.len() == 1 {
                        format!("the argument of {name}")
                    } else {
                        format!("argument {} of {name}", i + 1)
                    };
                    self.check(arg, ty, &why);
                }
                result
            }
            Type::Error => {
                args.iter().for_each(|&arg| {
                    self.infer(arg);
                });
                self.error
            }
            Type::Var { .. } => {
                let types = args.iter().map(|&arg| self.infer(arg)).collect();
                let result = self.fresh();
                let wanted = self.add(Type::Function(types, result));
                self.demand(self.ast.span(f), function, wanted, "called like a function");
                result
            }
            _ => {
                let shown = self.show(function);
                let name = if name.starts_with('`') { name } else { "this".into() };
                self.type_error(
                    self.ast.span(f),
                    format!("{name} is not a function, it has the type `{shown}`"),
                );
                self.error
            }
        }
    }

    fn binary(&mut self, op: BinOp, a: ExprId, b: ExprId, id: ExprId) -> Ty {
        let why = format!("an operand of `{}`", op.symbol());
        match op {
            BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Mod => {
                let int = self.add(Type::Int);
                self.check(a, int, &why);
                self.check(b, int, &why);
                int
            }
            BinOp::And | BinOp::Or => {
                let bool = self.add(Type::Bool);
                self.check(a, bool, &why);
                self.check(b, bool, &why);
                bool
            }
            BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Gt | BinOp::Le | BinOp::Ge => {
                let ty = self.infer(a);
                self.check(b, ty, &format!("compared by `{}` with what stands on its left", op.symbol()));
                let class = if matches!(op, BinOp::Eq | BinOp::Ne) { Class::Eq } else { Class::Ord };
                self.require(self.ast.span(id), class, ty);
                self.add(Type::Bool)
            }
            BinOp::Concat => {
                let element = self.fresh();
                let seq = self.add(Type::Seq(element));
                self.check(a, seq, &why);
                self.check(b, seq, &why);
                seq
            }
        }
    }

    fn items(&mut self, items: &Items, why: &str) -> Ty {
        match items {
            Items::List(list) => {
                let element = self.fresh();
                for &e in list {
                    self.check(e, element, why);
                }
                element
            }
            Items::From(a) => {
                let int = self.add(Type::Int);
                self.check(*a, int, "the start of a range");
                int
            }
            Items::Range(a, b) => {
                let int = self.add(Type::Int);
                self.check(*a, int, "the start of a range");
                self.check(*b, int, "the end of a range");
                int
            }
        }
    }

    /// Generators draw from sequences in sequence comprehensions and in `;`, from sets everywhere else.
    fn stmts(&mut self, stmts: &[Stmt], sequence: bool) {
        for stmt in stmts {
            match *stmt {
                Stmt::Generator(pat, from) => {
                    let element = self.fresh();
                    let (ty, why) = if sequence {
                        (
                            Type::Seq(element),
                            "what a generator draws from: a sequence, because the result is ordered",
                        )
                    } else {
                        (Type::Set(element), "what a generator draws from: a set")
                    };
                    let wanted = self.add(ty);
                    self.check(from, wanted, why);
                    let ty = self.pattern(pat);
                    self.demand(self.ast.pat_span(pat), ty, element, "matched with the elements drawn");
                }
                Stmt::Condition(condition) => {
                    let bool = self.add(Type::Bool);
                    self.check(condition, bool, "a condition");
                }
            }
        }
    }

    /// Both sides of a renaming or tie extend to events, over the same fields.
    fn pairs(&mut self, pairs: &[(ExprId, ExprId)]) {
        for &(a, b) in pairs {
            let event = self.add(Type::Event);
            let (x, y) = (self.infer(a), self.infer(b));
            self.require(self.ast.span(a), Class::Extends(event), x);
            self.require(self.ast.span(b), Class::Extends(event), y);
            self.demand(self.ast.span(b), y, x, "paired with what stands on its left");
        }
    }
}
