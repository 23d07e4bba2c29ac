//! What the command line refuses, each with its sentence and status 2: nothing here starts a program.

use std::fs::OpenOptions;
use std::process::{Command, Output, Stdio};

fn raddle(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_raddle"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("raddle can be started")
}

#[test]
fn options_that_mean_nothing_are_refused() {
    let cases: &[(&[&str], &str)] = &[
        (&["hunt", "--runs", "0", "x.c"], "0 is not in 1.."),
        (&["hunt", "--runs=-1", "x.c"], "-1 is not in 1.."),
        (&["hunt", "--workers", "0", "x.c"], "it must be at least 1"),
        (&["hunt", "--workers", "x", "x.c"], "it must be a whole number"),
        (&["hunt", "--timeout", "0", "x.c"], "0 is not in 1.."),
        (&["hunt", "--confirm-for", "0", "x.c"], "0 is not in 1.."),
        (&["hunt", "--alternatives", "0", "x.c"], "it must be at least 1"),
        (&["explore", "--runs", "0", "x.c"], "0 is not in 1.."),
        (&["explore", "--workers", "0", "x.c"], "it must be at least 1"),
        (&["explore", "--timeout", "0", "x.c"], "0 is not in 1.."),
        (&["explore", "--steps", "0", "x.c"], "0 is not in 1.."),
        (&["explore", "--strategy", "pct:0", "x.c"], "`pct:0` looks for nothing"),
        (&["explore", "--strategy", "pct:x", "x.c"], "there is no strategy `pct:x`"),
        (&["explore", "--strategy", "fair", "x.c"], "there is no strategy `fair`"),
        (&["replay", "--repeat", "0", "id"], "0 is not in 1.."),
        (&["replay", "--timeout", "0", "id"], "0 is not in 1.."),
        (&["csp", "check", "--workers", "0", "x.csp"], "it must be at least 1"),
    ];
    for (arguments, sentence) in cases {
        let output = raddle(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(sentence), "{arguments:?} says: {said}");
    }
}

#[test]
fn a_full_standard_output_is_a_sentence_and_no_panic() {
    for arguments in [&["explain", "data-race"][..], &["detect", "--list"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("there is /dev/full");
        let output = Command::new(env!("CARGO_BIN_EXE_raddle"))
            .args(arguments)
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .expect("raddle can be started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(
            said.contains("cannot write to standard output: No space left"),
            "{arguments:?} says: {said}"
        );
        assert!(!said.contains("panicked"), "{arguments:?} says: {said}");
    }
}
