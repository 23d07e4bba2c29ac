//! Compressions and normal forms that outgrow memory end with a message that says which, of what, and what to do.

use expect_test::expect;

use super::{CheckOptions, Script, render};

/// `HIDDEN` has 2^12 states, between which there are 3^12 ways by hidden steps. `GUESS` has 16 states; its normal form
/// remembers where in the last 14 events there was an `a`.
const SCRIPT: &str = "transparent normal, sbisim, wbisim, dbisim, diamond, tau_loop_factor, explicate
channel a, b
channel step : {1..12}
HIDDEN = (||| i : {1..12} @ step.i -> STOP) \\ {| step |}
GUESS = a -> GUESS [] b -> GUESS [] a -> AFTER(14)
AFTER(n) = n > 0 & (a -> AFTER(n - 1) [] b -> AFTER(n - 1))
NAMED = normal(GUESS ||| STOP)
assert explicate(HIDDEN) :[divergence free]
assert sbisim(HIDDEN) :[divergence free]
assert tau_loop_factor(HIDDEN) :[divergence free]
assert dbisim(HIDDEN) :[divergence free]
assert wbisim(HIDDEN) :[divergence free]
assert diamond(HIDDEN) :[divergence free]
assert normal(GUESS) :[divergence free]
assert NAMED ||| STOP :[divergence free]
assert GUESS [T= RUN({a, b})
assert GUESS :[deterministic]
assert GUESS :[has trace]: <a, b, a, b>
";

/// The verdict of every assertion with so much memory for machines and normal forms.
fn with_kilobytes(kilobytes: u64) -> String {
    let options = CheckOptions { leaf_memory_max_bytes: kilobytes << 10, ..CheckOptions::default() };
    let mut script = match Script::from_text("test.csp", SCRIPT) {
        Ok(script) => script,
        Err(refused) => panic!("{}", render(&refused.sources, &refused.diagnostics, false)),
    };
    let texts: Vec<String> = script.assertions().map(|a| a.text.clone()).collect();
    let mut out = String::new();
    for (i, text) in texts.iter().enumerate() {
        let said = match script.check(i, &options) {
            Ok(outcome) if outcome.holds => "holds".to_owned(),
            Ok(_) => "fails".to_owned(),
            Err(diagnostic) => {
                // How far it came depends on estimates.
                let parts: Vec<&str> = diagnostic.message.split("; ").collect();
                assert!(parts[1].starts_with("there are "), "{}", diagnostic.message);
                format!("{}\n  {}; {}", script.sources().place(diagnostic.span), parts[0], parts[2])
            }
        };
        out.push_str(&format!("{text}: {said}\n"));
    }
    out
}

#[test]
fn little_memory_is_enough_for_some() {
    expect![[r#"
        explicate(HIDDEN) :[divergence free]: holds
        sbisim(HIDDEN) :[divergence free]: holds
        tau_loop_factor(HIDDEN) :[divergence free]: holds
        dbisim(HIDDEN) :[divergence free]: test.csp:4:1
          `dbisim` of HIDDEN needs more than 2 MB of memory; use `sbisim`, compress its parts first or raise the memory limit
        wbisim(HIDDEN) :[divergence free]: test.csp:4:1
          `wbisim` of HIDDEN needs more than 2 MB of memory; use `sbisim`, compress its parts first or raise the memory limit
        diamond(HIDDEN) :[divergence free]: test.csp:4:1
          `diamond` of HIDDEN needs more than 2 MB of memory; use `sbisim`, compress its parts first or raise the memory limit
        normal(GUESS) :[divergence free]: test.csp:5:1
          `normal` of GUESS needs more than 2 MB of memory; use `sbisim`, compress its parts first or raise the memory limit
        NAMED ||| STOP :[divergence free]: test.csp:7:1
          `normal` of GUESS ||| STOP needs more than 2 MB of memory; use `sbisim`, compress its parts first or raise the memory limit
        GUESS [T= RUN({a, b}): test.csp:5:1
          the normal form of the specification GUESS needs more than 2 MB of memory; write a specification with fewer hidden choices, use `normal` on its parts or raise the memory limit
        GUESS :[deterministic]: test.csp:5:1
          deciding whether there is nondeterminism in GUESS needs more than 2 MB of memory; use `normal` or `diamond` on its parts or raise the memory limit
        GUESS :[has trace]: <a, b, a, b>: holds
    "#]].assert_eq(&with_kilobytes(2300));
}

#[test]
fn very_little_is_enough_for_less() {
    expect![[r#"
        explicate(HIDDEN) :[divergence free]: test.csp:4:1
          exploring HIDDEN needs more than 0 MB of memory; check that its parameters are bounded, compress its parts or raise the memory limit
        sbisim(HIDDEN) :[divergence free]: test.csp:4:1
          exploring HIDDEN needs more than 0 MB of memory; check that its parameters are bounded, compress its parts or raise the memory limit
        tau_loop_factor(HIDDEN) :[divergence free]: test.csp:4:1
          exploring HIDDEN needs more than 0 MB of memory; check that its parameters are bounded, compress its parts or raise the memory limit
        dbisim(HIDDEN) :[divergence free]: test.csp:4:1
          exploring HIDDEN needs more than 0 MB of memory; check that its parameters are bounded, compress its parts or raise the memory limit
        wbisim(HIDDEN) :[divergence free]: test.csp:4:1
          exploring HIDDEN needs more than 0 MB of memory; check that its parameters are bounded, compress its parts or raise the memory limit
        diamond(HIDDEN) :[divergence free]: test.csp:4:1
          exploring HIDDEN needs more than 0 MB of memory; check that its parameters are bounded, compress its parts or raise the memory limit
        normal(GUESS) :[divergence free]: test.csp:5:1
          `normal` of GUESS needs more than 0 MB of memory; use `sbisim`, compress its parts first or raise the memory limit
        NAMED ||| STOP :[divergence free]: test.csp:7:1
          `normal` of GUESS ||| STOP needs more than 0 MB of memory; use `sbisim`, compress its parts first or raise the memory limit
        GUESS [T= RUN({a, b}): test.csp:5:1
          the normal form of the specification GUESS needs more than 0 MB of memory; write a specification with fewer hidden choices, use `normal` on its parts or raise the memory limit
        GUESS :[deterministic]: test.csp:5:1
          deciding whether there is nondeterminism in GUESS needs more than 0 MB of memory; use `normal` or `diamond` on its parts or raise the memory limit
        GUESS :[has trace]: <a, b, a, b>: test.csp:5:1
          the normal form of the specification GUESS needs more than 0 MB of memory; write a specification with fewer hidden choices, use `normal` on its parts or raise the memory limit
    "#]].assert_eq(&with_kilobytes(512));
}

/// The same script without the limit: what the limit prevented is not a different answer.
#[test]
fn with_enough_memory_there_are_answers() {
    expect![[r#"
        explicate(HIDDEN) :[divergence free]: holds
        sbisim(HIDDEN) :[divergence free]: holds
        tau_loop_factor(HIDDEN) :[divergence free]: holds
        dbisim(HIDDEN) :[divergence free]: holds
        wbisim(HIDDEN) :[divergence free]: holds
        diamond(HIDDEN) :[divergence free]: holds
        normal(GUESS) :[divergence free]: holds
        NAMED ||| STOP :[divergence free]: holds
        GUESS [T= RUN({a, b}): holds
        GUESS :[deterministic]: fails
        GUESS :[has trace]: <a, b, a, b>: holds
    "#]]
    .assert_eq(&with_kilobytes(1 << 20));
}
