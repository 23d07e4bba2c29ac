//! Programs of the corpus as `raddle cc` builds them: those of `corpus/clean` have no places in their code, those of `corpus/invisible` have.
//!
//! The `raddle` binary is the one that `RADDLE_TEST_BINARY` names, or the one that was built beside this test. This crate cannot ask cargo to
//! build it; where there is none, the test says so and ends.

use raddle_probe::visibility::{Kind, Place, Visibility};
use std::path::{Path, PathBuf};
use std::process::Command;

fn raddle() -> Option<PathBuf> {
    let beside = || Some(std::env::current_exe().ok()?.parent()?.parent()?.join("raddle"));
    let named = std::env::var_os("RADDLE_TEST_BINARY").map(PathBuf::from);
    named.or_else(beside).filter(|path| path.exists())
}

/// Places in the program's own code.
fn code_places(raddle: &Path, name: &str, level: &str) -> Vec<Place> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let output = Command::new(raddle)
        .args([if name.ends_with("cpp") { "c++" } else { "cc" }, "-g", "-pthread", level, "-I"])
        .arg(corpus.join("include"))
        .arg(corpus.join(name))
        .args(name.ends_with("cpp").then_some("-std=c++20"))
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let places = Visibility::read(&[&program]).places();
    places.into_iter().filter(|place| !matches!(place.kind, Kind::KernelInterface(_))).collect()
}

#[test]
fn places_are_in_the_programs_that_have_some() {
    let Some(raddle) = raddle() else {
        eprintln!("there is no raddle beside this test; build it first or set RADDLE_TEST_BINARY");
        return;
    };
    for level in ["-O0", "-O2"] {
        for clean in [
            "clean/spinlock_atomic.c",
            "clean/seqlock.c",
            "clean/fences_ring.c",
            "invisible/futex_turns.c",
            "invisible/std_barrier_latch.cpp",
        ] {
            assert_eq!(code_places(&raddle, clean, level), [], "{clean} {level}");
        }
        for invisible in
            ["invisible/asm_xchg_lock.c", "invisible/no_sanitize_flag.c", "invisible/asm_peterson.c"]
        {
            assert!(!code_places(&raddle, invisible, level).is_empty(), "{invisible} {level}");
        }
    }
}
