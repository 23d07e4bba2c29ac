//! Getting Debian source packages without touching the machine's own package configuration.
//!
//! `apt-get source` needs `deb-src` lines, which most machines do not have. So the machine's own `deb` lines are copied
//! to a private list as `deb-src` lines, and apt is pointed at that list and at private folders. No right is needed, and nothing is left
//! behind outside `target/external`.

use crate::project;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Installs build dependencies as root; anybody else is told the command.
pub fn install(packages: &[&str]) -> anyhow::Result<()> {
    let mut missing = vec!["dpkg-dev"];
    missing.extend(packages);
    missing.retain(|package| {
        let status = Command::new("dpkg-query").args(["-W", "-f=${db:Status-Status}", package]).output();
        !status.is_ok_and(|output| output.stdout == b"installed")
    });
    if missing.is_empty() {
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        bail!(
            "install this first:\n    sudo apt-get install -y --no-install-recommends {}",
            missing.join(" ")
        );
    }
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["install", "-q", "-y", "--no-install-recommends"]);
    project::run(command.args(missing))
}

/// Downloads and unpacks a source package, unless it is there already. Returns its folder.
pub fn fetch(package: &str, folder: &Path) -> anyhow::Result<PathBuf> {
    let place = folder.join(format!("{package}-source"));
    if let Some(found) = unpacked(&place) {
        return Ok(found);
    }
    std::fs::create_dir_all(&place)?;
    let apt = private_apt(folder)?;
    project::run(apt("update").arg("-q"))?;
    project::run(apt("source").args(["-q", package]).current_dir(&place))?;
    unpacked(&place).with_context(|| format!("apt-get source left no folder in {}", place.display()))
}

fn unpacked(place: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(place).ok()?;
    entries.flatten().map(|entry| entry.path()).find(|path| path.is_dir())
}

/// apt-get with lists and caches of its own.
fn private_apt(folder: &Path) -> anyhow::Result<impl Fn(&str) -> Command> {
    let apt = folder.join("apt");
    for part in ["lists/partial", "cache/archives/partial"] {
        std::fs::create_dir_all(apt.join(part))?;
    }
    let list = apt.join("sources.list");
    let lines = source_lines(Path::new("/etc/apt"))?;
    if lines.is_empty() {
        bail!("this machine's apt has no package sources to take source packages from");
    }
    std::fs::write(&list, lines.join("\n") + "\n")?;
    let options = [
        format!("Dir::Etc::SourceList={}", list.display()),
        "Dir::Etc::SourceParts=/dev/null".to_owned(),
        format!("Dir::State::Lists={}", apt.join("lists").display()),
        format!("Dir::Cache={}", apt.join("cache").display()),
        // Root's apt downloads as another user, who may not write below target/.
        "APT::Sandbox::User=root".to_owned(),
    ];
    Ok(move |verb: &str| {
        let mut command = Command::new("apt-get");
        for option in &options {
            command.args(["-o", option]);
        }
        command.arg(verb);
        command
    })
}

/// Every binary source of the machine as a `deb-src` line.
fn source_lines(etc: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = vec![etc.join("sources.list")];
    for entry in std::fs::read_dir(etc.join("sources.list.d")).into_iter().flatten().flatten() {
        files.push(entry.path());
    }
    files.sort();
    let mut lines = Vec::new();
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        // apt ignores files with other endings, and so do we.
        match file.extension().and_then(|ending| ending.to_str()) {
            Some("sources") => lines.extend(text.split("\n\n").flat_map(from_stanza)),
            Some("list") => lines.extend(text.lines().filter_map(from_line)),
            _ => {}
        }
    }
    lines.dedup();
    Ok(lines)
}

/// `deb [options] URI SUITE COMPONENT...`
fn from_line(line: &str) -> Option<String> {
    line.trim().strip_prefix("deb ").map(|rest| format!("deb-src {rest}"))
}

/// The newer form: fields `Types`, `URIs`, `Suites`, `Components`, `Signed-By`.
fn from_stanza(stanza: &str) -> Vec<String> {
    let field = |name: &str| -> Vec<&str> {
        stanza
            .lines()
            .filter(|line| !line.starts_with('#'))
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(|value| value.split_whitespace().collect())
            .unwrap_or_default()
    };
    if !field("Types").contains(&"deb") || field("Enabled") == ["no"] {
        return Vec::new();
    }
    let signed = match field("Signed-By").as_slice() {
        [path] => format!("[signed-by={path}] "),
        _ => String::new(),
    };
    let components = field("Components").join(" ");
    let mut lines = Vec::new();
    for uri in field("URIs") {
        for suite in field("Suites") {
            lines.push(format!("deb-src {signed}{uri} {suite} {components}"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_become_source_lines() {
        assert_eq!(
            from_line("deb [arch=amd64] mirror:/x stable main").as_deref(),
            Some("deb-src [arch=amd64] mirror:/x stable main")
        );
        assert_eq!(from_line("# deb mirror:/x stable main"), None);
        assert_eq!(from_line("deb-src mirror:/x stable main"), None);
        let stanza = "Types: deb\nURIs: mirror:/x\nSuites: stable stable-updates\nComponents: main\nSigned-By: /k.gpg\n";
        assert_eq!(
            from_stanza(stanza),
            [
                "deb-src [signed-by=/k.gpg] mirror:/x stable main",
                "deb-src [signed-by=/k.gpg] mirror:/x stable-updates main"
            ]
        );
        assert!(from_stanza("Types: deb-src\nURIs: mirror:/x\nSuites: stable\n").is_empty());
    }
}
