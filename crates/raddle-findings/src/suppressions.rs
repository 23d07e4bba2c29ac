//! Suppressions: findings that somebody has looked at and does not want to see again.
//!
//! Files have ThreadSanitizer's syntax, so that existing ones can be used: one `type:pattern` a line, `#` begins a
//! comment. Types and what they suppress:
//!
//! | type | findings | the pattern is compared with |
//! | --- | --- | --- |
//! | `race` | data-race, use-after-free, high-level-race | every frame's function, file and module; the objects |
//! | `race_top` | the same | the innermost frame of each party only |
//! | `deadlock` | deadlock, lock-order | every frame |
//! | `mutex` | lock-misuse | every frame |
//! | `thread` | thread-leak | every frame |
//! | `signal` | none: Raddle has no such finding; accepted because files may contain it | |
//! | `called_from_lib` | any | the module of the innermost frame of each party |
//! | a kind of finding, such as `atomicity-violation` | that kind | every frame |
//!
//! A finding is suppressed if one of its parties matches.

use crate::finding::{Finding, Frame};
use crate::kind::Kind;
use crate::pattern::Pattern;
use std::path::Path;

/// A line of a suppression file that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    pub file: String,
    pub line: usize,
    pub problem: String,
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: line {}: {}", self.file, self.line, self.problem)
    }
}

impl std::error::Error for SyntaxError {}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reach {
    /// Every frame of every party.
    AllFrames,
    /// The innermost frame of every party.
    TopFrames,
    /// The module of the innermost frame of every party.
    TopModules,
}

/// One suppression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// As it is written in the file.
    pub text: String,
    pub line: usize,
    /// Kinds it applies to; `None` for all.
    kinds: Option<Vec<Kind>>,
    reach: Reach,
    pattern: Pattern,
    /// How many findings it has suppressed.
    pub hits: u64,
}

/// All suppressions of a run.
#[derive(Clone, Debug, Default)]
pub struct Suppressions {
    list: Vec<Suppression>,
}

impl Suppressions {
    /// Reads a file's text; `file` is used in errors.
    pub fn parse(file: &str, text: &str) -> Result<Suppressions, SyntaxError> {
        let mut list = Vec::new();
        for (ix, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fail = |problem: String| SyntaxError { file: file.to_owned(), line: ix + 1, problem };
            let Some((kind, pattern)) = line.split_once(':') else {
                return Err(fail(format!("`{line}` is not of the form type:pattern")));
            };
            if pattern.is_empty() {
                return Err(fail(format!("`{line}` has no pattern; `{kind}:*` suppresses all")));
            }
            let Some((kinds, reach)) = meaning(kind) else {
                return Err(fail(format!(
                    "`{kind}` is no type of suppression (race, race_top, deadlock, mutex, thread, signal, \
                     called_from_lib, or a kind of finding)"
                )));
            };
            let pattern = Pattern::new(pattern);
            list.push(Suppression { text: line.to_owned(), line: ix + 1, kinds, reach, pattern, hits: 0 });
        }
        Ok(Suppressions { list })
    }

    pub fn read(path: &Path) -> Result<Suppressions, Box<dyn std::error::Error + Send + Sync>> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {name}: {error}"))?;
        Ok(Suppressions::parse(&name, &text)?)
    }

    pub fn extend(&mut self, other: Suppressions) {
        self.list.extend(other.list);
    }

    pub fn iter(&self) -> impl Iterator<Item = &Suppression> {
        self.list.iter()
    }

    /// The first suppression that applies to a finding; counts it.
    pub fn suppresses(&mut self, finding: &Finding) -> Option<&Suppression> {
        let hit = self.list.iter_mut().find(|suppression| suppression.applies(finding))?;
        hit.hits += 1;
        Some(hit)
    }

    /// Suppressions that have suppressed nothing so far.
    pub fn unused(&self) -> impl Iterator<Item = &Suppression> {
        self.list.iter().filter(|suppression| suppression.hits == 0)
    }
}

fn meaning(kind: &str) -> Option<(Option<Vec<Kind>>, Reach)> {
    let races = || Some(vec![Kind::DataRace, Kind::UseAfterFree, Kind::HighLevelRace]);
    Some(match kind {
        "race" => (races(), Reach::AllFrames),
        "race_top" => (races(), Reach::TopFrames),
        "deadlock" => (Some(vec![Kind::Deadlock, Kind::LockOrder]), Reach::AllFrames),
        "mutex" => (Some(vec![Kind::LockMisuse]), Reach::AllFrames),
        "thread" => (Some(vec![Kind::ThreadLeak]), Reach::AllFrames),
        "signal" => (Some(Vec::new()), Reach::AllFrames),
        "called_from_lib" => (None, Reach::TopModules),
        other => (Some(vec![Kind::from_name(other)?]), Reach::AllFrames),
    })
}

impl Suppression {
    fn applies(&self, finding: &Finding) -> bool {
        if self.kinds.as_ref().is_some_and(|kinds| !kinds.contains(&finding.kind)) {
            return false;
        }
        let tops = || finding.parties.iter().filter_map(|party| party.stack.first());
        match self.reach {
            Reach::AllFrames => {
                finding.parties.iter().flat_map(|party| &party.stack).any(|frame| self.matches_frame(frame))
                    || finding
                        .objects
                        .iter()
                        .filter_map(|object| object.name.as_deref())
                        .any(|name| self.pattern.matches(name))
            }
            Reach::TopFrames => tops().any(|frame| self.matches_frame(frame)),
            Reach::TopModules => tops().any(|frame| self.pattern.matches(module(frame))),
        }
    }

    fn matches_frame(&self, frame: &Frame) -> bool {
        frame.function.as_deref().is_some_and(|name| self.pattern.matches(name))
            || frame.file.as_deref().is_some_and(|name| self.pattern.matches(name))
            || self.pattern.matches(module(frame))
    }
}

/// The module in a frame's `module+0x123`.
fn module(frame: &Frame) -> &str {
    frame.raw.as_deref().and_then(|raw| raw.rsplit_once('+')).map_or("", |(module, _)| module)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Access, Action};
    use crate::basis::Basis;
    use crate::finding::{Detail, Party, Thread};
    use crate::object::{Object, What};

    fn frame(function: &str, file: &str, module: &str) -> Frame {
        Frame {
            function: Some(function.into()),
            file: Some(file.into()),
            line: Some(3),
            raw: Some(format!("{module}+0x10")),
            ..Frame::default()
        }
    }

    fn finding(kind: Kind) -> Finding {
        let party = |top: &str| {
            let stack =
                vec![frame(top, "/src/bank.c", "libbank.so.1"), frame("worker", "/src/main.c", "app")];
            Party::new(Thread::at("1.1"), Action::access(Access::Write), stack)
        };
        let parties = vec![party("withdraw"), party("deposit")];
        let objects = vec![Object::named("balance", What::Memory)];
        Finding::about(kind, "fasttrack", Basis::unordered(), objects, parties, Detail::None)
    }

    fn suppressed(text: &str, kind: Kind) -> bool {
        Suppressions::parse("s", text).unwrap().suppresses(&finding(kind)).is_some()
    }

    #[test]
    fn each_type_looks_at_its_own_findings_and_frames() {
        assert!(suppressed("race:withdraw", Kind::DataRace));
        assert!(suppressed("race:worker", Kind::DataRace));
        assert!(suppressed("race:main.c", Kind::DataRace));
        assert!(suppressed("race:^libbank", Kind::UseAfterFree));
        assert!(suppressed("race:^balance$", Kind::DataRace));
        assert!(!suppressed("race:withdraw", Kind::Deadlock));
        assert!(suppressed("race_top:deposit", Kind::DataRace));
        assert!(!suppressed("race_top:worker", Kind::DataRace));
        assert!(suppressed("deadlock:worker", Kind::LockOrder));
        assert!(suppressed("mutex:worker", Kind::LockMisuse));
        assert!(suppressed("thread:worker", Kind::ThreadLeak));
        assert!(suppressed("called_from_lib:libbank.so", Kind::Crash));
        assert!(!suppressed("called_from_lib:app", Kind::Crash));
        assert!(!suppressed("signal:*", Kind::DataRace));
        assert!(suppressed("atomicity-violation:with*", Kind::AtomicityViolation));
    }

    #[test]
    fn comments_unused_ones_and_mistakes() {
        let mut suppressions = Suppressions::parse("s", "# mine\n\nrace:withdraw\nrace:nobody\n").unwrap();
        assert_eq!(suppressions.suppresses(&finding(Kind::DataRace)).unwrap().line, 3);
        assert_eq!(suppressions.unused().map(|unused| unused.line).collect::<Vec<_>>(), [4]);
        let error = Suppressions::parse("my.supp", "race:x\nraec:y").unwrap_err();
        assert!(error.to_string().starts_with("my.supp: line 2: `raec` is no type"), "{error}");
        assert!(Suppressions::parse("s", "nonsense").is_err());
        assert!(Suppressions::parse("s", "race:").is_err());
    }
}
