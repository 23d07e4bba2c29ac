//! Where things are, and how a step of a chore is run.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the source tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root").to_owned()
}

/// The folder that cargo builds into.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from).unwrap_or_else(|| root().join("target"))
}

pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command to its end; failing is an error that shows the command.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let shown = show(command);
    let status = command.status().with_context(|| format!("cannot start {shown}"))?;
    if !status.success() {
        bail!("{shown} failed ({status})");
    }
    Ok(())
}

/// Runs a command and returns what it printed; failing is an error that shows command and messages.
pub fn output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let shown = show(command);
    let output = command.output().with_context(|| format!("cannot start {shown}"))?;
    if !output.status.success() {
        bail!("{shown} failed ({})\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

fn show(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

/// Builds the release `raddle` and says where it is.
pub fn release_raddle() -> anyhow::Result<PathBuf> {
    run(cargo().args(["build", "--release", "--package", "raddle"]))?;
    Ok(target().join("release/raddle"))
}

/// A program in `PATH`.
pub fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The newest numbered program, such as `clang-22`.
pub fn newest(prefix: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for folder in std::env::split_paths(&path) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let number =
                name.to_str().and_then(|name| name.strip_prefix(prefix)?.strip_prefix('-')?.parse().ok());
            found.extend(number.map(|number| (number, entry.path())));
        }
    }
    found.into_iter().max().map(|(_, path)| path)
}
