//! Golden tests: expressions and their values, and the messages for what has none.

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
        "1 + 2 * 3\n-7 / 2\n-7 % 2\n7 % -2\n1 < 2 and not 2 < 1\nfalse and 1/0 == 1\nif 1 == 2 then 'a' else 'b'",
        expect![[r#""#]],
    );
}

#[test]
fn sequences() {
    check(
        "sum(<>) = 0\nsum(<x>^s) = x + sum(s)\nlast(s^<x>) = x\nrev(<>) = <>\nrev(<x>^s) = rev(s)^<x>",
        "<1..5>\nsum(<1..100>)\nlast(<1,2,3>)\nrev(<1,2,3>)\n<x*x | x <- <1..5>, x % 2 == 1>\n#\"abc\"\nhead(tail(<5..>))\nconcat(<<1>,<2,3>>)\nelem(2, <1,2>)\n\"ab\"^\"c\"\n<1,2> < <1,2,3>\nnull(<>)\n<(x,y) | x <- <1,2>, y <- <x..2>>",
        expect![[r#""#]],
    );
}

#[test]
fn sets_and_maps() {
    check(
        "external relational_image, transpose",
        "{3,1,2,1}\nunion({1},{2})\ndiff({1..5},{2,3})\nInter({{1,2},{2,3}})\nUnion({{1},{2}})\nSet({1,2})\nmember(2,{0..})\ncard({x+y | x <- {0..2}, y <- {0..2}})\nseq({3,1})\nset(<1,1,2>)\nmapLookup(mapFromList(<(1,true),(2,false)>), 2)\nmapToList(mapUpdate((| 1 => 'a' |), 0, 'b'))\nmapMember(mapDelete((| 1 => 2 |), 1), 1)\nMap({0,1},{true})\nrelational_image({(1,2),(1,3),(2,4)})(1)\ntranspose({(1,2)})\n{1} <= {1,2}\nmember(<1,1>, Seq({1}))\nempty({})",
        expect![[r#""#]],
    );
}

#[test]
fn datatypes_dots_and_channels() {
    check(
        "datatype D = A | B.{0..1}.Bool\ndatatype T = Leaf | Node.T.T\nsubtype S = A | B.{0}.{true}\nnametype P = {0..1}.{5..6}\nchannel c : D\nchannel p : P.Bool\nchannel e\ndepth(Leaf) = 0\ndepth(Node.l.r) = 1 + depth(l)\nf(B.n.b) = (n, b)\nf(A) = (9, false)",
        "D\nS\nP\n{| c |}\nf(B.1.true)\nf(A)\nproductions(p.0)\nextensions(p.0)\nextensions(c.B.0)\ndepth(Node.(Node.Leaf.Leaf).Leaf)\ncard(Events)\nmember(Node.Leaf.Leaf, T)\nT\n{x | x <- {A, B.0.true, B.1.false}, x != A}\n{b | B.1.b <- D}",
        expect![[r#""#]],
    );
}

#[test]
fn laziness_and_local_definitions() {
    check(
        "const(x, y) = x\nloop(n) = loop(n + 1)\ncount(0, acc) = acc\ncount(n, acc) = count(n - 1, acc + 1)\n(a, <b>^_) = (1, <2,3>)\ncurry(x)(y) = x * y\nfib = let go(0, a, b) = a\n  go(n, a, b) = go(n-1, b, a+b)\nwithin go(50, 0, 1)",
        "const(1, error(\"never\"))\ncount(1000000, 0)\na + b\ncurry(3)(4)\nfib\nlet x = 3 y = x within y\n(\\ x, y @ x - y)(5, 3)\nlet f(0) = 1\nshow((1, <true>, {'a'}))",
        expect![[r#""#]],
    );
}

#[test]
fn faults_point_at_the_place() {
    check(
        "f(0) = 1\ndeep(n) = 1 + deep(n + 1)\nx = y\ny = x\nm = (| 1 => 2 |)",
        "f(2)\ndeep(0)\n1/0\nx\nhead(<>)\nmapLookup(m, 3)\nerror(\"so there\")\n9223372036854775807 + 1\ncard({0..})\n{x | x <- Int}\n{0..100000000}\nInter({})",
        expect![[r#""#]],
    );
}

#[test]
fn an_endless_loop_is_stopped() {
    let text = "f(n) = f(n + 1)\nprint f(0)";
    let loaded = crate::lang::load::load_text(&crate::lang::load::Disk, "test.csp", text);
    let limits = super::Limits { steps_max: 10_000, ..super::Limits::default() };
    let mut script = Script::new(loaded, limits).ok().expect("a correct script");
    let prints = script.prints();
    let message = prints[0].1.as_ref().expect_err("it does not end").message.clone();
    assert_eq!(message, "this evaluation does not seem to end");
}

#[test]
fn deep_values_are_refused_before_they_overflow_the_stack() {
    check(
        "nest(0, v) = v\nnest(n, v) = nest(n - 1, {(v, 0)})\ngrow(0) = {{}}\ngrow(n) = {grow(n-1)}\ndatatype L = Nil | Cons.Int.L\nlist(0, l) = l\nlist(n, l) = list(n-1, Cons.n.l)\nlong = list(100000, Nil)",
        "long == Nil",
        expect![[r#""#]],
    );
}

#[test]
fn processes_and_their_checks() {
    verdicts(
        "channel a, b\nchannel c : {0..2}\nP = a -> b -> P\nQ = a -> (b -> Q [] a -> STOP)\nCOUNT(n) = n < 2 & c!n -> COUNT(n+1) [] n == 2 & c.2 -> COUNT(0)\nassert P [T= Q\nassert Q [T= P\nassert P :[deadlock free]\nassert Q :[deadlock free [F]]\nassert COUNT(0) :[deadlock free]\nassert c?x -> STOP [T= COUNT(0)\nassert not P \\ {a,b} :[divergence free]\nassert P :[has trace]: <a,b>\nassert P :[deterministic]\nassert P [F= a -> b -> P |~| STOP",
        expect![[r#""#]],
    );
}

#[test]
fn inputs_choices_and_restrictions() {
    verdicts(
        "channel c : {0..2}.{0..2}\nR = c?x:{0,1}?y:{x} -> STOP\nassert R [T= c.0.0 -> STOP\nassert R [T= c.0.1 -> STOP\nassert c?x.y -> STOP [T= c?x!x -> STOP\nassert c$x:{1}?y -> STOP [F= c.1?y -> STOP\nassert c?y -> STOP [F= c$x!0 -> STOP\nassert c$x!0 -> STOP [F= c!1!0 -> STOP",
        expect![[r#""#]],
    );
}

#[test]
fn errors_inside_processes() {
    verdicts(
        "channel c : {0..2}\nchannel d : Int\nP(n) = c!n -> P(n+1)\nQ = d?x -> STOP\nR = R [] c.0 -> STOP\nF(0) = c.0 -> F(1)\nU = |~| x : {} @ c.x -> U\nassert P(0) :[deadlock free]\nassert Q :[deadlock free]\nassert R :[deadlock free]\nassert F(0) :[deadlock free]\nassert U :[deadlock free]\nassert STOP [T= STOP \\ Events\nassert c.0 -> STOP :[deadlock free [T]]\nassert d.7 -> STOP :[has trace]: <d.7>",
        expect![[r#""#]],
    );
}

#[test]
fn timed_sections() {
    verdicts(
        "channel tock, a, b\nOne(_) = 1\nTimed(One) {\n  P = a -> P\n  Q = a -> b -> STOP\n  W = WAIT(2) ; a -> STOP\n  C = a -> STOP [] b -> STOP\n  I = P ||| b -> STOP\n}\nTwo = a -> tock -> Two [] tock -> Two\nassert Two [FD= P\nassert P [FD= Two\nassert W :[has trace]: <tock, tock, a, tock>\nassert W :[has trace]: <tock, a>\nassert C :[has trace]: <tock, tock, b, tock>\nassert I :[has trace]: <tock, a, b, tock, a>\nassert P :[deadlock free]",
        expect![[r#""#]],
    );
}

#[test]
fn modules_and_instances() {
    verdicts(
        "channel in_, out : {0..1}\nmodule Buffer(n, inp, outp)\n  B(s) = #s < n & inp?x -> B(s^<x>) [] #s > 0 & outp!head(s) -> B(tail(s))\nexports\n  BUFF = B(<>)\n  size = n\nendmodule\ninstance One = Buffer(1, in_, out)\ninstance Two = Buffer(2, in_, out)\nassert Two::BUFF [T= One::BUFF\nassert One::BUFF [T= Two::BUFF\nassert CHAOS(Events) [F= Two::BUFF",
        expect![[r#""#]],
    );
}

#[test]
fn parallel_operators_and_renaming() {
    verdicts(
        "channel a, b, c, mid\nchannel l, r, m : {0..1}\nCOPY = l?x -> r!x -> COPY\nTWO = COPY [ r <-> l ] COPY\nCHAIN = (COPY [[ r <- m ]] [| {| m |} |] COPY [[ l <- m ]]) \\ {| m |}\nassert TWO [FD= CHAIN\nassert CHAIN [FD= TWO\nP = a -> b -> STOP\nQ = b -> c -> STOP\nassert a -> b -> c -> STOP [FD= P [ {a,b} || {b,c} ] Q\nassert P ||| Q :[has trace]: <b,a,c,b>\nassert P [[ a <- c, a <- b ]] [T= c -> b -> STOP\nassert (P [| {b} |> c -> STOP) :[has trace]: <a,b,c>\nassert P /\\ c -> STOP :[has trace]: <a,c>\nassert (a -> SKIP ; b -> STOP) |\\ {b} [T= b -> STOP\nassert || i : {0,1} @ [{| l.i |}] l.i -> STOP :[has trace]: <l.1, l.0>\nassert ; i : <0,1> @ l.i -> SKIP [FD= l.0 -> l.1 -> SKIP\nassert a -> STOP [> b -> STOP :[has trace [F]]: <b>",
        expect![[r#""#]],
    );
}
