//! Golden tests: a script, the tree as an s-expression, the diagnostics.

use expect_test::{Expect, expect};

use super::*;
use crate::lang::ast::{Decl, FieldKind, Items, Pat, PatId, RepOp, Stmt};
use crate::lang::diagnostic::render;
use crate::lang::source::SourceMap;

struct Dump<'a>(&'a Ast);

impl Dump<'_> {
    fn list(&self, ids: &[ExprId]) -> String {
        ids.iter().map(|&id| self.expr(id)).collect::<Vec<_>>().join(" ")
    }

    fn pats(&self, ids: &[PatId]) -> String {
        ids.iter().map(|&id| self.pat(id)).collect::<Vec<_>>().join(" ")
    }

    fn pat(&self, id: PatId) -> String {
        match self.0.pat(id) {
            Pat::Error => "ERROR".into(),
            Pat::Name(name) => name.name.to_string(),
            Pat::Path(path) => path.iter().map(|i| i.name.to_string()).collect::<Vec<_>>().join("::"),
            Pat::Wildcard => "_".into(),
            Pat::Int(n) => n.to_string(),
            Pat::Bool(b) => b.to_string(),
            Pat::Char(c) => format!("{c:?}"),
            Pat::Str(s) => format!("{s:?}"),
            Pat::Tuple(list) => format!("(tuple {})", self.pats(list)),
            Pat::Seq(list) => format!("<{}>", self.pats(list)),
            Pat::Set(list) => format!("{{{}}}", self.pats(list)),
            Pat::Concat(a, b) => format!("(^ {} {})", self.pat(*a), self.pat(*b)),
            Pat::Dot(a, b) => format!("(. {} {})", self.pat(*a), self.pat(*b)),
            Pat::As(a, b) => format!("(@@ {} {})", self.pat(*a), self.pat(*b)),
        }
    }

    fn stmts(&self, stmts: &[Stmt]) -> String {
        let mut out = String::new();
        for stmt in stmts {
            out.push_str(&match stmt {
                Stmt::Generator(p, e) => format!(" [{} <- {}]", self.pat(*p), self.expr(*e)),
                Stmt::Condition(e) => format!(" [{}]", self.expr(*e)),
            });
        }
        out
    }

    fn items(&self, items: &Items) -> String {
        match items {
            Items::List(list) => self.list(list),
            Items::From(a) => format!("{}..", self.expr(*a)),
            Items::Range(a, b) => format!("{}..{}", self.expr(*a), self.expr(*b)),
        }
    }

    fn pairs(&self, pairs: &[(ExprId, ExprId)]) -> String {
        pairs
            .iter()
            .map(|&(a, b)| format!("({} {})", self.expr(a), self.expr(b)))
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn expr(&self, id: ExprId) -> String {
        match self.0.expr(id) {
            Expr::Error => "ERROR".into(),
            Expr::Int(n) => n.to_string(),
            Expr::Bool(b) => b.to_string(),
            Expr::Char(c) => format!("{c:?}"),
            Expr::Str(s) => format!("{s:?}"),
            Expr::Var(path) => path.iter().map(|i| i.name.to_string()).collect::<Vec<_>>().join("::"),
            Expr::Wildcard => "_".into(),
            Expr::As(a, b) => format!("(@@ {} {})", self.expr(*a), self.expr(*b)),
            Expr::Paren(e) => self.expr(*e),
            Expr::Tuple(list) => format!("(tuple {})", self.list(list)),
            Expr::Dot(a, b) => format!("(. {} {})", self.expr(*a), self.expr(*b)),
            Expr::Call(f, args) => format!("(call {})", self.list(&[&[*f], &args[..]].concat())),
            Expr::Lambda(pats, body) => format!("(fn ({}) {})", self.pats(pats), self.expr(*body)),
            Expr::Let(decls, body) => {
                let decls = decls.iter().map(|&d| self.decl(d)).collect::<Vec<_>>().join(" ");
                format!("(let ({decls}) {})", self.expr(*body))
            }
            Expr::If(a, b, c) => format!("(if {})", self.list(&[*a, *b, *c])),
            Expr::Binary(op, a, b) => format!("({} {})", op.symbol(), self.list(&[*a, *b])),
            Expr::Unary(op, a) => format!("({op:?} {})", self.expr(*a)),
            Expr::Seq(items, stmts) => format!("<{}{}>", self.items(items), self.stmts(stmts)),
            Expr::Set(items, stmts) => format!("{{{}{}}}", self.items(items), self.stmts(stmts)),
            Expr::Productions(list, stmts) => format!("{{|{}{}|}}", self.list(list), self.stmts(stmts)),
            Expr::Map(entries) => format!("(map {})", self.pairs(entries)),
            Expr::Prefix { channel, fields, then } => {
                let mut out = format!("(-> {}", self.expr(*channel));
                for field in fields {
                    let (sign, pat, set) = match &field.kind {
                        FieldKind::Input(p, set) => ('?', self.pat(*p), *set),
                        FieldKind::Choose(p, set) => ('$', self.pat(*p), *set),
                        FieldKind::Output(e) => ('!', self.expr(*e), None),
                    };
                    out.push_str(&format!(" {sign}{pat}"));
                    if let Some(set) = set {
                        out.push_str(&format!(":{}", self.expr(set)));
                    }
                }
                format!("{out} {})", self.expr(*then))
            }
            Expr::Guard(a, b) => format!("(& {})", self.list(&[*a, *b])),
            Expr::Process(op, a, b) => format!("({} {})", op.symbol(), self.list(&[*a, *b])),
            Expr::Sync(op, a, set, b) => {
                let (open, close) = op.symbols();
                format!("({open}{close} {})", self.list(&[*a, *set, *b]))
            }
            Expr::Alphabetised { left, left_set, right_set, right } => {
                format!("(|| {})", self.list(&[*left, *left_set, *right_set, *right]))
            }
            Expr::Linked { left, ties, stmts, right } => format!(
                "(<-> {} ({}){} {})",
                self.expr(*left),
                self.pairs(ties),
                self.stmts(stmts),
                self.expr(*right)
            ),
            Expr::Hide(a, b) => format!("(\\ {})", self.list(&[*a, *b])),
            Expr::Project(a, b) => format!("(|\\ {})", self.list(&[*a, *b])),
            Expr::Rename { process, pairs, stmts } => {
                format!("([[]] {} {}{})", self.expr(*process), self.pairs(pairs), self.stmts(stmts))
            }
            Expr::Replicated { op, stmts, body } => {
                let op = match op {
                    RepOp::ExtChoice => "[]".to_owned(),
                    RepOp::IntChoice => "|~|".to_owned(),
                    RepOp::Interleave => "|||".to_owned(),
                    RepOp::Then => ";".to_owned(),
                    RepOp::Parallel { sync } => format!("[|{}|]", self.expr(*sync)),
                    RepOp::SyncChoice { sync } => format!("[+{}+]", self.expr(*sync)),
                    RepOp::Alphabetised { alphabet } => format!("||[{}]", self.expr(*alphabet)),
                    RepOp::Linked { ties, tie_stmts } => {
                        format!("[{}{}]", self.pairs(ties), self.stmts(tie_stmts))
                    }
                };
                format!("(rep {op}{} {})", self.stmts(stmts), self.expr(*body))
            }
        }
    }

    fn decl(&self, id: DeclId) -> String {
        match self.0.decl(id) {
            Decl::Function { name, clauses } => {
                let mut out = format!("(def {}", name.name);
                for clause in clauses {
                    for group in &clause.groups {
                        out.push_str(&format!(" ({})", self.pats(group)));
                    }
                    out.push_str(&format!(" {}", self.expr(clause.body)));
                }
                out + ")"
            }
            Decl::Pattern { pat, body } => format!("(match {} {})", self.pat(*pat), self.expr(*body)),
            Decl::Channel { names, fields } => {
                let names = names.iter().map(|n| n.name.to_string()).collect::<Vec<_>>().join(" ");
                format!(
                    "(channel {names}{})",
                    fields.map(|f| format!(" : {}", self.expr(f))).unwrap_or_default()
                )
            }
            Decl::Datatype { name, variants } | Decl::Subtype { name, variants } => {
                let mut out = format!("(data {}", name.name);
                for v in variants {
                    out.push_str(&format!(" {}", v.name.name));
                    if let Some(fields) = v.fields {
                        out.push_str(&format!(".{}", self.expr(fields)));
                    }
                }
                out + ")"
            }
            Decl::Nametype { name, set } => format!("(nametype {} {})", name.name, self.expr(*set)),
            Decl::Module { name, params, private, public } => {
                let all =
                    |decls: &[DeclId]| decls.iter().map(|&d| self.decl(d)).collect::<Vec<_>>().join(" ");
                format!("(module {} {} ({}) ({}))", name.name, params.len(), all(private), all(public))
            }
            Decl::Instance { name, args, .. } => format!("(instance {} {})", name.name, self.list(args)),
            Decl::Timed { decls, .. } => {
                format!("(timed {})", decls.iter().map(|&d| self.decl(d)).collect::<Vec<_>>().join(" "))
            }
            Decl::Print(e) => format!("(print {})", self.expr(*e)),
            Decl::Assert(a) => format!("(assert {}{:?})", if a.negated { "not " } else { "" }, a.property),
            other => format!("{other:?}"),
        }
    }
}

fn check(text: &str, expect: Expect) {
    let mut sources = SourceMap::default();
    let file = sources.add("test.csp", text);
    let mut ast = Ast::default();
    let (decls, diagnostics) = parse_file(&mut ast, file, text);
    let dump = Dump(&ast);
    let mut out: String = decls.iter().map(|&d| dump.decl(d) + "\n").collect();
    out.push_str(&render(&sources, &diagnostics, false));
    expect.assert_eq(&out);
}

#[test]
fn prefix_binds_tighter_than_every_composition() {
    check(
        "P = a -> b -> STOP [] c?x:S!y -> Q ; R ||| S \\ A",
        expect![[r#"
        (def P (\ (||| ([] (-> a (-> b STOP)) (; (-> c ?x:S !y Q) R)) S) A))
    "#]],
    );
}

#[test]
fn parallel_operators() {
    check(
        "P = A [| s |] B [| t |> C\nQ = A [ s || t ] B\nR = A [ x <-> y, u.v <-> w | v <- s ] B\nS = A /\\ B [> C |~| D\nT = A [+ s +] B /+ s +\\ C",
        expect![[r#"
            (def P ([||> ([||] A s B) t C))
            (def Q (|| A s t B))
            (def R (<-> A ((x y) ((. u v) w)) [v <- s] B))
            (def S (|~| (/\ A ([> B C)) D))
            (def T ([++] A s (/++\ B s C)))
        "#]],
    );
}

#[test]
fn replicated_operators_reach_to_the_right() {
    check(
        "P = ||| x : S, y : T, x != y @ Q(x) ||| R\nA = || i : S @ [al(i)] P(i)\nB = [| s |] i : S @ P(i)\nC = ; i : <1..3> @ P(i)\nD = [ a <-> b ] i : <1..3> @ P(i)",
        expect![[r#"
            (def P (rep ||| [x <- S] [y <- T] [(!= x y)] (||| (call Q x) R)))
            (def A (rep ||[(call al i)] [i <- S] (call P i)))
            (def B (rep [|s|] [i <- S] (call P i)))
            (def C (rep ; [i <- <1..3>] (call P i)))
            (def D (rep [(a b)] [i <- <1..3>] (call P i)))
        "#]],
    );
}

#[test]
fn the_greater_sign_closes_or_compares() {
    check(
        "a = <x > y, 1>\nb = <x | x <- s, x > 3>\nc = <1> ^ <2>\nd = <<1>,<2,3>>\ne = if x > y then <> else <(x > y)>\nf = #<1> > 0\ng = <1..>\nh = <x | x <- <1..3>>",
        expect![[r#"
            (def a <(> x y) 1>)
            (def b <x [x <- s] [(> x 3)]>)
            (def c (^ <1> <2>))
            (def d <<1> <2 3>>)
            (def e (if (> x y) <> <(> x y)>))
            (def f (> (Length <1>) 0))
            (def g <1..>)
            (def h <x [x <- <1..3>]>)
        "#]],
    );
}

#[test]
fn clauses_of_a_function_are_joined() {
    check(
        "f(0) = 1\nf(n) = n * f(n-1)\ng(<x>^s)(_, a@@b.c) = s\n(p,q) = f(3)",
        expect![[r#"
        (def f (0) 1 (n) (* n (call f (- n 1))))
        (def g ((^ <x> s)) (_ (@@ a (. b c))) s)
        (match (tuple p q) (call f 3))
    "#]],
    );
}

#[test]
fn arithmetic_and_dots() {
    check(
        "x = c.n+1.-2\ny = not a == b and c or d\nz = #s^t == 3\nw = -a*b - c",
        expect![[r#"
        (def x (. c (. (+ n 1) (Neg 2))))
        (def y (or (and (Not (== a b)) c) d))
        (def z (== (Length (^ s t)) 3))
        (def w (- (Neg (* a b)) c))
    "#]],
    );
}

#[test]
fn sets_maps_and_comprehensions() {
    check(
        "a = {| c, d.x | x <- S |}\nb = {0..3}\nc = {x+y | x <- {0..}, y : T, x > y}\nd = (| 1 => a, 2 => b |)\ne = (||)\nf = {}\ng = \\ x, (y,_) @ x",
        expect![[r#"
            (def a {|c (. d x) [x <- S]|})
            (def b {0..3})
            (def c {(+ x y) [x <- {0..}] [y <- T] [(> x y)]})
            (def d (map (1 a) (2 b)))
            (def e (map ))
            (def f {})
            (def g (fn (x (tuple y _)) x))
        "#]],
    );
}

#[test]
fn types_modules_and_timed_sections() {
    check(
        "channel a, b : {0..1}.T\ndatatype D = A | B.{0..1}.D\nnametype N = {1,2}\nmodule M(n)\n  x = n\nexports\n  y = x\nendmodule\ninstance I = M(3)\nTimed(one) {\n  P = a -> P\n}\nprint I::y",
        expect![[r#"
            (channel a b : (. {0..1} T))
            (data D A B.(. {0..1} D))
            (nametype N {1 2})
            (module M 1 ((def x n)) ((def y x)))
            (instance I 3)
            (timed (def P (-> a P)))
            (print I::y)
        "#]],
    );
}

#[test]
fn renaming_and_application_bind_tightest() {
    check(
        "P = a -> Q(1)[[ a <- b, c.x <- d.x | x <- S ]] [] R\n  [[ e <- f ]]",
        expect![[r#"
        (def P ([] (-> a ([[]] (call Q 1) (a b) ((. c x) (. d x)) [x <- S])) ([[]] R (e f))))
    "#]],
    );
}

#[test]
fn recovers_at_the_next_declaration() {
    check(
        "P = a -> -> STOP\n    [] b -> STOP\nQ = (b -> STOP\nR = c -> STOP",
        expect![[r#"
        (def R (-> c STOP))
        error: expected an expression, found `->`
         --> test.csp:1:10
          |
        1 | P = a -> -> STOP
          |          ^^ not expected here

        error: expected `)`, found `R`
         --> test.csp:4:1
          |
        4 | R = c -> STOP
          | ^ not expected here
    "#]],
    );
}

#[test]
fn unsupported_models_and_properties_are_named() {
    check(
        "assert P [V= Q\nassert P :[fair [x]]: {a}, 1\nassert P :[deadlock free] :[in haste: 3]\nassert P :[fair\nassert P :[deadlock free [R]]",
        expect![[r#"
            (assert Refines { model: Revivals, spec: ExprId(0), implementation: ExprId(1) })
            (assert Unsupported { subjects: [ExprId(2)], what: "the property `fair`" })
            (assert Unsupported { subjects: [ExprId(6)], what: "the option `in haste`" })
            (assert Unsupported { subjects: [ExprId(8)], what: "the semantic model `R`" })
            error: expected `]` after the property, found `assert`
             --> test.csp:5:1
              |
            5 | assert P :[deadlock free [R]]
              | ^^^^^^ not expected here
        "#]],
    );
}

#[test]
fn a_let_without_within_is_reported() {
    check(
        "P = let x = 3 in x\nQ = STOP",
        expect![[r#"
        error: expected the end of the declaration, found `in`
         --> test.csp:1:15
          |
        1 | P = let x = 3 in x
          |               ^^ not expected here
    "#]],
    );
}

#[test]
fn deep_nesting_is_refused_and_long_chains_are_read() {
    let mut ast = Ast::default();
    let deep = format!("P = {}STOP{}", "(".repeat(100_000), ")".repeat(100_000));
    let (_, diagnostics) = parse_file(&mut ast, FileId(0), &deep);
    assert_eq!(diagnostics[0].message, "this is nested too deeply");
    let long = format!("P = {}STOP", "a -> ".repeat(100_000));
    let (decls, diagnostics) = parse_file(&mut ast, FileId(0), &long);
    assert_eq!((decls.len(), diagnostics.len()), (1, 0));
    let wide = format!("P = STOP{}", " ||| STOP".repeat(100_000));
    let (decls, diagnostics) = parse_file(&mut ast, FileId(0), &wide);
    assert_eq!((decls.len(), diagnostics.len()), (1, 0));
}

#[test]
fn a_set_follows_a_hiding_and_not_a_process() {
    check(
        "P = Q \\ {a} ||| R\nS = Q ||| R \\ {a} [] Q ; R\nT = Q \\ A \\ B\nU = Q |\\ A /\\ R\nV = a -> Q \\ {a} [| A |] R",
        expect![[r#"
            (def P (||| (\ Q {a}) R))
            (def S ([] (\ (||| Q R) {a}) (; Q R)))
            (def T (\ (\ Q A) B))
            (def U (/\ (|\ Q A) R))
            (def V ([||] (\ (-> a Q) {a}) A R))
        "#]],
    );
}

#[test]
fn a_pattern_on_a_new_line_begins_a_declaration() {
    check(
        "x = (1, 2)\n<h>^t = <1, 2>\ny = 3 <\n  4",
        expect![[r#"
        (def x (tuple 1 2))
        (match (^ <h> t) <1 2>)
        (def y (< 3 4))
    "#]],
    );
}

#[test]
fn older_spellings_of_properties_are_read() {
    check(
        "assert P :[deadlock-free [F]]\nassert P :[divergence-free]\nassert P :[has trace] <a>\nassert P :[has trace]: <a>",
        expect![[r#"
            (assert DeadlockFree { model: Failures, process: ExprId(0) })
            (assert DivergenceFree { process: ExprId(1) })
            (assert HasTrace { model: Traces, process: ExprId(2), trace: ExprId(4) })
            (assert HasTrace { model: Traces, process: ExprId(5), trace: ExprId(7) })
        "#]],
    );
}
