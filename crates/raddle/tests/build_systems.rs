//! `CC="raddle cc" CXX="raddle c++"` in projects of four build systems: they configure, they build without a complaint, and the
//! program can be recorded, shared library included.

mod common;

use common::{RADDLE, count, events, raddle, succeed, tool};
use raddle_trace::Op;
use std::path::Path;
use std::process::Command;

/// Copies a project and its sources to a scratch folder.
fn project(name: &str) -> tempfile::TempDir {
    let projects = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/projects");
    let scratch = tempfile::tempdir().unwrap();
    for folder in ["sources", name] {
        for entry in std::fs::read_dir(projects.join(folder)).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), scratch.path().join(entry.file_name())).unwrap();
        }
    }
    scratch
}

fn step(folder: &Path, program: &str, arguments: &[&str], compiler: &str) {
    let mut command = Command::new(tool(program));
    command.args(arguments).current_dir(folder);
    command.env("CC", format!("{RADDLE} cc")).env("CXX", format!("{RADDLE} c++"));
    command.env("RADDLE_CC", compiler).env_remove("RADDLE_CXX").env_remove("RADDLE_LINK");
    succeed(&mut command);
}

/// Records the built program and looks for what the library did.
fn check_recording(folder: &Path, program: &str) {
    let trace = folder.join("counting.trace");
    let output =
        succeed(raddle().args(["record", "-q", "-o"]).arg(&trace).arg("--").arg(program).current_dir(folder));
    assert_eq!(output, "counted 200\n");
    let events = events(&trace);
    assert_eq!(count(&events, |op| matches!(op, Op::Fork { .. })), 4, "threads of the program");
    assert_eq!(count(&events, |op| matches!(op, Op::Lock { .. })), 201, "locks of the library");
    assert!(count(&events, |op| matches!(op, Op::Write { .. })) > 0, "memory accesses");
}

#[test]
fn make() {
    for compiler in common::compilers() {
        let scratch = project("make");
        let (cc, cxx) = (format!("CC={RADDLE} cc"), format!("CXX={RADDLE} c++"));
        step(scratch.path(), "make", &[&cc, &cxx], &compiler);
        check_recording(scratch.path(), "./counting");
    }
}

#[test]
fn autotools() {
    let compiler = common::compilers().pop().unwrap();
    let scratch = project("autotools");
    std::fs::create_dir(scratch.path().join("m4")).unwrap();
    step(scratch.path(), "autoreconf", &["--install"], &compiler);
    step(scratch.path(), "sh", &["./configure", "-q"], &compiler);
    step(scratch.path(), "make", &["-s"], &compiler);
    // libtool leaves a script here that finds the library and then runs the program.
    assert!(std::fs::read(scratch.path().join("counting")).unwrap().starts_with(b"#!"));
    check_recording(scratch.path(), "./counting");
}

#[test]
fn cmake() {
    for compiler in common::compilers() {
        let scratch = project("cmake");
        step(scratch.path(), "cmake", &["-B", "build", "-DCMAKE_BUILD_TYPE=RelWithDebInfo"], &compiler);
        step(scratch.path(), "cmake", &["--build", "build"], &compiler);
        check_recording(scratch.path(), "build/counting");
    }
}

#[test]
fn meson() {
    for compiler in common::compilers() {
        let scratch = project("meson");
        step(scratch.path(), "meson", &["setup", "build", "--fatal-meson-warnings"], &compiler);
        step(scratch.path(), "ninja", &["-C", "build"], &compiler);
        check_recording(scratch.path(), "build/counting");
    }
}
