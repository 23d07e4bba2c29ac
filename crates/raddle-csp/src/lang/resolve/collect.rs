//! First pass: declares the names of the script and its modules, and lists the declarations to resolve.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::{
    Home, INSTANCES_MAX, Job, Module, Named, Resolver, Scope, ScopeId, TimedId, Var, VarId, VarKind,
};
use crate::lang::ast::{Clause, Decl, DeclId, Ident, Pat, PatId};
use crate::lang::builtin::{Builtin, Visibility};
use crate::lang::copy::Copier;
use crate::lang::source::Span;

impl Resolver<'_> {
    /// Declares what a list of declarations declares. Constructors come first, because whether a name in a pattern
    /// binds depends on them.
    pub(super) fn collect(
        &mut self,
        decls: &[DeclId],
        scope: ScopeId,
        timed: Option<TimedId>,
        exported: bool,
    ) {
        for &id in decls {
            self.collect_types(id, scope, exported);
        }
        for &id in decls {
            self.collect_values(id, scope, timed, exported);
        }
        // Instances last: the module they copy may be written after them.
        for &id in decls {
            if let Decl::Instance { name, module, args } = self.ast.decl(id).clone() {
                self.instantiate(id, scope, &name, &module, &args, timed);
            }
        }
    }

    fn collect_types(&mut self, id: DeclId, scope: ScopeId, exported: bool) {
        match self.ast.decl(id).clone() {
            Decl::Channel { names, .. } => {
                for (i, name) in names.iter().enumerate() {
                    let var = self.declare(scope, name, VarKind::Channel(id, i), id, exported);
                    self.out.channels.push(var);
                }
            }
            Decl::Datatype { name, variants } => {
                self.declare(scope, &name, VarKind::TypeName(id), id, exported);
                for (i, variant) in variants.iter().enumerate() {
                    self.declare(scope, &variant.name, VarKind::Constructor(id, i), id, exported);
                }
            }
            Decl::Subtype { name, .. } | Decl::Nametype { name, .. } => {
                self.declare(scope, &name, VarKind::TypeName(id), id, exported);
            }
            Decl::External(names) => self.export(&names, "external", scope, exported),
            Decl::Transparent(names) => self.export(&names, "transparent", scope, exported),
            Decl::Timed { decls, .. } => {
                for &inner in &decls {
                    self.collect_types(inner, scope, exported);
                }
            }
            _ => {}
        }
    }

    fn collect_values(&mut self, id: DeclId, scope: ScopeId, timed: Option<TimedId>, exported: bool) {
        match self.ast.decl(id).clone() {
            Decl::Function { name, .. } => {
                self.declare(scope, &name, VarKind::Defined(id), id, exported);
                self.push_job(id, scope, timed);
            }
            Decl::Pattern { pat, .. } => {
                for name in self.pattern_names(pat, scope) {
                    self.declare(scope, &name, VarKind::Defined(id), id, exported);
                }
                self.push_job(id, scope, timed);
            }
            Decl::Channel { .. } | Decl::Datatype { .. } | Decl::Subtype { .. } | Decl::Nametype { .. } => {
                self.push_job(id, scope, timed);
            }
            Decl::Signature { .. } => self.push_job(id, scope, timed),
            Decl::Assert(assertion) if scope != ScopeId(0) => {
                self.error(assertion.span, "assertions are not allowed inside modules")
                    .notes
                    .push("move it after `endmodule`".into());
            }
            Decl::Print(_) if scope != ScopeId(0) || timed.is_some() => {
                let place = if timed.is_some() { "timed sections" } else { "modules" };
                let span = self.ast.decl_span(id);
                self.error(span, format!("`print` is not allowed inside {place}"))
                    .notes
                    .push("move it to the top of the script".into());
            }
            Decl::Assert(_) | Decl::Print(_) => {
                self.out.goals.push(id);
                self.push_job(id, scope, timed);
            }
            Decl::Timed { duration, decls } => {
                let timed = TimedId(self.out.durations.len() as u32);
                self.out.durations.push(duration);
                self.push_job(id, scope, None);
                for &inner in &decls {
                    self.collect_values(inner, scope, Some(timed), exported);
                    if let Decl::Instance { name, module, args } = self.ast.decl(inner).clone() {
                        self.instantiate(inner, scope, &name, &module, &args, Some(timed));
                    }
                }
            }
            Decl::Module { name, params, private, public } => {
                let inner = if params.is_empty() {
                    Some(self.enter_module(id, scope, &name.name, &private, &public, timed))
                } else {
                    None
                };
                self.declare_module(
                    scope,
                    &name,
                    Module { scope: inner, decl: id, home: scope, is_instance: false },
                );
            }
            Decl::External(_) | Decl::Transparent(_) | Decl::Instance { .. } | Decl::Include { .. } => {}
        }
    }

    fn push_job(&mut self, decl: DeclId, scope: ScopeId, timed: Option<TimedId>) {
        self.out.globals.push(decl);
        self.jobs.push(Job { decl, scope, timed });
    }

    fn enter_module(
        &mut self,
        module: DeclId,
        parent: ScopeId,
        name: &str,
        private: &[DeclId],
        public: &[DeclId],
        timed: Option<TimedId>,
    ) -> ScopeId {
        let prefix = format!("{}{name}::", self.out.scopes[parent.0 as usize].prefix);
        let scope = ScopeId(self.out.scopes.len() as u32);
        self.out.scopes.push(Scope {
            parent: Some(parent),
            prefix: Rc::from(prefix),
            names: FxHashMap::default(),
            modules: FxHashMap::default(),
            functions: FxHashMap::default(),
            module: Some(module),
        });
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            self.collect(private, scope, timed, false);
            self.collect(public, scope, timed, true);
        });
        scope
    }

    fn declare_module(&mut self, scope: ScopeId, name: &Ident, module: Module) {
        if let Some(other) = self.out.scopes[scope.0 as usize].names.get(&name.name) {
            let other = self.out.var(other.var).span;
            self.clash(name, other);
        }
        let modules = &mut self.out.scopes[scope.0 as usize].modules;
        if modules.insert(name.name.clone(), module).is_some() {
            self.error(name.span, format!("the module `{}` is defined twice", name.name));
        }
    }

    fn instantiate(
        &mut self,
        id: DeclId,
        scope: ScopeId,
        name: &Ident,
        path: &[Ident],
        args: &[crate::lang::ast::ExprId],
        timed: Option<TimedId>,
    ) {
        let span = self.ast.decl_span(id);
        let Some(module) = self.find_module(scope, path) else {
            let shown = path.iter().map(|i| &*i.name).collect::<Vec<_>>().join("::");
            self.error(span, format!("there is no module `{shown}`"));
            return;
        };
        self.instances += 1;
        if self.instances > INSTANCES_MAX {
            self.error(span, "too many modules are instantiated").notes.push(format!(
                "at most {INSTANCES_MAX} instances are made; does a module instantiate itself?"
            ));
            return;
        }
        let Decl::Module { params, private, public, .. } = self.ast.decl(module.decl).clone() else { return };
        if params.len() != args.len() {
            let message = format!("this module takes {} arguments, not {}", params.len(), args.len());
            self.error(span, message);
            return;
        }
        let private = Copier(self.ast).decls(&private);
        let public = Copier(self.ast).decls(&public);
        let inner = self.enter_module(module.decl, module.home, &name.name, &private, &public, timed);
        for (param, &body) in params.iter().zip(args) {
            let clause = Clause { groups: Vec::new(), body, span: self.ast.span(body) };
            let decl = Decl::Function { name: param.clone(), clauses: vec![clause] };
            let decl = self.ast.add_decl(decl, param.span);
            self.declare(inner, param, VarKind::Defined(decl), decl, false);
            // The argument is resolved where the instance is written, not inside the module.
            self.push_job(decl, scope, timed);
        }
        let made = Module { scope: Some(inner), decl: module.decl, home: module.home, is_instance: true };
        self.declare_module(scope, name, made);
    }

    fn find_module(&self, from: ScopeId, path: &[Ident]) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        let mut scope = Some(from);
        let mut found = None;
        while let Some(id) = scope {
            let here = &self.out.scopes[id.0 as usize];
            if let Some(module) = here.modules.get(&first.name) {
                found = Some(module.clone());
                break;
            }
            scope = here.parent;
        }
        let mut module = found?;
        for part in rest {
            module = self.out.scopes[module.scope?.0 as usize].modules.get(&part.name)?.clone();
        }
        Some(module)
    }

    /// The names a global pattern binds; constructors of the scope are not among them.
    fn pattern_names(&self, pat: PatId, scope: ScopeId) -> Vec<Ident> {
        let mut names = Vec::new();
        let mut todo = vec![pat];
        while let Some(pat) = todo.pop() {
            match self.ast.pat(pat) {
                Pat::Name(name)
                    if self.find_global(scope, &name.name).is_none_or(|v| !self.is_constructor(v)) =>
                {
                    names.push(name.clone());
                }
                Pat::Tuple(list) | Pat::Seq(list) | Pat::Set(list) => todo.extend(list.iter().rev()),
                Pat::Concat(a, b) | Pat::Dot(a, b) | Pat::As(a, b) => todo.extend([*b, *a]),
                _ => {}
            }
        }
        names
    }

    pub(super) fn is_constructor(&self, var: VarId) -> bool {
        matches!(self.out.var(var).kind, VarKind::Constructor(..) | VarKind::Channel(..))
    }

    /// Looks a name up in a scope and the scopes around it.
    pub(super) fn find_global(&self, from: ScopeId, name: &str) -> Option<VarId> {
        let mut scope = Some(from);
        while let Some(id) = scope {
            let here = &self.out.scopes[id.0 as usize];
            if let Some(named) = here.names.get(name) {
                return Some(named.var);
            }
            scope = here.parent;
        }
        None
    }

    /// The module of this name, if it hides every value of the name.
    pub(super) fn nearer_module(&self, from: ScopeId, name: &str) -> Option<DeclId> {
        let mut scope = Some(from);
        while let Some(id) = scope {
            let here = &self.out.scopes[id.0 as usize];
            if here.names.contains_key(name) {
                return None;
            }
            if let Some(module) = here.modules.get(name) {
                return Some(module.decl);
            }
            scope = here.parent;
        }
        None
    }

    /// Reports modules that contain an instance of themselves, by way of others or not: each instance would need another
    /// one. `around` are the modules in scope, outermost first, by name.
    pub(super) fn endless_modules(&mut self, decls: &[DeclId], around: &mut Vec<(Rc<str>, DeclId)>) {
        let before = around.len();
        for &id in decls {
            if let Decl::Module { name, .. } = self.ast.decl(id) {
                around.push((name.name.clone(), id));
            }
        }
        for &id in decls {
            let Decl::Module { name, private, public, .. } = self.ast.decl(id).clone() else { continue };
            if self.instantiates(id, id, around, &mut Vec::new()) {
                self.error(name.span, format!("the module `{}` contains an instance of itself", name.name))
                    .notes
                    .push("each instance would need another one".into());
            }
            let inner: Vec<DeclId> = private.into_iter().chain(public).collect();
            stacker::maybe_grow(64 << 10, 1 << 20, || self.endless_modules(&inner, around));
        }
        around.truncate(before);
    }

    /// Whether the declarations of `module` make an instance of `wanted`, directly or through the modules they use.
    fn instantiates(
        &self,
        module: DeclId,
        wanted: DeclId,
        around: &[(Rc<str>, DeclId)],
        seen: &mut Vec<DeclId>,
    ) -> bool {
        if seen.contains(&module) {
            return false;
        }
        seen.push(module);
        let Decl::Module { private, public, .. } = self.ast.decl(module) else { return false };
        private.iter().chain(public).any(|&id| {
            let Decl::Instance { module: path, .. } = self.ast.decl(id) else { return false };
            let [only] = &path[..] else { return false };
            let found = around.iter().rev().find(|(name, _)| *name == only.name);
            found.is_some_and(|&(_, next)| next == wanted || self.instantiates(next, wanted, around, seen))
        })
    }

    /// Looks a qualified name up; the error says which part is wrong.
    pub(super) fn find_path(&self, from: ScopeId, path: &[Ident]) -> Result<VarId, String> {
        let Some((last, modules)) = path.split_last() else { return Err("an empty name".into()) };
        let shown = modules.iter().map(|i| &*i.name).collect::<Vec<_>>().join("::");
        let module = self.find_module(from, modules).ok_or(format!("there is no module `{shown}`"))?;
        if self.is_inside_own_module(from, &module) {
            return Err(format!("`{shown}` is an instance of the module that this stands in"));
        }
        let scope =
            module.scope.ok_or(format!("the module `{shown}` has parameters; use an instance of it"))?;
        match self.out.scopes[scope.0 as usize].names.get(&last.name) {
            Some(named) if named.exported => Ok(named.var),
            Some(_) => Err(format!("`{}` is private to the module `{shown}`", last.name)),
            None => Err(format!("the module `{shown}` has no `{}`", last.name)),
        }
    }

    /// Whether an instance is mentioned inside the module that it is an instance of, or inside itself.
    fn is_inside_own_module(&self, from: ScopeId, module: &Module) -> bool {
        let mut at = Some(from);
        while let Some(scope) = at {
            let here = &self.out.scopes[scope.0 as usize];
            if here.module == Some(module.decl) && module.is_instance {
                return true;
            }
            at = here.parent;
        }
        false
    }

    fn declare(
        &mut self,
        scope: ScopeId,
        name: &Ident,
        kind: VarKind,
        decl: DeclId,
        exported: bool,
    ) -> VarId {
        let home = &self.out.scopes[scope.0 as usize];
        let path: Rc<str> = Rc::from(format!("{}{}", home.prefix, name.name));
        if let Some(old) = home.names.get(&name.name) {
            let old = self.out.var(old.var).span;
            self.twice(name, old);
        } else if let Some(module) = home.modules.get(&name.name) {
            let module = self.ast.decl_span(module.decl);
            self.clash(name, module);
        }
        let var = self.new_var(name, path, kind, Home::Global);
        self.out.scopes[scope.0 as usize].names.insert(name.name.clone(), Named { var, exported });
        self.out.defines.entry(decl).or_default().push(var);
        var
    }

    /// Modules and values share one space of names.
    fn clash(&mut self, name: &Ident, other: Span) {
        let diagnostic = self.error(name.span, format!("`{}` is a module and something else", name.name));
        diagnostic.more.push((other, "the other one is here".into()));
        diagnostic.notes.push("rename one of them".into());
    }

    pub(super) fn twice(&mut self, name: &Ident, old: Span) {
        let diagnostic = self.error(name.span, format!("`{}` is defined twice", name.name));
        diagnostic.label = "defined again here".into();
        diagnostic.more.push((old, "first defined here".into()));
        diagnostic.notes.push("the clauses of a function have to stand one after the other".into());
    }

    pub(super) fn new_var(&mut self, name: &Ident, path: Rc<str>, kind: VarKind, home: Home) -> VarId {
        let var = VarId(self.out.vars.len() as u32);
        self.out.vars.push(Var { name: name.name.clone(), path, span: name.span, kind, home });
        var
    }

    /// The transparent or external function that a module exports under this name.
    pub(super) fn exported_function(&self, from: ScopeId, path: &[Ident]) -> Option<Builtin> {
        let (last, modules) = path.split_last()?;
        let scope = self.find_module(from, modules)?.scope?;
        let builtin = Builtin::find(&last.name)?;
        let exported = self.out.scopes[scope.0 as usize].functions.get(&builtin).copied();
        exported.filter(|&exported| exported).map(|_| builtin)
    }

    fn export(&mut self, names: &[Ident], keyword: &str, scope: ScopeId, exported: bool) {
        self.enable(names, keyword);
        for builtin in names.iter().filter_map(|name| Builtin::find(&name.name)) {
            self.out.scopes[scope.0 as usize].functions.insert(builtin, exported);
        }
    }

    pub(super) fn enable(&mut self, names: &[Ident], keyword: &str) {
        for name in names {
            let Some(builtin) = Builtin::find(&name.name) else {
                self.error(name.span, format!("there is no {keyword} function `{}`", name.name));
                continue;
            };
            let fits = match builtin.visibility() {
                Visibility::Always | Visibility::TransparentOrExternal => true,
                Visibility::Transparent => keyword == "transparent",
                Visibility::External => keyword == "external",
            };
            if fits {
                self.out.enabled.push(builtin);
            } else {
                let right = if keyword == "external" { "transparent" } else { "external" };
                self.error(name.span, format!("`{}` is not {keyword} but {right}", name.name))
                    .notes
                    .push(format!("write `{right} {}`", name.name));
            }
        }
    }
}
