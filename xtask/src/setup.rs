//! Installing what the tests need, on Debian and Ubuntu.
//!
//! Users need only Rust and a C compiler. Tests need more: the newest packaged clang beside gcc, the build systems that the
//! compiler wrappers are tried with, and the peers that benches compare with. As root they are installed; anybody else
//! is told the exact command. The source of Rust's standard library, which `cargo raddle` builds instrumented, comes from rustup
//! and needs no root.

use crate::project::{self, which};
use anyhow::bail;
use std::path::Path;
use std::process::{Command, Stdio};

/// Packages that every test machine needs, whatever the newest clang is.
const PACKAGES: &[&str] = &[
    "gcc",
    "g++",
    "make",
    "cmake",
    "meson",
    "ninja-build",
    "autoconf",
    "automake",
    "libtool",
    "pkg-config",
    "valgrind",
    "spin",
    "gdb",
    "util-linux",
    "chromium",
    "chromium-driver",
];

/// Makes sure that everything is there, or says how to get it.
pub fn run() -> anyhow::Result<()> {
    standard_library_source()?;
    packages()
}

/// Tests of `cargo raddle` build the standard library of the toolchain that builds Raddle.
fn standard_library_source() -> anyhow::Result<()> {
    let sysroot = text_of(Command::new("rustc").args(["--print", "sysroot"]));
    if Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/Cargo.lock").exists() {
        return Ok(());
    }
    if which("rustup").is_none() {
        eprintln!(
            "xtask: there is no rustup; install the source of the standard library of {} yourself",
            sysroot.trim()
        );
        return Ok(());
    }
    project::run(Command::new("rustup").args(["component", "add", "rust-src"]))
}

fn packages() -> anyhow::Result<()> {
    if which("apt-get").is_none() {
        eprintln!(
            "xtask: this is no Debian or Ubuntu; make sure yourself that there are: clang, lld, {}",
            PACKAGES.join(", ")
        );
        return Ok(());
    }
    let is_root = rustix::process::geteuid().is_root();
    let mut missing = missing_packages();
    if missing.is_empty() && newest_clang_package().is_some() {
        return Ok(());
    }
    if is_root {
        project::run(apt().args(["update", "-q"]))?;
        // Only now is it known which clang is the newest.
        missing = missing_packages();
        if missing.is_empty() {
            return Ok(());
        }
        return project::run(apt().args(["install", "-q", "-y", "--no-install-recommends"]).args(missing));
    }
    if newest_clang_package().is_none() {
        bail!("the package lists are empty; run this, then try again:\n    sudo apt-get update");
    }
    bail!(
        "the tests need packages that are not installed; run this, then try again:\n    sudo apt-get update && sudo apt-get install -y --no-install-recommends {}",
        missing.join(" ")
    );
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    // A fresh machine may be busy with updates of its own: wait for those.
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["-o", "DPkg::Lock::Timeout=600"]);
    command
}

fn missing_packages() -> Vec<String> {
    let mut wanted: Vec<String> = PACKAGES.iter().map(|&name| name.to_owned()).collect();
    if let Some(version) = newest_clang_package() {
        wanted.extend(["clang", "lld", "llvm"].map(|tool| format!("{tool}-{version}")));
        wanted.push(format!("libclang-rt-{version}-dev"));
    }
    wanted.retain(|name| is_known(name) && !is_installed(name));
    wanted
}

fn text_of(command: &mut Command) -> String {
    let output = command.stderr(Stdio::null()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

fn is_installed(package: &str) -> bool {
    text_of(Command::new("dpkg-query").args(["-W", "-f=${db:Status-Status}", package])) == "installed"
}

/// Is there such a package? (libclang-rt-NN-dev is part of another package in old releases.)
fn is_known(package: &str) -> bool {
    is_installed(package)
        || !text_of(Command::new("apt-cache").args(["show", "--no-all-versions", package])).is_empty()
}

fn newest_clang_package() -> Option<u32> {
    newest_of(&text_of(Command::new("apt-cache").args(["search", "--names-only", "^clang-[0-9]+$"])))
}

/// The highest N of lines that begin with `clang-N `.
fn newest_of(lines: &str) -> Option<u32> {
    lines
        .lines()
        .filter_map(|line| line.split_whitespace().next()?.strip_prefix("clang-")?.parse().ok())
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers_and_not_words() {
        let lines = "clang-9 - C compiler\nclang-14 - C compiler\nclang-tidy - x\nclang-format-19 - y\n";
        assert_eq!(newest_of(lines), Some(14));
        assert_eq!(newest_of(""), None);
    }
}
