//! `cargo xtask test`: everything that must hold before a change goes in.

use crate::{project, setup};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Install what is needed, then check formatting, lints and all tests.
#[derive(clap::Args)]
pub struct Args {
    /// Do not install anything.
    #[arg(long)]
    no_setup: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    if !args.no_setup {
        step("packages");
        setup::run()?;
    }
    step("formatting");
    project::run(project::cargo().args(["fmt", "--all", "--check"]))?;
    step("lints");
    project::run(project::cargo().args([
        "clippy",
        "--workspace",
        "--exclude",
        "raddle-rt",
        "--all-targets",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ]))?;
    // The runtime has no standard library and no unwinding: it is checked the way it is built.
    project::run(
        project::cargo()
            .args(["clippy", "--package", "raddle-rt", "--release", "--quiet", "--", "-D", "warnings"])
            .env("CARGO_PROFILE_RELEASE_PANIC", "abort"),
    )?;
    step("tests");
    if has_nextest() {
        project::run(
            project::cargo()
                .args(["nextest", "run", "--workspace", "--exclude", "raddle-rt", "--no-fail-fast"])
                .arg(format!("--test-threads={}", threads())),
        )?;
        project::run(project::cargo().args([
            "test",
            "--workspace",
            "--exclude",
            "raddle-rt",
            "--doc",
            "--quiet",
        ]))?;
    } else {
        project::run(project::cargo().args([
            "test",
            "--workspace",
            "--exclude",
            "raddle-rt",
            "--no-fail-fast",
        ]))?;
    }
    if has_miri() {
        step("Miri");
        project::run(
            miri()
                .args(["test", "--quiet", "--package", "raddle-hb", "--package", "raddle-sched"])
                .env("MIRIFLAGS", "-Zmiri-disable-isolation")
                .env("CARGO_TARGET_DIR", project::target().join("miri")),
        )?;
    } else {
        step(
            "Miri is not installed and is left out (rustup component add miri rust-src --toolchain nightly)",
        );
    }
    eprintln!("xtask: all good after {} s", start.elapsed().as_secs());
    Ok(())
}

/// One more than there are processors: programs of the corpus sleep a good part of their time.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, |processors| processors.get() + 1)
}

fn step(name: &str) {
    eprintln!("xtask: {name}");
}

/// Miri looks over the crates that handle pointers and run on the host. It comes with the nightly toolchain, whichever this one is.
fn miri() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "miri"]).current_dir(project::root());
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    command
}

fn has_miri() -> bool {
    let status = miri().arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn has_nextest() -> bool {
    let status =
        project::cargo().args(["nextest", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
