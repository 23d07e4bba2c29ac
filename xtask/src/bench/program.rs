//! Programs of `benches/programs`, compiled by everybody with the same options.

use crate::project;
use std::path::{Path, PathBuf};
use std::process::Command;

const OPTIONS: &[&str] = &["-O2", "-g", "-pthread"];

/// A program and the folder that its builds go to.
pub struct Program<'a> {
    pub name: &'a str,
    pub folder: &'a Path,
}

impl Program<'_> {
    /// Compiles it by a command that lacks only options and files. `kind` tells the builds of a program apart.
    pub fn compile(&self, kind: &str, mut command: Command) -> anyhow::Result<PathBuf> {
        let source = project::root().join("benches/programs").join(format!("{}.c", self.name));
        let path = self.folder.join(format!("{}-{kind}", self.name));
        project::run(command.args(OPTIONS).arg(&source).arg("-o").arg(&path))?;
        Ok(path)
    }
}

/// A compiler, with a flag.
pub fn with(compiler: &Path, flag: Option<&str>) -> Command {
    let mut command = Command::new(compiler);
    command.args(flag);
    command
}

/// `raddle cc` with a compiler behind it.
pub fn raddle_cc(raddle: &Path, compiler: &Path) -> Command {
    let mut command = with(raddle, Some("cc"));
    command.env("RADDLE_CC", compiler);
    command
}
