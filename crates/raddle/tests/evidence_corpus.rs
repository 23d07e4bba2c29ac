//! Every confirmed finding of the corpus is shown again by each replay from its store: every tenth case in which something can be
//! confirmed, with the compilers in turn, a few replays each. The whole thing is `cargo xtask corpus --evidence 20`.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use xtask::corpus::evidence::{self, Check, Tally};
use xtask::corpus::manifest;
use xtask::corpus::run::Runner;

const EVERY: usize = 10;
const REPLAYS: u32 = 3;

fn trials() -> anyhow::Result<Vec<Trial>> {
    let runner = Runner {
        raddle: PathBuf::from(env!("CARGO_BIN_EXE_raddle")),
        corpus: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus"),
        clang: xtask::project::newest("clang"),
    };
    let cases = manifest::all(&runner.corpus)?;
    let other = cases.iter().find(|case| case.name == evidence::OTHER).cloned();
    let other = other.ok_or_else(|| anyhow::anyhow!("the corpus has no {}", evidence::OTHER))?;
    let mut trials = Vec::new();
    let due = cases.into_iter().filter(|case| Check::applies(case) && !case.slow);
    for (number, case) in due.enumerate().filter(|(number, _)| number % EVERY == 0) {
        let compiler = ["gcc", "clang"][number / EVERY % 2];
        let variant = [compiler, "gcc", "clang"].map(|compiler| evidence::variant(number, compiler));
        let Some(variant) = variant.into_iter().find(|variant| runner.can(&case, *variant)) else { continue };
        let (runner, other) = (runner.clone(), other.clone());
        trials.push(Trial::test(case.name.clone(), move || {
            let tally = Tally::default();
            let check = Check { replays: REPLAYS, every_option: false, other: &other, tally: &tally };
            check.run(&runner, &case, variant, number).map_err(|error| Failed::from(format!("{error:#}")))
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
