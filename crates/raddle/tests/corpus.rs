//! The corpus in the default test run: each case with gcc and with clang, natively and recorded. The full matrix is
//! `cargo xtask corpus`.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use xtask::corpus::run::Runner;
use xtask::corpus::{half_matrix, known_failures, manifest};

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
    let known = match known_failures(&runner.corpus, "record") {
        Ok(known) => known,
        Err(error) => {
            eprintln!("{error:#}");
            return 1.into();
        }
    };
    let mut trials = Vec::new();
    for (number, case) in cases.into_iter().enumerate() {
        for variant in half_matrix(number) {
            if case.slow || !runner.can(&case, variant) {
                continue;
            }
            let (runner, case) = (runner.clone(), case.clone());
            let name = format!("{}::{}", case.name, variant.compiler);
            // A known failure is shown as ignored; `--ignored` runs it.
            let is_known = known.contains_key(&case.name);
            let trial = Trial::test(name, move || {
                runner.check(&case, variant).map_err(|error| Failed::from(format!("{variant}: {error:#}")))
            });
            trials.push(trial.with_ignored_flag(is_known));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
