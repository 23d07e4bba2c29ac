//! What a build left behind: the executables that cargo names in its messages, and the tests that they list.

use cargo_metadata::{Message, TargetKind};
use std::io::BufRead;
use std::path::PathBuf;

/// A test executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    pub path: PathBuf,
    /// As nextest names it: `package`, `package::bin/name`, `package::name` for a file of `tests`.
    pub name: String,
    /// The package's folder: where cargo runs its tests.
    pub folder: PathBuf,
}

/// Test executables in cargo's messages, in their order.
pub fn executables(messages: impl BufRead) -> anyhow::Result<Vec<Executable>> {
    let mut list = Vec::new();
    for message in Message::parse_stream(messages) {
        match message? {
            Message::CompilerArtifact(artifact) if artifact.profile.test => {
                let Some(path) = artifact.executable else { continue };
                let folder =
                    artifact.manifest_path.parent().map(|folder| folder.to_owned()).unwrap_or_default();
                let package = package_name(&artifact.package_id.repr, folder.as_str());
                list.push(Executable {
                    path: path.into(),
                    name: name(&package, &artifact.target.kind, &artifact.target.name),
                    folder: folder.into(),
                });
            }
            Message::TextLine(line) => println!("{line}"),
            _ => {}
        }
    }
    Ok(list)
}

fn name(package: &str, kinds: &[TargetKind], target: &str) -> String {
    match kinds.first() {
        Some(TargetKind::Bin) => format!("{package}::bin/{target}"),
        Some(TargetKind::Example) => format!("{package}::example/{target}"),
        Some(TargetKind::Bench) => format!("{package}::bench/{target}"),
        Some(TargetKind::Test) => format!("{package}::{target}"),
        _ => package.to_owned(),
    }
}

/// `path+file:///x/bank#0.1.0`, `path+file:///x/y#bank@0.1.0`: the name is behind `#`, or the last folder.
fn package_name(id: &str, folder: &str) -> String {
    let behind = id.rsplit_once('#').map_or("", |(_, rest)| rest);
    match behind.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => folder.rsplit('/').next().unwrap_or(folder).to_owned(),
    }
}

/// The tests that an executable lists with `--list --format terse`.
pub fn tests(listing: &str) -> Vec<String> {
    listing.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings() {
        assert_eq!(tests("a::b: test\nc: benchmark\n\nd: test\n2 tests, 1 benchmark\n"), ["a::b", "d"]);
        assert!(tests("").is_empty());
    }

    #[test]
    fn names_of_packages() {
        assert_eq!(package_name("path+file:///x/bank#0.1.0", "/x/bank"), "bank");
        assert_eq!(package_name("path+file:///x/y#bank@0.1.0", "/x/y"), "bank");
        assert_eq!(package_name("registry+https://r#serde@1.0.0", "/r/serde-1.0.0"), "serde");
    }

    #[test]
    fn names_of_executables() {
        assert_eq!(name("bank", &[TargetKind::Lib], "bank"), "bank");
        assert_eq!(name("bank", &[TargetKind::Test], "transfer"), "bank::transfer");
        assert_eq!(name("bank", &[TargetKind::Bin], "teller"), "bank::bin/teller");
    }

    #[test]
    fn only_tests_count() {
        let line = |test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///x/bank#0.1.0","manifest_path":"/x/bank/Cargo.toml","target":{{"kind":["lib"],"crate_types":["lib"],"name":"bank","src_path":"/x/bank/src/lib.rs","edition":"2024","doc":true,"doctest":true,"test":true}},"profile":{{"opt_level":"0","debuginfo":2,"debug_assertions":true,"overflow_checks":true,"test":{test}}},"features":[],"filenames":["/t/bank"],"executable":"/t/bank","fresh":true}}"#
            )
        };
        let text = format!("{}\n{}\n", line(false), line(true));
        let found = executables(text.as_bytes()).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].folder.to_str()), ("bank", Some("/x/bank")));
    }
}
