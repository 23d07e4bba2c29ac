//! Demos of programs that do much with descriptors and streams: each program of `demos/` is recorded and given again, and every replay is the
//! recorded run.

mod common;

use common::{folder, raddle, run, succeed};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

/// A folder with the program of this name, built, and with a file that servers serve.
fn built(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = folder(&[("served.txt", "hello world\nsecond line\n")]);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/demos").join(name);
    let program = folder.path().join("program");
    let compiler = if name.ends_with(".cpp") { "c++" } else { "cc" };
    let mut command = raddle();
    succeed(command.args([compiler, "-g", "-O1", "-pthread"]).arg(&source).arg("-o").arg(&program));
    (folder, program)
}

/// Records a demo with this text as standard input; what the program printed.
fn record(folder: &Path, options: &[&str], input: &str) -> Output {
    let mut child = raddle()
        .args(["-q", "record", "--demo", "-o", "demo"])
        .args(options)
        .args(["--", "./program"])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that reads nothing may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// Replays without the input, and counts how often it is the same run.
fn replays(folder: &Path, times: u32, how: &str) {
    let output = run(raddle()
        .args(["replay", "--repeat", &times.to_string(), "demo"])
        .current_dir(folder)
        .stdin(Stdio::null()));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("the same in {times} of {times} runs")), "{how}: {said}");
}

fn given_again(name: &str, input: &str, times: u32) {
    let (folder, _) = built(name);
    for options in [&["--strategy", "random", "--seed", "3"][..], &["--one-at-a-time"], &[]] {
        let recorded = record(folder.path(), options, input);
        assert!(recorded.status.success(), "{name} {options:?}: {recorded:?}");
        replays(folder.path(), times, &format!("{name} {options:?}"));
    }
}

#[test]
fn a_file_does_not_take_the_number_of_a_connection() {
    given_again("open_file_server.c", "", 10);
}

#[test]
fn a_server_of_files_is_given_again() {
    given_again("file_server.c", "", 20);
}

#[test]
fn numbers_of_descriptors_are_given_again() {
    given_again("descriptors.c", "", 5);
}

/// The command that it starts is really started again, and says something else: the demo has what it said.
#[test]
fn input_through_streams_is_given_again() {
    given_again("streams.c", "first line\n42 word\nblockrest\nabcd\nlast\nlines", 5);
}

#[test]
fn random_numbers_are_given_again() {
    given_again("random.cpp", "one\ntwo\n", 5);
}

/// A replay that cannot create what the recorded run created says so, and what to do.
#[test]
fn a_file_that_exists_already_is_named_as_the_cause() {
    let (folder, program) = built("descriptors.c");
    let source = "#include <fcntl.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\n\
        static void *f(void *x) { return x; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0);\n\
        int fd = open(\"lock\", O_CREAT | O_EXCL | O_WRONLY, 0600); printf(\"%d\\n\", fd < 0); return 0; }\n";
    std::fs::write(folder.path().join("exclusive.c"), source).unwrap();
    let exclusive = folder.path().join("exclusive.c");
    succeed(raddle().args(["cc", "-pthread"]).arg(&exclusive).arg("-o").arg(&program));
    assert!(record(folder.path(), &[], "").status.success());
    let output = run(raddle().args(["replay", "demo"]).current_dir(folder.path()));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("a file that the recorded run created exists already"), "{said}");
    std::fs::remove_file(folder.path().join("lock")).unwrap();
    replays(folder.path(), 1, "without the file");
}
