//! Golden tests: inferred types, and the messages for what does not fit.

mod fdr;

use expect_test::{Expect, expect};

use crate::lang::diagnostic::render;
use crate::lang::load::{Disk, load_text};
use crate::lang::resolve::resolve;

fn check(text: &str, expect: Expect) {
    let mut loaded = load_text(&Disk, "test.csp", text);
    let resolved = resolve(&mut loaded.ast);
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    assert!(resolved.diagnostics.is_empty(), "{:?}", resolved.diagnostics);
    let types = super::check(&loaded.ast, &resolved);
    let mut out = String::new();
    if types.diagnostics.is_empty() {
        for name in resolved.defined_names() {
            if let Some(var) = resolved.global(&name) {
                let process = if types.processes.contains(&var) { "  -- process" } else { "" };
                out.push_str(&format!("{name} :: {}{process}\n", types.shown[&var]));
            }
        }
    }
    out.push_str(&render(&loaded.sources, &types.diagnostics, false));
    expect.assert_eq(&out);
}

#[test]
fn polymorphic_functions() {
    check(
        "id(x) = x\nfold(f,e,<>) = e\nfold(f,e,<x>^s) = f(x, fold(f,e,s))\nsum(s) = fold(\\ x,y @ x+y, 0, s)\npair = (id(1), id(true))\nodd(0) = false\nodd(n) = even(n-1)\neven(0) = true\neven(n) = odd(n-1)\ncurried(x)(y) = <x> ^ y\nm = mapUpdate(emptyMap, 1, {true})",
        expect![[r#"
            curried :: (a) -> (<a>) -> <a>
            even :: (Int) -> Bool
            fold :: ((a, b) -> b, b, <a>) -> b
            id :: (a) -> a
            m :: (| Int => {Bool} |)
            odd :: (Int) -> Bool
            pair :: (Int, Bool)
            sum :: (<Int>) -> Int
        "#]],
    );
}

#[test]
fn channels_datatypes_and_dots() {
    check(
        "datatype D = A | B.{0..1}.Bool | N.D.D\nnametype Pair = {0..1}.{0..2}\nchannel c : D.Int\nchannel d, e\nchannel p : Pair.Bool\nP = c.B.0.true?x -> d -> P [] p?x?b -> c!A!0 -> P\nQ(k, t) = k.t.0 -> k.t?y -> Q(k, t)\nR(k) = STOP \\ {| k |}\nx = B.0\ny = c.B.1\nf(N.a.b) = f(a)\nf(B.n._) = n\nf(A) = 0\nS = Q(c, A) [[ d <- e, c.A <- c.A ]] [| {| c, d |} |] R(c)\nz = {c.A.0, d}\nT(w) = p.w -> STOP",
        expect![[r#"
            P :: Proc  -- process
            Q :: (a.Int => Event, a) -> Proc  -- process
            R :: (a) -> Proc  -- process
            S :: Proc  -- process
            T :: (Int.Int.Bool) -> Proc  -- process
            f :: (D) -> Int
            x :: Bool => D
            y :: Bool.Int => Event
            z :: {Event}
        "#]],
    );
}

#[test]
fn signatures_are_checked() {
    check(
        "f :: (Int) -> {Event}\nf(x) = x\ng :: Eq a => (a, <a>) -> Bool\ng(x, s) = elem(x, s)",
        expect![[r#"
        error: expected the type `(Int) -> {Event}`, found `(Int) -> Int`
         --> test.csp:2:1
          |
        2 | f(x) = x
          | ^^^^^^^^ this has the type `(Int) -> Int`
          |
          = note: it is a clause of `f`, whose other clauses or uses say so
    "#]],
    );
}

#[test]
fn an_event_is_not_a_process() {
    check(
        "channel a\nP = a -> a",
        expect![[r#"
        error: expected the type `Proc`, found `Event`
         --> test.csp:2:10
          |
        2 | P = a -> a
          |          ^ this has the type `Event`
          |
          = note: it is what follows `->`
          = note: an event becomes a process by `event -> Process`
    "#]],
    );
}

#[test]
fn a_channel_that_lacks_fields() {
    check(
        "channel c : {0..1}.Bool\nP = c.0 -> STOP",
        expect![[r#"
        error: expected the type `Event`, found `Bool => Event`
         --> test.csp:2:5
          |
        2 | P = c.0 -> STOP
          |     ^^^ this has the type `Bool => Event`
          |
          = note: it is what a prefix `->` begins with
          = note: it still lacks the fields `Bool`
    "#]],
    );
}

#[test]
fn a_field_of_the_wrong_type() {
    check(
        "channel c : {0..1}\nP = c.true -> STOP\nQ = c!<1> -> STOP",
        expect![[r#"
        error: `Int => Event` cannot be dotted with `Bool`
         --> test.csp:2:5
          |
        2 | P = c.true -> STOP
          |     ^^^^^^

        error: the fields of this event do not fit: `<Int>` for `Int`
         --> test.csp:3:5
          |
        3 | Q = c!<1> -> STOP
          |     ^^^^^ given `<Int>`, declared `Int`
          |
          = note: it is what a prefix `->` begins with
    "#]],
    );
}

#[test]
fn wrong_arguments() {
    check(
        "f(x, y) = x + y\na = f(1)\nb = f(1, true)\nc = 3(4)",
        expect![[r#"
        error: `f` takes 2 arguments, but is given 1
         --> test.csp:2:5
          |
        2 | a = f(1)
          |     ^

        error: expected the type `Int`, found `Bool`
         --> test.csp:3:10
          |
        3 | b = f(1, true)
          |          ^^^^ this has the type `Bool`
          |
          = note: it is argument 2 of `f`

        error: this is not a function, it has the type `Int`
         --> test.csp:4:5
          |
        4 | c = 3(4)
          |     ^
    "#]],
    );
}

#[test]
fn processes_cannot_be_compared() {
    check(
        "a = STOP == SKIP\nsame(x, y) = x == y\nb = same(STOP, SKIP)\nc = {1} < {2}\nd = member(SKIP, {STOP})",
        expect![[r#"
        error: values of the type `Proc` cannot be compared
         --> test.csp:1:5
          |
        1 | a = STOP == SKIP
          |     ^^^^^^^^^^^^

        error: values of the type `Proc` cannot be compared
         --> test.csp:3:5
          |
        3 | b = same(STOP, SKIP)
          |     ^^^^

        error: values of the type `Proc` cannot be compared
         --> test.csp:5:5
          |
        5 | d = member(SKIP, {STOP})
          |     ^^^^^^
    "#]],
    );
}

#[test]
fn branches_have_to_agree() {
    check(
        "f(b) = if b then 1 else STOP\ng = if 1 then 2 else 3\nh(0) = true\nh(n) = n",
        expect![[r#"
        error: expected the type `Int`, found `Proc`
         --> test.csp:1:25
          |
        1 | f(b) = if b then 1 else STOP
          |                         ^^^^ this has the type `Proc`
          |
          = note: it is the `else` branch, which has to agree with the `then` branch

        error: expected the type `Bool`, found `Int`
         --> test.csp:2:8
          |
        2 | g = if 1 then 2 else 3
          |        ^ this has the type `Int`
          |
          = note: it is the condition of an `if`

        error: expected the type `(Int) -> Bool`, found `(Int) -> Int`
         --> test.csp:4:1
          |
        4 | h(n) = n
          | ^^^^^^^^ this has the type `(Int) -> Int`
          |
          = note: it is a clause of `h`, whose other clauses or uses say so
    "#]],
    );
}

#[test]
fn a_set_where_an_event_is_wanted() {
    check(
        "channel c : {0..1}\nP = STOP [| c |] STOP\nQ = STOP \\ {c}",
        expect![[r#"
        error: expected the type `{Event}`, found `Int => Event`
         --> test.csp:2:13
          |
        2 | P = STOP [| c |] STOP
          |             ^ this has the type `Int => Event`
          |
          = note: it is a set of events
          = note: the set of all events of a channel is written `{| channel |}`

        error: expected the type `{Event}`, found `{Int => Event}`
         --> test.csp:3:12
          |
        3 | Q = STOP \ {c}
          |            ^^^ this has the type `{Int => Event}`
          |
          = note: it is a set of events
          = note: the set of all events of a channel is written `{| channel |}`
    "#]],
    );
}

#[test]
fn infinite_types_are_refused() {
    check(
        "f(x) = f",
        expect![[r#"
        error: expected the type `a`, found `(b) -> a`
         --> test.csp:1:1
          |
        1 | f(x) = f
          | ^^^^^^^^ this has the type `(b) -> a`
          |
          = note: it is a clause of `f`, whose other clauses or uses say so
    "#]],
    );
}

/// libcspm's tests in `typechecker/should_fail`, and `type_annotations` in `should_pass`.
#[test]
fn signatures_are_promises() {
    check(
        "f :: (a) -> b\nf(x) = x",
        expect![[r#"
        error: the definition of `f` is less general than its declared type: `a` and `b` are the same type
         --> test.csp:1:1
          |
        1 | f :: (a) -> b
          | ^^^^^^^^^^^^^
    "#]],
    );
    check(
        "f :: (a) -> a\nf(x) = x + 1",
        expect![[r#"
        error: the definition of `f` is less general than its declared type: `a` is always `Int`
         --> test.csp:1:1
          |
        1 | f :: (a) -> a
          | ^^^^^^^^^^^^^
    "#]],
    );
    check(
        "f :: (a, a) -> Bool\nf(x, y) = x == y",
        expect![[r#"
        error: the definition of `f` is less general than its declared type: `a` has to be demanded to be of the class `Eq`
         --> test.csp:1:1
          |
        1 | f :: (a, a) -> Bool
          | ^^^^^^^^^^^^^^^^^^^
    "#]],
    );
    check(
        "f :: Set a => (a, a) -> Bool\nf(x, y) = x == y",
        expect![[r#"
        error: the definition of `f` is less general than its declared type: `a` has to be demanded to be of the class `Eq`
         --> test.csp:1:1
          |
        1 | f :: Set a => (a, a) -> Bool
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#]],
    );
    check(
        "f :: Eq a => (a, a) -> Bool\nf(x, y) = x < y",
        expect![[r#"
        error: the definition of `f` is less general than its declared type: `a` has to be demanded to be of the class `Ord`
         --> test.csp:1:1
          |
        1 | f :: Eq a => (a, a) -> Bool
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#]],
    );
    check(
        "f :: (a) -> {a}\nf(x) = {x}",
        expect![[r#"
        error: the definition of `f` is less general than its declared type: `a` has to be demanded to be of the class `Set`
         --> test.csp:1:1
          |
        1 | f :: (a) -> {a}
          | ^^^^^^^^^^^^^^^
    "#]],
    );
    check(
        "g(x) = let h :: (b) -> b\n  h(y) = if true then x else y\nwithin h(1)",
        expect![[r#"
        error: the definition of `h` is less general than its declared type: `b` is a type of its surroundings
         --> test.csp:1:12
          |
        1 | g(x) = let h :: (b) -> b
          |            ^^^^^^^^^^^^^
    "#]],
    );
    check(
        "datatype F = G.Int\nid :: (a) -> a\nid(x) = x\npair = (id(0), id(true))\nf18 :: (a, Int) -> b\nf18(x, y) = error(\"no\")\nf19 :: Eq a1 => (a1, a1) -> Bool\nf19(x, y) = x == y\nf20 :: (Eq a, Ord a) => (a, a) -> Bool\nf20(x,y) = x < y\nf21 :: Set a => (a) -> {a}\nf21(x) = let\n  y :: {a}\n  y = {x}\nwithin y\nf25 :: (Set b, Set d, Yieldable d) => (<b=>d>, {a=>*b}) -> {d}\nf25(S, C) = let\n  f :: (<b=>d>, a=>*b) -> {d}\n  f(<>, _) = {}\n  f(s, c) = Union({ productions(x.c) | x <- set(s) })\nwithin Union({f(S,c) | c <- C})\nfoo :: (F) -> F\nfoo(G.n) = G.n\nlen :: (<a>) -> Int\nlen(s) = if #s == 0 then len(<true>) else len(<1>)",
        expect![[r#"
            f18 :: (a, Int) -> b
            f19 :: (a, a) -> Bool
            f20 :: (a, a) -> Bool
            f21 :: (a) -> {a}
            f25 :: (<a => b>, {a}) -> {b}
            foo :: (F) -> F
            id :: (a) -> a
            len :: (<a>) -> Int
            pair :: (Int, Bool)
        "#]],
    );
    check(
        "channel c : {}",
        expect![[r#"
        error: the type of a field of `c` is not known
         --> test.csp:1:9
          |
        1 | channel c : {}
          |         ^
    "#]],
    );
    check(
        "datatype D = A.{}",
        expect![[r#"
        error: the type of a field of `A` is not known
         --> test.csp:1:14
          |
        1 | datatype D = A.{}
          |              ^
    "#]],
    );
}
