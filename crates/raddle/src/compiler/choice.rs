//! Which compiler does the work.
//!
//! `RADDLE_CC` and `RADDLE_CXX` name it (`gcc-12`, `clang-22`, `ccache gcc`, a path). One of them is enough: the other
//! language's driver is derived from its name (`clang-22` and `clang++-22` are a pair). Without them the newest
//! `clang-NN` in `PATH` is taken, then `clang`, then gcc: clang marks a few things that gcc does not (virtual table reads,
//! `memcpy` by name), but gcc alone is enough.

use super::Refusal;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is compiled by default, and with which driver a program is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Cxx,
}

impl Language {
    /// The language of a source file, by the endings that gcc and clang know.
    pub fn of_file(path: &Path) -> Option<Language> {
        match path.extension()?.to_str()? {
            "c" | "i" => Some(Language::C),
            "cc" | "cp" | "cxx" | "cpp" | "c++" | "C" | "CPP" | "ii" => Some(Language::Cxx),
            _ => None,
        }
    }

    fn variable(self) -> &'static str {
        match self {
            Language::C => "RADDLE_CC",
            Language::Cxx => "RADDLE_CXX",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Gcc,
    Clang,
}

/// A compiler driver.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// Program and fixed arguments (`ccache gcc` has one).
    words: Vec<OsString>,
    pub family: Family,
}

impl Compiler {
    /// The compiler that the environment asks for.
    pub fn choose(language: Language) -> anyhow::Result<Compiler> {
        let own = named(language.variable());
        let other = match language {
            Language::C => named("RADDLE_CXX").map(|words| renamed(words, Language::C)),
            Language::Cxx => named("RADDLE_CC").map(|words| renamed(words, Language::Cxx)),
        };
        match own.or(other) {
            Some(words) => {
                let program = PathBuf::from(&words[0]);
                let Some(found) = find(&program) else {
                    return Err(Refusal(format!(
                        "the compiler {:?} named by {} was not found; install it or name another one",
                        words[0].to_string_lossy(),
                        if named(language.variable()).is_some() {
                            language.variable()
                        } else {
                            "RADDLE_CC or RADDLE_CXX"
                        },
                    ))
                    .into());
                };
                refuse_ourselves(&found, language)?;
                let family = family_of(&words);
                Ok(Compiler { words, family })
            }
            None => Compiler::default_for(language),
        }
    }

    /// The compiler that a schedule names, as its driver for this language; none if it is not there any more.
    pub fn recorded(name: &str, language: Language) -> Option<Compiler> {
        let words: Vec<OsString> = name.split_whitespace().map(OsString::from).collect();
        find(Path::new(words.first()?))?;
        let words = renamed(words, language);
        Some(Compiler { family: family_of(&words), words })
    }

    /// How schedules name it.
    pub fn name(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    fn default_for(language: Language) -> anyhow::Result<Compiler> {
        let (clang, gcc) = match language {
            Language::C => ("clang", ["gcc", "cc"]),
            Language::Cxx => ("clang++", ["g++", "c++"]),
        };
        if let Some(newest) = newest_numbered(clang).or_else(|| find(Path::new(clang))) {
            return Ok(Compiler { words: vec![newest.into()], family: Family::Clang });
        }
        for name in gcc {
            if let Some(found) = find(Path::new(name)) {
                let words = vec![found.into_os_string()];
                return Ok(Compiler { family: family_of(&words), words });
            }
        }
        Err(Refusal(format!(
            "no {} compiler was found; install clang or gcc, or name one in {}",
            if language == Language::C { "C" } else { "C++" },
            language.variable()
        ))
        .into())
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        command
    }

    /// The major version, if the compiler tells.
    pub fn major_version(&self) -> Option<u32> {
        let output = self.command().arg("-dumpversion").stderr(Stdio::null()).output().ok()?;
        String::from_utf8_lossy(&output.stdout).trim().split('.').next()?.parse().ok()
    }
}

fn named(variable: &str) -> Option<Vec<OsString>> {
    let value = std::env::var_os(variable)?;
    let words: Vec<OsString> = match value.to_str() {
        Some(text) => text.split_whitespace().map(OsString::from).collect(),
        None => vec![value],
    };
    (!words.is_empty()).then_some(words)
}

/// The same compiler's driver for another language: `gcc-12` becomes `g++-12`.
fn renamed(mut words: Vec<OsString>, language: Language) -> Vec<OsString> {
    let last = words.last_mut().expect("a named compiler has a word");
    let path = PathBuf::from(&*last);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let pairs = [("clang", "clang++"), ("gcc", "g++"), ("cc", "c++")];
    let new_name = match language {
        // `clang++` contains `clang`: look for the C++ name first.
        Language::Cxx => pairs
            .iter()
            .find(|(c, cxx)| name.contains(c) && !name.contains(cxx))
            .map(|(c, cxx)| name.replacen(c, cxx, 1)),
        Language::C => {
            pairs.iter().find(|(_, cxx)| name.contains(cxx)).map(|(c, cxx)| name.replacen(cxx, c, 1))
        }
    };
    if let Some(new_name) = new_name {
        *last = path.with_file_name(new_name).into_os_string();
    }
    words
}

/// By name where the name says it; otherwise the compiler is asked (`cc` may be either).
fn family_of(words: &[OsString]) -> Family {
    let last = words.last().expect("a compiler has a name");
    let name =
        Path::new(last).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if name.contains("clang") {
        return Family::Clang;
    }
    if name.contains("gcc") || name.contains("g++") {
        return Family::Gcc;
    }
    let version = Command::new(&words[0]).args(&words[1..]).arg("--version").stderr(Stdio::null()).output();
    match version {
        Ok(output) if String::from_utf8_lossy(&output.stdout).contains("clang") => Family::Clang,
        _ => Family::Gcc,
    }
}

fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A program by path or by name.
pub fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return is_program(program).then(|| program.to_owned());
    }
    search_path().into_iter().map(|folder| folder.join(program)).find(|path| is_program(path))
}

/// The program `PREFIX-NN` with the highest number.
fn newest_numbered(prefix: &str) -> Option<PathBuf> {
    let mut best: Option<(u32, PathBuf)> = None;
    for folder in search_path() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(number) = name.to_str().and_then(|name| numbered(name, prefix)) else { continue };
            if best.as_ref().is_none_or(|(highest, _)| number > *highest) && is_program(&entry.path()) {
                best = Some((number, entry.path()));
            }
        }
    }
    best.map(|(_, path)| path)
}

fn numbered(name: &str, prefix: &str) -> Option<u32> {
    name.strip_prefix(prefix)?.strip_prefix('-')?.parse().ok()
}

/// `CC="raddle cc" RADDLE_CC="raddle cc"` would go round in circles.
fn refuse_ourselves(program: &Path, language: Language) -> anyhow::Result<()> {
    let ourselves = std::env::current_exe().and_then(std::fs::canonicalize);
    let it = std::fs::canonicalize(program);
    if let (Ok(ourselves), Ok(it)) = (ourselves, it)
        && ourselves == it
    {
        return Err(Refusal(format!(
            "{} names raddle itself; it must name the compiler behind it, such as gcc or clang-22",
            language.variable()
        ))
        .into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], language: Language, expected: &str) {
        let words = words.iter().map(OsString::from).collect();
        let renamed = renamed(words, language);
        let renamed: Vec<_> = renamed.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(renamed.join(" "), expected);
    }

    #[test]
    fn drivers_come_in_pairs() {
        check(&["gcc"], Language::Cxx, "g++");
        check(&["gcc-12"], Language::Cxx, "g++-12");
        check(&["/opt/x/bin/clang-22"], Language::Cxx, "/opt/x/bin/clang++-22");
        check(&["x86_64-linux-gnu-gcc-12"], Language::Cxx, "x86_64-linux-gnu-g++-12");
        check(&["ccache", "gcc"], Language::Cxx, "ccache g++");
        check(&["cc"], Language::Cxx, "c++");
        check(&["clang++-22"], Language::C, "clang-22");
        check(&["g++"], Language::C, "gcc");
        check(&["c++"], Language::C, "cc");
    }

    #[test]
    fn only_whole_numbers_are_versions() {
        assert_eq!(numbered("clang-22", "clang"), Some(22));
        assert_eq!(numbered("clang-cl-22", "clang"), None);
        assert_eq!(numbered("clang++-22", "clang"), None);
        assert_eq!(numbered("clang", "clang"), None);
    }

    #[test]
    fn languages_by_ending() {
        assert_eq!(Language::of_file(Path::new("a.c")), Some(Language::C));
        assert_eq!(Language::of_file(Path::new("a.C")), Some(Language::Cxx));
        assert_eq!(Language::of_file(Path::new("x/a.cpp")), Some(Language::Cxx));
        assert_eq!(Language::of_file(Path::new("a.o")), None);
        assert_eq!(Language::of_file(Path::new("c")), None);
    }
}
