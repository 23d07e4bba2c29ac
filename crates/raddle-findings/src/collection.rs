//! Many findings: the file they are kept in, de-duplication, comparison with a baseline.

use crate::finding::Finding;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Version of the findings file.
pub const FINDINGS_VERSION: u32 = 1;

/// A findings file: JSON, see `docs/finding-schema.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingsFile {
    pub version: u32,
    /// Version of `raddle` that wrote it.
    #[serde(default)]
    pub raddle: String,
    /// The program and its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<String>,
    pub findings: Vec<Finding>,
}

/// A findings file could not be read.
#[derive(Debug)]
pub struct ReadError {
    pub file: String,
    pub problem: String,
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.file, self.problem)
    }
}

impl std::error::Error for ReadError {}

impl FindingsFile {
    pub fn new(program: Vec<String>, findings: Vec<Finding>) -> FindingsFile {
        let raddle = env!("CARGO_PKG_VERSION").to_owned();
        FindingsFile { version: FINDINGS_VERSION, raddle, program, findings }
    }

    /// Reads a file's text: an object as written by `raddle`, or a bare list of findings.
    pub fn parse(file: &str, text: &str) -> Result<FindingsFile, ReadError> {
        let fail = |problem: String| ReadError { file: file.to_owned(), problem };
        if text.trim_start().starts_with('[') {
            let findings =
                serde_json::from_str(text).map_err(|error| fail(format!("not findings: {error}")))?;
            return Ok(FindingsFile::new(Vec::new(), findings));
        }
        let found: FindingsFile =
            serde_json::from_str(text).map_err(|error| fail(format!("not a findings file: {error}")))?;
        if found.version > FINDINGS_VERSION {
            return Err(fail(format!(
                "version {} of the findings file is newer than this raddle, which reads up to {FINDINGS_VERSION}",
                found.version
            )));
        }
        Ok(found)
    }

    pub fn read(path: &Path) -> Result<FindingsFile, ReadError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => FindingsFile::parse(&file, &text),
            Err(error) => Err(ReadError { file, problem: format!("cannot read: {error}") }),
        }
    }

    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("findings are plain data");
        text.push('\n');
        text
    }
}

/// Makes one finding of those with the same id: the one of the highest grade, which then tells who else found it. Keeps
/// the order of first appearance.
pub fn deduplicate(findings: Vec<Finding>) -> Vec<Finding> {
    let mut kept: Vec<Finding> = Vec::new();
    let mut by_id: BTreeMap<String, usize> = BTreeMap::new();
    let mut others: Vec<BTreeSet<String>> = Vec::new();
    for finding in findings {
        let Some(&ix) = by_id.get(&finding.id) else {
            by_id.insert(finding.id.clone(), kept.len());
            kept.push(finding);
            others.push(BTreeSet::new());
            continue;
        };
        let better = finding.grade > kept[ix].grade;
        let worse = if better { std::mem::replace(&mut kept[ix], finding) } else { finding };
        if kept[ix].schedule.is_none() && kept[ix].grade == worse.grade {
            kept[ix].schedule.clone_from(&worse.schedule);
        }
        others[ix].insert(worse.by);
        for note in worse.notes {
            if !kept[ix].notes.contains(&note) && !note.starts_with(ALSO_FOUND) {
                kept[ix].notes.push(note);
            }
        }
    }
    for (finding, mut others) in kept.iter_mut().zip(others) {
        others.remove(&finding.by);
        if !others.is_empty() {
            let names: Vec<String> = others.into_iter().collect();
            finding.notes.push(format!("{ALSO_FOUND}{}", names.join(", ")));
        }
    }
    kept
}

const ALSO_FOUND: &str = "also found by ";

/// How findings differ from those of an earlier run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Not in the baseline.
    pub new: Vec<Finding>,
    /// In both.
    pub known: Vec<Finding>,
    /// Only in the baseline.
    pub gone: Vec<Finding>,
}

/// Compares by id.
pub fn compare(baseline: &[Finding], now: Vec<Finding>) -> Comparison {
    let before: BTreeSet<&str> = baseline.iter().map(|finding| finding.id.as_str()).collect();
    let ids: BTreeSet<String> = now.iter().map(|finding| finding.id.clone()).collect();
    let (known, new) = now.into_iter().partition(|finding| before.contains(finding.id.as_str()));
    let gone = baseline.iter().filter(|finding| !ids.contains(&finding.id)).cloned().collect();
    Comparison { new, known, gone }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Frame, Grade, Kind, Party};

    pub fn sample(line: u32, grade: Grade, by: &str) -> Finding {
        let frame = Frame { file: Some("/a/bank.c".into()), line: Some(line), ..Frame::default() };
        let party =
            Party { thread: "1.1".into(), action: "writes".into(), stack: vec![frame], locks: Vec::new() };
        Finding::new(Kind::DataRace, grade, by, "race".into(), vec![party])
    }

    #[test]
    fn the_highest_grade_stays() {
        let list = deduplicate(vec![
            sample(1, Grade::Suspected, "eraser"),
            sample(2, Grade::Predicted, "shb"),
            sample(1, Grade::Confirmed, "fasttrack"),
            sample(1, Grade::Suspected, "eraser"),
        ]);
        assert_eq!(list.len(), 2);
        assert_eq!((list[0].grade, list[0].by.as_str()), (Grade::Confirmed, "fasttrack"));
        assert_eq!(list[0].notes, ["also found by eraser"]);
        assert_eq!(list[1].notes, Vec::<String>::new());
        assert_eq!(deduplicate(list.clone()), list, "doing it again changes nothing");
    }

    #[test]
    fn baselines_tell_new_from_known() {
        let baseline = [sample(1, Grade::Confirmed, "x"), sample(2, Grade::Confirmed, "x")];
        let comparison =
            compare(&baseline, vec![sample(2, Grade::Confirmed, "y"), sample(3, Grade::Confirmed, "x")]);
        let ids =
            |list: &[Finding]| list.iter().map(|f| f.parties[0].stack[0].line.unwrap()).collect::<Vec<_>>();
        assert_eq!(
            (ids(&comparison.new), ids(&comparison.known), ids(&comparison.gone)),
            (vec![3], vec![2], vec![1])
        );
    }

    #[test]
    fn files_survive_and_newer_ones_are_refused() {
        let file = FindingsFile::new(vec!["./bank".into()], vec![sample(1, Grade::Confirmed, "x")]);
        assert_eq!(FindingsFile::parse("f", &file.to_json()).unwrap(), file);
        let bare = serde_json::to_string(&file.findings).unwrap();
        assert_eq!(FindingsFile::parse("f", &bare).unwrap().findings, file.findings);
        let newer = file.to_json().replace("\"version\": 1", "\"version\": 9");
        assert!(FindingsFile::parse("f", &newer).unwrap_err().to_string().contains("newer"));
        assert!(FindingsFile::parse("f", "{").is_err());
    }
}
