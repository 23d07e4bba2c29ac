//! Name resolution: what every identifier means and where its value will be found.
//!
//! Names of the script and of its modules are *global*: one slot each in a table. Names bound by clauses, lambdas,
//! `let`, generators and inputs are *local*: each of those constructs opens one frame, and a use is resolved to "so
//! many frames up, that slot", so that the evaluator never looks at a name again. In patterns a name that is in scope
//! as a constructor or channel means that constructor; any other name binds.
//!
//! Modules become scopes of their own; instances of parameterised modules are copies (see [`super::copy`]). The
//! resolver also records which declaration uses which, which the type checker needs to infer in the right order, and
//! which process expressions stand in a timed section.

mod collect;
mod walk;

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::ast::{Ast, DeclId, ExprId, Ident, PatId};
use super::builtin::Builtin;
use super::diagnostic::{Diagnostic, Stage};
use super::source::Span;

/// A bound name: a global, a constructor, a local variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u32);

impl VarId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A scope of globals: the script or a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScopeId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VarKind {
    /// A function or constant, or a name bound by a pattern declaration.
    Defined(DeclId),
    /// A datatype, subtype or nametype: the set of its values.
    TypeName(DeclId),
    /// The `index`-th name of a channel declaration.
    Channel(DeclId, usize),
    /// The `index`-th constructor of a datatype.
    Constructor(DeclId, usize),
    /// An argument, or a variable of a generator or input.
    Bound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    Global,
    Local { depth: u32, slot: u32 },
}

#[derive(Clone, Debug)]
pub struct Var {
    pub name: Rc<str>,
    /// The name with its modules, as it is shown.
    pub path: Rc<str>,
    pub span: Span,
    pub kind: VarKind,
    pub home: Home,
}

/// What a name in an expression refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ref {
    Unresolved,
    Builtin(Builtin),
    Global(VarId),
    Local { var: VarId, hops: u32, slot: u32 },
}

/// What a name in a pattern refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatRef {
    None,
    Constructor(VarId),
    Bind { var: VarId, slot: u32 },
}

/// How the local names of the durations of timed sections begin; no identifier does.
pub const DURATION: &str = "Timed#";

/// A timed section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimedId(pub u32);

#[derive(Debug, Default)]
pub struct Resolved {
    pub vars: Vec<Var>,
    pub refs: Vec<Ref>,
    pub pat_refs: Vec<PatRef>,
    /// Slots of the frame that an expression opens (lambda, `let`, comprehension, prefix, replicated, renaming).
    pub frames: FxHashMap<ExprId, u32>,
    /// The variables of surrounding frames that the definitions of a `let` use: (frames up from where it stands, slot).
    pub let_uses: FxHashMap<ExprId, Vec<(u32, u32)>>,
    /// Slots of the frame for the generators of the ties of a replicated linked parallel.
    pub tie_frames: FxHashMap<ExprId, u32>,
    /// Slots of the frame of a clause of a function.
    pub clause_frames: FxHashMap<(DeclId, usize), u32>,
    /// The variables a declaration defines, in the order of the declaration.
    pub defines: FxHashMap<DeclId, Vec<VarId>>,
    /// The declarations whose names a declaration uses.
    pub uses: FxHashMap<DeclId, Vec<DeclId>>,
    /// All global declarations in order, modules and timed sections flattened.
    pub globals: Vec<DeclId>,
    /// Assertions and prints in order.
    pub goals: Vec<DeclId>,
    /// The timed section an expression stands in.
    pub timed: FxHashMap<ExprId, TimedId>,
    /// For every timed section, the function that says how long an event takes.
    pub durations: Vec<Option<ExprId>>,
    /// For prefixes in a timed section of a `let`: the name of that function, as seen from there.
    pub local_durations: FxHashMap<ExprId, ExprId>,
    /// The channel `tock`, when the script has one.
    pub tock: Option<VarId>,
    /// The types that signatures give to declared names.
    pub signatures: FxHashMap<VarId, DeclId>,
    /// Where the names in the type of a signature are looked up.
    pub signature_types: FxHashMap<(DeclId, Rc<str>), VarId>,
    pub diagnostics: Vec<Diagnostic>,
    /// All channels in order of declaration.
    pub channels: Vec<VarId>,
    scopes: Vec<Scope>,
    enabled: Vec<Builtin>,
}

#[derive(Debug)]
struct Scope {
    parent: Option<ScopeId>,
    /// Prefix of the names declared here, `M::` and the like.
    prefix: Rc<str>,
    names: FxHashMap<Rc<str>, Named>,
    modules: FxHashMap<Rc<str>, Module>,
    /// Transparent and external functions that were declared here, and whether they are exported.
    functions: FxHashMap<Builtin, bool>,
    /// The module whose declarations these are, its own or a copy of them.
    module: Option<DeclId>,
}

#[derive(Clone, Copy, Debug)]
struct Named {
    var: VarId,
    exported: bool,
}

#[derive(Clone, Debug)]
struct Module {
    /// The names of a module without parameters, or of an instance.
    scope: Option<ScopeId>,
    decl: DeclId,
    /// Where the module was written.
    home: ScopeId,
    is_instance: bool,
}

/// A declaration and where its right-hand side is to be resolved.
struct Job {
    decl: DeclId,
    scope: ScopeId,
    timed: Option<TimedId>,
}

/// The names of one frame.
#[derive(Default)]
struct Frame {
    names: FxHashMap<Rc<str>, VarId>,
    slots: u32,
}

struct Resolver<'a> {
    ast: &'a mut Ast,
    out: Resolved,
    jobs: Vec<Job>,
    frames: Vec<Frame>,
    scope: ScopeId,
    timed: Option<TimedId>,
    /// The local timed sections with a duration, and the local name they give to it.
    local_timed: FxHashMap<TimedId, Ident>,
    /// The local timed section that a declaration of a `let` stands in.
    timed_decls: FxHashMap<DeclId, TimedId>,
    /// The declarations whose bodies are being resolved, outermost first.
    open: Vec<DeclId>,
    /// For every `let` whose definitions are being resolved: the depth of its frame and the outer variables met so far.
    open_lets: Vec<(u32, std::collections::BTreeSet<(u32, u32)>)>,
    instances: u32,
}

/// Most instances of modules in one script; a module that instantiates itself would go on for ever.
const INSTANCES_MAX: u32 = 1_000;

/// Resolves a whole script.
pub fn resolve(ast: &mut Ast) -> Resolved {
    let mut resolver = Resolver {
        ast,
        out: Resolved::default(),
        jobs: Vec::new(),
        frames: Vec::new(),
        scope: ScopeId(0),
        timed: None,
        local_timed: FxHashMap::default(),
        timed_decls: FxHashMap::default(),
        open: Vec::new(),
        open_lets: Vec::new(),
        instances: 0,
    };
    resolver.out.scopes.push(Scope {
        parent: None,
        prefix: Rc::from(""),
        names: FxHashMap::default(),
        modules: FxHashMap::default(),
        functions: FxHashMap::default(),
        module: None,
    });
    let top = resolver.ast.top.clone();
    resolver.endless_modules(&top, &mut Vec::new());
    resolver.collect(&top, ScopeId(0), None, true);
    resolver.out.tock = resolver.out.scopes[0].names.get("tock").map(|n| n.var);
    resolver.run_jobs();
    // Instances are copies: what is wrong in a module is wrong in each of them, at the same place.
    let mut seen = rustc_hash::FxHashSet::default();
    resolver.out.diagnostics.retain(|d| seen.insert((d.span, d.message.clone())));
    resolver.out
}

/// Resolves one more expression in the scope of a resolved script, as `raddle csp eval` does.
pub fn resolve_expr(ast: &mut Ast, resolved: Resolved, expr: ExprId) -> Resolved {
    let mut resolver = Resolver {
        ast,
        out: resolved,
        jobs: Vec::new(),
        frames: Vec::new(),
        scope: ScopeId(0),
        timed: None,
        local_timed: FxHashMap::default(),
        timed_decls: FxHashMap::default(),
        open: Vec::new(),
        open_lets: Vec::new(),
        instances: 0,
    };
    resolver.grow();
    resolver.expr(expr);
    resolver.out
}

impl Resolved {
    pub fn var(&self, id: VarId) -> &Var {
        &self.vars[id.index()]
    }

    pub fn expr_ref(&self, id: ExprId) -> Ref {
        self.refs.get(id.index()).copied().unwrap_or(Ref::Unresolved)
    }

    pub fn pat_ref(&self, id: PatId) -> PatRef {
        self.pat_refs.get(id.index()).copied().unwrap_or(PatRef::None)
    }

    /// The global defined under this name at the top of the script.
    pub fn global(&self, name: &str) -> Option<VarId> {
        self.scopes[0].names.get(name).map(|n| n.var)
    }

    /// The names at the top of the script that are defined by equations, sorted.
    pub fn defined_names(&self) -> Vec<Rc<str>> {
        let mut names: Vec<Rc<str>> = self.scopes[0]
            .names
            .iter()
            .filter(|(_, n)| matches!(self.var(n.var).kind, VarKind::Defined(_)))
            .map(|(name, _)| name.clone())
            .collect();
        names.sort();
        names
    }
}

impl Resolver<'_> {
    fn error(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.out.diagnostics.push(Diagnostic::error(Stage::Names, span, message));
        let last = self.out.diagnostics.len() - 1;
        &mut self.out.diagnostics[last]
    }

    /// Brings the tables beside the tree up to its size, which grows when modules are instantiated.
    fn grow(&mut self) {
        self.out.refs.resize(self.ast.expr_count(), Ref::Unresolved);
        self.out.pat_refs.resize(self.ast.pat_count(), PatRef::None);
    }
}

/// The known name nearest to a misspelt one, if one is near.
pub(super) fn nearest<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let limit = (wanted.chars().count() / 2).min(3);
    known
        .map(|name| (distance(wanted, name), name))
        .filter(|&(d, _)| d <= limit)
        .min()
        .map(|(_, name)| name.to_owned())
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
