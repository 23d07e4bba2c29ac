//! Correct programs that synchronise where Raddle cannot see it: no command may call anything about them confirmed or unordered.
//! Every third case here, with the compilers and levels in turn; the whole folder is `cargo xtask corpus --innocent`.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use xtask::corpus::run::Runner;
use xtask::corpus::{half_matrix, manifest};

const EVERY: usize = 3;

fn trials() -> anyhow::Result<Vec<Trial>> {
    let runner = Runner {
        raddle: PathBuf::from(env!("CARGO_BIN_EXE_raddle")),
        corpus: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus"),
        clang: xtask::project::newest("clang"),
    };
    let cases = manifest::all(&runner.corpus)?;
    let innocent = cases.into_iter().filter(Runner::is_innocent).enumerate();
    let mut trials = Vec::new();
    for (number, case) in innocent.filter(|(number, _)| number % EVERY == 0) {
        let mut variants = half_matrix(number);
        variants.rotate_left(number / EVERY % 2);
        let Some(variant) = variants.into_iter().find(|variant| runner.can(&case, *variant)) else {
            continue;
        };
        let runner = runner.clone();
        trials.push(Trial::test(case.name.clone(), move || {
            runner.innocent(&case, variant).map_err(|error| Failed::from(format!("{variant}: {error:#}")))
        }));
    }
    Ok(trials)
}

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    match trials() {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(error) => {
            eprintln!("the corpus cannot be read: {error:#}");
            1.into()
        }
    }
}
