//! Types of declarations.

use super::order::components;
use super::ty::{Class, Ty, Type};
use super::{Checker, Scheme, Scope};
use crate::lang::ast::{Clause, Decl, DeclId, Expr, ExprId, Property, Variant};
use crate::lang::resolve::{DURATION, VarId};
use crate::lang::source::Span;

const DURATION_ROLE: &str = "the function that says how long events take";

impl Checker<'_> {
    /// Infers declarations of one scope, component by component.
    pub(super) fn group(&mut self, decls: &[DeclId], scope: Scope) {
        for component in components(decls, &self.resolved.uses) {
            self.component(&component, scope);
        }
    }

    fn component(&mut self, decls: &[DeclId], scope: Scope) {
        // What a constructor or channel takes has to be known where it is dotted, also in the sets that its own fields are
        // taken from (libcspm's test `solvable_infinite_types`).
        let mut decls = decls.to_vec();
        decls.sort_by_key(|&id| !matches!(self.ast.decl(id), Decl::Datatype { .. } | Decl::Channel { .. }));
        let decls = &decls[..];
        // Without a level of its own a definition has no variables to generalise (libcspm's test `polymorphic_let`).
        let own_level = u32::from(scope == Scope::Script || self.signed(decls));
        self.level += own_level;
        let mut vars: Vec<VarId> = Vec::new();
        let mut types: Vec<Ty> = Vec::new();
        for &id in decls {
            // Datatypes are known by name before their fields are.
            let preset = match self.ast.decl(id) {
                Decl::Datatype { .. } => Some(self.add(Type::Data(id))),
                Decl::Assert(_) | Decl::Print(_) | Decl::Timed { .. } | Decl::Signature { .. } => continue,
                _ => None,
            };
            for (i, &var) in self.resolved.defines.get(&id).map_or(&[][..], |v| &v[..]).iter().enumerate() {
                let ty = match preset {
                    Some(data) if i == 0 => self.add(Type::Set(data)),
                    _ => self.fresh(),
                };
                self.schemes.insert(var, Scheme { vars: Vec::new(), classes: Vec::new(), ty });
                vars.push(var);
                types.push(ty);
            }
        }
        let mut signatures = Vec::new();
        for (&var, &ty) in vars.iter().zip(&types) {
            signatures.extend(self.declared(var, ty));
        }
        for &id in decls {
            let own = self.resolved.defines.get(&id).map_or(&[][..], |v| &v[..]);
            let scopes = signatures.iter().filter(|s| own.contains(&s.var)).map(|s| s.scope.clone());
            let before = self.scoped.len();
            self.scoped.extend(scopes);
            self.declaration(id);
            self.scoped.truncate(before);
        }
        self.level -= own_level;
        self.generalise(&vars, &types, &signatures);
    }

    fn signed(&self, decls: &[DeclId]) -> bool {
        let vars = decls.iter().filter_map(|id| self.resolved.defines.get(id)).flatten();
        vars.into_iter().any(|var| self.resolved.signatures.contains_key(var))
    }

    /// Where time passes, `tock` is the event by which it does.
    pub(super) fn tock(&mut self) {
        let Some(tock) = self.resolved.tock.filter(|_| !self.resolved.durations.is_empty()) else { return };
        let (found, event) = (self.schemes.get(&tock).map_or(self.error, |s| s.ty), self.add(Type::Event));
        self.demand(self.resolved.var(tock).span, found, event, "what passes time in timed sections");
    }

    fn type_of(&self, id: DeclId, index: usize) -> Ty {
        let var = self.resolved.defines.get(&id).and_then(|vars| vars.get(index));
        var.and_then(|v| self.schemes.get(v)).map_or(self.error, |s| s.ty)
    }

    fn declaration(&mut self, id: DeclId) {
        match self.ast.decl(id).clone() {
            Decl::Function { name, clauses } => {
                let ty = self.type_of(id, 0);
                if name.name.starts_with(DURATION) {
                    // The duration of a timed section in a `let`.
                    let wanted = self.duration_type();
                    self.demand(self.ast.span(clauses[0].body), ty, wanted, DURATION_ROLE);
                }
                for clause in &clauses {
                    let found = self.clause(clause);
                    self.demand(
                        if clause.groups.is_empty() { self.ast.span(clause.body) } else { clause.span },
                        found,
                        ty,
                        &format!("a clause of `{}`, whose other clauses or uses say so", name.name),
                    );
                }
            }
            Decl::Pattern { pat, body } => {
                let value = self.infer(body);
                let ty = self.pattern(pat);
                self.demand(self.ast.pat_span(pat), ty, value, "matched with the value on the right");
            }
            Decl::Channel { names, fields } => {
                let parts = fields.map(|f| self.field_list(f)).unwrap_or_default();
                let event = self.add(Type::Event);
                for &part in &parts {
                    // Events are compared wherever they are put into sets.
                    self.require(self.ast.decl_span(id), Class::Eq, part);
                }
                for (i, name) in names.iter().enumerate() {
                    self.constructor(id, i, &parts, event, name.span);
                }
            }
            Decl::Datatype { variants, .. } => {
                let set = self.type_of(id, 0);
                let Type::Set(data) = self.unifier.table.get(set) else { return };
                let mut all = Vec::new();
                for (i, variant) in variants.iter().enumerate() {
                    let parts = variant.fields.map(|f| self.field_list(f)).unwrap_or_default();
                    self.constructor(id, i + 1, &parts, data, variant.name.span);
                    all.extend(parts);
                }
                self.unifier.data_fields.insert(id, all);
            }
            Decl::Subtype { variants, .. } => self.subtype(id, &variants),
            Decl::Nametype { set, .. } => {
                let parts = self.field_list(set);
                // A type has complete values (libcspm's test `nametypes1`).
                for &part in &parts {
                    self.require(self.ast.span(set), Class::Complete, part);
                }
                let element = self.unifier.table.dot(&parts);
                let found = self.add(Type::Set(element));
                let ty = self.type_of(id, 0);
                self.demand(self.ast.span(set), found, ty, "the set a nametype stands for");
            }
            _ => {}
        }
    }

    fn clause(&mut self, clause: &Clause) -> Ty {
        let groups: Vec<Vec<Ty>> =
            clause.groups.iter().map(|group| group.iter().map(|&p| self.pattern(p)).collect()).collect();
        let body = self.infer(clause.body);
        groups.into_iter().rev().fold(body, |result, args| self.add(Type::Function(args, result)))
    }

    fn constructor(&mut self, decl: DeclId, index: usize, fields: &[Ty], result: Ty, span: Span) {
        let mut parts = Vec::new();
        for &field in fields {
            self.require(span, Class::Complete, field);
            parts.extend(self.unifier.table.parts(field));
        }
        let found = if parts.is_empty() { result } else { self.add(Type::Dotable(parts, result)) };
        let ty = self.type_of(decl, index);
        self.demand(span, found, ty, "declared here");
        if let Some(&var) = self.resolved.defines.get(&decl).and_then(|vars| vars.get(index)) {
            self.field_types.push((var, fields.to_vec()));
        }
    }

    fn subtype(&mut self, id: DeclId, variants: &[Variant]) {
        let element = self.fresh();
        for variant in variants {
            let name = &variant.name;
            let Some(&var) = self.resolved.signature_types.get(&(id, name.name.clone())) else { continue };
            let whole = self.instantiate(var, name.span);
            let (args, result) = match self.unifier.table.get(whole) {
                Type::Dotable(args, result) => (args, result),
                _ => (Vec::new(), whole),
            };
            self.demand(
                name.span,
                result,
                element,
                "a constructor of the same datatype as the ones before it",
            );
            let written = variant.fields.map(|f| self.field_list(f)).unwrap_or_default();
            let parts: Vec<Ty> = written.into_iter().flat_map(|f| self.unifier.table.parts(f)).collect();
            if parts.len() > args.len() {
                self.type_error(name.span, format!("`{}` has {} fields", name.name, args.len()));
            } else if !parts.is_empty() {
                // Fields that are left out at the end may have any value.
                let found = self.unifier.table.dot(&parts);
                let wanted = self.unifier.table.dot(&args[..parts.len()]);
                self.demand(name.span, found, wanted, "the fields of the constructor");
            }
        }
        let found = self.add(Type::Set(element));
        let ty = self.type_of(id, 0);
        let span = self.ast.decl_span(id);
        self.demand(span, found, ty, "a subtype");
    }

    /// The fields of a channel or constructor: sets joined by dots; a tuple of sets is a set of tuples.
    pub(super) fn field_list(&mut self, id: ExprId) -> Vec<Ty> {
        match self.ast.expr(id).clone() {
            Expr::Dot(a, b) => {
                let mut parts = self.field_list(a);
                parts.extend(self.field_list(b));
                parts
            }
            Expr::Paren(inner) => {
                let parts = self.field_list(inner);
                vec![self.unifier.table.dot(&parts)]
            }
            Expr::Tuple(list) => {
                let parts = list
                    .iter()
                    .map(|&e| {
                        let parts = self.field_list(e);
                        self.unifier.table.dot(&parts)
                    })
                    .collect();
                vec![self.add(Type::Tuple(parts))]
            }
            _ => {
                let found = self.infer(id);
                let element = self.fresh();
                let set = self.add(Type::Set(element));
                self.demand(
                    self.ast.span(id),
                    found,
                    set,
                    "a field, which is given by the set of its values",
                );
                vec![element]
            }
        }
    }

    fn duration_type(&mut self) -> Ty {
        let (event, int) = (self.add(Type::Event), self.add(Type::Int));
        self.add(Type::Function(vec![event], int))
    }

    /// Assertions, prints and the durations of timed sections.
    pub(super) fn goal(&mut self, id: DeclId) {
        match self.ast.decl(id).clone() {
            Decl::Print(expr) => {
                self.infer(expr);
            }
            Decl::Timed { duration: Some(duration), .. } => {
                let found = self.infer(duration);
                let wanted = self.duration_type();
                self.demand(self.ast.span(duration), found, wanted, DURATION_ROLE);
            }
            Decl::Assert(assertion) => {
                let process = |this: &mut Self, expr: ExprId| {
                    let found = this.infer(expr);
                    let proc = this.add(Type::Proc);
                    this.demand(this.ast.span(expr), found, proc, "what an assertion is about");
                };
                match assertion.property {
                    Property::Refines { spec, implementation, .. } => {
                        process(self, spec);
                        process(self, implementation);
                    }
                    Property::HasTrace { process: subject, trace, .. } => {
                        process(self, subject);
                        let found = self.infer(trace);
                        let event = self.add(Type::Event);
                        let wanted = self.add(Type::Seq(event));
                        self.demand(self.ast.span(trace), found, wanted, "a trace");
                    }
                    Property::DeadlockFree { process: subject, .. }
                    | Property::DivergenceFree { process: subject }
                    | Property::Deterministic { process: subject, .. } => process(self, subject),
                    Property::Unsupported { subjects, .. } => subjects.iter().for_each(|&e| {
                        self.infer(e);
                    }),
                }
                for &part in &assertion.symmetric_in {
                    self.infer(part);
                }
                if let Some(set) = assertion.tau_priority {
                    let found = self.infer(set);
                    self.demand_events(set, found);
                }
            }
            _ => {}
        }
    }

    pub(super) fn demand_events(&mut self, expr: ExprId, found: Ty) {
        let event = self.add(Type::Event);
        let set = self.add(Type::Set(event));
        self.demand(self.ast.span(expr), found, set, "a set of events");
    }
}
