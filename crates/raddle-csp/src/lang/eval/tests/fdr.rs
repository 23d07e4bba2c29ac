//! Golden tests of what FDR does, each with the place it was taken from: modules and tests of libcspm, manuals, papers.

use expect_test::expect;

use super::{check, verdicts};
use crate::engine::CheckOptions;
use crate::lang::session::Script;

/// The idiom of every ring: the neighbour on the left is `(i-1) % N`. libcspm, `CSPM.Evaluator.Expr`: `div` and `mod`.
#[test]
fn division_rounds_down() {
    check(
        "",
        "(-1) % 5\n(-7) / 2\n7 / -2\n7 % -2\n(-7) % -2\n(-6) / 3\n<(i-1) % 3 | i <- <0..2>>\n5 % 0\n(-9223372036854775807 - 1) / -1\n(-9223372036854775807 - 1) % -1",
        expect![[r#"
            4 :: Int
            -4 :: Int
            -4 :: Int
            -1 :: Int
            -1 :: Int
            -2 :: Int
            <2, 0, 1> :: <Int>
            error: division by zero
             --> <expression>:1:1
              |
            1 | 5 % 0
              | ^^^^^
            error: the result is too large for an integer
             --> <expression>:1:1
              |
            1 | (-9223372036854775807 - 1) / -1
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: integers have 64 bits
            0 :: Int
        "#]],
    );
    verdicts(
        "N = 3\nchannel pass : {0..N-1}\nNODE(i) = pass.i -> pass.((i-1) % N) -> NODE(i)\nRING = || i : {0..N-1} @ [{pass.i, pass.((i-1) % N)}] NODE(i)\nassert RING :[deadlock free]",
        expect![[r#"
            RING :[deadlock free]: fails
              after <>
        "#]],
    );
}

/// FDR 2's manual, A.6.3: the failures-divergences model is assumed.
#[test]
fn deadlock_freedom_without_a_model_sees_divergence() {
    verdicts(
        "channel a\nP = a -> P\nassert P \\ {a} :[deadlock free]\nassert P \\ {a} :[deadlock free [F]]\nassert P \\ {a} :[deadlock free [FD]]\nassert P :[deadlock free]",
        expect![[r#"
            P \ {a} :[deadlock free]: fails
              after <>
            P \ {a} :[deadlock free [F]]: holds
            P \ {a} :[deadlock free [FD]]: fails
              after <>
            P :[deadlock free]: holds
        "#]],
    );
}

/// libcspm's tests `non_rect`, `non_rect_2`: what a constructor may be followed by depends on the set it stands in.
#[test]
fn begun_constructors_stay_in_the_set_of_their_field() {
    check(
        "datatype Z = A.{0,1}.{0,1}\ndatatype Y = X.{A.0.1, A.1.0}\nchannel c : Y\ndatatype C = D.{0..2} | E.Bool | K.{0,1}.Bool\ndatatype G = F.{D.0, D.1, E.false, K.0.false}\ndatatype W = V.G\nchannel two : {A.0.1, A.1.0}.{0,1}",
        "{| c.X.A |}\n{| c |}\nextensions(c.X.A)\nextensions(c.X.A.0)\nproductions(F.D)\nproductions(V.F.D)\nproductions(V.F.E)\nextensions(F.K)\nextensions(D)\nproductions(V.F)\n{| two.A.1 |}\nextensions(A.0)",
        expect![[r#"
            {c.X.A.0.1, c.X.A.1.0} :: {Event}
            {c.X.A.0.1, c.X.A.1.0} :: {Event}
            {0.1, 1.0} :: {a}
            {1} :: {a}
            {F.D.0, F.D.1} :: {G}
            {V.F.D.0, V.F.D.1} :: {W}
            {V.F.E.false} :: {W}
            {0.false} :: {a}
            {0, 1, 2} :: {a}
            {V.F.D.0, V.F.D.1, V.F.E.false, V.F.K.0.false} :: {W}
            {two.A.1.0.0, two.A.1.0.1} :: {Event}
            {0, 1} :: {a}
        "#]],
    );
    verdicts(
        "datatype Z = A.{0,1}.{0,1}\ndatatype Y = X.{A.0.1, A.1.0}\nchannel c : Y\nP = c.X.A?x -> P\nQ = c.X.A?x?y -> Q\nassert P [FD= RUN({| c |})\nassert RUN({| c |}) [FD= P\nassert RUN({| c |}) [FD= Q\nassert Q [FD= P",
        expect![[r#"
            P [FD= RUN({| c |}): holds
            RUN({| c |}) [FD= P: holds
            RUN({| c |}) [FD= Q: holds
            Q [FD= P: holds
        "#]],
    );
}

/// `checkIsValidForField` in libcspm's `CSPM.Evaluator.Dot`, tests `channel_alphabets`, `outside_event_set`,
/// `datatype_alphabets`: a field is compared with its declaration as soon as it is there, of channels as of constructors.
#[test]
fn dots_outside_of_their_declaration_are_errors() {
    check(
        "channel c : {0..1}\nchannel d : {0..1}.Bool\nchannel i : Int.{0}\ndatatype Z = A.{0..2}.{0..2}\ndatatype Y = X.{A.0.1, A.1.0}\nchannel e : Y.Bool\nchannel t : {x.y | x <- {0,1}, y <- {2,3}}\nin(ch, v) = ch.v",
        "{| c.2 |} == {| c.2 |}\nmember(c.2, Events)\n{c.x | x <- {0..5}}\n{| d.7 |}\n{| d.1 |}\n{| i.7 |}\ni.7.1\nA.3\n{| e.X.A.2 |}\n{| e.X.A.0 |}\n{| e.X.A.0.0 |}\n{| t.2 |}\n{| t.0 |}\nin(c, 1)\nin(c, 2)\nextensions(c.1)\nproductions(c.1)",
        expect![[r#"
            error: `c.2` is not an event
             --> <expression>:1:4
              |
            1 | {| c.2 |} == {| c.2 |}
              |    ^^^
              |
             ::: test.csp:1:9
              |
            1 | channel c : {0..1}
              |         - the channel is declared here
              |
              = note: 2 is not among the values declared for field 1 of `c`
            error: `c.2` is not an event
             --> <expression>:1:8
              |
            1 | member(c.2, Events)
              |        ^^^
              |
             ::: test.csp:1:9
              |
            1 | channel c : {0..1}
              |         - the channel is declared here
              |
              = note: 2 is not among the values declared for field 1 of `c`
            error: `c.2` is not an event
             --> <expression>:1:2
              |
            1 | {c.x | x <- {0..5}}
              |  ^^^
              |
             ::: test.csp:1:9
              |
            1 | channel c : {0..1}
              |         - the channel is declared here
              |
              = note: 2 is not among the values declared for field 1 of `c`
            error: no event begins with `d.7`
             --> <expression>:1:4
              |
            1 | {| d.7 |}
              |    ^^^
              |
             ::: test.csp:2:9
              |
            2 | channel d : {0..1}.Bool
              |         - the channel is declared here
              |
              = note: 7 is not among the values declared for field 1 of `d`
            {d.1.false, d.1.true} :: {Event}
            {i.7.0} :: {Event}
            error: `i.7.1` is not an event
             --> <expression>:1:1
              |
            1 | i.7.1
              | ^^^^^
              |
             ::: test.csp:3:9
              |
            3 | channel i : Int.{0}
              |         - the channel is declared here
              |
              = note: 1 is not among the values declared for field 2 of `i`
            error: no value of its datatype begins with `A.3`
             --> <expression>:1:1
              |
            1 | A.3
              | ^^^
              |
             ::: test.csp:4:14
              |
            4 | datatype Z = A.{0..2}.{0..2}
              |              - the constructor is declared here
              |
              = note: 3 is not among the values declared for field 1 of `A`
            error: no value of its datatype begins with `X.A.2`
             --> <expression>:1:6
              |
            1 | {| e.X.A.2 |}
              |      ^^^^^
              |
             ::: test.csp:5:14
              |
            5 | datatype Y = X.{A.0.1, A.1.0}
              |              - the constructor is declared here
              |
              = note: A.2 begins none of the values declared for field 1 of `X`
            {e.X.A.0.1.false, e.X.A.0.1.true} :: {Event}
            error: `X.A.0.0` is not a value of its datatype
             --> <expression>:1:6
              |
            1 | {| e.X.A.0.0 |}
              |      ^^^^^^^
              |
             ::: test.csp:5:14
              |
            5 | datatype Y = X.{A.0.1, A.1.0}
              |              - the constructor is declared here
              |
              = note: A.0.0 is not among the values declared for field 1 of `X`
            error: no event begins with `t.2`
             --> <expression>:1:4
              |
            1 | {| t.2 |}
              |    ^^^
              |
             ::: test.csp:7:9
              |
            7 | channel t : {x.y | x <- {0,1}, y <- {2,3}}
              |         - the channel is declared here
              |
              = note: 2 begins none of the values declared for field 1 of `t`
            {t.0.2, t.0.3} :: {Event}
            c.1 :: Event
            error: `c.2` is not an event
             --> test.csp:8:13
              |
            1 | channel c : {0..1}
              |         - the channel is declared here
            ...
            8 | in(ch, v) = ch.v
              |             ^^^^
              |
              = note: 2 is not among the values declared for field 1 of `c`
            error: `c.1` has all its fields
             --> <expression>:1:1
              |
            1 | extensions(c.1)
              | ^^^^^^^^^^^^^^^
              |
              = note: `extensions` lists what a value lacks; `productions` lists whole values
            {c.1} :: {Event}
        "#]],
    );
}

/// libcspm, `CSPM.Evaluator.Expr`, `maybeTSTOP`: a parallel of nothing in a timed section is `STOP` that lets time pass.
#[test]
fn timed_parallels_of_nothing_do_not_terminate() {
    verdicts(
        "channel tock, a\nU = ||| x:{} @ a -> STOP\nTimed {\n  I = ||| x:{} @ a -> STOP\n  S = [| {a} |] x:{} @ a -> STOP\n  L = || x:{} @ [{a}] a -> STOP\n  C = [] x:{} @ a -> STOP\n  Q = ; x:<> @ a -> STOP\n}\nassert SKIP [FD= U\nassert RUN({tock}) [FD= I\nassert RUN({tock}) [FD= S\nassert RUN({tock}) [FD= L\nassert RUN({tock}) [FD= C\nassert RUN({tock}) [FD= Q\nassert TSKIP [FD= Q",
        expect![[r#"
            SKIP [FD= U: holds
            RUN({tock}) [FD= I: holds
            RUN({tock}) [FD= S: holds
            RUN({tock}) [FD= L: holds
            RUN({tock}) [FD= C: holds
            RUN({tock}) [FD= Q: fails
              after <>
            TSKIP [FD= Q: holds
        "#]],
    );
}

/// libcspm, `CSPM.Desugar`: of the operators only the linked parallel and `$` are refused in a timed section.
#[test]
fn timed_sections_take_run_chaos_and_sliding_choice() {
    verdicts(
        "channel tock, a, b\nchannel c : {0,1}\nTimed {\n  R = RUN({a})\n  H = CHAOS({a, tock})\n  W = (a -> STOP) [> (b -> STOP)\n  B = BUFFER(1, {(a, b)})\n  N = c$x -> STOP\n  L = STOP [a <-> b] STOP\n}\nassert RUN({a}) [FD= R\nassert H [T= RUN({a, tock})\nassert W :[deadlock free]\nassert W :[has trace]: <b>\nassert B :[has trace]: <a, b>\nassert N :[deadlock free]\nassert L :[deadlock free]",
        expect![[r#"
            RUN({a}) [FD= R: holds
            H [T= RUN({a, tock}): holds
            W :[deadlock free]: holds
            W :[has trace]: <b>: holds
            B :[has trace]: <a, b>: holds
            error: an input with `$` has no meaning in a timed section
             --> test.csp:8:8
              |
            8 |   N = c$x -> STOP
              |        ^^
              |
              = note: define this process outside the section
              = note: while evaluating `N`
            error: `[ <-> ]` has no meaning in a timed section
             --> test.csp:9:7
              |
            9 |   L = STOP [a <-> b] STOP
              |       ^^^^^^^^^^^^^^^^^^^
              |
              = note: define this process outside the section
              = note: while evaluating `L`
        "#]],
    );
}

/// Timed CSP: who is ready to terminate lets time pass until its partners are, and all terminate together.
#[test]
fn timed_operands_terminate_together() {
    verdicts(
        "channel tock, a, done\nUSTOP = STOP\nnow(_) = 0\nTimed(now) {\n  STARTBY(P, d) = P [] (WAIT(d) ; USTOP)\n  DEADLINE(c, d) = STARTBY(c -> SKIP, d)\n  ENDBY(P, d) = P /\\ (WAIT(d) ; USTOP)\n  EARLY = SKIP ||| (WAIT(2) ; a -> SKIP)\n  BOTH = EARLY ; done -> SKIP\n  AT_ONCE = ENDBY(SKIP ||| SKIP, 0) ; done -> STOP\n  IN_TIME = ENDBY(SKIP [| {a} |] WAIT(1), 1) ; done -> STOP\n  TOO_LATE = ENDBY(SKIP [{} || {}] WAIT(2), 1) ; done -> STOP\n  NOW = DEADLINE(a, 0)\n}\nassert timed_priority(EARLY) :[deadlock free [F]]\nassert timed_priority(EARLY) :[has trace]: <tock, tock, tock, a>\nassert timed_priority(BOTH) :[has trace]: <tock, tock, a, done>\nassert timed_priority(AT_ONCE) :[deadlock free [F]]\nassert timed_priority(IN_TIME) :[deadlock free [F]]\nassert timed_priority(IN_TIME) :[has trace]: <tock, done>\nassert timed_priority(TOO_LATE) :[deadlock free [F]]\nassert timed_priority(NOW) :[deadlock free [F]]\nassert timed_priority(NOW) :[has trace]: <tock>\nassert SKIP ||| a -> SKIP :[deadlock free [F]]",
        expect![[r#"
            timed_priority(EARLY) :[deadlock free [F]]: holds
            timed_priority(EARLY) :[has trace]: <tock, tock, tock, a>: holds
            timed_priority(BOTH) :[has trace]: <tock, tock, a, done>: holds
            timed_priority(AT_ONCE) :[deadlock free [F]]: holds
            timed_priority(IN_TIME) :[deadlock free [F]]: holds
            timed_priority(IN_TIME) :[has trace]: <tock, done>: holds
            timed_priority(TOO_LATE) :[deadlock free [F]]: fails
              after <tock>
            timed_priority(NOW) :[deadlock free [F]]: holds
            timed_priority(NOW) :[has trace]: <tock>: fails
              after <>
            SKIP ||| a -> SKIP :[deadlock free [F]]: holds
        "#]],
    );
}

/// libcspm's grammar: the list before the bar may be empty, in sets, sequences and `{| |}`.
#[test]
fn comprehensions_may_list_nothing() {
    check(
        "channel c : {0..1}",
        "{| | x <- {0..1} |}\n{ | x <- {0..1}}\n< | x <- <0..1>>\n{| c.x | x <- {1} |}",
        expect![[r#"
            {} :: {a}
            {} :: {a}
            <> :: <a>
            {c.1} :: {Event}
        "#]],
    );
}

/// One assertion that cannot be answered does not take the script with it.
#[test]
fn assertions_beyond_the_engine_get_no_answer_alone() {
    verdicts(
        "channel a, x\nexternal failure_watchdog, trace_watchdog\nP = a -> P\nassert P [T= P\nassert P [V= P\nassert P [RD= P\nassert P :[deadlock free [V]]\nassert P :[symmetric]: {a}\nassert failure_watchdog(P, {a}, x) [T= P\nassert WEAK_BUFFER(1, x, {}) [T= P\nassert P :[deadlock free] :[symmetry reduce]: {a}, Bool\nassert P [T= P :[static] :[tau priority over]: {}\nassert P :[has trace [R]]: <a>\nassert P :[fair]: {a}\nassert P [T= P :[in haste]\nassert P :[deadlock free]",
        expect![[r#"
            P [T= P: holds
            P [V= P: holds
            P [RD= P: holds
            error: the semantic model `V` is not supported
             --> test.csp:7:1
              |
            7 | assert P :[deadlock free [V]]
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: `T`, `F` and `FD` are
            error: the property `symmetric` is not supported
             --> test.csp:8:1
              |
            8 | assert P :[symmetric]: {a}
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: known are: deadlock free, divergence free, livelock free, deterministic, has trace
            error: `failure_watchdog` is not supported
             --> test.csp:9:8
              |
            9 | assert failure_watchdog(P, {a}, x) [T= P
              |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: assertions that do not need it are answered
            error: `WEAK_BUFFER` is not supported
              --> test.csp:10:8
               |
            10 | assert WEAK_BUFFER(1, x, {}) [T= P
               |        ^^^^^^^^^^^^^^^^^^^^^
               |
               = note: assertions that do not need it are answered
            P :[deadlock free] :[symmetry reduce]: {a}, Bool: holds
            P [T= P :[static] :[tau priority over]: {}: holds
            error: the semantic model `R` is not supported
              --> test.csp:13:1
               |
            13 | assert P :[has trace [R]]: <a>
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
               |
               = note: `T`, `F` and `FD` are
            error: the property `fair` is not supported
              --> test.csp:14:1
               |
            14 | assert P :[fair]: {a}
               | ^^^^^^^^^^^^^^^^^^^^^
               |
               = note: known are: deadlock free, divergence free, livelock free, deterministic, has trace
            error: the option `in haste` is not supported
              --> test.csp:15:1
               |
            15 | assert P [T= P :[in haste]
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^
               |
               = note: known are: partial order reduce, tau priority, symmetry reduce, static
            P :[deadlock free]: holds
        "#]],
    );
}

/// The index of a replicated linked parallel may be used in its links; as libcspm nests them.
#[test]
fn links_see_the_index() {
    verdicts(
        "channel c, in, out : {0..3}\nCELL(i) = in.i -> out.i -> CELL(i)\nCHAIN = [out.i <-> in.(i+1)] i : <0..3> @ CELL(i)\nEND = in.0 -> out.3 -> END\nassert CHAIN :[has trace]: <in.0, in.0, out.3>\nassert CHAIN :[has trace]: <in.1>\nassert END [T= CHAIN\nassert STOP [c.0 <-> c.1, c.0 <-> c.2] STOP :[deadlock free]\nassert ([c.i <-> c.j | j <- {0..1}] i : <0..1> @ STOP) :[deadlock free]\nassert ([c.i <-> c.i+1] i : <0..3> @ STOP) :[has trace]: <>",
        expect![[r#"
            CHAIN :[has trace]: <in.0, in.0, out.3>: holds
            CHAIN :[has trace]: <in.1>: fails
              after <>
            END [T= CHAIN: fails
              after <in.0>
            error: `c.0` is linked with more than one event
             --> test.csp:8:8
              |
            8 | assert STOP [c.0 <-> c.1, c.0 <-> c.2] STOP :[deadlock free]
              |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: each event may occur in one link of each side
            error: `c.0` is linked with more than one event
             --> test.csp:9:9
              |
            9 | assert ([c.i <-> c.j | j <- {0..1}] i : <0..1> @ STOP) :[deadlock free]
              |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: each event may occur in one link of each side
            ([c.i <-> c.i+1] i : <0..3> @ STOP) :[has trace]: <>: holds
        "#]],
    );
}

/// Sets are ordered by inclusion and sequences by prefix, whatever they hold.
#[test]
fn sets_and_sequences_of_anything_are_ordered() {
    check(
        "datatype D = A | B\nchannel c, d\nsub(x, y) = x <= y",
        "{A} <= {A, B}\n{A, B} < {A, B}\n<A> <= <A, B>\n<B> < <A, B>\n{c} < {c, d}\n<{A}> <= <{A}, {B}>\nsub({A}, {A})\n{{c}} <= {{c}, {d}}\nA < B",
        expect![[r#"
            true :: Bool
            false :: Bool
            true :: Bool
            false :: Bool
            true :: Bool
            true :: Bool
            true :: Bool
            true :: Bool
            error: values of the type `D` have no order
             --> <expression>:1:1
              |
            1 | A < B
              | ^^^^^
        "#]],
    );
}

/// `compareValues` in libcspm's `CSPM.Evaluator.Values`: keys by inclusion, and no value gets smaller.
#[test]
fn maps_are_ordered_by_keys_and_values() {
    check(
        "",
        "(| 1 => 1 |) < (| 1 => 2 |)\n(| 1 => 1 |) <= (| 1 => 0, 2 => 5 |)\n(| 1 => 1 |) < (| 1 => 1, 2 => 5 |)\n(| 1 => 1 |) < (| 1 => 1 |)\n(| 1 => {1} |) <= (| 1 => {1,2} |)\n(| 1 => {1} |) <= (| 1 => {2} |)",
        expect![[r#"
            true :: Bool
            false :: Bool
            true :: Bool
            false :: Bool
            true :: Bool
            false :: Bool
        "#]],
    );
}

/// Old scripts have constructors of these names.
#[test]
fn true_and_false_may_be_constructors() {
    check(
        "datatype Truth = True | False | Unknown\nneg(True) = False\nneg(False) = True\nneg(x) = x\nsame(x) = if x == True then true else false",
        "neg(True)\nneg(Unknown)\nsame(True)\nTruth",
        expect![[r#"
            False :: Truth
            Unknown :: Truth
            true :: Bool
            {True, False, Unknown} :: {Truth}
        "#]],
    );
    check(
        "f(True) = 1\nf(False) = 0",
        "f(true)\nFalse",
        expect![[r#"
        1 :: Int
        false :: Bool
    "#]],
    );
}

/// libcspm's tests `dot_double_pat` and `dot_partial_application_in_patterns`, module CSPM.Evaluator.PatBind.
#[test]
fn patterns_reach_over_dotted_fields() {
    check(
        "datatype C = D.{0..2} | E.Bool.Bool\ndatatype A = B.C.Bool\nchannel c : A.{5,6}\nf(B.D.x) = x\nfe(B.E.x.y) = y\ng(B.x.y) = (x, y)\nh(((x.y) @@ (a.b.d)).e) = (x, y, a, b, d, e)\nk((x.y) @@ (a.b.d)) = (x, y, a, b, d)\nm(c.B.D.n.t.l) = (n, t, l)\nn(c.B.x) = x\nw(v @@ (D.x)) = (v, x)",
        "f(B.D.0.true)\nfe(B.E.true.false.true)\ng(B.D.1.false)\nh(0.1.2.3)\nk(0.1.2)\nm(c.B.D.2.true.5)\nn(c.B.D.2.true.5)\nw(D.1)\n{x | c.B.D.x <- {c.B.D.1.true.5, c.B.E.true.true.false.6}}",
        expect![[r#"
            0.true :: Int.Bool
            false.true :: Bool.Bool
            (D.1, false) :: (C, Bool)
            (0, 1.2, 0, 1, 2, 3) :: (Int, Int.Int, Int, Int, Int, Int)
            (0, 1.2, 0, 1, 2) :: (Int, Int.Int, Int, Int, Int)
            (2, true, 5) :: (Int, Bool, Int)
            D.2.true.5 :: C.Bool.Int
            (D.1, 1) :: (C, Int)
            {1.true.5} :: {Int.Bool.Int}
        "#]],
    );
    verdicts(
        "datatype Z = A.{0,1}.{0,1}\ndatatype Y = X.{A.0.1, A.1.0}\nchannel c : Y.{7}\nP = c?X.A.x -> P\nassert RUN({| c |}) [FD= P\nassert P [FD= RUN({| c |})",
        expect![[r#"
            RUN({| c |}) [FD= P: holds
            P [FD= RUN({| c |}): holds
        "#]],
    );
}

/// libcspm's test `type_annotations`: `f22` to `f24`.
#[test]
fn incomplete_values_of_unknown_type_may_be_dotted() {
    check(
        "datatype D = L.Int\nchannel c : D\nf22 :: (b=>a, c=>b, c) -> a\nf22(x,y,z) = x.y.z\nf23 :: (b=>a, c=>b) -> c=>a\nf23(x,y) = x.y\nf24 :: (b=>Event, a=>*b) -> a=>*Event\nf24(x,y) = x.y",
        "f22(c, L, 1)\nf23(c, L).3\n{f24(c, L.2)}",
        expect![[r#"
            c.L.1 :: Event
            c.L.3 :: Event
            {c.L.2} :: {Event}
        "#]],
    );
}

/// libcspm makes an alias of the function in the module (`makeAliasDefinition`).
#[test]
fn modules_export_transparent_functions() {
    verdicts(
        "module M\nexports\ntransparent sbisim\nP = STOP\nendmodule\nmodule N(x)\ntransparent normal\nexports\ntransparent diamond\nendmodule\ninstance I = N(1)\nassert M::sbisim(M::P) [T= I::diamond(STOP)",
        expect![[r#"
            M::sbisim(M::P) [T= I::diamond(STOP): holds
        "#]],
    );
}

/// libcspm's test `rectangular_datatype`: dotted values in a declaration form a product.
#[test]
fn declared_dots_are_a_product() {
    check(
        "S = { x.y | x <- {0..3}, y <- {0..3}, x+y < 3 }\ndatatype Y = X.S\nchannel c : S.Bool\nchannel d : {x.y | x <- {0,1}, y <- {2,3}}",
        "member(X.0.0, Y)\n{| c |}\ncard({| d |})",
        expect![[r#"
            error: the fields of `X` are not a product of sets
             --> test.csp:2:16
              |
            2 | datatype Y = X.S
              |                ^
              |
              = note: every combination of their values has to be there; restrict it with `if`, a guard or a subset of events
            error: the fields of `c` are not a product of sets
             --> test.csp:3:13
              |
            3 | channel c : S.Bool
              |             ^
              |
              = note: every combination of their values has to be there; restrict it with `if`, a guard or a subset of events
            4 :: Int
        "#]],
    );
}

/// The counts of states that FDR 4 published for this kind of model (a process over a memory of variables): without the
/// choice of the initial values `7n² + n + 2`, and with it not more than that for each.
#[test]
fn choices_of_initial_values_share_their_states() {
    let model = |n: usize| {
        format!(
            "N = {n}\nV = {{0..N}}\nchannel tick, time\nchannel out : V.V\ndatatype X = sec | min\nchannel get, set : X.V\nchannel end\nM = {{| get, set, end |}}\nVAR(x, v) = get.x.v -> VAR(x, v) [] set.x?w -> VAR(x, w) [] end -> SKIP\nMEM(s, m) = VAR(sec, s) [| {{end}} |] VAR(min, m)\nCLOCK = set.sec.0 -> set.min.0 -> (let L = get.min?m -> get.sec?s -> (tick -> set.sec.((s+1)%N) -> get.min?k -> get.sec?t -> ((t == 0 & set.min.((k+1)%N) -> SKIP) [] (t != 0 & SKIP)) [] time -> out.m.s -> SKIP) ; L within L)\nONE = (CLOCK [| M |] MEM(0, 0)) \\ M\nALL = |~| s : V, m : V @ ((CLOCK [| M |] MEM(s, m)) \\ M)\nassert ONE :[deadlock free]\nassert ALL :[deadlock free]"
        )
    };
    for n in [3usize, 4, 8] {
        let Ok(mut script) = Script::from_text("test.csp", model(n)) else { panic!("a correct script") };
        let one = script.check(0, &CheckOptions::default()).expect("an answer");
        assert!(one.holds);
        assert_eq!(one.statistics.pairs as usize, 7 * n * n + n + 2, "N = {n}");
        let all = script.check(1, &CheckOptions::default()).expect("an answer");
        assert!(all.holds);
        // The choice, both settings at the start, and the rest of `ONE`. Setting the minutes to 0 is the same at the start
        // and at the end of an hour, which is why FDR's counts for each branch differ by one, too.
        let states = 1 + (n + 1) * (n + 1) + (n + 1) + 7 * n * n + n - 1;
        assert_eq!(all.statistics.pairs as usize, states, "N = {n}");
        assert_eq!((all.statistics.components, all.statistics.state_bytes), (3, 8));
    }
}

/// The same kind of model with an internal choice inside the leaf, made when an hour ends. Every state is one that the
/// operators give: seven for each of `n` seconds in minute 0 and in minute 1, two before the clock starts, in either
/// minute the choice itself, its `n` branches in minute 0 and in minute 1, and the `n` ways to set the seconds.
///
/// The counts published for FDR 4 are `7n` for such a check. No search can have visited all that can be reached with
/// those, since the states of minute 1 alone are as many; the logs keep counts and times, not verdicts.
#[test]
fn choices_inside_a_leaf_have_no_states_beside_their_branches() {
    for n in [3usize, 8, 15] {
        let text = format!(
            "N = {n}\nV = {{0..N}}\nchannel tick, time\nchannel out : V.V\ndatatype X = sec | min\nchannel get, set : X.V\nchannel end\nM = {{| get, set, end |}}\nVAR(x, v) = get.x.v -> VAR(x, v) [] set.x?w -> VAR(x, w) [] end -> SKIP\nMEM(s, m) = VAR(sec, s) [| {{end}} |] VAR(min, m)\nHOUR(m) = (not (m < N) & CHAOS({{| get, set, end, tick, time, out |}})) [] (m < N & |~| y : {{0..N-1}} @ set.min.1 -> set.sec.y -> SKIP)\nCLOCK = set.sec.0 -> set.min.0 -> (let L = get.min?m -> get.sec?s -> (tick -> set.sec.((s+1)%N) -> get.min?k -> get.sec?t -> ((t == 0 & HOUR(k)) [] (t != 0 & SKIP)) [] time -> out.m.s -> SKIP) ; L within L) ; end -> SKIP\nONE = (CLOCK [| M |] MEM(0, 0)) \\ M\nassert ONE :[deadlock free]"
        );
        let Ok(mut script) = Script::from_text("test.csp", text) else { panic!("a correct script") };
        let outcome = script.check(0, &CheckOptions::default()).expect("an answer");
        assert!(outcome.holds);
        let states = 2 * 7 * n + 2 + 2 * (1 + n) + n;
        assert_eq!(outcome.statistics.pairs as usize, states, "N = {n}");
    }
}

/// Flat philosophers: breadth first meets the deadlock last.
#[test]
fn deadlocks_are_found_early_and_shortest_when_asked() {
    let model = |n: usize| {
        format!(
            "N = {n}\nID = {{0..N-1}}\nchannel pick, put : ID.ID\nchannel eat : ID\nPHIL(i) = pick.i.i -> pick.i.(i+1)%N -> eat.i -> put.i.(i+1)%N -> put.i.i -> PHIL(i)\nFORK(i) = pick.i.i -> put.i.i -> FORK(i) [] pick.((i-1)%N).i -> put.((i-1)%N).i -> FORK(i)\nSYS = (||| i:ID @ PHIL(i)) [| {{|pick, put|}} |] (||| i:ID @ FORK(i))\nassert SYS :[deadlock free]"
        )
    };
    let check = |n: usize, options: &CheckOptions| {
        let Ok(mut script) = Script::from_text("test.csp", model(n)) else { panic!("a correct script") };
        script.check(0, options).expect("an answer")
    };
    let large = check(14, &CheckOptions::default());
    assert!(!large.holds);
    assert!(large.statistics.pairs < 1_000_000, "{}", large.statistics.pairs);
    let (plain, asked) =
        (CheckOptions::default(), CheckOptions { shortest: true, ..CheckOptions::default() });
    for n in [4, 9] {
        assert_eq!(check(n, &asked).counterexamples[0].trace.len(), n, "each takes its left fork");
    }
    assert_eq!(check(4, &plain).counterexamples[0].trace.len(), 4, "small models keep the shortest");
}

/// What the components did is shown through compressions, nested ones, too.
#[test]
fn counterexamples_go_into_compressions() {
    let text = "channel a, b, c, x\ntransparent sbisim, normal, diamond\nP = a -> x -> P\nQ = x -> b -> Q\nIN = sbisim((P [| {x} |] Q) \\ {x})\nOUT = normal(IN [| {b} |] diamond(b -> c -> STOP))\nassert a -> b -> STOP [T= OUT\nassert OUT ||| STOP :[deadlock free]";
    let Ok(mut script) = Script::from_text("test.csp", text) else { panic!("a correct script") };
    let mut out = String::new();
    for i in 0..2 {
        let outcome = script.check(i, &CheckOptions::default()).expect("an answer");
        out.push_str(&crate::engine::render::text(&script.arena().events, &outcome.counterexamples[0]));
    }
    expect![[r#"
        after <a>
        then it can do a, where the specification allows only {b}
        components:
          normal(IN [|…|] diamond(…))  <a, a>
            sbisim(P [|…|] Q \ …)    <a, a>
              P  <a, x, a>
              Q  <x>
            diamond(b -> c -> STOP)  <>
              b -> c -> STOP  <>
        after <a, a, b, a, c>
        then nothing can happen any more
        components:
          normal(IN [|…|] diamond(…))  <a, a, b, a, c>
            sbisim(P [|…|] Q \ …)    <a, a, b, a>
              P  <a, x, a, x, a>
              Q  <x, b, x>
            diamond(b -> c -> STOP)  <b, c>
              b -> c -> STOP  <b, c>
          STOP                         <>
    "#]]
    .assert_eq(&out);
}

#[test]
fn processes_are_shown_as_terms() {
    check(
        "channel a, b\nP(n) = if n == 0 then STOP else a -> (b -> P(n-1) [] SKIP)\nQ = (P(1) [| {a} |] P(2)) \\ {b}",
        "P(1)\nQ\na -> b -> STOP |~| RUN({a})\nP(0)[[a <- b]]\nP(1) /\\ SKIP",
        expect![[r#"
            P(1) = a -> ((b -> P(0)) [] SKIP) :: Proc
            Q = (P(1) [| {a} |] P(2)) \ {b} :: Proc
            (a -> b -> STOP) |~| (RUN({a})) :: Proc
            P(0)[[a <- b]] :: Proc
            P(1) /\ SKIP :: Proc
        "#]],
    );
}
