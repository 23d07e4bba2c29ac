//! What is evaluated only when it is needed, and what happens when there is no end.

use expect_test::expect;

use super::{check, verdicts};

const SCRIPT: &str = "loop(n) = loop(n + 1)
first((a, b)) = a
second((_, b)) = b
(s, t) = (1, loop(0))
(p, q) = (q + 1, 41)
take(0, _) = <>
take(n, <>) = <>
take(n, <x>^s) = <x>^take(n - 1, s)
nat(n) = <n>^nat(n + 1)
down(n) = if n == 0 then <> else <n>^down(n - 1)
ones = <1>^ones
sieve(<p>^xs) = <p>^sieve(<x | x <- xs, x % p != 0>)
fib = <0, 1>^<a + b | (a, b) <- zip(fib, tail(fib))>
zip(<x>^xs, <y>^ys) = <(x, y)>^zip(xs, ys)
zip(_, _) = <>
rev(<>) = <>
rev(<x>^s) = rev(s)^<x>
sum(s) = add(s, 0)
add(<>, n) = n
add(<x>^s, n) = add(s, n + x)
self = (1, second(self))
count(0, acc) = acc
count(n, (a, b)) = count(n - 1, (a + 1, b + a % 3))
channel c : {0..9}
P(n) = c.n -> P(second((n, (n + 1) % 3)))
";

#[test]
fn components_that_nobody_needs_are_not_evaluated() {
    check(
        SCRIPT,
        "first((1, loop(0)))\ns\n(p, q)\nhead(<1, loop(0)>)\nlength(<loop(0), 1/0>)\nlet f((a,b)) = a within f((1, error(\"no\")))\n(\\ (a, b) @ b)((1/0, 2))\nlet <a, b> = <1/0, 2> within b\nnull(<1/0>)\nfirst(first(((7, 1/0), 1/0)))\n(1, 1/0) == (2, 1/0)\nelem(1, <1, 1/0>)\n<1, 1/0> == <2, 1/0>\nhead(<10 / x | x <- <5, 0>>)",
        expect![[r#"
            1 :: Int
            1 :: Int
            (42, 41) :: (Int, Int)
            1 :: Int
            2 :: Int
            1 :: Int
            2 :: Int
            2 :: Int
            false :: Bool
            7 :: Int
            false :: Bool
            true :: Bool
            false :: Bool
            2 :: Int
        "#]],
    );
}

#[test]
fn sequences_without_an_end_are_used_from_the_front() {
    check(
        SCRIPT,
        "head(<x*x | x <- <0..>>)\ntake(5, <x*x | x <- <0..>>)\ntake(3, <x | x <- <0..>, x > 5>)\ntake(3, nat(7))\ntake(4, ones)\ntake(8, sieve(<2..>))\ntake(10, fib)\ntake(4, <(x, y) | x <- <0..>, y <- <0..x>>)\ntake(3, <x.. | x <- <5..>>)\nhead(tail(seq({3..})))\ntake(3, <1>^<5..>)\ntake(2, <5..>^<1>)\ntake(4, concat(<<n, n> | n <- <1..>>))\ntake(3, concat(<<1>, <7..>, <2>>))\nelem(9, <x*x | x <- <0..>>)\nelem(7, nat(3))\nnull(nat(0))\n<0, 1> < nat(0)\n<0, 2> <= <0..>\nnat(0) == <0, 1, 3>\nlet <a>^<b>^rest = nat(4) within (a, b, head(rest))",
        expect![[r#"
            0 :: Int
            <0, 1, 4, 9, 16> :: <Int>
            <6, 7, 8> :: <Int>
            <7, 8, 9> :: <Int>
            <1, 1, 1, 1> :: <Int>
            <2, 3, 5, 7, 11, 13, 17, 19> :: <Int>
            <0, 1, 1, 2, 3, 5, 8, 13, 21, 34> :: <Int>
            <(0, 0), (1, 0), (1, 1), (2, 0)> :: <(Int, Int)>
            <5, 6, 7> :: <Int>
            4 :: Int
            <1, 5, 6> :: <Int>
            <5, 6> :: <Int>
            <1, 1, 2, 2> :: <Int>
            <1, 7, 8> :: <Int>
            true :: Bool
            true :: Bool
            false :: Bool
            true :: Bool
            false :: Bool
            false :: Bool
            (4, 5, 6) :: (Int, Int, Int)
        "#]],
    );
}

#[test]
fn long_sequences_are_made_without_deep_recursion() {
    check(
        SCRIPT,
        "#down(60000)\nsum(down(1000))\nhead(rev(down(3000)))\nsum(take(5000, nat(1)))\n#<x | x <- down(20000), x % 2 == 0>\ncount(20000, (0, 0))\ncard(set(down(5000)))\n#<x + 1 | x <- <1..300000>>\n{x | x <- {1..3}, elem(x, nat(0))}",
        expect![[r#"
            60000 :: Int
            500500 :: Int
            1 :: Int
            12502500 :: Int
            10000 :: Int
            (20000, 19999) :: (Int, Int)
            5000 :: Int
            300000 :: Int
            {1, 2, 3} :: {Int}
        "#]],
    );
}

#[test]
fn what_has_no_end_is_reported_where_all_of_it_is_needed() {
    check(
        SCRIPT,
        "#<x*x | x <- <0..>>\n<x | x <- <0..>>\nset(<x | x <- <0..>, x > 5>)\nones == ones\nsecond(self)\n{x | x <- <0..>}\n{x | x <- {0..}}\nshow(<x | x <- <1..>>)\n#ones\ncard(union({(-3)}, {0..}))\n<x | x <- <0..3>, 1 / (x - 2) > 5>",
        expect![[r#"
            error: this sequence has no end
             --> <expression>:1:1
              |
            1 | #<x*x | x <- <0..>>
              | ^^^^^^^^^^^^^^^^^^^
              |
              = note: take what you need from its front: with `head` and `tail`, a pattern `<x>^s`, or a function that stops
            error: this sequence has no end
             --> <expression>:1:1
              |
            1 | <x | x <- <0..>>
              | ^^^^^^^^^^^^^^^^
              |
              = note: take what you need from its front: with `head` and `tail`, a pattern `<x>^s`, or a function that stops
            error: this sequence has no end
             --> <expression>:1:1
              |
            1 | set(<x | x <- <0..>, x > 5>)
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: take what you need from its front: with `head` and `tail`, a pattern `<x>^s`, or a function that stops
            error: these sequences do not seem to end
             --> <expression>:1:1
              |
            1 | ones == ones
              | ^^^^^^^^^^^^
              |
              = note: they agree in 250000 elements
            error: this value depends on itself
             --> test.csp:3:18
              |
            3 | second((_, b)) = b
              |                  ^
            error: expected the type `{a}`, found `<Int>`
             --> <expression>:1:11
              |
            1 | {x | x <- <0..>}
              |           ^^^^^ this has the type `<Int>`
              |
              = note: it is what a generator draws from: a set
            error: the set {0..} has no end
             --> <expression>:1:11
              |
            1 | {x | x <- {0..}}
              |           ^^^^^
              |
              = note: it cannot be listed; restrict it to finitely many values
            error: this sequence has no end
             --> <expression>:1:1
              |
            1 | show(<x | x <- <1..>>)
              | ^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: take what you need from its front: with `head` and `tail`, a pattern `<x>^s`, or a function that stops
            error: this sequence does not seem to end
             --> <expression>:1:1
              |
            1 | #ones
              | ^^^^^
              |
              = note: stopped after 250000 elements
            error: the set union({-3}, {0..}) has no end
             --> <expression>:1:1
              |
            1 | card(union({(-3)}, {0..}))
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: it cannot be listed; restrict it to finitely many values
            error: division by zero
             --> <expression>:1:19
              |
            1 | <x | x <- <0..3>, 1 / (x - 2) > 5>
              |                   ^^^^^^^^^^^
        "#]],
    );
}

#[test]
fn sets_without_an_end() {
    check(
        "",
        "member(-3, union({(-3)}, {0..}))\nmember(-2, union({(-3)}, {0..}))\nunion({(-3)}, {0..})\ninter(Int, {4..})\ninter({1..6}, {4..})\ndiff({0..}, {0,1,2})\ndiff({0..}, {3..})\ndiff({0..}, {5})\ndiff({1..6}, {4..})\n{5, 6} <= {4..}\n{5..} <= {4..}\n{4..} <= {4, 5}\nempty({0..})\nseq({1..})\nUnion({{(-1)}, {3..}})",
        expect![[r#"
            true :: Bool
            false :: Bool
            union({-3}, {0..}) :: {Int}
            {4..} :: {Int}
            {4, 5, 6} :: {Int}
            {3..} :: {Int}
            {0, 1, 2} :: {Int}
            error: the set {0..} has no end
             --> <expression>:1:1
              |
            1 | diff({0..}, {5})
              | ^^^^^^^^^^^^^^^^
              |
              = note: it cannot be listed; restrict it to finitely many values
            {1, 2, 3} :: {Int}
            true :: Bool
            true :: Bool
            false :: Bool
            false :: Bool
            <1..> :: <Int>
            union({3..}, {-1}) :: {Int}
        "#]],
    );
}

#[test]
fn arguments_of_processes_are_complete() {
    verdicts(
        &format!(
            "{SCRIPT}Q(s) = not null(s) & c!head(s) -> Q(tail(s))\nassert P(0) :[deadlock free]\nassert Q(take(3, nat(0))) :[has trace]: <c.0, c.1, c.2>\nassert Q(nat(0)) :[deadlock free]\nassert P(0) [T= Q(<x | x <- <0..>>)\n"
        ),
        expect![[r#"
            P(0) :[deadlock free]: holds
            Q(take(3, nat(0))) :[has trace]: <c.0, c.1, c.2>: holds
            error: this sequence does not seem to end
              --> test.csp:29:8
               |
            29 | assert Q(nat(0)) :[deadlock free]
               |        ^^^^^^^^^
               |
               = note: stopped after 250000 elements
            error: this sequence has no end
              --> test.csp:30:17
               |
            30 | assert P(0) [T= Q(<x | x <- <0..>>)
               |                 ^^^^^^^^^^^^^^^^^^^
               |
               = note: take what you need from its front: with `head` and `tail`, a pattern `<x>^s`, or a function that stops
        "#]],
    );
}

/// What FDR does: values of maps wait, keys do not; parts of dots are evaluated to their kind, fields of constructors
/// and channels completely, because they are compared with the declaration.
#[test]
fn values_of_maps_and_insides_of_dots_wait() {
    let script = "loop(n) = loop(n + 1)
bottom = bottom
datatype T = A.Int | B.(Int, Int)
channel c : {0..3}
m = mapFromList(<(1, bottom), (2, 5)>)
left(x.y) = x
inside(x.(y, z)) = y
rest(x.y.z) = z
first((a, _)) = a
self = (| 1 => 7, 2 => mapLookup(self, 1) + 1 |)
fill(0, m) = m
fill(n, m) = fill(n - 1, mapUpdate(m, n % 7, error(\"never\")))
last(0, m) = m
last(n, m) = last(n - 1, mapUpdate(m, n % 7, n))
keys(m) = <k | (k, _) <- mapToList(m)>
";
    check(
        script,
        "mapLookup(m, 2)\nmapLookup((| 1 => bottom, 2 => 6 |), 2)\nmapMember(m, 1)\nkeys(m)\nmapLookup(mapUpdate(emptyMap, 1, bottom), 1)\nmapLookup(mapUpdate(mapUpdate(emptyMap, 1, loop(0)), 1, 3), 1)\nmapLookup(mapUpdateMultiple(m, <(3, 1/0), (1, 9)>), 1)\nmapToList(mapDelete(m, 1))\nmapLookup(self, 2)\nlength(mapToList(m))\nfirst(head(mapToList(m)))\nkeys(fill(1000, emptyMap))\nlast(20000, emptyMap)\nm == (| 2 => 5 |)\nm == (| 1 => 0, 2 => 5 |)\nmapLookup(m, 1)\n{m}",
        expect![[r#"
            5 :: Int
            6 :: Int
            true :: Bool
            <1, 2> :: <Int>
            error: this value depends on itself
             --> test.csp:2:10
              |
            2 | bottom = bottom
              |          ^^^^^^
            3 :: Int
            9 :: Int
            <(2, 5)> :: <(Int, Int)>
            8 :: Int
            2 :: Int
            1 :: Int
            <0, 1, 2, 3, 4, 5, 6> :: <Int>
            (| 0 => 7, 1 => 1, 2 => 2, 3 => 3, 4 => 4, 5 => 5, 6 => 6 |) :: (| Int => Int |)
            false :: Bool
            error: this value depends on itself
             --> test.csp:2:10
              |
            2 | bottom = bottom
              |          ^^^^^^
            error: this value depends on itself
             --> test.csp:2:10
              |
            2 | bottom = bottom
              |          ^^^^^^
            error: this value depends on itself
             --> test.csp:2:10
              |
            2 | bottom = bottom
              |          ^^^^^^
        "#]],
    );
    check(
        script,
        "left(1.(2, bottom))\ninside(1.(2, bottom))\nfirst(rest(1.2.(3, bottom)))\nleft(1.<4, 1/0>)\n(1.(2, 1/0)) == (2.(2, 1/0))\n(1.(2, 1/0)) == (1.(3, 1/0))\n1.(2, 1 + 2)\nleft(1.bottom)\nlet f(A.x) = 1 within f(A.(1/0))\nlet f(B._) = 1 within f(B.(1, 1/0))\n1.(2, 1/0)\n{1.(2, 1/0)}",
        expect![[r#"
            1 :: Int
            2 :: Int
            3 :: Int
            1 :: Int
            false :: Bool
            false :: Bool
            1.(2, 3) :: Int.(Int, Int)
            error: this value depends on itself
             --> test.csp:2:10
              |
            2 | bottom = bottom
              |          ^^^^^^
            error: division by zero
             --> <expression>:1:28
              |
            1 | let f(A.x) = 1 within f(A.(1/0))
              |                            ^^^
            error: division by zero
             --> <expression>:1:31
              |
            1 | let f(B._) = 1 within f(B.(1, 1/0))
              |                               ^^^
            error: division by zero
             --> <expression>:1:7
              |
            1 | 1.(2, 1/0)
              |       ^^^
            error: division by zero
             --> <expression>:1:8
              |
            1 | {1.(2, 1/0)}
              |        ^^^
        "#]],
    );
}
