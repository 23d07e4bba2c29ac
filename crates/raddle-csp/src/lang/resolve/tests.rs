//! Golden tests of name errors, and of scopes that have to work.

use expect_test::{Expect, expect};

use super::*;
use crate::lang::diagnostic::render;
use crate::lang::load::{Disk, load_text};

fn check(text: &str, expect: Expect) {
    let mut loaded = load_text(&Disk, "test.csp", text);
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let resolved = resolve(&mut loaded.ast);
    expect.assert_eq(&render(&loaded.sources, &resolved.diagnostics, false));
}

#[test]
fn unknown_names_come_with_a_suggestion() {
    check(
        "channel lock : {0..1}\nP = lokc.0 -> STOP",
        expect![[r#"
        error: `lokc` is not in scope
         --> test.csp:2:5
          |
        2 | P = lokc.0 -> STOP
          |     ^^^^ not defined
          |
          = note: is `lock` meant?
    "#]],
    );
}

#[test]
fn local_scopes() {
    check(
        "channel c : {0..1}.{0..1}\nf(x) = let y = x\n  g(z) = y + z + h\n  h = g(1)\nwithin <a | a <- <x..y>, a > h>\nP = c?x:{0}!x -> []y:{x} @ c.y?z -> P [[ c.a <- c.b | (a,b) <- {(x,y)} ]]",
        expect![[r#""#]],
    );
}

#[test]
fn a_variable_does_not_leave_its_scope() {
    check(
        "channel c : {0..1}\nP = (c?x -> STOP) [] c.x -> STOP\nf(0) = 1\ng = 2\nf(n) = 3",
        expect![[r#"
        error: `f` is defined twice
         --> test.csp:5:1
          |
        3 | f(0) = 1
          | - first defined here
        4 | g = 2
        5 | f(n) = 3
          | ^ defined again here
          |
          = note: the clauses of a function have to stand one after the other

        error: `x` is not in scope
         --> test.csp:2:24
          |
        2 | P = (c?x -> STOP) [] c.x -> STOP
          |                        ^ not defined
    "#]],
    );
}

#[test]
fn modules_keep_private_names() {
    check(
        "module M\n  hidden = 1\nexports\n  shown = hidden\nendmodule\nmodule N(k)\nexports\n  datatype T = A.{0..k}\n  x = k\nendmodule\ninstance I = N(3)\na = M::shown + I::x\nb = M::hidden\nc = N::x\nd = I::y",
        expect![[r#"
            error: `hidden` is private to the module `M`
              --> test.csp:13:5
               |
            13 | b = M::hidden
               |     ^^^^^^^^^

            error: the module `N` has parameters; use an instance of it
              --> test.csp:14:5
               |
            14 | c = N::x
               |     ^^^^

            error: the module `I` has no `y`
              --> test.csp:15:5
               |
            15 | d = I::y
               |     ^^^^
        "#]],
    );
}

#[test]
fn compressions_have_to_be_declared() {
    check(
        "P = normal(STOP)\ntransparent sbisim\nQ = sbisim(P)\nexternal diamond",
        expect![[r#"
        error: `diamond` is not external but transparent
         --> test.csp:4:10
          |
        4 | external diamond
          |          ^^^^^^^
          |
          = note: write `transparent diamond`

        error: `normal` has to be declared before it is used
         --> test.csp:1:5
          |
        1 | P = normal(STOP)
          |     ^^^^^^
          |
          = note: add the line `transparent normal`
    "#]],
    );
}

#[test]
fn timed_sections_need_tock() {
    check(
        "channel a\nTimed(\\ x @ 1) {\n  P = a -> P\n}",
        expect![[r#"
        error: a timed section needs the channel `tock`
         --> test.csp:2:1
          |
        2 | Timed(\ x @ 1) {
          | ^^^^^
          |
          = note: declare `channel tock` at the top of the script
    "#]],
    );
}

/// libcspm's tests `duplicated_definitions_*`.
#[test]
fn a_name_is_bound_once() {
    check(
        "channel c : {0..1}.{0..1}\nP(x,x) = STOP\nQ = c?x?x -> STOP\nS = {x | x <- {0}, x <- {1}}\nf(x)(x) = x\ng = \\ y, y @ y\nh((a,a)) = a\nL = let (b, b) = (1, 2) within b\nR = ||| i:{0}, i:{1} @ STOP",
        expect![[r#"
            error: `x` is bound twice
             --> test.csp:2:5
              |
            2 | P(x,x) = STOP
              |   - ^ bound again here
              |   |
              |   first bound here
              |
              = note: to compare two values, give them two names and use `==`

            error: `x` is bound twice
             --> test.csp:3:9
              |
            3 | Q = c?x?x -> STOP
              |       - ^ bound again here
              |       |
              |       first bound here
              |
              = note: to compare two values, give them two names and use `==`

            error: `x` is bound twice
             --> test.csp:4:20
              |
            4 | S = {x | x <- {0}, x <- {1}}
              |          -         ^ bound again here
              |          |
              |          first bound here
              |
              = note: to compare two values, give them two names and use `==`

            error: `x` is bound twice
             --> test.csp:5:6
              |
            5 | f(x)(x) = x
              |   -  ^ bound again here
              |   |
              |   first bound here
              |
              = note: to compare two values, give them two names and use `==`

            error: `y` is bound twice
             --> test.csp:6:10
              |
            6 | g = \ y, y @ y
              |       -  ^ bound again here
              |       |
              |       first bound here
              |
              = note: to compare two values, give them two names and use `==`

            error: `a` is bound twice
             --> test.csp:7:6
              |
            7 | h((a,a)) = a
              |    - ^ bound again here
              |    |
              |    first bound here
              |
              = note: to compare two values, give them two names and use `==`

            error: `b` is bound twice
             --> test.csp:8:13
              |
            8 | L = let (b, b) = (1, 2) within b
              |          -  ^ bound again here
              |          |
              |          first bound here
              |
              = note: to compare two values, give them two names and use `==`

            error: `i` is bound twice
             --> test.csp:9:16
              |
            9 | R = ||| i:{0}, i:{1} @ STOP
              |         -      ^ bound again here
              |         |
              |         first bound here
              |
              = note: to compare two values, give them two names and use `==`
        "#]],
    );
    check(
        "channel c : {0..1}\nP(x) = c?x -> c?x -> P(x)\nS = {x | x <- {y | y <- {1}}, y <- {2}}",
        expect![[r#""#]],
    );
}

#[test]
fn a_name_has_one_type() {
    check(
        "f :: (Int) -> Int\nf :: (Int) -> Int\nf(x) = x",
        expect![[r#"
        error: `f` has two types
         --> test.csp:2:1
          |
        1 | f :: (Int) -> Int
          | ----------------- the first is here
        2 | f :: (Int) -> Int
          | ^
    "#]],
    );
}

/// libcspm's tests `duplicate_modules*`, `module_duplicates1`, `module_overlap_datatype`, `module_instances_10` and
/// `infinitely_recursive_instances`.
#[test]
fn modules_share_the_names_of_values() {
    check(
        "module M(X)\nexports\nchannel c\nendmodule\ndatatype Z = M\ninstance X = M({})",
        expect![[r#"
        error: `M` is a module and something else
         --> test.csp:1:8
          |
        1 | module M(X)
          |        ^
        ...
        5 | datatype Z = M
          |              - the other one is here
          |
          = note: rename one of them
    "#]],
    );
    check(
        "module M(x)\nexports\nchannel c\nendmodule\ninstance M = M(0)",
        expect![[r#"
        error: the module `M` is defined twice
         --> test.csp:5:10
          |
        5 | instance M = M(0)
          |          ^
    "#]],
    );
    check(
        "module G\nexports\nmodule X\nexports\nendmodule\nJ = X.0\nendmodule\ndatatype Y = X.Int",
        expect![[r#"
        error: `X` is a module, not a value
         --> test.csp:6:5
          |
        3 | / module X
        4 | | exports
        5 | | endmodule
          | |_________- the module is here
        6 |   J = X.0
          |       ^
    "#]],
    );
    check(
        "module M\nexports\ny = M1::y\nendmodule\ninstance M1 = M",
        expect![[r#"
            error: `M1` is an instance of the module that this stands in
             --> test.csp:3:5
              |
            3 | y = M1::y
              |     ^^^^^
        "#]],
    );
    check(
        "module M1(x)\nexports\ninstance M1P = M2(1)\nendmodule\nmodule M2(x)\nexports\ninstance M2P = M1(1)\nendmodule",
        expect![[r#"
            error: the module `M1` contains an instance of itself
             --> test.csp:1:8
              |
            1 | module M1(x)
              |        ^^
              |
              = note: each instance would need another one

            error: the module `M2` contains an instance of itself
             --> test.csp:5:8
              |
            5 | module M2(x)
              |        ^^
              |
              = note: each instance would need another one
        "#]],
    );
    check(
        "module M(x)\nexports\ny = x\nendmodule\nmodule N(x)\nexports\ninstance I = M(x)\nendmodule\ninstance K = N(1)\nz = K::I::y",
        expect![[r#""#]],
    );
}
