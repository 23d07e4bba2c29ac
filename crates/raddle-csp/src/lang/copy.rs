//! Copies declarations inside a tree.
//!
//! An instance of a parameterised module is a fresh copy of the module's declarations: its datatypes and channels are
//! its own, and each copy is resolved, typed and evaluated on its own, like a template.

use super::ast::{
    Ast, Clause, Decl, DeclId, Expr, ExprId, Field, FieldKind, Items, Pat, PatId, RepOp, Stmt, Variant,
};

pub struct Copier<'a>(pub &'a mut Ast);

impl Copier<'_> {
    pub fn decls(&mut self, ids: &[DeclId]) -> Vec<DeclId> {
        ids.iter().map(|&id| self.decl(id)).collect()
    }

    fn decl(&mut self, id: DeclId) -> DeclId {
        let span = self.0.decl_span(id);
        let decl = match self.0.decl(id).clone() {
            Decl::Function { name, clauses } => Decl::Function {
                name,
                clauses: clauses
                    .into_iter()
                    .map(|c| Clause {
                        groups: c.groups.iter().map(|g| self.pats(g)).collect(),
                        body: self.expr(c.body),
                        span: c.span,
                    })
                    .collect(),
            },
            Decl::Pattern { pat, body } => Decl::Pattern { pat: self.pat(pat), body: self.expr(body) },
            Decl::Channel { names, fields } => Decl::Channel { names, fields: fields.map(|f| self.expr(f)) },
            Decl::Datatype { name, variants } => Decl::Datatype { name, variants: self.variants(variants) },
            Decl::Subtype { name, variants } => Decl::Subtype { name, variants: self.variants(variants) },
            Decl::Nametype { name, set } => Decl::Nametype { name, set: self.expr(set) },
            Decl::Module { name, params, private, public } => {
                Decl::Module { name, params, private: self.decls(&private), public: self.decls(&public) }
            }
            Decl::Instance { name, module, args } => Decl::Instance { name, module, args: self.exprs(&args) },
            Decl::Timed { duration, decls } => {
                Decl::Timed { duration: duration.map(|d| self.expr(d)), decls: self.decls(&decls) }
            }
            Decl::Print(expr) => Decl::Print(self.expr(expr)),
            // Assertions are not allowed in modules; the rest refers to no expression.
            other @ (Decl::Assert(_)
            | Decl::External(_)
            | Decl::Transparent(_)
            | Decl::Signature { .. }
            | Decl::Include { .. }) => other,
        };
        self.0.add_decl(decl, span)
    }

    fn variants(&mut self, variants: Vec<Variant>) -> Vec<Variant> {
        variants
            .into_iter()
            .map(|v| Variant { name: v.name, fields: v.fields.map(|f| self.expr(f)) })
            .collect()
    }

    fn exprs(&mut self, ids: &[ExprId]) -> Vec<ExprId> {
        ids.iter().map(|&id| self.expr(id)).collect()
    }

    fn pairs(&mut self, pairs: &[(ExprId, ExprId)]) -> Vec<(ExprId, ExprId)> {
        pairs.iter().map(|&(a, b)| (self.expr(a), self.expr(b))).collect()
    }

    fn stmts(&mut self, stmts: &[Stmt]) -> Vec<Stmt> {
        stmts
            .iter()
            .map(|stmt| match stmt {
                Stmt::Generator(pat, expr) => Stmt::Generator(self.pat(*pat), self.expr(*expr)),
                Stmt::Condition(expr) => Stmt::Condition(self.expr(*expr)),
            })
            .collect()
    }

    fn items(&mut self, items: Items) -> Items {
        match items {
            Items::List(list) => Items::List(self.exprs(&list)),
            Items::From(a) => Items::From(self.expr(a)),
            Items::Range(a, b) => Items::Range(self.expr(a), self.expr(b)),
        }
    }

    fn pats(&mut self, ids: &[PatId]) -> Vec<PatId> {
        ids.iter().map(|&id| self.pat(id)).collect()
    }

    fn pat(&mut self, id: PatId) -> PatId {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.copy_pat(id))
    }

    fn copy_pat(&mut self, id: PatId) -> PatId {
        let span = self.0.pat_span(id);
        let pat = match self.0.pat(id).clone() {
            Pat::Tuple(list) => Pat::Tuple(self.pats(&list)),
            Pat::Seq(list) => Pat::Seq(self.pats(&list)),
            Pat::Set(list) => Pat::Set(self.pats(&list)),
            Pat::Concat(a, b) => Pat::Concat(self.pat(a), self.pat(b)),
            Pat::Dot(a, b) => Pat::Dot(self.pat(a), self.pat(b)),
            Pat::As(a, b) => Pat::As(self.pat(a), self.pat(b)),
            leaf => leaf,
        };
        self.0.add_pat(pat, span)
    }

    fn expr(&mut self, id: ExprId) -> ExprId {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.copy_expr(id))
    }

    fn copy_expr(&mut self, id: ExprId) -> ExprId {
        let span = self.0.span(id);
        let expr = match self.0.expr(id).clone() {
            Expr::As(a, b) => Expr::As(self.expr(a), self.expr(b)),
            Expr::Paren(a) => Expr::Paren(self.expr(a)),
            Expr::Tuple(list) => Expr::Tuple(self.exprs(&list)),
            Expr::Dot(a, b) => Expr::Dot(self.expr(a), self.expr(b)),
            Expr::Call(f, args) => Expr::Call(self.expr(f), self.exprs(&args)),
            Expr::Lambda(pats, body) => Expr::Lambda(self.pats(&pats), self.expr(body)),
            Expr::Let(decls, body) => Expr::Let(self.decls(&decls), self.expr(body)),
            Expr::If(a, b, c) => Expr::If(self.expr(a), self.expr(b), self.expr(c)),
            Expr::Binary(op, a, b) => Expr::Binary(op, self.expr(a), self.expr(b)),
            Expr::Unary(op, a) => Expr::Unary(op, self.expr(a)),
            Expr::Seq(items, stmts) => Expr::Seq(self.items(items), self.stmts(&stmts)),
            Expr::Set(items, stmts) => Expr::Set(self.items(items), self.stmts(&stmts)),
            Expr::Productions(list, stmts) => Expr::Productions(self.exprs(&list), self.stmts(&stmts)),
            Expr::Map(entries) => Expr::Map(self.pairs(&entries)),
            Expr::Prefix { channel, fields, then } => Expr::Prefix {
                channel: self.expr(channel),
                fields: fields
                    .into_iter()
                    .map(|field| Field {
                        kind: match field.kind {
                            FieldKind::Input(p, s) => FieldKind::Input(self.pat(p), s.map(|s| self.expr(s))),
                            FieldKind::Choose(p, s) => {
                                FieldKind::Choose(self.pat(p), s.map(|s| self.expr(s)))
                            }
                            FieldKind::Output(e) => FieldKind::Output(self.expr(e)),
                        },
                        span: field.span,
                    })
                    .collect(),
                then: self.expr(then),
            },
            Expr::Guard(a, b) => Expr::Guard(self.expr(a), self.expr(b)),
            Expr::Process(op, a, b) => Expr::Process(op, self.expr(a), self.expr(b)),
            Expr::Sync(op, a, s, b) => Expr::Sync(op, self.expr(a), self.expr(s), self.expr(b)),
            Expr::Alphabetised { left, left_set, right_set, right } => Expr::Alphabetised {
                left: self.expr(left),
                left_set: self.expr(left_set),
                right_set: self.expr(right_set),
                right: self.expr(right),
            },
            Expr::Linked { left, ties, stmts, right } => Expr::Linked {
                left: self.expr(left),
                ties: self.pairs(&ties),
                stmts: self.stmts(&stmts),
                right: self.expr(right),
            },
            Expr::Hide(a, b) => Expr::Hide(self.expr(a), self.expr(b)),
            Expr::Project(a, b) => Expr::Project(self.expr(a), self.expr(b)),
            Expr::Rename { process, pairs, stmts } => Expr::Rename {
                process: self.expr(process),
                pairs: self.pairs(&pairs),
                stmts: self.stmts(&stmts),
            },
            Expr::Replicated { op, stmts, body } => Expr::Replicated {
                op: match op {
                    RepOp::Parallel { sync } => RepOp::Parallel { sync: self.expr(sync) },
                    RepOp::SyncChoice { sync } => RepOp::SyncChoice { sync: self.expr(sync) },
                    RepOp::Alphabetised { alphabet } => RepOp::Alphabetised { alphabet: self.expr(alphabet) },
                    RepOp::Linked { ties, tie_stmts } => {
                        RepOp::Linked { ties: self.pairs(&ties), tie_stmts: self.stmts(&tie_stmts) }
                    }
                    plain => plain,
                },
                stmts: self.stmts(&stmts),
                body: self.expr(body),
            },
            leaf => leaf,
        };
        self.0.add_expr(expr, span)
    }
}
