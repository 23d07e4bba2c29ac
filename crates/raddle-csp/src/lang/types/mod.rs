//! Type inference: Hindley and Milner's algorithm, extended by what CSPM's dots need.
//!
//! Declarations are inferred in dependency order, one strongly connected component at a time, and generalised.
//! Requirements such as "comparable" or "extends to an event" that are not decided when a definition is generalised
//! become part of its type scheme and are asked again at every use (Damas and Milner 1982 with the qualified types of
//! Jones 1994, for the classes of [`ty::Class`]). Definitions in a `let` are generalised only if they have a signature,
//! as in FDR.
//!
//! The checker accepts a little more than FDR's (FDR's `Complete` and `Inputable` are one class, and signatures need not
//! demand it); what it lets through and cannot be evaluated is reported by the evaluator at the same place. What later stages
//! take from here is small: which definitions are processes, and how many fields every constructor takes.

mod decls;
mod exprs;
mod order;
mod patterns;
mod signature;
pub mod ty;
mod unify;
mod written;

use rustc_hash::{FxHashMap, FxHashSet};

use self::ty::{Class, Printer, Ty, Type};
use self::unify::{Pending, Unifier};
use super::ast::{Ast, DeclId, ExprId, TypeExpr};
use super::builtin::Builtin;
use super::diagnostic::{Diagnostic, Stage};
use super::resolve::{Resolved, VarId, VarKind};
use super::source::Span;

/// Most type errors reported at once.
const DIAGNOSTICS_MAX: usize = 20;

#[derive(Clone, Debug)]
struct Scheme {
    vars: Vec<Ty>,
    classes: Vec<(Class, Ty)>,
    ty: Ty,
}

/// Where declarations stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Script,
    Let,
}

/// What the later stages want to know.
#[derive(Debug, Default)]
pub struct Types {
    /// Definitions that are processes once all their arguments are given.
    pub processes: FxHashSet<VarId>,
    /// For every constructor and channel: the number of dotted values of each written field.
    pub fields: FxHashMap<VarId, Vec<usize>>,
    /// The types of the definitions at the top of the script, as text.
    pub shown: FxHashMap<VarId, String>,
    pub diagnostics: Vec<Diagnostic>,
}

struct Checker<'a> {
    ast: &'a Ast,
    resolved: &'a Resolved,
    unifier: Unifier,
    schemes: FxHashMap<VarId, Scheme>,
    level: u32,
    out: Types,
    builtin_types: FxHashMap<Builtin, TypeExpr>,
    /// Written fields of constructors: the types of each, for [`Types::fields`].
    field_types: Vec<(VarId, Vec<Ty>)>,
    /// The variables of the signatures around what is being inferred: signatures inside may mention them.
    scoped: Vec<FxHashMap<std::rc::Rc<str>, Ty>>,
    /// The type of something that has been reported already.
    error: Ty,
}

/// Infers the types of a whole script.
pub fn check(ast: &Ast, resolved: &Resolved) -> Types {
    let mut checker = Checker::new(ast, resolved);
    checker.script();
    checker.finish()
}

/// Infers a script and one more expression; returns the type of the expression as text.
pub fn check_expr(ast: &Ast, resolved: &Resolved, expr: ExprId) -> (Types, String, bool) {
    let mut checker = Checker::new(ast, resolved);
    checker.script();
    let ty = checker.infer(expr);
    checker.settle();
    let is_process = matches!(checker.unifier.table.get(ty), Type::Proc);
    let shown = checker.show(ty);
    (checker.finish(), shown, is_process)
}

impl<'a> Checker<'a> {
    fn new(ast: &'a Ast, resolved: &'a Resolved) -> Checker<'a> {
        let mut unifier = Unifier::default();
        let error = unifier.table.add(Type::Error);
        Checker {
            ast,
            resolved,
            unifier,
            schemes: FxHashMap::default(),
            level: 0,
            out: Types::default(),
            builtin_types: FxHashMap::default(),
            field_types: Vec::new(),
            scoped: Vec::new(),
            error,
        }
    }

    fn script(&mut self) {
        let globals = self.resolved.globals.clone();
        self.group(&globals, Scope::Script);
        self.tock();
        for &id in &globals {
            self.goal(id);
        }
        self.settle();
    }

    fn finish(mut self) -> Types {
        for (var, fields) in std::mem::take(&mut self.field_types) {
            if fields.iter().any(|&f| !self.free_vars(f).is_empty()) {
                // `channel c : {}`: of which type? FDR asks, too.
                let (span, name) = (self.resolved.var(var).span, self.resolved.var(var).name.clone());
                self.type_error(span, format!("the type of a field of `{name}` is not known"));
            }
            let widths = fields.iter().map(|&f| self.unifier.table.parts(f).len()).collect();
            self.out.fields.insert(var, widths);
        }
        let schemes: Vec<(VarId, Ty)> = self.schemes.iter().map(|(&v, s)| (v, s.ty)).collect();
        for (var, ty) in schemes {
            let VarKind::Defined(decl) = self.resolved.var(var).kind else { continue };
            let mut result = ty;
            for _ in 0..self.groups_of(decl) {
                match self.unifier.table.get(result) {
                    Type::Function(_, r) => result = r,
                    _ => break,
                }
            }
            if matches!(self.unifier.table.get(result), Type::Proc) {
                self.out.processes.insert(var);
            }
            if self.resolved.var(var).home == super::resolve::Home::Global {
                let shown = self.show(ty);
                self.out.shown.insert(var, shown);
            }
        }
        self.out.diagnostics.sort_by_key(|d| d.span);
        self.out.diagnostics.truncate(DIAGNOSTICS_MAX);
        self.out
    }

    fn groups_of(&self, decl: DeclId) -> usize {
        match self.ast.decl(decl) {
            super::ast::Decl::Function { clauses, .. } => clauses.first().map_or(0, |c| c.groups.len()),
            _ => 0,
        }
    }

    fn add(&mut self, ty: Type) -> Ty {
        self.unifier.table.add(ty)
    }

    fn fresh(&mut self) -> Ty {
        self.unifier.table.fresh(self.level)
    }

    fn show(&mut self, ty: Ty) -> String {
        self.show_all(&[ty]).pop().unwrap_or_default()
    }

    /// Shows types that belong together, so that a variable has the same name in all of them.
    fn show_all(&mut self, types: &[Ty]) -> Vec<String> {
        let (ast, resolved) = (self.ast, self.resolved);
        let names = move |decl: DeclId| match resolved.defines.get(&decl).and_then(|vars| vars.first()) {
            Some(&var) => resolved.var(var).path.to_string(),
            None => format!("{:?}", ast.decl_span(decl)),
        };
        let mut printer = Printer::new(&names);
        types
            .iter()
            .map(|&ty| {
                let ty = self.unifier.normalise(ty, 0).unwrap_or(ty);
                printer.show(&mut self.unifier.table, ty)
            })
            .collect()
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        // One message a place: the first is the cause, the rest is its echo.
        if self.out.diagnostics.iter().all(|d| d.span != diagnostic.span) {
            self.out.diagnostics.push(diagnostic);
        }
    }

    fn type_error(&mut self, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(Stage::Types, span, message));
    }

    /// Demands that what stands at `span` has the type `expected`; `why` completes "because it is ...".
    fn demand(&mut self, span: Span, found: Ty, expected: Ty, why: &str) {
        if self.unifier.unify(found, expected).is_ok() {
            return;
        }
        let shown = self.show_all(&[expected, found]);
        let mut diagnostic = Diagnostic::error(
            Stage::Types,
            span,
            format!("expected the type `{}`, found `{}`", shown[0], shown[1]),
        )
        .label(format!("this has the type `{}`", shown[1]));
        if !why.is_empty() {
            diagnostic = diagnostic.note(format!("it is {why}"));
        }
        let expected = self.unifier.normalise(expected, 0).unwrap_or(expected);
        let found = self.unifier.normalise(found, 0).unwrap_or(found);
        let (expected, found) = (self.unifier.table.get(expected), self.unifier.table.get(found));
        match (&expected, &found) {
            (Type::Event | Type::Data(_), Type::Dotable(args, _)) => {
                let lacking = self.show_all(args).join(".");
                diagnostic = diagnostic.note(format!("it still lacks the fields `{lacking}`"));
            }
            (Type::Proc, Type::Event) => {
                diagnostic = diagnostic.note("an event becomes a process by `event -> Process`");
            }
            (Type::Set(_), Type::Event | Type::Dotable(..)) => {
                diagnostic = diagnostic.note("the set of all events of a channel is written `{| channel |}`");
            }
            (Type::Set(_), Type::Set(element))
                if matches!(self.unifier.table.get(*element), Type::Dotable(..)) =>
            {
                diagnostic = diagnostic.note("the set of all events of a channel is written `{| channel |}`");
            }
            (Type::Event, Type::Dot(parts)) => match self.unifier.table.get(parts[0]) {
                Type::Dotable(args, _) => {
                    let (wanted, given) =
                        (self.show_all(&args).join("."), self.show_all(&parts[1..]).join("."));
                    diagnostic.message =
                        format!("the fields of this event do not fit: `{given}` for `{wanted}`");
                    diagnostic.label = format!("given `{given}`, declared `{wanted}`");
                }
                _ => diagnostic = diagnostic.note("an event begins with a channel"),
            },
            _ => {}
        }
        self.report(diagnostic);
    }

    fn require(&mut self, span: Span, class: Class, ty: Ty) {
        match self.unifier.satisfies(class, ty) {
            Ok(true) => {}
            Ok(false) => self.unifier.pending.push(Pending { class, ty, span }),
            Err(_) => self.refuse(span, class, ty),
        }
    }

    fn refuse(&mut self, span: Span, class: Class, ty: Ty) {
        let shown = self.show(ty);
        let message = match class {
            Class::Eq => format!("values of the type `{shown}` cannot be compared"),
            Class::Ord => format!("values of the type `{shown}` have no order"),
            Class::Element => format!("values of the type `{shown}` cannot be elements of a set"),
            Class::Extends(target) => {
                let target = self.show(target);
                format!("`{shown}` cannot be extended to `{target}`")
            }
            Class::Complete => format!("a value of the type `{shown}` lacks fields and cannot stand here"),
        };
        self.type_error(span, message);
    }

    /// Asks the undecided requirements again.
    fn settle(&mut self) {
        for pending in std::mem::take(&mut self.unifier.pending) {
            self.require(pending.span, pending.class, pending.ty);
        }
    }

    /// Turns the inferred types of a component into schemes.
    fn generalise(&mut self, vars: &[VarId], types: &[Ty], signatures: &[signature::Declared]) {
        self.settle();
        self.keep_promises(signatures);
        let level = self.level;
        let mut own: Vec<Pending> = Vec::new();
        let mut rest = Vec::new();
        for pending in std::mem::take(&mut self.unifier.pending) {
            if self.free_vars(pending.ty).iter().any(|&v| self.level_of(v) > level) {
                own.push(pending);
            } else {
                rest.push(pending);
            }
        }
        self.unifier.pending = rest;
        for (&var, &ty) in vars.iter().zip(types) {
            let free: Vec<Ty> =
                self.free_vars(ty).into_iter().filter(|&v| self.level_of(v) > level).collect();
            let mut classes: Vec<(Class, Ty)> = Vec::new();
            let mut all = free.clone();
            for pending in &own {
                let mut mentioned = self.free_vars(pending.ty);
                if let Class::Extends(target) = pending.class {
                    mentioned.extend(self.free_vars(target));
                }
                if mentioned.iter().any(|v| free.contains(v)) {
                    classes.push((pending.class, pending.ty));
                    let deep = mentioned.into_iter().filter(|&v| self.level_of(v) > level);
                    all.extend(deep.collect::<Vec<_>>());
                }
            }
            self.schemes.insert(var, Scheme { vars: all, classes, ty });
        }
    }

    fn level_of(&mut self, var: Ty) -> u32 {
        match self.unifier.table.get(var) {
            Type::Var { level } => level,
            _ => 0,
        }
    }

    fn free_vars(&mut self, ty: Ty) -> Vec<Ty> {
        let mut vars = Vec::new();
        let mut todo = vec![ty];
        while let Some(ty) = todo.pop() {
            let ty = self.unifier.table.find(ty);
            if self.unifier.table.is_var(ty) {
                if !vars.contains(&ty) {
                    vars.push(ty);
                }
            } else {
                todo.extend(self.unifier.table.children(ty));
            }
        }
        vars
    }

    fn instantiate(&mut self, var: VarId, span: Span) -> Ty {
        let Some(scheme) = self.schemes.get(&var).cloned() else { return self.error };
        if scheme.vars.is_empty() {
            return scheme.ty;
        }
        let mut map: FxHashMap<Ty, Ty> = FxHashMap::default();
        for old in scheme.vars {
            let old = self.unifier.table.find(old);
            let new = self.fresh();
            map.insert(old, new);
        }
        let ty = self.copy(scheme.ty, &mut map);
        for (class, on) in scheme.classes {
            let on = self.copy(on, &mut map);
            let class = match class {
                Class::Extends(target) => Class::Extends(self.copy(target, &mut map)),
                other => other,
            };
            self.require(span, class, on);
        }
        ty
    }

    fn copy(&mut self, ty: Ty, map: &mut FxHashMap<Ty, Ty>) -> Ty {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.copied(ty, map))
    }

    fn copied(&mut self, ty: Ty, map: &mut FxHashMap<Ty, Ty>) -> Ty {
        let root = self.unifier.table.find(ty);
        if let Some(&new) = map.get(&root) {
            return new;
        }
        let list = |this: &mut Self, list: Vec<Ty>, map: &mut FxHashMap<Ty, Ty>| {
            list.into_iter().map(|t| this.copy(t, map)).collect::<Vec<_>>()
        };
        let new = match self.unifier.table.get(root) {
            Type::Set(a) => Type::Set(self.copy(a, map)),
            Type::Seq(a) => Type::Seq(self.copy(a, map)),
            Type::Map(k, v) => Type::Map(self.copy(k, map), self.copy(v, map)),
            Type::Tuple(parts) => Type::Tuple(list(self, parts, map)),
            Type::Dot(parts) => Type::Dot(list(self, parts, map)),
            Type::Function(args, result) => {
                let args = list(self, args, map);
                Type::Function(args, self.copy(result, map))
            }
            Type::Dotable(args, result) => {
                let args = list(self, args, map);
                Type::Dotable(args, self.copy(result, map))
            }
            _ => return root,
        };
        let new = self.add(new);
        map.insert(root, new);
        new
    }
}

#[cfg(test)]
mod tests;
