//! Online detection against its slow twin: the runtime and the detector `hb11` over a trace have the same opinion.
//!
//! Random scripts of plain accesses, atomics of every order, fences and mutexes are run by one C program under a random
//! schedule, detected and recorded at once, so that both look at the same run. With two threads a cell of the runtime's
//! shadow holds all that matters of a variable, and the racing variables must be the same; with three or more it may have
//! dropped an access, and must not report more.
//!
//! `RADDLE_TEST_CASES=N` runs N scripts. A failure prints the command that shows it again.

#[path = "../common/mod.rs"]
mod common;

use common::{raddle, run, succeed};
use std::collections::BTreeSet;
use std::path::Path;

/// A small generator (SplitMix64): a failure is repeated by its number.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn of(&mut self, letters: &str) -> char {
        letters.chars().nth(self.below(letters.len() as u64) as usize).unwrap()
    }
}

fn script(random: &mut Random) -> String {
    let mut operations = Vec::new();
    let mut held: Option<u64> = None;
    for _ in 0..4 + random.below(9) {
        let variable = random.below(3);
        let location = random.below(2);
        operations.push(match random.below(12) {
            0..=2 => format!("R{variable}"),
            3..=5 => format!("W{variable}"),
            6 => format!("l{location}{}", random.of("ras")),
            7 => format!("s{location}{}", random.of("rls")),
            8 => format!("x{location}{}", random.of("ralbs")),
            9 => format!("f{}", random.of("albs")),
            _ => match held.take() {
                Some(mutex) => format!("U{mutex}"),
                None => {
                    held = Some(location);
                    format!("L{location}")
                }
            },
        });
    }
    operations.extend(held.map(|mutex| format!("U{mutex}")));
    operations.join(" ")
}

/// The variables that findings speak of, by the lines of their innermost frames in the program.
fn variables(findings: &serde_json::Value, source: &str) -> BTreeSet<String> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = BTreeSet::new();
    for finding in findings["findings"].as_array().expect("findings are a list") {
        for party in finding["parties"].as_array().expect("a finding has parties") {
            let line = party["stack"][0]["line"].as_u64().expect("the program has line numbers");
            let (_, variable) =
                lines[line as usize - 1].split_once("VAR:").expect("races are on plain variables only");
            found.insert(variable.trim().to_owned());
        }
    }
    found
}

#[test]
fn the_runtime_and_the_reference_agree() {
    let source = include_str!("script.c");
    let folder = common::folder(&[("script.c", source)]);
    let at = |name: &str| folder.path().join(name);
    let program = at("script");
    succeed(raddle().args(["cc", "-O0", "-g", "-pthread"]).arg(at("script.c")).arg("-o").arg(&program));
    let cases = std::env::var("RADDLE_TEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let (mut racing, mut clean) = (0, 0);
    for case in 0..cases {
        let mut random = Random(case);
        let threads = if case % 4 == 3 { 3 + random.below(2) } else { 2 };
        let scripts: Vec<String> = (0..threads).map(|_| script(&mut random)).collect();
        let (online, reference) = both(&program, &at("trace"), case, &scripts, source);
        let again =
            format!("raddle run --strategy random --seed {case} -- {} {scripts:?}", program.display());
        if threads == 2 {
            assert_eq!(online, reference, "the runtime found the left, hb11 the right: {again}");
        } else {
            assert!(online.is_subset(&reference), "{online:?} but hb11 found {reference:?}: {again}");
        }
        *(if reference.is_empty() { &mut clean } else { &mut racing }) += 1;
    }
    assert!(
        racing > cases / 10 && clean > cases / 20,
        "{racing} with races, {clean} without: scripts of both kinds"
    );
}

fn both(
    program: &Path,
    trace: &Path,
    seed: u64,
    scripts: &[String],
    source: &str,
) -> (BTreeSet<String>, BTreeSet<String>) {
    let output = run(raddle()
        .args(["run", "--json", "--strategy", "random", "--seed", &seed.to_string(), "--trace"])
        .arg(trace)
        .arg("--")
        .arg(program)
        .args(scripts));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let online = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let output = run(raddle().args(["detect", "--json", "--with", "hb11"]).arg(trace));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let reference = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    (variables(&online, source), variables(&reference, source))
}
