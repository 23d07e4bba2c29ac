//! `raddle aspects` on the use cases of the corpus, and on mistakes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn aspects(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_raddle"))
        .current_dir(root())
        .arg("aspects")
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Each aspect of each use case applies somewhere at -O0, but for functions that the program never calls.
#[test]
fn plans_for_the_use_cases() {
    let never_called = ["rescind", "cancel_transmission", "header"];
    let folder = tempfile::tempdir().unwrap();
    for name in ["atomicity", "file", "race", "resources", "rover", "sql"] {
        let program = folder.path().join(name);
        let built = Command::new("gcc")
            .current_dir(root())
            .args(["-g", "-O0", "-std=gnu11", "-pthread", "-Icorpus/include"])
            .arg(format!("corpus/usecases/{name}.c"))
            .arg("-o")
            .arg(&program)
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", text(&built.stderr));
        let file = format!("corpus/usecases/{name}.aspects");
        let output = aspects(&["plan", "--json", &file, "--", program.to_str().unwrap()]);
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut all = true;
        for aspect in plan["aspects"].as_array().unwrap() {
            let found = !aspect["places"].as_array().unwrap().is_empty();
            let words = aspect["aspect"].as_str().unwrap();
            assert!(found || never_called.iter().any(|word| words.contains(word)), "{name}: {aspect:#}");
            assert!(found || !aspect["notes"].as_array().unwrap().is_empty(), "{name}: {words} in silence");
            all &= found;
        }
        assert_eq!(output.status.code(), Some(i32::from(!all)), "{name}");
    }
}

#[test]
fn mistakes_are_shown_at_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.aspects");
    std::fs::write(&file, "ok before call f\nopen(#return) before call g\n").unwrap();
    let output = aspects(&["check", file.to_str().unwrap()]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("bad.aspects:2:6") && told.contains("help: write `after`"), "{told}");
    let output = aspects(&["plan", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("add `-- PROGRAM`"), "{}", text(&output.stderr));
}

#[test]
fn formatting_is_stable() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.aspects");
    std::fs::write(&file, "a( #0 )  before   call f\nlong(#0,#1) after call g -- why\n").unwrap();
    let path = file.to_str().unwrap();
    assert_eq!(aspects(&["fmt", "--check", path]).status.code(), Some(1));
    assert_eq!(aspects(&["fmt", path]).status.code(), Some(0));
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(written, "a(#0)        before call f\nlong(#0, #1) after call g -- why\n");
    assert_eq!(aspects(&["fmt", "--check", path]).status.code(), Some(0));
}
