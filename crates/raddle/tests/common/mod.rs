//! What the tests of the command line share.

#![allow(dead_code)]

use raddle_trace::file::reader::TraceFile;
use raddle_trace::{EventSource, Op};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub const RADDLE: &str = env!("CARGO_BIN_EXE_raddle");

/// The `raddle` under test.
pub fn raddle() -> Command {
    let mut command = Command::new(RADDLE);
    for name in ["RADDLE_CC", "RADDLE_CXX", "RADDLE_LINK", "RADDLE_REGION", "LD_PRELOAD"] {
        command.env_remove(name);
    }
    command
}

/// gcc, and the newest clang if there is one.
pub fn compilers() -> Vec<String> {
    let clang = xtask::project::newest("clang").map(|path| path.display().to_string());
    std::iter::once("gcc".to_owned()).chain(clang).collect()
}

/// A scratch folder with files in it.
pub fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, contents) in files {
        std::fs::write(folder.path().join(name), contents).unwrap();
    }
    folder
}

pub fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"))
}

/// Runs a command that must succeed and returns its standard output.
pub fn succeed(command: &mut Command) -> String {
    let output = run(command);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command that must fail with status 2 and one sentence on standard error, which is returned.
pub fn refused(command: &mut Command) -> String {
    let output = run(command);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{command:?}\n{text}");
    let sentences: Vec<&str> = text.lines().filter(|line| line.starts_with("raddle: error: ")).collect();
    assert_eq!(sentences.len(), 1, "one sentence:\n{text}");
    sentences[0].to_owned()
}

/// Reads a whole trace.
pub fn events(trace: &Path) -> Vec<Op> {
    let mut file = TraceFile::open(trace).unwrap();
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    loop {
        file.next_batch(&mut batch).unwrap();
        if batch.is_empty() {
            return all;
        }
        all.extend(batch.iter().map(|event| event.op));
    }
}

pub fn count(events: &[Op], of: impl Fn(&Op) -> bool) -> usize {
    events.iter().filter(|op| of(op)).count()
}

pub fn tool(name: &str) -> PathBuf {
    xtask::project::which(name)
        .unwrap_or_else(|| panic!("{name} is not installed; `cargo xtask test` installs it"))
}
