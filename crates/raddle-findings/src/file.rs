//! The findings file: what `--json` writes in every command and what `--baseline` and `raddle report` read.
//!
//! One JSON object; `docs/finding-schema.json` describes it. Beside the data, each finding carries its `grade` (which
//! follows from the basis) and sentences for people (`message`, `notes`, `text` of a party). A reader of this crate ignores
//! the sentences: nothing is ever decided on a text.

use crate::finding::Finding;
use crate::wording::Wording;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Version of the findings file.
pub const FINDINGS_VERSION: u32 = 2;

/// Larger files are refused: nobody has that many findings.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingsFile {
    pub version: u32,
    /// Version of `raddle` that wrote it.
    #[serde(default)]
    pub raddle: String,
    /// The command that found them: `hunt`, `run`, ...
    #[serde(default)]
    pub command: String,
    /// The program and its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<String>,
    pub findings: Vec<Finding>,
    /// What `raddle explore` counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exploration: Option<Exploration>,
    /// What `raddle scheme` says beyond its findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
}

/// An analysis of a program's source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysis {
    /// `clean`, `found` or `unknown`.
    pub verdict: String,
    /// Why it is clean, or not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Races whose order makes no difference; they are not among the findings.
    pub harmless: u64,
    /// Results that the program can have, where all are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<String>,
    /// Schedules by id of finding, as `raddle scheme run --schedule` takes them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub schedules: BTreeMap<String, String>,
    /// What each phase did and cost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Value>,
    /// What `--stats` measured beside the analysis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<Value>,
}

/// Many runs of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exploration {
    pub runs: u64,
    /// Distinct schedules, where somebody wrote them down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedules: Option<u64>,
    pub outcomes: Vec<Outcome>,
    /// The strategy, where every run drew its schedule by it for itself: then counts say something about chances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<String>,
    /// What an exhaustive search says about all schedules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// Distinct races that the runs have shown, where they were looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub races: Option<u64>,
    /// Pairs of a read and the write that it saw, where they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads_from: Option<Pairs>,
}

/// What was seen of what there could be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairs {
    pub covered: u64,
    pub predicted: u64,
}

/// How far an exhaustive search got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// Which runs were left out: `none`, `sleep`, `dpor`, `source`, `optimal`; `histories` in a bounded search.
    pub reduction: String,
    /// Runs that count: inequivalent ones, unless the reduction is `none`.
    pub executions: u64,
    /// Runs that only repeated what others had shown.
    pub blocked: u64,
    /// Executions that ended in a deadlock.
    pub deadlocks: u64,
    /// Executions that ended in an error of any kind.
    pub failures: u64,
    /// There are no other executions (within the bound).
    pub complete: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Executions in all, and the standard error, as far as can be told.
    pub estimate: Estimate,
    /// How often the search began anew because a race made more accesses visible.
    #[serde(default)]
    pub restarts: u32,
    /// Accesses that are visible because they race.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub visible: Vec<String>,
}

/// The bound of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// What is bounded: `preemptions` or `delays`.
    pub of: String,
    pub most: u32,
    /// Executions by what they cost, from 0.
    pub executions: Vec<u64>,
}

/// A number that is not known for certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    pub executions: u64,
    pub error: u64,
}

/// A distinct way in which runs ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// `{"exit": 0}`, `{"signal": 6}`, `{"deadlock": [...]}`, ...
    pub ending: Value,
    pub stdout: String,
    pub count: u64,
    pub first_run: u64,
    pub seed: u64,
    /// Id of the finding that it belongs to, if it is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

/// A file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct ReadError {
    pub file: String,
    pub problem: String,
}

impl FindingsFile {
    pub fn new(command: &str, program: Vec<String>, findings: Vec<Finding>) -> FindingsFile {
        let raddle = env!("CARGO_PKG_VERSION").to_owned();
        FindingsFile {
            version: FINDINGS_VERSION,
            raddle,
            command: command.to_owned(),
            program,
            findings,
            exploration: None,
            analysis: None,
        }
    }

    /// Reads a file's text.
    pub fn parse(file: &str, text: &str) -> Result<FindingsFile, ReadError> {
        let fail = |problem: String| ReadError { file: file.to_owned(), problem };
        let value: Value =
            serde_json::from_str(text).map_err(|error| fail(format!("not a findings file: {error}")))?;
        if value.is_array() {
            return Err(fail(OLDER.to_owned()));
        }
        match value.get("version").and_then(Value::as_u64) {
            Some(version) if version == u64::from(FINDINGS_VERSION) => {}
            Some(version) if version > u64::from(FINDINGS_VERSION) => {
                return Err(fail(format!(
                    "version {version} of the findings file is newer than this raddle, which reads version {FINDINGS_VERSION}"
                )));
            }
            Some(_) => return Err(fail(OLDER.to_owned())),
            None => return Err(fail("not a findings file: it has no version".to_owned())),
        }
        serde_json::from_value(value).map_err(|error| fail(format!("not a findings file: {error}")))
    }

    pub fn read(path: &Path) -> Result<FindingsFile, ReadError> {
        let file = path.display().to_string();
        let text = read_limited(path, FILE_BYTES_MAX)
            .map_err(|problem| ReadError { file: file.clone(), problem })?;
        FindingsFile::parse(&file, &text)
    }

    /// The file's text.
    pub fn to_json(&self, wording: &dyn Wording) -> String {
        let mut value = serde_json::to_value(self).expect("findings are plain data");
        value["findings"] = self.findings.iter().map(|finding| with_words(finding, wording)).collect();
        let mut text = serde_json::to_string_pretty(&value).expect("findings are plain data");
        text.push('\n');
        text
    }
}

const OLDER: &str =
    "written by an older raddle, whose findings had other ids; make the file again with this one";

/// One finding with its grade and its sentences.
pub fn with_words(finding: &Finding, wording: &dyn Wording) -> Value {
    let mut value = serde_json::to_value(finding).expect("a finding is plain data");
    value["grade"] = finding.grade().name().into();
    value["message"] = wording.headline(finding).into();
    value["notes"] = wording.notes(finding).into();
    for (at, party) in finding.parties.iter().enumerate() {
        value["parties"][at]["text"] = wording.action(party).into();
    }
    value
}

/// The text of a file that is no larger than this.
pub(crate) fn read_limited(path: &Path, bytes_max: u64) -> Result<String, String> {
    let cannot = |error: std::io::Error| format!("cannot read: {error}");
    let bytes = std::fs::metadata(path).map_err(cannot)?.len();
    if bytes > bytes_max {
        return Err(format!("too large: {bytes} bytes, at most {bytes_max} are read"));
    }
    std::fs::read_to_string(path).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_are_refused_with_a_sentence() {
        let problem = |text: &str| FindingsFile::parse("f", text).unwrap_err().to_string();
        assert!(problem("[]").contains("older raddle"));
        assert!(problem(r#"{"version":1,"findings":[]}"#).contains("older raddle"));
        assert!(problem(r#"{"version":9,"findings":[]}"#).contains("newer than this raddle"));
        assert!(problem(r#"{"findings":[]}"#).contains("no version"));
        assert!(problem("{").starts_with("f: not a findings file"));
        assert!(FindingsFile::parse("f", r#"{"version":2,"findings":[]}"#).is_ok());
    }
}
