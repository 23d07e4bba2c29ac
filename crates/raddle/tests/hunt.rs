//! The scenarios of the corpus: `raddle hunt` from one recorded run must find what is there, confirm it by replay, and
//! report nothing else; a program that crashes is reported, and crashes again. Table 4.2 (deadlocks), table B.1 (races) and the figures of the dissertation.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use xtask::corpus::golden::Golden;
use xtask::corpus::run::{Runner, Variant};
use xtask::corpus::{GOLDEN_VARIANT, known_failures, manifest};

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    let runner = Runner {
        raddle: PathBuf::from(env!("CARGO_BIN_EXE_raddle")),
        corpus: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus"),
        clang: xtask::project::newest("clang"),
    };
    let cases = match manifest::all(&runner.corpus) {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("the corpus cannot be read: {error:#}");
            return 1.into();
        }
    };
    let known = match known_failures(&runner.corpus, "hunt") {
        Ok(known) => known,
        Err(error) => {
            eprintln!("{error:#}");
            return 1.into();
        }
    };
    // `RADDLE_TEST_COMPILER=gcc` hunts in what gcc builds.
    let wanted = std::env::var("RADDLE_TEST_COMPILER");
    let compiler = match wanted.as_deref() {
        Ok("gcc") => "gcc",
        _ if runner.clang.is_some() => "clang",
        _ => "gcc",
    };
    let mut trials = Vec::new();
    let is_due =
        |case: &manifest::Case| !case.predict.is_empty() || !case.provoke.is_empty() || case.crashes();
    for case in cases.into_iter().filter(is_due) {
        // What only the other compiler can build (gcc has OpenMP's library) is hunted with that one.
        let variants = [compiler, "gcc", "clang"].map(|compiler| Variant {
            compiler,
            optimisation: "-O0",
            fixed_addresses: false,
        });
        let Some(variant) = variants.iter().find(|variant| runner.can(&case, **variant)).copied() else {
            continue;
        };
        let golden = if variant == GOLDEN_VARIANT { Golden::Compare } else { Golden::Ignore };
        let runner = runner.clone();
        // A known failure is shown as ignored, with its reason in the list; `--ignored` runs it.
        let is_known = known.contains_key(&case.name);
        let trial = Trial::test(case.name.clone(), move || {
            runner.hunt(&case, variant, golden).map_err(|error| Failed::from(format!("{error:#}")))
        });
        trials.push(trial.with_ignored_flag(is_known));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
