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
