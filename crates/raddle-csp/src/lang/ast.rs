//! The syntax tree.
//!
//! Nodes live in arenas and refer to each other by index. That keeps a prefix of a hundred thousand events (which is
//! what a recorded trace becomes) from being a hundred thousand nested boxes that overflow the stack when dropped,
//! and it lets later stages keep their results in plain vectors beside the tree.
//!
//! The tree is what was written: parentheses stay, sugar stays. Patterns are parsed as expressions first (CSPM cannot
//! tell them apart before it has seen the `=`, `<-` or `->` that follows) and then converted.

use std::rc::Rc;

use super::source::Span;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index!(
    /// An expression of an [`Ast`].
    ExprId
);
index!(
    /// A pattern of an [`Ast`].
    PatId
);
index!(
    /// A declaration of an [`Ast`].
    DeclId
);

/// An identifier and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    pub name: Rc<str>,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Eq,
    Ne,
    Lt,
    Gt,
    Le,
    Ge,
    And,
    Or,
    Concat,
}

impl BinOp {
    pub fn symbol(self) -> &'static str {
        match self {
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::Mul => "*",
            BinOp::Div => "/",
            BinOp::Mod => "%",
            BinOp::Eq => "==",
            BinOp::Ne => "!=",
            BinOp::Lt => "<",
            BinOp::Gt => ">",
            BinOp::Le => "<=",
            BinOp::Ge => ">=",
            BinOp::And => "and",
            BinOp::Or => "or",
            BinOp::Concat => "^",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnOp {
    Neg,
    Not,
    Length,
}

/// Process operators that take two processes and no set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProcOp {
    ExtChoice,
    IntChoice,
    Sliding,
    Interrupt,
    Then,
    Interleave,
}

impl ProcOp {
    pub fn symbol(self) -> &'static str {
        match self {
            ProcOp::ExtChoice => "[]",
            ProcOp::IntChoice => "|~|",
            ProcOp::Sliding => "[>",
            ProcOp::Interrupt => "/\\",
            ProcOp::Then => ";",
            ProcOp::Interleave => "|||",
        }
    }
}

/// Process operators that take two processes and one set of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncOp {
    Parallel,
    Exception,
    SyncChoice,
    SyncInterrupt,
}

impl SyncOp {
    pub fn symbols(self) -> (&'static str, &'static str) {
        match self {
            SyncOp::Parallel => ("[|", "|]"),
            SyncOp::Exception => ("[|", "|>"),
            SyncOp::SyncChoice => ("[+", "+]"),
            SyncOp::SyncInterrupt => ("/+", "+\\"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepOp {
    ExtChoice,
    IntChoice,
    Interleave,
    Then,
    Parallel {
        sync: ExprId,
    },
    SyncChoice {
        sync: ExprId,
    },
    /// The alphabet is written after the `@` and sees the bound variables.
    Alphabetised {
        alphabet: ExprId,
    },
    Linked {
        ties: Vec<(ExprId, ExprId)>,
        tie_stmts: Vec<Stmt>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// `?pattern` or `?pattern:set`
    Input(PatId, Option<ExprId>),
    /// `$pattern` or `$pattern:set`
    Choose(PatId, Option<ExprId>),
    /// `!expression`
    Output(ExprId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub kind: FieldKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stmt {
    Generator(PatId, ExprId),
    Condition(ExprId),
}

/// The contents of a sequence, set or production set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Items {
    List(Vec<ExprId>),
    From(ExprId),
    Range(ExprId, ExprId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// Stands where nothing could be parsed; a diagnostic has been issued.
    Error,
    Int(i64),
    Bool(bool),
    Char(char),
    Str(Rc<str>),
    /// A name, qualified by modules: `M::N::x`.
    Var(Vec<Ident>),
    /// Only meaningful until it becomes a pattern.
    Wildcard,
    /// `p @@ q`; only meaningful until it becomes a pattern.
    As(ExprId, ExprId),
    Paren(ExprId),
    Tuple(Vec<ExprId>),
    Dot(ExprId, ExprId),
    Call(ExprId, Vec<ExprId>),
    Lambda(Vec<PatId>, ExprId),
    Let(Vec<DeclId>, ExprId),
    If(ExprId, ExprId, ExprId),
    Binary(BinOp, ExprId, ExprId),
    Unary(UnOp, ExprId),
    Seq(Items, Vec<Stmt>),
    Set(Items, Vec<Stmt>),
    /// `{| |}`
    Productions(Vec<ExprId>, Vec<Stmt>),
    Map(Vec<(ExprId, ExprId)>),
    Prefix {
        channel: ExprId,
        fields: Vec<Field>,
        then: ExprId,
    },
    Guard(ExprId, ExprId),
    Process(ProcOp, ExprId, ExprId),
    Sync(SyncOp, ExprId, ExprId, ExprId),
    /// `P [A || B] Q`
    Alphabetised {
        left: ExprId,
        left_set: ExprId,
        right_set: ExprId,
        right: ExprId,
    },
    Linked {
        left: ExprId,
        ties: Vec<(ExprId, ExprId)>,
        stmts: Vec<Stmt>,
        right: ExprId,
    },
    Hide(ExprId, ExprId),
    Project(ExprId, ExprId),
    Rename {
        process: ExprId,
        pairs: Vec<(ExprId, ExprId)>,
        stmts: Vec<Stmt>,
    },
    Replicated {
        op: RepOp,
        stmts: Vec<Stmt>,
        body: ExprId,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pat {
    Error,
    /// Binds, unless the name is a datatype constructor or channel in scope.
    Name(Ident),
    /// A qualified name always means a constructor.
    Path(Vec<Ident>),
    Wildcard,
    Int(i64),
    Bool(bool),
    Char(char),
    Str(Rc<str>),
    Tuple(Vec<PatId>),
    Seq(Vec<PatId>),
    Set(Vec<PatId>),
    Concat(PatId, PatId),
    Dot(PatId, PatId),
    As(PatId, PatId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Curried groups of arguments: `f(x)(y,z)` has two.
    pub groups: Vec<Vec<PatId>>,
    pub body: ExprId,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    pub name: Ident,
    pub fields: Option<ExprId>,
}

/// A written type, in `name :: type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeExpr {
    /// `Int`, `Proc`, a datatype, or a type variable when it begins with a small letter.
    Name(Vec<Ident>),
    Set(Box<TypeExpr>),
    Seq(Box<TypeExpr>),
    Tuple(Vec<TypeExpr>),
    Map(Box<TypeExpr>, Box<TypeExpr>),
    Function(Vec<TypeExpr>, Box<TypeExpr>),
    Dot(Vec<TypeExpr>),
    /// `a => b`: becomes a `b` once dotted with an `a`.
    Dotable(Box<TypeExpr>, Box<TypeExpr>),
    /// `a =>* b`: is a `b`, or becomes one once dotted with something.
    Extendable(Box<TypeExpr>, Box<TypeExpr>),
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SemanticModel {
    Traces,
    Failures,
    FailuresDivergences,
    Revivals,
    RevivalsDivergences,
    Refusals,
    RefusalsDivergences,
    /// `[TP=`, and `V`, `R` and their kin in properties: read; there is no answer for the assertion.
    Unsupported,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartialOrder {
    Fast,
    Precise,
    Hybrid,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Property {
    Refines {
        model: SemanticModel,
        spec: ExprId,
        implementation: ExprId,
    },
    DeadlockFree {
        model: SemanticModel,
        process: ExprId,
    },
    DivergenceFree {
        process: ExprId,
    },
    Deterministic {
        model: SemanticModel,
        process: ExprId,
    },
    HasTrace {
        model: SemanticModel,
        process: ExprId,
        trace: ExprId,
    },
    /// FDR knows it and we do not: the assertion gets no answer, the rest of the script is not concerned.
    Unsupported {
        subjects: Vec<ExprId>,
        what: Rc<str>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assertion {
    pub negated: bool,
    pub property: Property,
    pub partial_order: Option<PartialOrder>,
    pub tau_priority: Option<ExprId>,
    /// The types and sets of `:[symmetry reduce]:`; they have to make sense and do not change the verdict.
    pub symmetric_in: Vec<ExprId>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decl {
    /// A function, or a constant when a clause has no groups.
    Function {
        name: Ident,
        clauses: Vec<Clause>,
    },
    Pattern {
        pat: PatId,
        body: ExprId,
    },
    Channel {
        names: Vec<Ident>,
        fields: Option<ExprId>,
    },
    Datatype {
        name: Ident,
        variants: Vec<Variant>,
    },
    Subtype {
        name: Ident,
        variants: Vec<Variant>,
    },
    Nametype {
        name: Ident,
        set: ExprId,
    },
    External(Vec<Ident>),
    Transparent(Vec<Ident>),
    Signature {
        names: Vec<Ident>,
        /// `Eq a`, `Set b`: the class and the variable.
        classes: Vec<(Ident, Ident)>,
        ty: TypeExpr,
    },
    Assert(Assertion),
    Print(ExprId),
    Include {
        path: Rc<str>,
    },
    Module {
        name: Ident,
        params: Vec<Ident>,
        private: Vec<DeclId>,
        public: Vec<DeclId>,
    },
    Instance {
        name: Ident,
        module: Vec<Ident>,
        args: Vec<ExprId>,
    },
    Timed {
        duration: Option<ExprId>,
        decls: Vec<DeclId>,
    },
}

#[derive(Clone, Debug, Default)]
pub struct Ast {
    exprs: Vec<(Expr, Span)>,
    pats: Vec<(Pat, Span)>,
    decls: Vec<(Decl, Span)>,
    /// The declarations of the script in order, includes spliced in.
    pub top: Vec<DeclId>,
    /// `True` and `False` are constructors of the script; from the declaration on, also in further expressions.
    pub truth_is_declared: bool,
}

impl Ast {
    pub fn add_expr(&mut self, expr: Expr, span: Span) -> ExprId {
        self.exprs.push((expr, span));
        ExprId((self.exprs.len() - 1) as u32)
    }

    pub fn add_pat(&mut self, pat: Pat, span: Span) -> PatId {
        self.pats.push((pat, span));
        PatId((self.pats.len() - 1) as u32)
    }

    pub fn add_decl(&mut self, decl: Decl, span: Span) -> DeclId {
        self.decls.push((decl, span));
        DeclId((self.decls.len() - 1) as u32)
    }

    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()].0
    }

    pub fn set_expr(&mut self, id: ExprId, expr: Expr) {
        self.exprs[id.index()].0 = expr;
    }

    pub fn span(&self, id: ExprId) -> Span {
        self.exprs[id.index()].1
    }

    pub fn pat(&self, id: PatId) -> &Pat {
        &self.pats[id.index()].0
    }

    pub fn pat_span(&self, id: PatId) -> Span {
        self.pats[id.index()].1
    }

    pub fn decl(&self, id: DeclId) -> &Decl {
        &self.decls[id.index()].0
    }

    pub fn decl_mut(&mut self, id: DeclId) -> &mut Decl {
        &mut self.decls[id.index()].0
    }

    pub fn decl_span(&self, id: DeclId) -> Span {
        self.decls[id.index()].1
    }

    pub fn set_decl_span(&mut self, id: DeclId, span: Span) {
        self.decls[id.index()].1 = span;
    }

    pub fn expr_count(&self) -> usize {
        self.exprs.len()
    }

    pub fn pat_count(&self) -> usize {
        self.pats.len()
    }

    pub fn decl_count(&self) -> usize {
        self.decls.len()
    }

    /// The expression without the parentheses around it.
    pub fn peel(&self, mut id: ExprId) -> ExprId {
        while let Expr::Paren(inner) = self.expr(id) {
            id = *inner;
        }
        id
    }
}
