//! Second pass: resolves the right-hand sides.

use std::rc::Rc;

use super::{DURATION, Frame, Home, PatRef, Ref, Resolver, TimedId, VarId, VarKind, nearest};
use crate::lang::ast::{
    Clause, Decl, DeclId, Expr, ExprId, Field, FieldKind, Ident, Items, Pat, PatId, Property, RepOp, Stmt,
    TypeExpr,
};
use crate::lang::builtin::{Builtin, Visibility};
use crate::lang::source::Span;

impl Resolver<'_> {
    pub(super) fn run_jobs(&mut self) {
        self.grow();
        for job in std::mem::take(&mut self.jobs) {
            self.scope = job.scope;
            self.timed = job.timed;
            self.global(job.decl);
        }
        if !self.out.durations.is_empty() && self.out.tock.is_none() {
            let timed =
                self.out.globals.iter().copied().find(|&d| matches!(self.ast.decl(d), Decl::Timed { .. }));
            if let Some(span) = timed.map(|d| self.ast.decl_span(d)) {
                let span = Span { end: span.start + 5, ..span };
                self.error(span, "a timed section needs the channel `tock`")
                    .notes
                    .push("declare `channel tock` at the top of the script".into());
            }
        }
    }

    fn global(&mut self, id: DeclId) {
        self.open.push(id);
        match self.ast.decl(id).clone() {
            Decl::Function { .. } => self.function(id),
            Decl::Pattern { pat, body } => {
                self.expr(body);
                self.global_pattern(pat);
            }
            Decl::Channel { fields: Some(fields), .. } => self.expr(fields),
            Decl::Datatype { variants, .. } | Decl::Subtype { variants, .. } => {
                for variant in &variants {
                    if let Some(fields) = variant.fields {
                        self.expr(fields);
                    }
                }
                if let Decl::Subtype { variants, .. } = self.ast.decl(id).clone() {
                    for variant in &variants {
                        self.subtype_variant(id, &variant.name);
                    }
                }
            }
            Decl::Nametype { set, .. } => self.expr(set),
            Decl::Print(expr) => self.expr(expr),
            Decl::Assert(assertion) => {
                match assertion.property {
                    Property::Refines { spec, implementation, .. } => {
                        self.expr(spec);
                        self.expr(implementation);
                    }
                    Property::HasTrace { process, trace, .. } => {
                        self.expr(process);
                        self.expr(trace);
                    }
                    Property::DeadlockFree { process, .. }
                    | Property::DivergenceFree { process }
                    | Property::Deterministic { process, .. } => self.expr(process),
                    Property::Unsupported { subjects, .. } => subjects.iter().for_each(|&e| self.expr(e)),
                }
                assertion.symmetric_in.iter().for_each(|&e| self.expr(e));
                if let Some(set) = assertion.tau_priority {
                    self.expr(set);
                }
            }
            Decl::Timed { duration: Some(duration), .. } => self.expr(duration),
            Decl::Signature { names, ty, .. } => self.signature(id, &names, &ty, None),
            _ => {}
        }
        self.open.pop();
    }

    /// A variant of a subtype has to be a constructor that exists; remember the use for the order of inference.
    fn subtype_variant(&mut self, id: DeclId, name: &Ident) {
        match self.find_global(self.scope, &name.name) {
            Some(var) if matches!(self.out.var(var).kind, VarKind::Constructor(..)) => {
                self.used(var);
                self.out.signature_types.insert((id, name.name.clone()), var);
            }
            _ => {
                self.error(name.span, format!("`{}` is not a constructor of a datatype", name.name))
                    .notes
                    .push("a subtype lists constructors of one datatype".into());
            }
        }
    }

    fn signature(&mut self, id: DeclId, names: &[Ident], ty: &TypeExpr, local: Option<usize>) {
        for name in names {
            let var = match local {
                Some(frame) => self.frames[frame].names.get(&name.name).copied(),
                None => self.find_global(self.scope, &name.name),
            };
            match var {
                Some(var) => {
                    if let Some(first) = self.out.signatures.insert(var, id) {
                        let first = self.ast.decl_span(first);
                        let diagnostic = self.error(name.span, format!("`{}` has two types", name.name));
                        diagnostic.more.push((first, "the first is here".into()));
                    }
                }
                None => {
                    self.error(name.span, format!("`{}` has a type but no definition", name.name));
                }
            }
        }
        self.signature_names(id, ty);
    }

    fn signature_names(&mut self, id: DeclId, ty: &TypeExpr) {
        match ty {
            TypeExpr::Name(path) => {
                let found = match &path[..] {
                    [only] => self.find_global(self.scope, &only.name),
                    _ => self.find_path(self.scope, path).ok(),
                };
                if let Some(var) = found.filter(|&v| matches!(self.out.var(v).kind, VarKind::TypeName(_))) {
                    let shown: Rc<str> = path.iter().map(|i| &*i.name).collect::<Vec<_>>().join("::").into();
                    self.out.signature_types.insert((id, shown), var);
                }
            }
            TypeExpr::Set(a) | TypeExpr::Seq(a) => self.signature_names(id, a),
            TypeExpr::Tuple(list) | TypeExpr::Dot(list) => {
                list.iter().for_each(|t| self.signature_names(id, t))
            }
            TypeExpr::Map(a, b) | TypeExpr::Dotable(a, b) | TypeExpr::Extendable(a, b) => {
                self.signature_names(id, a);
                self.signature_names(id, b);
            }
            TypeExpr::Function(args, result) => {
                args.iter().for_each(|t| self.signature_names(id, t));
                self.signature_names(id, result);
            }
            TypeExpr::Error => {}
        }
    }

    fn function(&mut self, id: DeclId) {
        let Decl::Function { name, clauses } = self.ast.decl(id).clone() else { return };
        for (i, clause) in clauses.iter().enumerate() {
            let widths = |groups: &[Vec<PatId>]| groups.iter().map(Vec::len).collect::<Vec<_>>();
            if widths(&clause.groups) != widths(&clauses[0].groups) {
                self.error(
                    clause.span,
                    format!("the clauses of `{}` take different numbers of arguments", name.name),
                )
                .more
                .push((clauses[0].span, "the first clause".into()));
            }
            self.frames.push(Frame::default());
            for &pat in clause.groups.iter().flatten() {
                self.pattern(pat);
            }
            self.expr(clause.body);
            let slots = self.pop_frame();
            self.out.clause_frames.insert((id, i), slots);
        }
    }

    fn pop_frame(&mut self) -> u32 {
        self.frames.pop().map_or(0, |frame| frame.slots)
    }

    /// Records that the declarations being resolved use the one that declares `var`.
    fn used(&mut self, var: VarId) {
        let (VarKind::Defined(decl)
        | VarKind::TypeName(decl)
        | VarKind::Channel(decl, _)
        | VarKind::Constructor(decl, _)) = self.out.var(var).kind
        else {
            return;
        };
        for &open in &self.open {
            let uses = self.out.uses.entry(open).or_default();
            if uses.last() != Some(&decl) {
                uses.push(decl);
            }
        }
    }

    fn local(&self, name: &str) -> Option<VarId> {
        self.frames.iter().rev().find_map(|frame| frame.names.get(name).copied())
    }

    fn name(&mut self, id: ExprId, path: &[Ident]) {
        let span = self.ast.span(id);
        let resolved = match path {
            [only] => self.plain_name(only, span),
            _ => match self.find_path(self.scope, path) {
                Ok(var) => Ref::Global(var),
                Err(message) => match self.exported_function(self.scope, path) {
                    Some(builtin) => Ref::Builtin(builtin),
                    None => {
                        self.error(span, message);
                        Ref::Unresolved
                    }
                },
            },
        };
        if let Ref::Global(var) | Ref::Local { var, .. } = resolved {
            self.used(var);
        }
        if let Ref::Local { var, .. } = resolved
            && let Home::Local { depth, slot } = self.out.var(var).home
        {
            for (frame, uses) in self.open_lets.iter_mut().filter(|(frame, _)| depth < *frame) {
                uses.insert((*frame - 1 - depth, slot));
            }
        }
        self.out.refs[id.index()] = resolved;
    }

    fn plain_name(&mut self, name: &Ident, span: Span) -> Ref {
        if let Some(var) = self.local(&name.name)
            && let Home::Local { depth, slot } = self.out.var(var).home
        {
            let hops = (self.frames.len() as u32 - 1) - depth;
            return Ref::Local { var, hops, slot };
        }
        if let Some(module) = self.nearer_module(self.scope, &name.name) {
            let module = self.ast.decl_span(module);
            let diagnostic = self.error(span, format!("`{}` is a module, not a value", name.name));
            diagnostic.more.push((module, "the module is here".into()));
            return Ref::Unresolved;
        }
        if let Some(var) = self.find_global(self.scope, &name.name) {
            return Ref::Global(var);
        }
        if let Some(builtin) = Builtin::find(&name.name) {
            let keyword = match builtin.visibility() {
                Visibility::Always => return Ref::Builtin(builtin),
                _ if self.out.enabled.contains(&builtin) => return Ref::Builtin(builtin),
                Visibility::External => "external",
                _ => "transparent",
            };
            self.error(span, format!("`{}` has to be declared before it is used", name.name))
                .notes
                .push(format!("add the line `{keyword} {}`", name.name));
            return Ref::Unresolved;
        }
        self.unknown(&name.name, span);
        Ref::Unresolved
    }

    fn unknown(&mut self, name: &str, span: Span) {
        let mut known: Vec<Rc<str>> = self.frames.iter().flat_map(|f| f.names.keys().cloned()).collect();
        let mut scope = Some(self.scope);
        while let Some(id) = scope {
            let here = &self.out.scopes[id.0 as usize];
            known.extend(here.names.keys().cloned());
            scope = here.parent;
        }
        known.extend(Builtin::ALL.iter().map(|b| Rc::from(b.name())));
        let near = nearest(name, known.iter().map(|k| &**k));
        let diagnostic = self.error(span, format!("`{name}` is not in scope"));
        diagnostic.label = "not defined".into();
        if let Some(near) = near {
            diagnostic.notes.push(format!("is `{near}` meant?"));
        }
    }

    /// A global pattern binds globals, which `collect` has declared.
    fn global_pattern(&mut self, pat: PatId) {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.global_names(pat));
    }

    fn global_names(&mut self, pat: PatId) {
        match self.ast.pat(pat).clone() {
            Pat::Name(name) => {
                if let Some(var) = self.find_global(self.scope, &name.name) {
                    self.out.pat_refs[pat.index()] = if self.is_constructor(var) {
                        self.used(var);
                        PatRef::Constructor(var)
                    } else {
                        PatRef::Bind { var, slot: 0 }
                    };
                }
            }
            Pat::Tuple(list) | Pat::Seq(list) | Pat::Set(list) => {
                list.iter().for_each(|&p| self.global_pattern(p));
            }
            Pat::Concat(a, b) | Pat::Dot(a, b) | Pat::As(a, b) => {
                self.global_pattern(a);
                self.global_pattern(b);
            }
            _ => {}
        }
    }

    /// A local pattern binds slots of the innermost frame.
    fn pattern(&mut self, pat: PatId) {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.local_pattern(pat));
    }

    fn local_pattern(&mut self, pat: PatId) {
        match self.ast.pat(pat).clone() {
            Pat::Name(name) => {
                let constructor =
                    self.find_global(self.scope, &name.name).filter(|&v| self.is_constructor(v));
                // A variable bound nearer hides the constructor for expressions, but a pattern always means it.
                if let Some(var) = constructor {
                    self.used(var);
                    self.out.pat_refs[pat.index()] = PatRef::Constructor(var);
                } else {
                    let (var, slot) = self.bind(&name, VarKind::Bound);
                    self.out.pat_refs[pat.index()] = PatRef::Bind { var, slot };
                }
            }
            Pat::Path(path) => match self.find_path(self.scope, &path) {
                Ok(var) if self.is_constructor(var) => {
                    self.used(var);
                    self.out.pat_refs[pat.index()] = PatRef::Constructor(var);
                }
                Ok(_) => {
                    let span = self.ast.pat_span(pat);
                    self.error(span, "only constructors and channels may be qualified in a pattern");
                }
                Err(message) => {
                    let span = self.ast.pat_span(pat);
                    self.error(span, message);
                }
            },
            Pat::Tuple(list) | Pat::Seq(list) | Pat::Set(list) => list.iter().for_each(|&p| self.pattern(p)),
            Pat::Concat(a, b) | Pat::Dot(a, b) | Pat::As(a, b) => {
                self.pattern(a);
                self.pattern(b);
            }
            _ => {}
        }
    }

    fn bind(&mut self, name: &Ident, kind: VarKind) -> (VarId, u32) {
        // `f(x, x)`, `c?x?x` and `{x | x <- A, x <- B}`: which one is meant, libcspm does not guess either.
        let before = self.frames.last().and_then(|frame| frame.names.get(&name.name)).copied();
        if let (Some(old), VarKind::Bound) = (before, kind) {
            let old = self.out.var(old).span;
            let diagnostic = self.error(name.span, format!("`{}` is bound twice", name.name));
            diagnostic.label = "bound again here".into();
            diagnostic.more.push((old, "first bound here".into()));
            diagnostic.notes.push("to compare two values, give them two names and use `==`".into());
        }
        let depth = self.frames.len() as u32 - 1;
        let slot = self.frames.last().map_or(0, |f| f.slots);
        let var = self.new_var(name, name.name.clone(), kind, Home::Local { depth, slot });
        if let Some(frame) = self.frames.last_mut() {
            frame.names.insert(name.name.clone(), var);
            frame.slots += 1;
        }
        (var, slot)
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            match *stmt {
                Stmt::Generator(pat, expr) => {
                    self.expr(expr);
                    self.pattern(pat);
                }
                Stmt::Condition(expr) => self.expr(expr),
            }
        }
    }

    fn items(&mut self, items: &Items) {
        match items {
            Items::List(list) => list.iter().for_each(|&e| self.expr(e)),
            Items::From(a) => self.expr(*a),
            Items::Range(a, b) => {
                self.expr(*a);
                self.expr(*b);
            }
        }
    }

    /// Runs `body` inside a new frame that belongs to the expression `id`.
    fn framed(&mut self, id: ExprId, body: impl FnOnce(&mut Self)) {
        self.frames.push(Frame::default());
        body(self);
        let slots = self.pop_frame();
        self.out.frames.insert(id, slots);
    }

    /// Constructs that bind nothing open no frame: a trace of a hundred thousand events is that many prefixes.
    fn framed_if(&mut self, binds: bool, id: ExprId, body: impl FnOnce(&mut Self)) {
        if binds { self.framed(id, body) } else { body(self) }
    }

    pub(super) fn expr(&mut self, id: ExprId) {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.walk(id));
    }

    fn walk(&mut self, id: ExprId) {
        if let Some(timed) = self.timed {
            self.out.timed.insert(id, timed);
        }
        match self.ast.expr(id).clone() {
            Expr::Error | Expr::Int(_) | Expr::Bool(_) | Expr::Char(_) | Expr::Str(_) => {}
            Expr::Wildcard | Expr::As(..) => {
                let span = self.ast.span(id);
                self.error(span, "a pattern cannot be used as an expression");
            }
            Expr::Var(path) => self.name(id, &path),
            Expr::Paren(a) | Expr::Unary(_, a) => self.expr(a),
            Expr::Tuple(list) => list.iter().for_each(|&e| self.expr(e)),
            Expr::Dot(a, b)
            | Expr::Binary(_, a, b)
            | Expr::Guard(a, b)
            | Expr::Process(_, a, b)
            | Expr::Hide(a, b)
            | Expr::Project(a, b) => {
                self.expr(a);
                self.expr(b);
            }
            Expr::Call(f, args) => {
                self.expr(f);
                args.iter().for_each(|&e| self.expr(e));
            }
            Expr::Lambda(pats, body) => self.framed(id, |this| {
                pats.iter().for_each(|&p| this.pattern(p));
                this.expr(body);
            }),
            Expr::Let(decls, body) => {
                let decls = self.without_sections(id, decls, body);
                self.framed(id, |this| {
                    let depth = this.frames.len() as u32 - 1;
                    this.open_lets.push((depth, std::collections::BTreeSet::new()));
                    this.let_decls(&decls);
                    if let Some((_, uses)) = this.open_lets.pop() {
                        this.out.let_uses.insert(id, uses.into_iter().collect());
                    }
                    this.expr(body);
                });
            }
            Expr::If(a, b, c) | Expr::Sync(_, a, b, c) => [a, b, c].iter().for_each(|&e| self.expr(e)),
            Expr::Seq(items, stmts) | Expr::Set(items, stmts) => {
                self.framed_if(!stmts.is_empty(), id, |this| {
                    this.stmts(&stmts);
                    this.items(&items);
                })
            }
            Expr::Productions(list, stmts) => self.framed_if(!stmts.is_empty(), id, |this| {
                this.stmts(&stmts);
                list.iter().for_each(|&e| this.expr(e));
            }),
            Expr::Map(entries) => self.pairs(&entries),
            Expr::Prefix { channel, fields, then } => {
                self.local_duration(id);
                self.expr(channel);
                self.field_order(&fields);
                let binds = fields.iter().any(|f| !matches!(f.kind, FieldKind::Output(_)));
                self.framed_if(binds, id, |this| {
                    for field in &fields {
                        match field.kind {
                            FieldKind::Input(pat, set) | FieldKind::Choose(pat, set) => {
                                if let Some(set) = set {
                                    this.expr(set);
                                }
                                this.pattern(pat);
                            }
                            FieldKind::Output(value) => this.expr(value),
                        }
                    }
                    this.expr(then);
                });
            }
            Expr::Alphabetised { left, left_set, right_set, right } => {
                [left, left_set, right_set, right].iter().for_each(|&e| self.expr(e));
            }
            Expr::Linked { left, ties, stmts, right } => {
                self.expr(left);
                self.expr(right);
                self.framed_if(!stmts.is_empty(), id, |this| {
                    this.stmts(&stmts);
                    this.pairs(&ties);
                });
            }
            Expr::Rename { process, pairs, stmts } => {
                self.expr(process);
                self.framed_if(!stmts.is_empty(), id, |this| {
                    this.stmts(&stmts);
                    this.pairs(&pairs);
                });
            }
            Expr::Replicated { op, stmts, body } => {
                if let RepOp::Parallel { sync } | RepOp::SyncChoice { sync } = &op {
                    self.expr(*sync);
                }
                self.framed(id, |this| {
                    this.stmts(&stmts);
                    match op {
                        RepOp::Alphabetised { alphabet } => this.expr(alphabet),
                        // The ties see the generators of the operator.
                        RepOp::Linked { ties, tie_stmts } => {
                            this.frames.push(Frame::default());
                            this.stmts(&tie_stmts);
                            this.pairs(&ties);
                            let slots = this.pop_frame();
                            this.out.tie_frames.insert(id, slots);
                        }
                        _ => {}
                    }
                    this.expr(body);
                });
            }
        }
    }

    fn pairs(&mut self, pairs: &[(ExprId, ExprId)]) {
        for &(a, b) in pairs {
            self.expr(a);
            self.expr(b);
        }
    }

    fn let_decls(&mut self, decls: &[DeclId]) {
        let frame = self.frames.len() - 1;
        for &id in decls {
            match self.ast.decl(id).clone() {
                Decl::Function { name, .. } => {
                    self.declare_local(frame, &name, id);
                }
                Decl::Pattern { pat, .. } => {
                    self.pattern(pat);
                    self.adopt(pat, id);
                }
                Decl::Signature { .. } => {}
                Decl::External(names) => self.enable(&names, "external"),
                Decl::Transparent(names) => self.enable(&names, "transparent"),
                _ => {
                    let span = self.ast.decl_span(id);
                    self.error(span, "only functions and values can be defined in a `let`")
                        .notes
                        .push("move this declaration to the top of the script".into());
                }
            }
        }
        let outer = self.timed;
        for &id in decls {
            self.timed = self.timed_decls.get(&id).copied().or(outer);
            self.open.push(id);
            match self.ast.decl(id).clone() {
                Decl::Function { .. } => self.function(id),
                Decl::Pattern { body, .. } => self.expr(body),
                Decl::Signature { names, ty, .. } => self.signature(id, &names, &ty, Some(frame)),
                _ => {}
            }
            self.open.pop();
        }
        self.timed = outer;
    }

    /// Takes the timed sections of a `let` apart: their declarations become declarations of the `let` that remember
    /// the section, and their duration gets a local name that no script can write.
    fn without_sections(&mut self, id: ExprId, decls: Vec<DeclId>, body: ExprId) -> Vec<DeclId> {
        if !decls.iter().any(|&d| matches!(self.ast.decl(d), Decl::Timed { .. })) {
            return decls;
        }
        let mut flat = Vec::new();
        for decl in decls {
            self.take_apart(decl, None, &mut flat);
        }
        self.ast.set_expr(id, Expr::Let(flat.clone(), body));
        flat
    }

    /// `c?x$y` would choose internally after the environment has chosen, in a single event.
    fn field_order(&mut self, fields: &[Field]) {
        let inputs = fields.iter().skip_while(|f| !matches!(f.kind, FieldKind::Input(..)));
        if let Some(late) = inputs.into_iter().find(|f| matches!(f.kind, FieldKind::Choose(..))) {
            self.error(late.span, "a `$` field cannot follow a `?` field")
                .notes
                .push("the process chooses before its environment does: write `$` first".into());
        }
    }

    fn take_apart(&mut self, decl: DeclId, outer: Option<TimedId>, flat: &mut Vec<DeclId>) {
        let Decl::Timed { duration, decls } = self.ast.decl(decl).clone() else {
            if let Some(section) = outer {
                self.timed_decls.insert(decl, section);
            }
            flat.push(decl);
            return;
        };
        let span = self.ast.decl_span(decl);
        let keyword = Span { end: span.start + 5, ..span };
        if self.out.tock.is_none() {
            self.error(keyword, "a timed section needs the channel `tock`")
                .notes
                .push("declare `channel tock` at the top of the script".into());
        }
        let section = TimedId(self.out.durations.len() as u32);
        self.out.durations.push(None);
        if let Some(duration) = duration {
            let name = Ident { name: format!("{DURATION}{}", section.0).into(), span: keyword };
            let clause = Clause { groups: Vec::new(), body: duration, span: self.ast.span(duration) };
            let function = Decl::Function { name: name.clone(), clauses: vec![clause] };
            flat.push(self.ast.add_decl(function, keyword));
            self.local_timed.insert(section, name);
        }
        for inner in decls {
            self.take_apart(inner, Some(section), flat);
        }
    }

    /// Resolves the name of the duration of a local section where a prefix stands.
    fn local_duration(&mut self, prefix: ExprId) {
        let Some(name) = self.timed.and_then(|section| self.local_timed.get(&section)).cloned() else {
            return;
        };
        let path = vec![name];
        let reference = self.ast.add_expr(Expr::Var(path.clone()), self.ast.span(prefix));
        self.grow();
        self.name(reference, &path);
        self.out.local_durations.insert(prefix, reference);
    }

    fn declare_local(&mut self, frame: usize, name: &Ident, decl: DeclId) {
        if let Some(old) = self.frames[frame].names.get(&name.name) {
            let old = self.out.var(*old).span;
            self.twice(name, old);
        }
        let (var, _) = self.bind(name, VarKind::Defined(decl));
        self.out.defines.entry(decl).or_default().push(var);
    }

    /// The variables of a pattern in a `let` belong to its declaration.
    fn adopt(&mut self, pat: PatId, decl: DeclId) {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.adopt_names(pat, decl));
    }

    fn adopt_names(&mut self, pat: PatId, decl: DeclId) {
        match self.ast.pat(pat).clone() {
            Pat::Name(_) => {
                if let PatRef::Bind { var, .. } = self.out.pat_refs[pat.index()] {
                    self.out.vars[var.index()].kind = VarKind::Defined(decl);
                    self.out.defines.entry(decl).or_default().push(var);
                }
            }
            Pat::Tuple(list) | Pat::Seq(list) | Pat::Set(list) => {
                list.iter().for_each(|&p| self.adopt(p, decl))
            }
            Pat::Concat(a, b) | Pat::Dot(a, b) | Pat::As(a, b) => {
                self.adopt(a, decl);
                self.adopt(b, decl);
            }
            _ => {}
        }
    }
}
