//! `raddle csp` from the outside: what each command prints and how it exits, and what bad input gets, with the limits
//! users have when they set none.

mod common;

use common::{folder, raddle, refused, run, succeed};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

const MODEL: &str = "channel a, b, c
channel v : {0..1}
P = a -> b -> P
Q = a -> (b -> Q [] c -> STOP)
SYSTEM = Q [| {a} |] (a -> a -> STOP)
print {x * x | x <- {1..3}}
assert P :[deadlock free]
assert P [T= Q
assert Q :[deadlock free [F]]
assert P [T= SYSTEM
";

fn csp(folder: &Path, args: &[&str]) -> Output {
    run(raddle().current_dir(folder).env("NO_COLOR", "1").arg("csp").args(args))
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn check_says_what_holds_and_why_not() {
    let files = folder(&[("model.csp", MODEL)]);
    let all = csp(files.path(), &["check", "model.csp"]);
    assert_eq!(all.status.code(), Some(1), "some fail");
    let text = stdout(&all);
    assert!(
        text.starts_with(
            "{x * x | x <- {1..3}} = {1, 4, 9}\n1: holds P :[deadlock free]\n2: fails P [T= Q\n"
        )
    );
    assert!(text.contains("3: fails Q :[deadlock free [F]]"));
    let one = csp(files.path(), &["check", "model.csp", "--assert", "1"]);
    assert_eq!(one.status.code(), Some(0), "the first holds");
    assert!(!stdout(&one).contains("fails"));
    let only = csp(files.path(), &["check", "model.csp", "--only", "[T= SYSTEM"]);
    assert_eq!(only.status.code(), Some(1));
    assert!(stdout(&only).contains("4: fails P [T= SYSTEM"));
    // Split to the components of the composition.
    assert!(stdout(&only).contains("Q"), "{}", stdout(&only));
    let none =
        refused(raddle().current_dir(files.path()).args(["csp", "check", "model.csp", "--assert", "9"]));
    assert!(none.contains("has 4 assertions"), "{none}");
}

#[test]
fn check_speaks_json() {
    let files = folder(&[("model.csp", MODEL)]);
    let output = csp(files.path(), &["check", "model.csp", "--json", "--all", "3"]);
    assert_eq!(output.status.code(), Some(1));
    let value: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let assertions = value["assertions"].as_array().expect("a list");
    let holds: Vec<bool> = assertions.iter().map(|a| a["holds"].as_bool().expect("a verdict")).collect();
    assert_eq!(holds, [true, false, false, false]);
    assert_eq!(assertions[1]["text"], "P [T= Q");
    assert!(assertions[1]["place"].as_str().is_some_and(|p| p.contains("model.csp:8")));
    let first = &assertions[1]["counterexamples"][0];
    assert_eq!(first["trace"], serde_json::json!(["a"]));
    assert_eq!(value["prints"][0]["value"], "{1, 4, 9}");
}

#[test]
fn several_counterexamples_and_a_picture() {
    let text = "channel a, b, c\nassert a -> STOP [T= b -> STOP [] c -> STOP\n";
    let files = folder(&[("two.csp", text)]);
    let output = csp(files.path(), &["check", "two.csp", "--all", "5", "--svg", "why.svg"]);
    assert_eq!(output.status.code(), Some(1));
    let shown = stdout(&output);
    assert!(shown.contains("counterexample 1") && shown.contains("counterexample 2"), "{shown}");
    let picture = std::fs::read_to_string(files.path().join("why.svg")).expect("a picture was written");
    assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
}

#[test]
fn states_and_graphs() {
    let files = folder(&[("model.csp", MODEL)]);
    let text = stdout(&csp(files.path(), &["states", "model.csp", "SYSTEM"]));
    assert!(text.contains("2 components"), "{text}");
    let output = csp(files.path(), &["states", "model.csp", "P ||| P", "--json"]);
    let value: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(value["pairs"], 4, "{value}");
    let dot = stdout(&csp(files.path(), &["graph", "model.csp", "P"]));
    assert!(dot.starts_with("digraph") && dot.contains("\"a\""), "{dot}");
    let svg = stdout(&csp(files.path(), &["graph", "model.csp", "P", "--svg"]));
    assert!(svg.starts_with("<svg"), "{svg}");
    let wrong = csp(files.path(), &["graph", "model.csp", "1 + 1"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("expected a process"), "{}", stderr(&wrong));
}

#[test]
fn traces_are_walked_forth_and_back() {
    let files = folder(&[("model.csp", MODEL)]);
    let mut child = raddle()
        .current_dir(files.path())
        .args(["csp", "trace", "model.csp", "Q", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("raddle starts");
    child.stdin.take().expect("a pipe").write_all(b"1\nc\nu\nb\nzzz\nr\nq\n").expect("it listens");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    let traces: Vec<Value> = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON")["trace"].clone())
        .collect();
    let expected = serde_json::json!([[], ["a"], ["a", "c"], ["a"], ["a", "b"], ["a", "b"], []]);
    assert_eq!(Value::Array(traces), expected);
    assert!(stderr(&output).contains("`zzz` is not possible here"));
}

#[test]
fn eval_and_fmt() {
    let files = folder(&[("model.csp", MODEL), ("ugly.csp", "channel   a\n\n\n\n\nP=a->P\n")]);
    assert_eq!(succeed(raddle().args(["csp", "eval", "<x*x | x <- <1..3>>"])), "<1, 4, 9> :: <Int>\n");
    let output = csp(files.path(), &["eval", "card({|v, a|})", "-f", "model.csp"]);
    assert_eq!(stdout(&output), "3 :: Int\n");
    let check = csp(files.path(), &["fmt", "--check", "model.csp", "ugly.csp"]);
    assert_eq!((check.status.code(), stdout(&check).as_str()), (Some(1), "ugly.csp\n"));
    assert_eq!(csp(files.path(), &["fmt", "ugly.csp"]).status.code(), Some(0));
    assert_eq!(csp(files.path(), &["fmt", "--check", "ugly.csp"]).status.code(), Some(0));
    assert_eq!(csp(files.path(), &["check", "ugly.csp"]).status.code(), Some(0), "it still means the same");
}

/// What is wrong, the script, the line it is wrong in, and a part of the message.
const BAD: [(&str, &str, usize, &str); 12] = [
    ("syntax", "channel a\nP = a -> -> P\nassert P :[deadlock free]", 2, "expected"),
    ("an open bracket", "channel a\nP = (a -> P\nassert P :[deadlock free]", 3, "expected"),
    ("a name", "channel a\nP = a -> Q\nassert P :[deadlock free]", 2, "not in scope"),
    ("a type", "channel a\nP = a -> 3\nassert P :[deadlock free]", 2, "expected"),
    (
        "unbounded recursion",
        "f(n) = 1 + f(n + 1)\nchannel a : {0..1}\nassert a!f(0) -> STOP :[deadlock free]",
        1,
        "too deep",
    ),
    ("an unguarded process", "channel a\nP = P [] a -> P\nassert P :[deadlock free]", 2, "unguarded"),
    ("an infinite channel", "channel c : Int\nP = c?x -> P\nassert P :[deadlock free]", 2, "has no end"),
    (
        "an infinite alphabet",
        "channel c : Int\nP = c.1 -> P\nassert P \\ {| c |} :[divergence free]",
        3,
        "has no end",
    ),
    (
        "an undefined pattern",
        "channel a : {0..1}\nf(0) = 1\nP = a!f(1) -> P\nassert P :[deadlock free]",
        3,
        "no clause of `f`",
    ),
    (
        "an undefined process",
        "channel a\nP(0) = a -> P(1)\nassert P(0) :[deadlock free]",
        2,
        "no clause of `P`",
    ),
    (
        "a value outside its channel",
        "channel c : {0..2}\nP(n) = c!n -> P(n + 1)\nassert P(0) :[deadlock free]",
        2,
        "not an event",
    ),
    (
        "a set that is too large",
        "channel a : {0..1}\nP = a!card(Set({1..40})) -> STOP\nassert P :[deadlock free]",
        2,
        "too large",
    ),
];

#[test]
fn bad_input_is_explained_at_its_place() {
    for (what, text, line, message) in BAD {
        let files = folder(&[("bad.csp", text)]);
        let output = csp(files.path(), &["check", "bad.csp"]);
        let (said, complaint) = (stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(2), "{what}: {said}{complaint}");
        assert!(!said.contains("holds"), "{what}: {said}");
        assert!(complaint.contains(message), "{what}: {complaint}");
        assert!(complaint.contains(&format!("bad.csp:{line}:")), "{what}: {complaint}");
        let json = csp(files.path(), &["check", "bad.csp", "--json"]);
        assert_eq!(json.status.code(), Some(2), "{what}");
        serde_json::from_slice::<Value>(&json.stdout).unwrap_or_else(|e| panic!("{what}: {e}"));
    }
}

#[test]
fn a_check_beyond_its_memory_goes_on_on_disk_and_says_when_it_cannot() {
    // 3^9 states, which need more than ten kilobytes.
    let text = "channel a, b, c : {0..8}\nP(i) = a.i -> b.i -> c.i -> P(i)\nassert ||| i : {0..8} @ P(i) :[deadlock free [F]]\n";
    let files = folder(&[("large.csp", text), ("not-a-folder", "")]);
    let spilled =
        csp(files.path(), &["-v", "check", "large.csp", "--memory-limit", "10K", "--spill-folder", "."]);
    assert_eq!(spilled.status.code(), Some(0), "{}", stderr(&spilled));
    assert!(stdout(&spilled).contains("19,683 states"), "{}", stdout(&spilled));
    let full =
        csp(files.path(), &["check", "large.csp", "--memory-limit", "10K", "--spill-folder", "not-a-folder"]);
    assert_eq!(full.status.code(), Some(2));
    assert!(stderr(&full).contains("spill folder"), "{}", stderr(&full));
    assert!(stdout(&full).contains("no answer") && !stdout(&full).contains("holds"));
    let limited = csp(files.path(), &["check", "large.csp", "--states-max", "1000"]);
    assert_eq!(limited.status.code(), Some(2));
    assert!(stderr(&limited).contains("stopped after 1000"), "{}", stderr(&limited));
}

#[test]
fn a_component_without_bounds_is_named() {
    let text = "channel a\nP(n) = a -> P(n + 1)\nassert P(0) :[deadlock free]\n";
    let files = folder(&[("endless.csp", text)]);
    // Without the option it is the memory that ends it, some hundred thousand states later.
    let output = csp(files.path(), &["check", "endless.csp", "--component-states-max", "20000"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("endless.csp:2:1"), "{}", stderr(&output));
    assert!(stderr(&output).contains("more than 20000 states"), "{}", stderr(&output));
    assert!(stdout(&output).contains("no answer") && !stdout(&output).contains("holds"));
}

fn walked(folder: &Path, args: &[&str], typed: &str) -> Output {
    let mut child = raddle()
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .args(["csp", "trace"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("raddle starts");
    child.stdin.take().expect("a pipe").write_all(typed.as_bytes()).expect("it listens");
    child.wait_with_output().expect("it ends")
}

/// As FDR's probe: who does a hidden step, what may be offered, hidden steps by name, and from a counterexample on.
#[test]
fn traces_explain_hidden_steps_and_start_at_counterexamples() {
    let text = "channel a, b, h
P = a -> h -> P
Q = h -> b -> STOP
SYSTEM = (P [| {h} |] Q) \\ {h}
assert a -> STOP [T= SYSTEM
assert P [T= P
";
    let files = folder(&[("hidden.csp", text)]);
    let output = walked(files.path(), &["hidden.csp", "SYSTEM"], "h\na\nh\np\naccept\nc\nzzz\nq\n");
    let said = stdout(&output);
    assert!(said.contains("EVENT        take a step"), "{said}");
    assert!(said.contains("(P: h, Q: h)"), "who does the hidden step: {said}");
    assert!(said.contains("{a, b}"), "what may be offered: {said}");
    assert!(said.contains("state 0 of"), "{said}");
    assert!(stderr(&output).contains("`zzz` is not possible here"), "{}", stderr(&output));
    let from_end = walked(files.path(), &["hidden.csp", "--assert", "1"], "q\n");
    let said = stdout(&from_end);
    assert!(
        said.starts_with("<a, b>") || said.starts_with("<a, a>"),
        "at the end of the counterexample: {said}"
    );
    let none = walked(files.path(), &["hidden.csp", "--assert", "2"], "q\n");
    assert!(stderr(&none).contains("no counterexample"), "{}", stderr(&none));
    assert!(
        refused(raddle().current_dir(files.path()).args(["csp", "trace", "hidden.csp", "--assert", "7"]))
            .contains("has 2 assertions")
    );
}

#[test]
fn large_graphs_are_folded_and_processes_are_terms() {
    let text = "channel a : {0..99}.{0..49}\nP = F(0, 0)\nF(x, y) = x < 99 & a.x.y -> F(x+1, y) [] y < 49 & a.x.y -> F(x, y+1)\n";
    let files = folder(&[("large.csp", text)]);
    let output = csp(files.path(), &["graph", "large.csp", "P"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("stands for"), "the title says what is left out");
    assert!(stderr(&output).contains("are drawn as one"), "{}", stderr(&output));
    let term = csp(files.path(), &["eval", "F(99, 48)", "-f", "large.csp"]);
    assert_eq!(stdout(&term), "F(99,48) = a.99.48 -> F(99,49) :: Proc\n");
}

#[test]
fn one_assertion_without_answer_does_not_take_the_others() {
    let text = "channel a\nP = a -> P\nassert P [TP= P\nassert P [T= P\n";
    let files = folder(&[("some.csp", text)]);
    let all = csp(files.path(), &["check", "some.csp"]);
    assert_eq!(all.status.code(), Some(2));
    assert!(stdout(&all).contains("1: no answer P [TP= P\n2: holds P [T= P"), "{}", stdout(&all));
    assert_eq!(csp(files.path(), &["check", "some.csp", "--assert", "2"]).status.code(), Some(0));
    assert_eq!(csp(files.path(), &["check", "some.csp", "--assert", "1"]).status.code(), Some(2));
}

#[test]
fn latin_1_is_formatted_and_stays_latin_1() {
    let files = folder(&[]);
    let path = files.path().join("old.csp");
    std::fs::write(&path, b"-- caf\xe9\nchannel   a\n").expect("a file");
    assert_eq!(csp(files.path(), &["fmt", "old.csp"]).status.code(), Some(0));
    let after = std::fs::read(&path).expect("it is still there");
    assert_eq!(after, b"-- caf\xe9\nchannel a\n");
}
