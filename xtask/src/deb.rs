//! `cargo xtask deb`: the Debian package. The metadata stand in crates/raddle/Cargo.toml; what they name beside the program (manual
//! pages, completions) is made here by the program itself, so that no page can be older than the options it describes.

use crate::project::{cargo, root, run as run_step};
use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;

#[derive(clap::Args)]
pub struct Args {
    /// Package this program instead of building one in the release profile.
    #[arg(long, value_name = "FILE")]
    program: Option<std::path::PathBuf>,
}

/// Where crates/raddle/Cargo.toml expects what is made here.
const FILES: &str = "target/package-files";

pub fn run(args: &Args) -> anyhow::Result<()> {
    let root = root();
    let release = root.join("target/release/raddle");
    match &args.program {
        Some(program) => {
            std::fs::create_dir_all(root.join("target/release"))?;
            std::fs::copy(program, &release).with_context(|| format!("cannot copy {}", program.display()))?;
        }
        None => run_step(cargo().args(["build", "--release", "-p", "raddle"]))?,
    }
    describe(&release, &root.join(FILES))?;
    run_step(cargo().args(["deb", "-p", "raddle", "--no-build", "--no-strip"]))
        .context("`cargo install cargo-deb` provides `cargo deb`")
}

/// Manual pages and completions of `program`, into `folder`.
fn describe(program: &Path, folder: &Path) -> anyhow::Result<()> {
    let completions = folder.join("completions");
    std::fs::create_dir_all(&completions)?;
    run_step(Command::new(program).arg("man").arg("--output").arg(folder.join("man")))?;
    for (shell, name) in [("bash", "raddle.bash"), ("zsh", "_raddle"), ("fish", "raddle.fish")] {
        let output = Command::new(program).args(["completions", shell]).output()?;
        ensure!(output.status.success(), "`raddle completions {shell}` failed");
        std::fs::write(completions.join(name), output.stdout)?;
    }
    Ok(())
}
