//! Environments and lazy values that refer to themselves are given back.

use super::super::env::live;
use super::{CheckOptions, Script};

const SCRIPT: &str = "ones = <1>^ones
pair = (1, (\\ x @ x + head(ones)))
add = \\ n @ if n == 0 then 0 else 1 + add(n - 1)
evens(n) = let
    even(k) = k == 0 or odd(k - 1)
    odd(k) = k != 0 and even(k - 1)
  within even(n)
twos(n) = let
    xs = <n>^(<2>^xs)
    (a, b) = (head(tail(tail(xs))), xs)
  within a + head(tail(b))
ticks(n) = let up(k) = <k>^up(k + 1) within up(n)
many(0, acc) = acc
many(n, acc) = if acc >= 0 and evens(2) then many(n - 1, acc + twos(1)) else acc
channel c : {0..3}
P(n) = let
    next(k) = if k > 3 then 0 else k
    Q(k) = c.k -> (if k == 3 then P(n) else Q(next(k + 1)))
  within Q(n)
assert P(1) :[deadlock free]
";

fn script() -> Script {
    match Script::from_text("test.csp", SCRIPT) {
        Ok(script) => script,
        Err(refused) => panic!("{:?}", refused.diagnostics),
    }
}

#[test]
fn nothing_outlives_its_script() {
    let before = live();
    let mut script = script();
    let exprs = ["head(tail(ones))", "add(5)", "evens(10)", "twos(3)", "head(tail(ticks(3)))", "many(10, 0)"];
    for expr in exprs {
        assert!(script.eval(expr).is_ok(), "{expr}");
    }
    assert!(script.check(0, &CheckOptions::default()).is_ok_and(|outcome| outcome.holds));
    assert!(live() > before, "something is kept for later questions");
    drop(script);
    assert_eq!(live(), before);
}

#[test]
fn what_a_long_evaluation_made_is_given_back_on_the_way() {
    let mut script = script();
    let before = live();
    assert_eq!(script.eval("many(60000, 0)").map(|(value, _)| value).ok().as_deref(), Some("180000"));
    // Each of the 120,000 calls has frames that hold functions and sequences that hold the frames.
    assert!(live() - before < 50_000, "{} are left", live() - before);
}

#[test]
fn what_is_in_use_stays() {
    let mut script = script();
    // The sequence is taken apart while its makers are collected again and again.
    let exprs = [
        "head(let s = ticks(7)\nk = many(30000, 0)\nwithin <x + k | x <- s>)",
        "let keep(n) = let f(k) = k + n within (\\ m @ f(m))\ng = keep(5)\nwithin many(30000, 0) + g(1)",
        "let from = ticks(many(20000, 0)) within head(tail(from))",
        "let ys = <1>^(<2>^ys) within if many(20000, 0) > 0 then head(tail(tail(ys))) else 0",
    ];
    let values = exprs.map(|expr| script.eval(expr).map(|(value, _)| value).unwrap_or_default());
    assert_eq!(values, ["90007", "90006", "60001", "1"]);
}
