//! Whose word is it: Raddle's or cargo's?
//!
//! Both kinds of options stand on one line, as with nextest. The options that a command of Raddle declares are its own; all other
//! words are cargo's. Where both know a name (`-q`, `-v`, `--color`), it is cargo's: it concerns the build.

use clap::CommandFactory;
use std::collections::HashMap;
use std::ffi::OsString;

/// Options by their spelling, and whether a value follows.
pub type Known = HashMap<String, bool>;

/// Options of both that are cargo's.
const CARGO: [&str; 9] = ["--quiet", "-q", "--verbose", "-v", "--color", "--help", "-h", "--version", "-V"];

/// Options of cargo's commands that are followed by a value.
const CARGO_VALUES: [&str; 21] = [
    "-p",
    "--package",
    "--exclude",
    "--bin",
    "--example",
    "--test",
    "--bench",
    "-F",
    "--features",
    "--profile",
    "-j",
    "--jobs",
    "--target",
    "--target-dir",
    "--manifest-path",
    "--lockfile-path",
    "--message-format",
    "--color",
    "--config",
    "-Z",
    "-C",
];

/// The options of one of Raddle's commands.
pub fn of_command(name: &str) -> Known {
    let line = crate::Cli::command();
    let command = line.find_subcommand(name).expect("the command exists");
    of(command)
}

/// The options that a command declares.
pub fn of(command: &clap::Command) -> Known {
    let mut known = Known::new();
    for argument in command.get_arguments().filter(|argument| !argument.is_positional()) {
        let value = argument.get_action().takes_values()
            && argument.get_num_args().is_none_or(|range| range.min_values() > 0);
        known.extend(argument.get_long().map(|long| (format!("--{long}"), value)));
        known.extend(argument.get_short().map(|short| (format!("-{short}"), value)));
    }
    known.retain(|name, _| !CARGO.contains(&name.as_str()));
    known
}

/// Parts the known options, with their values, from the rest. Nothing behind `--` is looked at.
pub fn split(known: &Known, words: Vec<OsString>) -> (Vec<OsString>, Vec<OsString>) {
    let (mut own, mut rest) = (Vec::new(), Vec::new());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "--" {
            rest.push(word);
            rest.extend(words);
            break;
        }
        let text = word.to_string_lossy().into_owned();
        let (name, joined) = match text.split_once('=') {
            Some((name, _)) if text.starts_with("--") => (name, true),
            _ => (text.as_str(), false),
        };
        match known.get(name) {
            Some(&value) => {
                own.push(word);
                own.extend(if value && !joined { words.next() } else { None });
            }
            None if CARGO_VALUES.contains(&text.as_str()) => {
                rest.push(word);
                rest.extend(words.next());
            }
            None => rest.push(word),
        }
    }
    (own, rest)
}

/// The parts of a `cargo test` line: cargo's words, the name of tests, and what is the tests' own.
pub fn test_line(words: Vec<OsString>) -> (Vec<OsString>, Option<OsString>, Vec<OsString>) {
    let (mut cargo, mut name) = (Vec::new(), None);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        if text == "--" {
            return (cargo, name, words.collect());
        }
        if CARGO_VALUES.contains(&text.as_str()) {
            cargo.push(word);
            cargo.extend(words.next());
        } else if !text.starts_with('-') && name.is_none() {
            name = Some(word);
        } else {
            cargo.push(word);
        }
    }
    (cargo, name, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn options_of_a_command_are_parted_from_cargos() {
        let (own, rest) = split(
            &of_command("hunt"),
            line("--release --runs 3 -p bank --all --keep=x -q --features a -- --runs 4"),
        );
        assert_eq!(own, line("--runs 3 --all --keep=x"));
        assert_eq!(rest, line("--release -p bank -q --features a -- --runs 4"));
    }

    #[test]
    fn values_of_cargos_options_are_cargos() {
        let (own, rest) = split(&of_command("hunt"), line("--bin --all"));
        assert_eq!((own, rest), (line(""), line("--bin --all")));
    }

    #[test]
    fn the_name_of_tests_is_found() {
        let (cargo, name, own) = test_line(line("-p bank transfer --release -- --skip slow"));
        assert_eq!(
            (cargo, name, own),
            (line("-p bank --release"), Some("transfer".into()), line("--skip slow"))
        );
    }
}
