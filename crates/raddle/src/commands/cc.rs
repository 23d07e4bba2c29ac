//! `raddle cc` and `raddle c++`: stand in for a compiler.
//!
//! These two do not go through the ordinary argument parser: every word behind them, `-v`, `--help` and `-q` included,
//! belongs to the compiler. `main` asks [`as_compiler`] before it parses anything. The types here exist so that `raddle help cc`
//! has something to say.

use super::Exit;
use crate::compiler::{self, choice::Language};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Compiles with everything that Raddle needs to watch the program.
///
/// A drop-in for gcc and clang: all arguments are passed on to the compiler, with the instrumentation added in front and
/// the runtime added when an executable is linked. Exit status and messages are the compiler's.
///
/// Environment:
///   RADDLE_CC, RADDLE_CXX  the compiler behind (gcc-12, clang-22, "ccache gcc"); one is enough for both languages.
///                          Default: the newest clang-NN found, else clang, else gcc
///   RADDLE_LINK            `object` (default): the runtime becomes part of the executable; `shared`: a library in the cache folder
///
/// Examples:
///   raddle cc -O2 -pthread bank.c -o bank
///   make CC="raddle cc" CXX="raddle c++"
///   CC="raddle cc" CXX="raddle c++" ./configure
///   CC="raddle cc" CXX="raddle c++" cmake -B build
///   CC="raddle cc" CXX="raddle c++" meson setup build
#[derive(clap::Args)]
#[command(verbatim_doc_comment, disable_help_flag = true, disable_version_flag = true)]
pub struct Args {
    /// Everything goes to the compiler.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

/// The language and the compiler's arguments, if this process was called as a compiler: as `raddle cc ...`, or through a
/// link named `raddle-cc` or `raddle-c++` for build systems that want the compiler to be one word.
pub fn as_compiler(mut words: impl Iterator<Item = OsString>) -> Option<(Language, Vec<OsString>)> {
    let program = words.next()?;
    let name = Path::new(&program).file_name().unwrap_or(OsStr::new("")).to_owned();
    let language = match name.to_str() {
        Some("raddle-cc") => Language::C,
        Some("raddle-c++") => Language::Cxx,
        _ => match words.next()?.to_str() {
            Some("cc") => Language::C,
            Some("c++") => Language::Cxx,
            _ => return None,
        },
    };
    Some((language, words.collect()))
}

pub fn run(language: Language, args: Args) -> anyhow::Result<Exit> {
    Err(compiler::become_compiler(language, args.arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<(Language, &str)>) {
        let found = as_compiler(line.split(' ').map(OsString::from));
        let found = found.map(|(language, words)| {
            let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
            (language, words.join(" "))
        });
        assert_eq!(found, expected.map(|(language, words)| (language, words.to_owned())), "{line}");
    }

    #[test]
    fn called_as_a_compiler() {
        check("raddle cc -v --help", Some((Language::C, "-v --help")));
        check("/usr/bin/raddle c++ a.cc", Some((Language::Cxx, "a.cc")));
        check("/x/raddle-cc -q", Some((Language::C, "-q")));
        check("raddle-c++ cc", Some((Language::Cxx, "cc")));
        check("raddle record -- cc", None);
        check("raddle", None);
    }
}
