//! Memory that the C library and the kernel touch: for each function of `corpus/library`, a race between the call and a write of
//! another thread is reported, and nothing is when a mutex orders the two.

mod common;

use common::{folder, raddle, run, succeed};
use std::path::Path;

/// Functions that are looked at beside each other.
const WORKERS: usize = 2;

/// What is wrong with a function, if anything.
fn judge(folder: &Path, name: &str) -> Option<String> {
    let told = |how: &str| {
        let arguments = ["run", "--json", "--fail-on", "suspected", "--", "./calls", name, how];
        let output = run(raddle().args(arguments).current_dir(folder));
        let found = serde_json::from_slice::<serde_json::Value>(&output.stdout).ok();
        let findings = found.and_then(|file| file["findings"].as_array().cloned()).unwrap_or_default();
        findings.iter().filter_map(|finding| Some(finding["kind"].as_str()?.to_owned())).collect::<Vec<_>>()
    };
    let (racy, clean) = (told("racy"), told("clean"));
    match () {
        () if !clean.is_empty() => Some(format!("{name}: a false alarm: {clean:?}")),
        () if !racy.iter().any(|kind| kind == "data-race") => Some(format!("{name}: no race, but {racy:?}")),
        () => None,
    }
}

#[test]
fn calls_are_accesses() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let folder = folder(&[]);
    let include = format!("-I{}", corpus.join("include").display());
    let source = corpus.join("library/calls.c");
    let compile = ["cc", "-g", "-O0", "-w", "-pthread", &include];
    succeed(raddle().args(compile).arg(source).args(["-o", "calls", "-lm"]).current_dir(&folder));
    let list = succeed(std::process::Command::new(folder.path().join("calls")).arg("list"));
    let names: Vec<String> = list.lines().map(str::to_owned).collect();
    assert!(names.len() > 120, "{names:?}");
    let shares = names.chunks(names.len().div_ceil(WORKERS));
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let folder = folder.path();
        let workers: Vec<_> = shares
            .map(|share| {
                scope.spawn(move || share.iter().filter_map(|name| judge(folder, name)).collect::<Vec<_>>())
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), names.len(), wrong.join("\n"));
}
