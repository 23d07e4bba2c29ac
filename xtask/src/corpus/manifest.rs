//! Manifests: what is known about a corpus program. The format is described in `corpus/README.md`.
//!
//! Every key has its type here, also those that another test reads: an unknown key or word is an error, so that a
//! misspelt one does not go unnoticed.

use anyhow::{Context, bail, ensure};
use raddle_findings::Kind;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    title: Option<String>,
    language: String,
    files: Option<Vec<String>>,
    #[serde(default)]
    cflags: Vec<String>,
    #[serde(default)]
    libs: Vec<String>,
    #[serde(default)]
    shared: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    plain: Vec<String>,
    compilers: Option<Vec<String>>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    stdin: String,
    exit: Option<i32>,
    signal: Option<String>,
    stdout: Option<String>,
    #[serde(default)]
    nondeterministic: bool,
    outcomes: Option<Vec<String>>,
    #[serde(default)]
    trace: Vec<String>,
    seconds: Option<f64>,
    #[serde(default)]
    slow: bool,
    #[serde(default)]
    outside: bool,
    #[serde(default)]
    stable_memory: bool,
    #[serde(default)]
    weak: Vec<String>,
    #[serde(default)]
    unreachable: Vec<String>,
    #[serde(default)]
    reachable: Vec<String>,
    aspects: Option<String>,
    property: Option<String>,
    #[serde(default)]
    online: OneOrMany,
    #[serde(default)]
    predict: OneOrMany,
    #[serde(default)]
    explore: OneOrMany,
    #[serde(default)]
    provoke: OneOrMany,
    #[serde(default)]
    finding: Vec<Expected>,
}

/// What a tool must say about a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Clean,
    /// Either order occurs natively.
    May,
    Race,
    Deadlock,
    Blocked,
    MissedSignal,
    Assert,
    Crash,
    Livelock,
    WrongOutput,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(Verdict),
    Many(Vec<Verdict>),
    #[default]
    None,
}

impl OneOrMany {
    /// The verdicts of a tool that knows these.
    fn of(self, tool: &str, known: &[Verdict]) -> anyhow::Result<Vec<Verdict>> {
        let verdicts = match self {
            OneOrMany::One(verdict) => vec![verdict],
            OneOrMany::Many(verdicts) => verdicts,
            OneOrMany::None => Vec::new(),
        };
        if let Some(stranger) = verdicts.iter().find(|verdict| !known.contains(verdict)) {
            bail!("`{tool}` says {stranger:?}, which is no verdict of it");
        }
        ensure!(
            verdicts.len() < 2 || !verdicts.contains(&Verdict::Clean),
            "`{tool}` says clean and something else"
        );
        Ok(verdicts)
    }
}

/// A finding that is due.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    pub kind: Kind,
    #[serde(default, rename = "where")]
    pub places: Vec<String>,
    #[serde(default)]
    pub optional: bool,
    #[serde(default)]
    pub property: bool,
    /// Happens-before cannot see it in the timed order.
    #[serde(default)]
    pub hidden: bool,
}

/// How a program must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Status(i32),
    Signal(i32),
}

/// What standard output must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    Exactly(String),
    /// Every line is one of these.
    Lines(Vec<String>),
    Anything,
}

/// One corpus case.
#[derive(Clone, Debug)]
pub struct Case {
    /// `primitives/mutex_trylock`.
    pub name: String,
    pub title: String,
    pub cxx: bool,
    pub folder: PathBuf,
    pub files: Vec<String>,
    pub cflags: Vec<String>,
    pub libs: Vec<String>,
    pub shared: BTreeMap<String, Vec<String>>,
    /// Those of the sources that are never compiled by `raddle cc`.
    pub plain: Vec<String>,
    /// `gcc`, `clang`.
    pub compilers: Vec<String>,
    pub args: Vec<String>,
    pub stdin: String,
    pub end: End,
    pub output: Output,
    pub trace: Vec<String>,
    pub seconds: f64,
    /// Too long for every run: only in the full matrix.
    pub slow: bool,
    /// What happens-before says about the run as the program times it. Empty: nothing is known.
    pub online: Vec<Verdict>,
    /// What prediction from that run yields.
    pub predict: Vec<Verdict>,
    /// What some interleaving does.
    pub explore: Vec<Verdict>,
    /// What a hunt brings about.
    pub provoke: Vec<Verdict>,
    pub findings: Vec<Expected>,
    /// Every standard output that some interleaving gives. Empty: not known.
    pub reachable: Vec<String>,
    /// Time, network or signals have a say in what it does.
    pub outside: bool,
    /// Addresses have a say in what it does.
    pub stable_memory: bool,
    /// Files beside it: its events, and what they must be like.
    pub aspects: Option<String>,
    pub property: Option<String>,
}

/// Folders that hold programs of other languages with manifests of their own.
const OTHER_FOLDERS: &[&str] = &["csp", "scheme", "include", "rust"];

/// Every case of the corpus, in a stable order.
pub fn all(corpus: &Path) -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for folder in sorted(corpus)? {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !folder.is_dir() || OTHER_FOLDERS.contains(&name.as_str()) {
            continue;
        }
        for path in sorted(&folder)? {
            if path.extension().is_some_and(|ending| ending == "toml") {
                cases.push(read(&path, &name)?);
            }
        }
    }
    Ok(cases)
}

fn sorted(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn read(path: &Path, group: &str) -> anyhow::Result<Case> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let stem = path.file_stem().expect("a manifest has a name").to_string_lossy().into_owned();
    let folder = path.parent().expect("a manifest lies in a folder");
    case(&text, group, &stem, folder).with_context(|| path.display().to_string())
}

fn case(text: &str, group: &str, stem: &str, folder: &Path) -> anyhow::Result<Case> {
    let raw: Raw = toml::from_str(text)?;
    let of_others = [&raw.aspects, &raw.property].into_iter().flatten();
    if let Some(missing) = of_others.into_iter().find(|file| !folder.join(file).exists()) {
        bail!("there is no file {missing}");
    }
    let cxx = match raw.language.as_str() {
        "c" => false,
        "c++" => true,
        other => bail!("language {other:?} is neither \"c\" nor \"c++\""),
    };
    let end = match (raw.exit, &raw.signal) {
        (Some(_), Some(_)) => bail!("both `exit` and `signal`"),
        (None, Some(name)) => {
            End::Signal(signal_number(name).with_context(|| format!("no signal is called {name}"))?)
        }
        (status, None) => End::Status(status.unwrap_or(0)),
    };
    let output = match (raw.nondeterministic, raw.outcomes, raw.stdout) {
        (true, Some(lines), None) => Output::Lines(lines),
        (true, None, None) => Output::Anything,
        (false, None, text) => Output::Exactly(text.unwrap_or_default()),
        _ => bail!("`outcomes` needs `nondeterministic = true`, `stdout` excludes both"),
    };
    let outcomes = match &output {
        Output::Lines(lines) => lines.as_slice(),
        _ => &[],
    };
    if let Some(stranger) = raw.weak.iter().chain(&raw.unreachable).find(|line| !outcomes.contains(line)) {
        bail!("`weak` or `unreachable` names {stranger:?}, which is not among the outcomes");
    }
    let files = raw.files.unwrap_or_else(|| vec![format!("{stem}.{}", if cxx { "cpp" } else { "c" })]);
    let is_source =
        |name: &String| files.contains(name) || raw.shared.values().flatten().any(|file| file == name);
    if let Some(stranger) = raw.plain.iter().find(|name| !is_source(name)) {
        bail!("`plain` names {stranger}, which is no source of the program");
    }
    Ok(Case {
        name: format!("{group}/{stem}"),
        title: raw.title.unwrap_or_default(),
        cxx,
        folder: folder.to_owned(),
        files,
        cflags: raw.cflags,
        libs: raw.libs,
        shared: raw.shared,
        plain: raw.plain,
        compilers: raw.compilers.unwrap_or_else(|| vec!["gcc".into(), "clang".into()]),
        args: raw.args,
        stdin: raw.stdin,
        end,
        output,
        trace: raw.trace,
        seconds: raw.seconds.unwrap_or(2.0),
        slow: raw.slow,
        online: raw.online.of("online", &[Verdict::Clean, Verdict::Race, Verdict::May])?,
        predict: raw.predict.of("predict", &PREDICTED)?,
        explore: raw.explore.of("explore", &EXPLORED)?,
        provoke: raw.provoke.of("provoke", &EXPLORED)?,
        findings: raw.finding,
        reachable: raw.reachable,
        outside: raw.outside,
        stable_memory: raw.stable_memory,
        aspects: raw.aspects,
        property: raw.property,
    })
}

const PREDICTED: [Verdict; 5] =
    [Verdict::Clean, Verdict::Race, Verdict::Deadlock, Verdict::Blocked, Verdict::MissedSignal];

const EXPLORED: [Verdict; 9] = [
    Verdict::Clean,
    Verdict::Race,
    Verdict::Deadlock,
    Verdict::Blocked,
    Verdict::MissedSignal,
    Verdict::Assert,
    Verdict::Crash,
    Verdict::Livelock,
    Verdict::WrongOutput,
];

/// What a process does to itself with this is no crash.
const SIGKILL: i32 = 9;

impl Case {
    /// Does a plain run end by a signal of the program's own making?
    pub fn crashes(&self) -> bool {
        matches!(self.end, End::Signal(signal) if signal != SIGKILL)
    }

    /// Does any verdict or finding say that it has a data race?
    pub fn is_racy(&self) -> bool {
        let verdicts = self.online.iter().chain(&self.predict).chain(&self.explore);
        self.findings.iter().any(|finding| finding.kind == Kind::DataRace)
            || verdicts.into_iter().any(|verdict| *verdict == Verdict::Race)
    }

    /// The path of a file that belongs to the case: `NAME.ENDING` beside its manifest.
    pub fn beside(&self, ending: &str) -> PathBuf {
        let stem = self.name.rsplit('/').next().unwrap_or(&self.name);
        self.folder.join(format!("{stem}.{ending}"))
    }
}

fn signal_number(name: &str) -> Option<i32> {
    (1..32).find(|&signal| raddle_trace::file::meta::signal_name(signal) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<Case, String> {
        case(text, "g", "n", Path::new("/x")).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn defaults() {
        let case = check("language = \"c++\"").unwrap();
        assert_eq!((case.name.as_str(), case.files.as_slice()), ("g/n", ["n.cpp".to_owned()].as_slice()));
        assert_eq!((case.end, case.output), (End::Status(0), Output::Exactly(String::new())));
        assert_eq!(case.compilers, ["gcc", "clang"]);
    }

    #[test]
    fn ends_and_outputs() {
        let case =
            check("language = \"c\"\nsignal = \"SIGABRT\"\nnondeterministic = true\noutcomes = [\"0 1\"]")
                .unwrap();
        assert_eq!((case.end, case.output), (End::Signal(6), Output::Lines(vec!["0 1".into()])));
        assert!(check("language = \"c\"\nsignal = \"SIGFOO\"").unwrap_err().contains("SIGFOO"));
        assert!(check("language = \"c\"\nsignal = \"SIGSEGV\"\nexit = 1").is_err());
    }

    #[test]
    fn plain_sources_are_sources() {
        let case = check("language = \"c\"\nfiles = [\"a.c\", \"b.c\"]\nplain = [\"b.c\"]").unwrap();
        assert_eq!(case.plain, ["b.c"]);
        assert!(check("language = \"c\"\nplain = [\"b.c\"]").unwrap_err().contains("b.c"));
        assert!(check("language = \"c\"\nshared = { \"l.so\" = [\"b.c\"] }\nplain = [\"b.c\"]").is_ok());
    }

    #[test]
    fn misspelt_keys_are_errors() {
        assert!(check("language = \"c\"\nstdot = \"x\"").unwrap_err().contains("stdot"));
        assert!(check("language = \"c\"\nonline = \"race\"\n[[finding]]\nkind = \"data-race\"").is_ok());
        for wrong in [
            "online = \"deadlock\"",
            "predict = \"rase\"",
            "explore = [\"clean\", \"race\"]",
            "[[finding]]\nkind = \"data-rase\"",
            "[[finding]]\nkind = \"data-race\"\nwhear = []",
            "property = \"no-such-file.csp\"",
        ] {
            assert!(check(&format!("language = \"c\"\n{wrong}")).is_err(), "{wrong}");
        }
        assert!(check("language = \"rust\"").is_err());
    }
}
