//! Programs that other programs start: every instrumented process of the tree is observed, launchers are left alone, and
//! what is found in a process can be replayed without its launcher.

mod common;

use common::{folder, raddle, run, succeed};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

const RACY: &str = r#"
#include <pthread.h>
#include <stdio.h>
static int counter;
static void *body(void *unused) { counter++; return unused; }
int main(int count, char **words) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, body, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    printf("%s\n", count > 1 ? words[1] : "no argument");
    return 0;
}
"#;

/// Starts the racy program in three ways, and checks that each child is waited for by its own number.
const SPAWNER: &str = r#"
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static int ended(pid_t pid) {
    int status;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}
int main(void) {
    int failures = system("./racy system") != 0;
    pid_t pid = fork();
    if (pid == 0) { execl("./racy", "racy", "exec", (char *)0); _exit(127); }
    failures += ended(pid) != 0;
    char *words[] = {"racy", "spawn", 0};
    if (posix_spawn(&pid, "./racy", 0, 0, words, environ) != 0) return 9;
    failures += ended(pid) != 0;
    return failures;
}
"#;

const MAKEFILE: &str = "check:\n\t@./racy one\n\t@./racy two\n";
const SCRIPT: &str = "#!/bin/sh\n./racy first\n./spawner\n";

/// A folder with programs that were built by `raddle cc`, and with one that was not.
fn project() -> tempfile::TempDir {
    let folder = folder(&[
        ("racy.c", RACY),
        ("spawner.c", SPAWNER),
        ("Makefile", MAKEFILE),
        ("check.sh", SCRIPT),
        ("plain.c", "int main(void) { return 0; }"),
    ]);
    for name in ["racy", "spawner"] {
        let source = format!("{name}.c");
        succeed(raddle().args(["cc", "-g", "-pthread", &source, "-o", name]).current_dir(&folder));
    }
    succeed(std::process::Command::new("gcc").args(["plain.c", "-o", "plain"]).current_dir(&folder));
    succeed(std::process::Command::new("chmod").args(["+x", "check.sh"]).current_dir(&folder));
    folder
}

fn raddle_in(folder: &Path, words: &[&str]) -> Output {
    run(raddle().args(words).current_dir(folder))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_instrumented_process_is_observed() {
    let folder = project();
    let (one, two) = ("observed 1 process of 1 program", "observed 2 processes of 1 program");
    for (command, expected) in [
        ("./racy", ""),
        ("env ./racy", one),
        ("env A=b nice ./racy", one),
        ("nohup ./racy", one),
        ("timeout 60 ./racy", one),
        ("stdbuf -o0 ./racy", one),
        ("setarch -R ./racy", one),
        ("setsid -w ./racy", one),
        ("sh ./check.sh", "observed 5 processes of 2 programs"),
        ("./check.sh", "observed 5 processes of 2 programs"),
        ("bash ./check.sh", "observed 5 processes of 2 programs"),
        ("./spawner", "observed 4 processes of 2 programs"),
        ("make -s check", two),
        ("xargs -a racy.args -n 1 ./racy", two),
    ] {
        std::fs::write(folder.path().join("racy.args"), "one two").unwrap();
        let words: Vec<&str> = ["run", "--"].into_iter().chain(command.split(' ')).collect();
        let output = raddle_in(folder.path(), &words);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains("data race on `counter`") && said.contains(expected), "{command}: {said}");
        assert_eq!(said.contains("observed"), !expected.is_empty(), "{command}: {said}");
    }
}

#[test]
fn what_was_not_observed_is_named() {
    let folder = project();
    let said = text(&raddle_in(folder.path(), &["run", "--", "timeout", "60", "make", "-s", "check"]));
    let line = "observed 2 processes of 1 program; not built by `raddle cc`: make, timeout";
    assert!(said.contains(line), "{said}");
    let alone = raddle_in(folder.path(), &["run", "--follow", "no", "--", "./spawner"]);
    assert_eq!(alone.status.code(), Some(0), "{}", text(&alone));
    assert!(!text(&alone).contains("observed"), "{}", text(&alone));
    for command in ["run", "hunt", "record"] {
        let nobody = raddle_in(folder.path(), &[command, "--", "env", "./plain"]);
        assert_eq!(nobody.status.code(), Some(2), "{}", text(&nobody));
        assert!(text(&nobody).contains("no instrumented program was run by"), "{}", text(&nobody));
    }
}

#[test]
fn the_output_and_status_are_the_programs_own() {
    let folder = project();
    let output = raddle_in(folder.path(), &["record", "--", "./check.sh"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "first\nsystem\nexec\nspawn\n");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    for name in ["check.trace", "check.p2.trace", "check.p5.trace"] {
        assert!(folder.path().join(name).exists(), "{name}");
    }
    let failed = raddle_in(folder.path(), &["record", "--", "sh", "-c", "./racy x; exit 7"]);
    assert_eq!(failed.status.code(), Some(7), "{}", text(&failed));
}

#[test]
fn findings_of_a_test_suite_replay_without_it() {
    let folder = project();
    let hunted = raddle_in(folder.path(), &["hunt", "--quiet", "--json", "--", "make", "-s", "check"]);
    assert_eq!(hunted.status.code(), Some(1), "{}", text(&hunted));
    let output: Value = serde_json::from_slice(&hunted.stdout).expect("one JSON object");
    let findings = output["findings"].as_array().expect("findings");
    assert_eq!(findings.len(), 1, "{output:#}");
    assert_eq!(findings[0]["grade"], "confirmed", "{output:#}");
    let id = findings[0]["id"].as_str().expect("an id");
    let schedule = std::fs::read_to_string(folder.path().join(".raddle").join(id).join("schedule")).unwrap();
    assert!(schedule.contains("program racy\nargument one\n"), "{schedule}");
    let replayed = raddle_in(folder.path(), &["replay", id, "--repeat", "5"]);
    assert_eq!(replayed.status.code(), Some(1), "{}", text(&replayed));
}
