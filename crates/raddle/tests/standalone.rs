//! Programs that report by themselves: `RADDLE_OPTIONS=standalone=1`.

mod common;

use common::{folder, raddle, run, succeed};
use std::path::{Path, PathBuf};
use std::process::Command;

const RACY: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int counter;
static void *body(void *unused) {
    counter++;
    return unused;
}
int main(int argc, char **argv) {
    char line[64];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, body, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    if (!fgets(line, sizeof line, stdin)) return 9;
    printf("%d words, the last is %s; read %s", argc, argv[argc - 1], line);
    return argc == 3 ? 0 : 7;
}
"#;

fn built() -> tempfile::TempDir {
    let folder = folder(&[("racy.c", RACY), ("input", "a line\n")]);
    succeed(raddle().args(["cc", "-g", "-pthread", "racy.c", "-o", "racy"]).current_dir(&folder));
    folder
}

fn program(folder: &Path, options: &str) -> Command {
    let mut command = Command::new("./racy");
    let input = std::fs::File::open(folder.join("input")).expect("the input");
    command.args(["one", "two words"]).env("RADDLE_OPTIONS", options).stdin(input).current_dir(folder);
    command
}

#[test]
fn a_program_puts_raddle_in_front_of_itself() {
    let folder = built();
    let own = PathBuf::from(env!("CARGO_BIN_EXE_raddle"));
    let at = format!("exitcode=66:standalone={}", own.display());
    for (options, path) in [
        (at.as_str(), "/usr/bin:/bin".to_owned()),
        ("standalone=1", format!("/nowhere:{}:/bin", own.parent().unwrap().display())),
    ] {
        let output = run(program(folder.path(), options).env("PATH", path));
        let (said, printed) =
            (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        assert_eq!(output.status.code(), Some(if options == at { 66 } else { 1 }), "{options}: {said}");
        assert!(said.contains("data race on `counter`"), "{options}: {said}");
        assert!(!said.contains("standalone"), "the option is known: {said}");
        assert!(printed.contains("3 words, the last is two words; read a line"), "{options}: {printed}");
    }
}

#[test]
fn without_raddle_the_program_runs_unwatched_and_says_so() {
    let folder = built();
    for options in ["standalone=/nowhere/raddle", "standalone=1"] {
        let output = run(program(folder.path(), options).env("PATH", "/nowhere"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(
            said.contains("this program cannot report by itself: `raddle` could not be started"),
            "{said}"
        );
    }
    for options in ["standalone=0", "exitcode=3"] {
        let output = run(&mut program(folder.path(), options));
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}
