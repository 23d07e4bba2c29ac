//! `cargo raddle`, from the outside: what it builds, what it finds in `corpus/rust`, and what it leaves alone. The standard
//! library is built on the first run of these tests; later ones find it in the cache folder.

mod common;

use common::{raddle, refused, run, succeed};
use raddle_findings::{FindingsFile, Grade, Kind};
use std::path::{Path, PathBuf};
use std::process::Command;

/// cargo passes its own idea of folders and toolchain on to the tests that it runs; the user's shell has none.
fn cargo_raddle(folder: &Path) -> Command {
    let mut command = raddle();
    for name in ["CARGO_MANIFEST_DIR", "CARGO_TARGET_DIR", "RUSTFLAGS", "RUSTC_WRAPPER", "CARGO"] {
        command.env_remove(name);
    }
    command.arg("cargo").current_dir(folder);
    command
}

/// A package with one program, one library and the given source of the latter.
fn package(main: &str, lib: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("src");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(
        folder.path().join("Cargo.toml"),
        "[package]\nname = \"bank\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    )
    .unwrap();
    std::fs::write(source.join("main.rs"), main).unwrap();
    std::fs::write(source.join("lib.rs"), lib).unwrap();
    folder
}

const RACE: &str = "
static mut COUNT: u64 = 0;
fn main() {
    let other = std::thread::spawn(|| unsafe { COUNT += 1 });
    unsafe { COUNT += 1 };
    other.join().unwrap();
    println!(\"words: {:?}\", std::env::args().skip(1).collect::<Vec<_>>());
}
";

fn findings(path: &Path) -> Vec<(Kind, Grade)> {
    let file = FindingsFile::read(path).unwrap();
    file.findings.iter().map(|finding| (finding.kind, finding.grade())).collect()
}

#[test]
fn programs_are_run_hunted_and_explored() {
    let package = package(RACE, "");
    let out = package.path().join("out.json");
    let output =
        run(cargo_raddle(package.path()).args(["hunt", "--output"]).arg(&out).args(["--", "a", "--all"]));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("words: [\"a\", \"--all\"]"), "{text}");
    assert_eq!(findings(&out), [(Kind::DataRace, Grade::Confirmed)]);
    succeed(cargo_raddle(package.path()).args(["explore", "--runs", "5"]));
    assert!(!package.path().join("target/debug").exists(), "the user's own builds are not touched");
    succeed(cargo_raddle(package.path()).arg("clean"));
    assert!(!package.path().join("target/raddle").exists());
}

#[test]
fn failing_tests_fail_and_ignored_ones_wait() {
    let package = package(
        "fn main() {}",
        "#[test] fn passes() {} #[test] fn fails() { assert!(1 > 2, \"wrong way round\"); } #[test] #[ignore] fn waits() { panic!() }",
    );
    let output = run(cargo_raddle(package.path()).arg("test"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(out.contains("test bank passes ... ok") && out.contains("test bank fails ... FAILED"), "{out}");
    assert!(!out.contains("waits") && err.contains("wrong way round"), "{out}{err}");
    succeed(cargo_raddle(package.path()).args(["test", "pass"]));
    succeed(cargo_raddle(package.path()).args(["test", "--", "--skip", "fails"]));
}

#[test]
fn what_cannot_be_done_is_refused() {
    let package = package("fn main() {}", "");
    for (words, expected) in [
        (vec!["bench"], "benchmarks"),
        (vec!["test", "--doc"], "documentation tests"),
        (vec!["build", "--target", "wasm32-unknown-unknown"], "--target cannot be chosen"),
        (vec!["run", "--std", "green"], "locks or plain"),
        (vec!["frobnicate"], "no command `frobnicate`"),
    ] {
        let sentence = refused(cargo_raddle(package.path()).args(words));
        assert!(sentence.contains(expected), "{sentence}");
    }
    let nowhere = tempfile::tempdir().unwrap();
    assert!(refused(cargo_raddle(nowhere.path()).arg("test")).contains("Cargo.toml"));
}

/// Errors that one run does not show yet. mpsc's list of blocks is made of atomics, and prediction keeps the order of atomics that
/// read from each other.
const MISSED: [&str; 1] = ["corpus-rust::handover race_after_the_message"];

/// Both profiles: optimisation inlines what the runtime has to see.
#[test]
fn corpus_has_what_its_names_say() {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus/rust");
    for profile in ["dev", "release"] {
        let scratch = tempfile::tempdir().unwrap();
        let lock = std::fs::read(corpus.join("Cargo.lock")).ok();
        for name in names(&corpus, profile) {
            let out = scratch.path().join("out.json");
            let keep = scratch.path().join(name.replace(' ', "-"));
            let (binary, test) = name.split_once(' ').unwrap();
            let file = binary.rsplit("::").next().unwrap();
            let output = run(cargo_raddle(&corpus)
                .env("CARGO_TARGET_DIR", target())
                .args(["test", "--profile", profile, "--test", file, "--output"])
                .arg(&out)
                .arg("--keep")
                .arg(&keep)
                .args(["--", "--exact", test]));
            let text = format!(
                "{profile} {name}\n{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            let found = FindingsFile::read(&out).unwrap_or_else(|error| panic!("{error:#}\n{text}")).findings;
            let expected = match test.split('_').next() {
                Some("right") => None,
                Some("race") => Some(Kind::DataRace),
                Some("deadlock") => Some(Kind::Deadlock),
                Some("signal") => Some(Kind::MissedSignal),
                _ => panic!("the name of {name} says nothing"),
            };
            if !(MISSED.contains(&name.as_str()) && found.is_empty()) {
                assert_eq!(output.status.code(), Some(i32::from(expected.is_some())), "{text}");
                assert_eq!(found.is_empty(), expected.is_none(), "{text}");
            }
            for finding in found {
                assert_eq!((Some(finding.kind), finding.grade()), (expected, Grade::Confirmed), "{text}");
                let again = run(raddle()
                    .current_dir(&corpus)
                    .arg("replay")
                    .arg(keep.join(&finding.id).join("schedule")));
                assert_eq!(
                    again.status.code(),
                    Some(1),
                    "replay of {text}{}",
                    String::from_utf8_lossy(&again.stderr)
                );
            }
        }
        assert_eq!(std::fs::read(corpus.join("Cargo.lock")).ok(), lock);
    }
}

fn target() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("corpus-rust")
}

/// The tests of the corpus, as `cargo raddle test` names them.
fn names(corpus: &Path, profile: &str) -> Vec<String> {
    let mut list = Vec::new();
    for file in ["condvar", "handover", "mutex", "rwlock"] {
        succeed(cargo_raddle(corpus).env("CARGO_TARGET_DIR", target()).args([
            "test",
            "--no-run",
            "--profile",
            profile,
            "--test",
            file,
        ]));
        let source = std::fs::read_to_string(corpus.join("tests").join(file).with_extension("rs")).unwrap();
        let tests = source.split("#[test]\nfn ").skip(1).map(|rest| rest.split('(').next().unwrap());
        list.extend(tests.map(|test| format!("corpus-rust::{file} {test}")));
    }
    assert!(list.len() >= 20, "{list:?}");
    list
}
