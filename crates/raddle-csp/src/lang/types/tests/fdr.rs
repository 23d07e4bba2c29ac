//! Scripts that FDR's type checker refuses, and neighbours of them that it accepts. The sources are libcspm's tests below
//! `tests/typechecker`, named beside each rule; the scripts are our own.

use crate::lang::session::Script;

/// The first diagnostic of every script, or "accepted".
fn answers(scripts: &[&str]) -> Vec<String> {
    let answer = |text: &&str| match Script::from_text("test.csp", *text) {
        Ok(_) => "accepted".to_string(),
        Err(refused) => refused.diagnostics[0].message.clone(),
    };
    scripts.iter().map(answer).collect()
}

fn accepted(scripts: &[&str]) {
    for (script, answer) in scripts.iter().zip(answers(scripts)) {
        assert_eq!(answer, "accepted", "{script}");
    }
}

fn refused(scripts: &[&str], message: &str) {
    for (script, answer) in scripts.iter().zip(answers(scripts)) {
        assert!(answer.contains(message), "{script}\n{answer}");
    }
}

/// `events_comparable`: an event is compared wherever it is put into a set.
#[test]
fn channels_carry_what_can_be_compared() {
    refused(
        &["channel y : Proc", "channel y : Int.Proc", "datatype D = A.Proc\nchannel y : D"],
        "cannot be compared",
    );
    refused(&["channel y : Set(Proc)", "channel y : (Int, Proc)"], "cannot be compared");
    accepted(&["channel y : Int.Set(Bool)", "datatype D = A.Int | B.D\nchannel y : D"]);
}

/// `datatypes_not_always_comparable`, `recursive_eq`: a datatype is as comparable as its fields.
#[test]
fn datatypes_are_compared_by_their_fields() {
    refused(
        &[
            "datatype X = Y.Proc\nt = (Y.STOP) == (Y.STOP)",
            "datatype X = Y.Proc | Z\nt = Z == Z",
            "datatype X = Y.Proc\nt = Y == Y",
            "datatype X = Y.{Z.STOP}\ndatatype W = Z.Proc\nt(x) = x == (Y.Z.STOP)",
            "datatype V = F | Fork.(L, M)\ndatatype L = IT.V | X.Proc\nM = if (IT.F) == (IT.F) then L else L",
            "datatype V = F | Fork.L\ndatatype L = IT.V | X.Proc\nf(x, y) = x == y\nt = f(F, F)",
            "datatype X = Y.Proc\nt = member(Y.STOP, {})",
        ],
        "cannot be compared",
    );
    accepted(&[
        "datatype X = Y.Proc\nrun(Y.p) = p\nP = run(Y.STOP)",
        "datatype X = Y.Proc\ns = {Y.STOP}",
        "datatype T = Leaf | Node.(T, Int, T)\nt = Leaf == Leaf",
        "datatype A = L | M.B\ndatatype B = N.A\nt = (M.N.L) == L",
    ]);
}

/// `invalid_field_order`.
#[test]
fn internal_choices_come_before_inputs() {
    refused(
        &["P(x) = x?y$z -> STOP", "channel c : Int.Int.Int\nP = c?x!1$y:{0} -> STOP"],
        "a `$` field cannot follow a `?` field",
    );
    accepted(&["channel c : {0}.{0}\nP = c$x?y -> STOP", "channel c : {0}.{0}\nP = c!0$y -> STOP"]);
}

/// `dot_datatype_split`, `event_splits`, `let_splits`, `dot_operator_pattern_matching_1`.
#[test]
fn patterns_do_not_take_events_and_values_apart() {
    refused(
        &[
            "datatype T = A.Bool | B.Bool\nf :: (T) -> Bool\nf(_.b) = b",
            "datatype T = A.Bool | B.Bool\nf(_.b) = b\nt = f(A.true)",
            "channel a\nchannel b : Bool\nC(y) = { c.x | c.x <- {|a, b|}, x == y }",
            "channel b : Bool\nt = let c.x = head(seq({|b|})) within x",
            "datatype Z = B.{0..1}\ng(x.y) = y\nz = g(B)",
            "datatype Z = B.Int.Int\ng(x.y) = y\nz = g(B.0)",
            "channel b : Bool\nP = [] c.x : {|b|} @ STOP",
            "channel b : Bool\nf = \\ c.x @ x\nt = f(b.true)",
        ],
        "lacks fields",
    );
    accepted(&[
        "f(x.y) = y\nz = f(0.true)",
        "datatype Z = B.{0..1}\ng(x.B.y) = y\nz = g(0.B.1)",
        "datatype Z = B.{0..1}\ng(B.y) = y\nz = g(B.1)",
        "datatype Z = B.{0..1}\ng(x.y) = y\nz = g((B.0).1)",
        "channel b : {0}.{0}\nt = { x | b.x.y <- {|b|} }",
    ]);
}

/// `fields_6`, `non_inputable_sets`, `channel_incomplete_field`, `datatype_incomplete_field`.
#[test]
fn inputs_and_fields_lack_nothing() {
    refused(
        &[
            "datatype X = G.{0} | H.{1}\nchannel e : X\nV = e?x:{G,H}?y -> STOP",
            "datatype X = G.{0} | H.{1}\nchannel e : X\nV = e$x:{G,H}?y -> STOP",
            "datatype A = B.Bool\nchannel a : {B}",
            "datatype A = B.Bool\ndatatype X = Y.{B}",
        ],
        "lacks fields",
    );
    accepted(&[
        "datatype X = G.{0} | H.{1}\nchannel e : X\nV = e?G.y -> e?x -> STOP",
        "datatype X = G.{0} | H.{1}\nchannel e : X.{0}\nV = e?x:{G.0}?y -> STOP",
        "P(c) = c?x?y -> STOP\nchannel d : {0}.{0}\nQ = P(d)",
    ]);
}

/// `solvable_infinite_types`: a datatype's fields may be taken from a set of its own values, and a channel's from a set
/// that is made with the channel.
#[test]
fn fields_come_from_sets_of_the_values_they_are_part_of() {
    accepted(&[
        "s = {G, Q.<G>.G}\ndatatype F = Q.Seq(F).s | R.s | G\nfirst(0, m) = head(m)\nfirst(i, m) = first(i - 1, tail(m))\nt(x) = {Q.m.G, first(0, m) | Q.m._ <- x}",
        "s = {b, A.b}\nb = B\ndatatype D = A.s | B",
        "P = a.B -> STOP\nchannel a : F\nF = {x | x <- {B, A.B}, member(x, E)}\nE = {B}\ndatatype D = A.F | B",
    ]);
    refused(&["s = {G, Q.0}\ndatatype F = Q.s | G"], "expected the type");
}

/// `nametypes1`: a type has complete values.
#[test]
fn nametypes_lack_nothing() {
    refused(
        &[
            "datatype A = L\ndatatype B = M.A\ndatatype D = K.B.A\nnametype E = {K.M.d | d <- A}",
            "channel c : Bool\nnametype N = {c}",
            "datatype B = M.Bool\nnametype N = {0}.{M}",
        ],
        "lacks fields",
    );
    accepted(&[
        "datatype A = L\ndatatype B = M.A\ndatatype D = K.B.A\nnametype E = {K.M.d.d | d <- A}",
        "nametype N = {}",
        "channel c : Bool\nnametype N = {c.true}.Bool",
    ]);
}

/// `polymorphic_let`, `polymorphic_lets_2`.
#[test]
fn definitions_in_let_have_one_type_unless_they_declare_more() {
    refused(
        &[
            "f = let g(x) = x within (g(0), g(true))",
            "f = let h = error(\"no\") within (h + 0, not h)",
            "f(y) = let g(x) = x\n h(x) = g(x) within (h(0), h(true))",
        ],
        "expected the type",
    );
    accepted(&[
        "f = let g :: (a) -> a\n g(x) = x within (g(0), g(true))",
        "f = let g(x) = x within (g(0), g(1))",
        "f = let g(x) = x within g\nt = (f(0), f(true))",
        "f(y) = let h(x, z) = x == z within h(y, y)\nt = (f(0), f(true))",
        "g(x) = x\nf = let h = 1 within (g(h), g(true))",
    ]);
}

/// `rename_5`, `link_parallel`.
#[test]
fn renamed_and_linked_channels_have_one_type() {
    refused(
        &[
            "channel c : Int.Int\nchannel d : Int.Bool\nt(x, y) = STOP[[x.0 <- y.1]]\nu = t(c, d)",
            "channel c : Int\nchannel d : Bool\nt(x, y) = STOP[[x <- y]]\nu = t(c, d)",
            "channel c : Int\nchannel d : Bool\nt(x, y) = STOP [x <-> y] STOP\nu = t(c, d)",
        ],
        "expected the type",
    );
    accepted(&[
        "channel c, d : Int.Int\nt(x, y) = STOP[[x.0 <- y.1]]\nu = t(c, d)",
        "channel c : Int.Int\nchannel d : Int\nt(x, y) = STOP[[x.0 <- y]]\nu = t(c, d)",
        "channel c, d : {0..1}\nt(x, y) = STOP [x <-> y] STOP\nu = t(c, d)\nv = STOP[[c <- d, c.0 <- d.1]]",
        "channel c : {0..1}\nchannel a\nP = STOP[[c.i <- a | i <- {0..1}]]",
    ]);
}

/// `override_tock1`.
#[test]
fn tock_is_an_event_where_time_passes() {
    refused(
        &[
            "tock = 1\ng(x) = 1\nTimed (g) { P = STOP }",
            "channel tock : Int\ng(x) = 1\nTimed (g) { P = STOP }",
        ],
        "expected the type `Event`",
    );
    accepted(&["tock = 1\nf = 1 + tock", "channel tock\ng(x) = 1\nTimed (g) { P = STOP }"]);
}
