//! Golden tests: expressions and their values, and the messages for what has none.

mod cycles;
mod fdr;
mod lazy;
mod memory;

use expect_test::{Expect, expect};

use crate::engine::CheckOptions;
use crate::lang::diagnostic::render;
use crate::lang::session::Script;

/// Evaluates the lines of `exprs` in the scope of `script`.
fn check(script: &str, exprs: &str, expect: Expect) {
    let mut script = match Script::from_text("test.csp", script) {
        Ok(script) => script,
        Err(refused) => panic!("{}", render(&refused.sources, &refused.diagnostics, false)),
    };
    let mut out = String::new();
    for expr in exprs.lines() {
        match script.eval(expr.trim()) {
            Ok((value, ty)) => out.push_str(&format!("{value} :: {ty}\n")),
            Err(diagnostics) => out.push_str(&render(script.sources(), &diagnostics, false)),
        }
    }
    expect.assert_eq(&out);
}

/// Checks all assertions of a script.
fn verdicts(text: &str, expect: Expect) {
    let mut script = match Script::from_text("test.csp", text) {
        Ok(script) => script,
        Err(refused) => panic!("{}", render(&refused.sources, &refused.diagnostics, false)),
    };
    let mut out = String::new();
    let texts: Vec<String> = script.assertions().map(|a| a.text.clone()).collect();
    for (i, text) in texts.iter().enumerate() {
        match script.check(i, &CheckOptions::default()) {
            Ok(outcome) => {
                out.push_str(&format!("{text}: {}\n", if outcome.holds { "holds" } else { "fails" }));
                for counterexample in &outcome.counterexamples {
                    let trace: Vec<String> =
                        counterexample.trace.iter().map(|&e| script.event_name(e)).collect();
                    out.push_str(&format!("  after <{}>\n", trace.join(", ")));
                }
            }
            Err(diagnostic) => out.push_str(&render(script.sources(), &[diagnostic], false)),
        }
    }
    expect.assert_eq(&out);
}

#[test]
fn arithmetic_and_logic() {
    check(
        "",
        "1 + 2 * 3\n-7 / 2\n(-7) / 2\n(-7) % 2\n7 % -2\n1 < 2 and not 2 < 1\nfalse and 1/0 == 1\nif 1 == 2 then 'a' else 'b'",
        expect![[r#"
            7 :: Int
            -3 :: Int
            -4 :: Int
            1 :: Int
            -1 :: Int
            true :: Bool
            false :: Bool
            'b' :: Char
        "#]],
    );
}

#[test]
fn sequences() {
    check(
        "sum(<>) = 0\nsum(<x>^s) = x + sum(s)\nlast(s^<x>) = x\nrev(<>) = <>\nrev(<x>^s) = rev(s)^<x>",
        "<1..5>\nsum(<1..100>)\nlast(<1,2,3>)\nrev(<1,2,3>)\n<x*x | x <- <1..5>, x % 2 == 1>\n#\"abc\"\nhead(tail(<5..>))\nconcat(<<1>,<2,3>>)\nelem(2, <1,2>)\n\"ab\"^\"c\"\n<1,2> < <1,2,3>\nnull(<>)\n<(x,y) | x <- <1,2>, y <- <x..2>>",
        expect![[r#"
            <1, 2, 3, 4, 5> :: <Int>
            5050 :: Int
            3 :: Int
            <3, 2, 1> :: <Int>
            <1, 9, 25> :: <Int>
            3 :: Int
            6 :: Int
            <1, 2, 3> :: <Int>
            true :: Bool
            "abc" :: <Char>
            true :: Bool
            true :: Bool
            <(1, 1), (1, 2), (2, 2)> :: <(Int, Int)>
        "#]],
    );
}

#[test]
fn sets_and_maps() {
    check(
        "external relational_image, transpose",
        "{3,1,2,1}\nunion({1},{2})\ndiff({1..5},{2,3})\nInter({{1,2},{2,3}})\nUnion({{1},{2}})\nSet({1,2})\nmember(2,{0..})\ncard({x+y | x <- {0..2}, y <- {0..2}})\nseq({3,1})\nset(<1,1,2>)\nmapLookup(mapFromList(<(1,true),(2,false)>), 2)\nmapToList(mapUpdate((| 1 => 'a' |), 0, 'b'))\nmapMember(mapDelete((| 1 => 2 |), 1), 1)\nMap({0,1},{true})\nrelational_image({(1,2),(1,3),(2,4)})(1)\ntranspose({(1,2)})\n{1} <= {1,2}\nmember(<1,1>, Seq({1}))\nempty({})",
        expect![[r#"
            {1, 2, 3} :: {Int}
            {1, 2} :: {Int}
            {1, 4, 5} :: {Int}
            {2} :: {Int}
            {1, 2} :: {Int}
            {{}, {1}, {1, 2}, {2}} :: {{Int}}
            true :: Bool
            5 :: Int
            <1, 3> :: <Int>
            {1, 2} :: {Int}
            false :: Bool
            <(0, 'b'), (1, 'a')> :: <(Int, Char)>
            false :: Bool
            {(| |), (| 0 => true |), (| 0 => true, 1 => true |), (| 1 => true |)} :: {(| Int => Bool |)}
            {2, 3} :: {Int}
            {(2, 1)} :: {(Int, Int)}
            true :: Bool
            true :: Bool
            true :: Bool
        "#]],
    );
}

#[test]
fn datatypes_dots_and_channels() {
    check(
        "datatype D = A | B.{0..1}.Bool\ndatatype T = Leaf | Node.T.T\nsubtype S = A | B.{0}.{true}\nnametype P = {0..1}.{5..6}\nchannel c : D\nchannel p : P.Bool\nchannel e\ndepth(Leaf) = 0\ndepth(Node.l.r) = 1 + depth(l)\nf(B.n.b) = (n, b)\nf(A) = (9, false)",
        "D\nS\nP\n{| c |}\nf(B.1.true)\nf(A)\nproductions(p.0)\nextensions(p.0)\nextensions(c.B.0)\ndepth(Node.(Node.Leaf.Leaf).Leaf)\ncard(Events)\nmember(Node.Leaf.Leaf, T)\nT\n{x | x <- {A, B.0.true, B.1.false}, x != A}\n{b | B.1.b <- D}",
        expect![[r#"
            {A, B.0.false, B.0.true, B.1.false, B.1.true} :: {D}
            {A, B.0.true} :: {D}
            {0.5, 0.6, 1.5, 1.6} :: {Int.Int}
            {c.A, c.B.0.false, c.B.0.true, c.B.1.false, c.B.1.true} :: {Event}
            (1, true) :: (Int, Bool)
            (9, false) :: (Int, Bool)
            {p.0.5.false, p.0.5.true, p.0.6.false, p.0.6.true} :: {Event}
            {5.false, 5.true, 6.false, 6.true} :: {a}
            {false, true} :: {a}
            2 :: Int
            14 :: Int
            true :: Bool
            T :: {T}
            {B.0.true, B.1.false} :: {D}
            {false, true} :: {Bool}
        "#]],
    );
}

#[test]
fn subtypes_may_leave_fields_out() {
    check(
        "datatype D = A | B.{0..2} | C.{0..1}.Bool\nsubtype S = A | B\nsubtype T = C.{1} | B.{0}",
        "S\nT\ncard(D)",
        expect![[r#"
            {A, B.0, B.1, B.2} :: {D}
            {B.0, C.1.false, C.1.true} :: {D}
            8 :: Int
        "#]],
    );
}

#[test]
fn laziness_and_local_definitions() {
    check(
        "const(x, y) = x\nloop(n) = loop(n + 1)\ncount(0, acc) = acc\ncount(n, acc) = count(n - 1, acc + 1)\n(a, <b>^_) = (1, <2,3>)\ncurry(x)(y) = x * y\nfib = let go(0, a, b) = a\n  go(n, a, b) = go(n-1, b, a+b)\nwithin go(50, 0, 1)",
        "const(1, error(\"never\"))\ncount(1000000, 0)\na + b\ncurry(3)(4)\nfib\nlet x = 3 within x + 1\n(\\ x, y @ x - y)(5, 3)\nlet f(0) = 1\nshow((1, <true>, {'a'}))",
        expect![[r#"
            1 :: Int
            1000000 :: Int
            3 :: Int
            12 :: Int
            12586269025 :: Int
            4 :: Int
            2 :: Int
            error: expected `within` after the local definitions, found the end of the file
             --> <expression>:1:13
              |
            1 | let f(0) = 1
              |             ^ not expected here
            "(1, <true>, {'a'})" :: <Char>
        "#]],
    );
}

#[test]
fn faults_point_at_the_place() {
    check(
        "f(0) = 1\ndeep(n) = 1 + deep(n + 1)\nx = y\ny = x\nm = (| 1 => 2 |)",
        "f(2)\ndeep(0)\n1/0\nx\nhead(<>)\nmapLookup(m, 3)\nerror(\"so there\")\n9223372036854775807 + 1\ncard({0..})\n{x | x <- Int}\n{0..100000000}\nInter({})",
        expect![[r#"
            error: no clause of `f` matches `f(2)`
             --> <expression>:1:1
              |
            1 | f(2)
              | ^^^^
              |
             ::: test.csp:1:1
              |
            1 | f(0) = 1
              | - the first clause is here
              |
              = note: add a clause for these arguments
            error: the recursion is too deep
             --> test.csp:2:15
              |
            2 | deep(n) = 1 + deep(n + 1)
              |               ^^^^
              |
              = note: 50000 evaluations inside each other; is a recursion missing its base case?
            error: division by zero
             --> <expression>:1:1
              |
            1 | 1/0
              | ^^^
            error: this value depends on itself
             --> test.csp:4:5
              |
            4 | y = x
              |     ^
            error: `head` of an empty sequence
             --> <expression>:1:1
              |
            1 | head(<>)
              | ^^^^^^^^
            error: the map has no entry for 3
             --> <expression>:1:1
              |
            1 | mapLookup(m, 3)
              | ^^^^^^^^^^^^^^^
              |
              = note: `mapMember` tells whether there is one
            error: the script reports: so there
             --> <expression>:1:1
              |
            1 | error("so there")
              | ^^^^^^^^^^^^^^^^^
            error: the result is too large for an integer
             --> <expression>:1:1
              |
            1 | 9223372036854775807 + 1
              | ^^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: integers have 64 bits
            error: the set {0..} has no end
             --> <expression>:1:1
              |
            1 | card({0..})
              | ^^^^^^^^^^^
              |
              = note: it cannot be listed; restrict it to finitely many values
            error: the set Int has no end
             --> <expression>:1:11
              |
            1 | {x | x <- Int}
              |           ^^^
              |
              = note: it cannot be listed; restrict it to finitely many values
            error: this set or sequence is too large
             --> <expression>:1:1
              |
            1 | {0..100000000}
              | ^^^^^^^^^^^^^^
              |
              = note: at most 10000000 elements are kept
            error: the intersection of no sets
             --> <expression>:1:1
              |
            1 | Inter({})
              | ^^^^^^^^^
              |
              = note: `Inter` needs at least one set
        "#]],
    );
}

#[test]
fn an_endless_loop_is_stopped() {
    let text = "f(n) = f(n + 1)\nprint f(0)";
    let loaded = crate::lang::load::load_text(&crate::lang::load::Disk, "test.csp", text);
    let limits = super::Limits { steps_max: 10_000, ..super::Limits::default() };
    let Ok(mut script) = Script::new(loaded, limits) else { panic!("a correct script") };
    let prints = script.prints();
    let message = prints[0].1.as_ref().expect_err("it does not end").message.clone();
    assert_eq!(message, "this evaluation does not seem to end");
}

#[test]
fn deep_values_are_refused_before_they_overflow_the_stack() {
    check(
        "datatype L = Nil | Cons.Int.L\nlist(0, l) = l\nlist(n, l) = list(n-1, Cons.n.l)\nlong = list(100000, Nil)",
        "long == Nil\nlist(1000, Nil) == Nil",
        expect![[r#"
            error: the recursion is too deep
             --> test.csp:3:29
              |
            3 | list(n, l) = list(n-1, Cons.n.l)
              |                             ^
              |
              = note: 50000 evaluations inside each other; is a recursion missing its base case?
            false :: Bool
        "#]],
    );
}

#[test]
fn processes_and_their_checks() {
    verdicts(
        "channel a, b\nchannel c : {0..2}\nP = a -> b -> P\nQ = a -> (b -> Q [] a -> STOP)\nCOUNT(n) = n < 2 & c!n -> COUNT(n+1) [] n == 2 & c.2 -> COUNT(0)\nassert P [T= Q\nassert Q [T= P\nassert P :[deadlock free]\nassert Q :[deadlock free [F]]\nassert COUNT(0) :[deadlock free]\nassert c?x -> STOP [T= COUNT(0)\nassert not P \\ {a,b} :[divergence free]\nassert P :[has trace]: <a,b>\nassert P :[deterministic]\nassert P [F= a -> b -> P |~| STOP",
        expect![[r#"
            P [T= Q: fails
              after <a>
            Q [T= P: holds
            P :[deadlock free]: holds
            Q :[deadlock free [F]]: fails
              after <a, a>
            COUNT(0) :[deadlock free]: holds
            c?x -> STOP [T= COUNT(0): fails
              after <c.0>
            not P \ {a,b} :[divergence free]: holds
              after <>
            P :[has trace]: <a,b>: holds
            P :[deterministic]: holds
            P [F= a -> b -> P |~| STOP: fails
              after <>
        "#]],
    );
}

#[test]
fn inputs_choices_and_restrictions() {
    verdicts(
        "channel c : {0..2}.{0..2}\nR = c?x:{0,1}?y:{x} -> STOP\nassert R [T= c.0.0 -> STOP\nassert R [T= c.0.1 -> STOP\nassert c?x.y -> STOP [T= c?x!x -> STOP\nassert c$x:{1}?y -> STOP [F= c.1?y -> STOP\nassert c?y -> STOP [F= c$x!0 -> STOP\nassert c$x!0 -> STOP [F= c!1!0 -> STOP",
        expect![[r#"
            R [T= c.0.0 -> STOP: holds
            R [T= c.0.1 -> STOP: fails
              after <>
            c?x.y -> STOP [T= c?x!x -> STOP: holds
            c$x:{1}?y -> STOP [F= c.1?y -> STOP: holds
            c?y -> STOP [F= c$x!0 -> STOP: fails
              after <>
            c$x!0 -> STOP [F= c!1!0 -> STOP: holds
        "#]],
    );
}

/// As in FDR, a constructor's fields are among those declared, whether the value becomes part of an event or not.
#[test]
fn fields_of_constructors_are_as_declared() {
    verdicts(
        "datatype T = A.{0..3} | L | N.T.T\ndatatype S = B.{A.x | x <- {0,1}}\nchannel c\nf(n) = A.n\nright = N.(A.1).(N.L.(A.3))\nP(x) = if x == right then c -> STOP else STOP\nassert P(right) :[deadlock free]\nassert P(f(4)) :[deadlock free]\nassert P(N.L.(A.7)) :[deadlock free]\nassert P(N.L.A.7) :[deadlock free]\nassert (if (B.(A.2)) == (B.(A.1)) then STOP else STOP) :[deadlock free]",
        expect![[r#"
            P(right) :[deadlock free]: fails
              after <c>
            error: `A.4` is not a value of its datatype
             --> test.csp:4:8
              |
            1 | datatype T = A.{0..3} | L | N.T.T
              |              - the constructor is declared here
            ...
            4 | f(n) = A.n
              |        ^^^
              |
              = note: 4 is not among the values declared for field 1 of `A`
            error: `A.7` is not a value of its datatype
             --> test.csp:9:15
              |
            1 | datatype T = A.{0..3} | L | N.T.T
              |              - the constructor is declared here
            ...
            9 | assert P(N.L.(A.7)) :[deadlock free]
              |               ^^^
              |
              = note: 7 is not among the values declared for field 1 of `A`
            error: `A.7` is not a value of its datatype
              --> test.csp:10:14
               |
             1 | datatype T = A.{0..3} | L | N.T.T
               |              - the constructor is declared here
            ...
            10 | assert P(N.L.A.7) :[deadlock free]
               |              ^^^
               |
               = note: 7 is not among the values declared for field 1 of `A`
            error: `B.A.2` is not a value of its datatype
              --> test.csp:11:13
               |
             2 | datatype S = B.{A.x | x <- {0,1}}
               |              - the constructor is declared here
            ...
            11 | assert (if (B.(A.2)) == (B.(A.1)) then STOP else STOP) :[deadlock free]
               |             ^^^^^^^
               |
               = note: A.2 is not among the values declared for field 1 of `B`
        "#]],
    );
}

#[test]
fn errors_inside_processes() {
    verdicts(
        "channel c : {0..2}\nchannel d : Int\nP(n) = c!n -> P(n+1)\nQ = d?x -> STOP\nR = R [] c.0 -> STOP\nF(0) = c.0 -> F(1)\nU = |~| x : {} @ c.x -> U\nassert P(0) :[deadlock free]\nassert Q :[deadlock free]\nassert R :[deadlock free]\nassert F(0) :[deadlock free]\nassert U :[deadlock free]\nassert STOP [T= STOP \\ Events\nassert c.0 -> STOP :[deadlock free [T]]\nassert d.7 -> STOP :[has trace]: <d.7>",
        expect![[r#"
            error: `c.3` is not an event
             --> test.csp:3:8
              |
            3 | P(n) = c!n -> P(n+1)
              |        ^^^
              |
              = note: 3 is not among the values declared for field 1 of `c`
              = note: while evaluating `P(3)`
            error: the set Int has no end
             --> test.csp:4:6
              |
            4 | Q = d?x -> STOP
              |      ^^
              |
              = note: it cannot be listed; restrict it to finitely many values
              = note: all values of field 1 of `d` are needed here
              = note: while evaluating `Q`
            error: the recursion of R is unguarded: its first events depend on themselves; put an event before the recursive call
             --> test.csp:5:1
              |
            5 | R = R [] c.0 -> STOP
              | ^
            error: no clause of `F` matches `F(1)`
             --> test.csp:6:1
              |
            6 | F(0) = c.0 -> F(1)
              | ^
              |
              = note: add a clause for these arguments
              = note: while evaluating `F(1)`
            error: an internal choice of nothing
             --> test.csp:7:5
              |
            7 | U = |~| x : {} @ c.x -> U
              |     ^^^^^^^^^^^^^^^^^^^^^
              |
              = note: `|~|` over an empty set has no meaning; make sure the set has an element
              = note: while evaluating `U`
            error: the set Int has no end
              --> test.csp:13:24
               |
             2 | channel d : Int
               |         - declared here
            ...
            13 | assert STOP [T= STOP \ Events
               |                        ^^^^^^
               |
               = note: it cannot be listed; restrict it to finitely many values
               = note: all values of field 1 of `d` are needed here
            error: deadlock freedom cannot be seen in the traces model; ask in [F] or [FD]
              --> test.csp:14:1
               |
            14 | assert c.0 -> STOP :[deadlock free [T]]
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            d.7 -> STOP :[has trace]: <d.7>: holds
        "#]],
    );
}

#[test]
fn timed_sections() {
    verdicts(
        "channel tock, a, b\nOne(_) = 1\nTimed(One) {\n  P = a -> P\n  Q = a -> b -> STOP\n  W = WAIT(2) ; a -> STOP\n  C = a -> STOP [] b -> STOP\n  I = P ||| b -> STOP\n}\nTwo = a -> tock -> Two [] tock -> Two\nassert Two [FD= P\nassert P [FD= Two\nassert W :[has trace]: <tock, tock, a, tock>\nassert W :[has trace]: <tock, a>\nassert C :[has trace]: <tock, tock, b, tock>\nassert I :[has trace]: <tock, a, b, tock, a>\nassert P :[deadlock free]",
        expect![[r#"
            Two [FD= P: holds
            P [FD= Two: holds
            W :[has trace]: <tock, tock, a, tock>: holds
            W :[has trace]: <tock, a>: fails
              after <tock>
            C :[has trace]: <tock, tock, b, tock>: holds
            I :[has trace]: <tock, a, b, tock, a>: holds
            P :[deadlock free]: holds
        "#]],
    );
}

#[test]
fn modules_and_instances() {
    verdicts(
        "channel in_, out : {0..1}\nmodule Buffer(n, inp, outp)\n  B(s) = #s < n & inp?x -> B(s^<x>) [] #s > 0 & outp!head(s) -> B(tail(s))\nexports\n  BUFF = B(<>)\n  size = n\nendmodule\ninstance One = Buffer(1, in_, out)\ninstance Two = Buffer(2, in_, out)\nassert Two::BUFF [T= One::BUFF\nassert One::BUFF [T= Two::BUFF\nassert CHAOS(Events) [F= Two::BUFF",
        expect![[r#"
            Two::BUFF [T= One::BUFF: holds
            One::BUFF [T= Two::BUFF: fails
              after <in_.0>
            CHAOS(Events) [F= Two::BUFF: holds
        "#]],
    );
}

#[test]
fn parallel_operators_and_renaming() {
    verdicts(
        "channel a, b, c, mid\nchannel l, r, m : {0..1}\nCOPY = l?x -> r!x -> COPY\nTWO = COPY [ r <-> l ] COPY\nCHAIN = (COPY [[ r <- m ]] [| {| m |} |] COPY [[ l <- m ]]) \\ {| m |}\nassert TWO [FD= CHAIN\nassert CHAIN [FD= TWO\nP = a -> b -> STOP\nQ = b -> c -> STOP\nassert a -> b -> c -> STOP [FD= P [ {a,b} || {b,c} ] Q\nassert P ||| Q :[has trace]: <b,a,c,b>\nassert P [[ a <- c, a <- b ]] [T= c -> b -> STOP\nassert (P [| {b} |> c -> STOP) :[has trace]: <a,b,c>\nassert P /\\ c -> STOP :[has trace]: <a,c>\nassert (a -> SKIP ; b -> STOP) |\\ {b} [T= b -> STOP\nassert || i : {0,1} @ [{| l.i |}] l.i -> STOP :[has trace]: <l.1, l.0>\nassert ; i : <0,1> @ l.i -> SKIP [FD= l.0 -> l.1 -> SKIP\nassert a -> STOP [> b -> STOP :[has trace [F]]: <b>",
        expect![[r#"
            TWO [FD= CHAIN: holds
            CHAIN [FD= TWO: holds
            a -> b -> c -> STOP [FD= P [ {a,b} || {b,c} ] Q: holds
            P ||| Q :[has trace]: <b,a,c,b>: holds
            P [[ a <- c, a <- b ]] [T= c -> b -> STOP: holds
            (P [| {b} |> c -> STOP) :[has trace]: <a,b,c>: holds
            P /\ c -> STOP :[has trace]: <a,c>: holds
            (a -> SKIP ; b -> STOP) |\ {b} [T= b -> STOP: holds
            || i : {0,1} @ [{| l.i |}] l.i -> STOP :[has trace]: <l.1, l.0>: holds
            ; i : <0,1> @ l.i -> SKIP [FD= l.0 -> l.1 -> SKIP: holds
            a -> STOP [> b -> STOP :[has trace [F]]: <b>: holds
        "#]],
    );
}

/// A component that grows without end is stopped by the memory it may take, and the message says which it is.
#[test]
fn unbounded_components_do_not_take_all_memory() {
    let text = "channel c : {0..1}\nBUFFER(s) = c?x -> BUFFER(s^<x>)\nCOUNT(n) = c.0 -> COUNT(n + 1)\nassert BUFFER(<>) :[deadlock free]\nassert COUNT(0) ||| STOP :[deadlock free]";
    let options = CheckOptions { leaf_memory_max_bytes: 1 << 20, ..CheckOptions::default() };
    let mut script = match Script::from_text("test.csp", text) {
        Ok(script) => script,
        Err(refused) => panic!("{}", render(&refused.sources, &refused.diagnostics, false)),
    };
    for (i, (name, line)) in [("BUFFER", 2), ("COUNT", 3)].into_iter().enumerate() {
        let diagnostic = script.check(i, &options).expect_err("there is no answer");
        assert!(diagnostic.message.starts_with(&format!("exploring {name}")), "{}", diagnostic.message);
        assert!(diagnostic.message.contains("needs more than 1 MB of memory"), "{}", diagnostic.message);
        assert_eq!(script.sources().place(diagnostic.span), format!("test.csp:{line}:1"));
    }
}

/// What cannot be made: orders that are none, and buffers that could not tell what they hold.
#[test]
fn impossible_orders_and_buffers_are_refused() {
    verdicts(
        "external prioritisepo\nchannel a, b, c\nassert prioritisepo(STOP, {a, b}, {(a, b), (b, a)}, {}) [T= STOP\nassert prioritisepo(STOP, {a, b}, {(a, b), (b, c)}, {a}) [T= STOP\nassert prioritisepo(STOP, {a, b, c}, {(a, b)}, {b}) [T= STOP\nassert BUFFER(0, {(a, b)}) [T= STOP\nassert BUFFER(1, {(a, b), (b, c)}) [T= STOP\nassert BUFFER(1, {(a, b)}) :[deadlock free]",
        expect![[r#"
            error: `prioritisepo` sets `a` above itself
             --> test.csp:3:8
              |
            3 | assert prioritisepo(STOP, {a, b}, {(a, b), (b, a)}, {}) [T= STOP
              |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: the order has a loop
            error: `prioritisepo` does not order `c`
             --> test.csp:4:8
              |
            4 | assert prioritisepo(STOP, {a, b}, {(a, b), (b, c)}, {a}) [T= STOP
              |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: the second argument has to hold all events of the third and the fourth
            error: `b` is to be as high as hidden events, but `τ` is above it
             --> test.csp:5:8
              |
            5 | assert prioritisepo(STOP, {a, b, c}, {(a, b)}, {b}) [T= STOP
              |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: take it out of the fourth argument of `prioritisepo`, or out of the order
            error: a buffer cannot have room for 0 events
             --> test.csp:6:8
              |
            6 | assert BUFFER(0, {(a, b)}) [T= STOP
              |        ^^^^^^^^^^^^^^^^^^^
              |
              = note: the first argument has to be at least 1
            error: `b` occurs twice in the pairs of a buffer
             --> test.csp:7:8
              |
            7 | assert BUFFER(1, {(a, b), (b, c)}) [T= STOP
              |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: every event has to be the input or the output of one pair
            BUFFER(1, {(a, b)}) :[deadlock free]: holds
        "#]],
    );
}
