//! The memory-model litmus tests of the corpus.
//!
//! For each of them the exact set of outcomes that the axioms of C and C++11 allow is computed by brute force
//! ([`axioms`]) from the C source itself ([`program`]). Two things are then checked: the manifest lists exactly these, and
//! the program under `raddle run --weak` shows every one of them but for load buffering and never another one, and races
//! exactly if some allowed execution does.
//!
//! A case is run over several seeds, many rounds each, until everything was seen; `RADDLE_TEST_CASES=N` runs N seeds
//! in any case.

#[path = "../../../raddle-hb/tests/litmus/axioms.rs"]
mod axioms;
#[path = "../../../raddle-hb/tests/litmus/program.rs"]
mod program;

use axioms::Outcomes;
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::corpus::manifest::{self, Case};

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let cases = match manifest::all(&corpus) {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("the corpus cannot be read: {error:#}");
            return 1.into();
        }
    };
    let mut trials = Vec::new();
    for case in cases.into_iter().filter(|case| case.name.starts_with("litmus/")) {
        let name = case.name.clone();
        let trial = Trial::test(name, move || check(&case).map_err(Failed::from));
        trials.push(trial);
    }
    assert!(!trials.is_empty(), "there are litmus tests in the corpus");
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn check(case: &Case) -> Result<(), String> {
    let expected = by_axioms(case)?;
    compare_manifest(case, &expected)?;
    compare_tool(case, &expected)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn by_axioms(case: &Case) -> Result<Outcomes, String> {
    let source = read(&case.folder.join(&case.files[0]))?;
    let header = read(&case.folder.join("litmus.h"))?;
    let defines: Vec<String> =
        case.cflags.iter().filter_map(|flag| flag.strip_prefix("-D")).map(str::to_owned).collect();
    Ok(axioms::outcomes(&program::read(&source, &header, &defines)))
}

/// A list of lines in the manifest.
fn listed(manifest: &toml::Table, key: &str) -> BTreeSet<String> {
    let lines = manifest.get(key).and_then(toml::Value::as_array);
    lines.into_iter().flatten().filter_map(toml::Value::as_str).map(str::to_owned).collect()
}

fn differs(what: &str, said: &BTreeSet<String>, right: &BTreeSet<String>) -> Result<(), String> {
    if said == right {
        return Ok(());
    }
    let (more, less): (Vec<_>, Vec<_>) = (said.difference(right).collect(), right.difference(said).collect());
    Err(format!("{what}: {more:?} should not be there, {less:?} should"))
}

fn compare_manifest(case: &Case, expected: &Outcomes) -> Result<(), String> {
    let stem = case.name.trim_start_matches("litmus/");
    let manifest: toml::Table = read(&case.folder.join(format!("{stem}.toml")))?
        .parse()
        .map_err(|error| format!("{}: {error}", case.name))?;
    if manifest.contains_key("finding") != expected.races {
        return Err(format!("the manifest is wrong about a race: the axioms say {}", expected.races));
    }
    if expected.races {
        // A program with a race may do anything.
        return Ok(());
    }
    let minus = |from: &BTreeSet<String>, what: &BTreeSet<String>| from.difference(what).cloned().collect();
    differs("outcomes", &listed(&manifest, "outcomes"), &expected.allowed)?;
    differs("weak", &listed(&manifest, "weak"), &minus(&expected.allowed, &expected.interleaved))?;
    differs(
        "unreachable",
        &listed(&manifest, "unreachable"),
        &minus(&expected.allowed, &expected.without_buffering),
    )?;
    // What a run can show is all but load buffering: in none of these tests is the order of `seq_cst` operations at stake.
    differs("executable outcomes", &expected.executable, &expected.without_buffering)
}

/// Threads of one run; a steered run may have 4096.
const THREADS_MAX: usize = 1600;
/// Seeds after which everything has been seen.
const SEEDS_MAX: u64 = 40;
/// Seeds in any case.
const SEEDS_MIN: u64 = 2;

fn compare_tool(case: &Case, expected: &Outcomes) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let program = folder.path().join("test");
    build(case, &program)?;
    let source = read(&case.folder.join(&case.files[0]))?;
    let threads =
        source.split("RUN(").nth(1).map_or(2, |rest| rest.split(')').next().unwrap().split(',').count());
    let rounds = THREADS_MAX / threads;
    let wanted = std::env::var("RADDLE_TEST_CASES").ok().and_then(|text| text.parse().ok());
    let (mut seen, mut raced) = (BTreeSet::new(), false);
    for seed in 0..wanted.unwrap_or(SEEDS_MAX) {
        let is_complete = if expected.races { raced } else { seen.is_superset(&expected.without_buffering) };
        if wanted.is_none() && seed >= SEEDS_MIN && is_complete {
            break;
        }
        // All three ways to choose are held to the same outcomes.
        let choice = ["uniform", "oldest", "newest"][(seed % 3) as usize];
        let output = Command::new(env!("CARGO_BIN_EXE_raddle"))
            .args(["run", "--strategy", "random", "--seed", &seed.to_string()])
            .arg(format!("--weak={choice}"))
            .arg("--")
            .arg(&program)
            .env("CORPUS_TURN_MS", "0")
            .env("LITMUS_ROUNDS", rounds.to_string())
            .env_remove("RADDLE_OPTIONS")
            .output()
            .map_err(|error| error.to_string())?;
        let errors = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => {}
            Some(1) if expected.races => raced = true,
            _ => return Err(format!("seed {seed}, {choice}: {}\n{errors}", output.status)),
        }
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            if !expected.races && !expected.allowed.contains(line) {
                return Err(format!("seed {seed}, {choice}: `{line}` is not allowed"));
            }
            if !seen.contains(line) {
                seen.insert(line.to_owned());
            }
        }
    }
    if expected.races {
        return if raced { Ok(()) } else { Err("the race was not found".to_owned()) };
    }
    differs("outcomes seen", &seen, &expected.without_buffering)
}

fn build(case: &Case, program: &PathBuf) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_raddle"));
    command.arg("cc").args(["-O1", "-g", "-pthread", "-I"]).arg(case.folder.join("../include"));
    command.args(&case.cflags).arg(case.folder.join(&case.files[0])).arg("-o").arg(program);
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)))
}
