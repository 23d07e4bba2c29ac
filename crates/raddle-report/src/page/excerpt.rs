//! The lines of the source that a picture points at, with some lines around them.

use crate::picture::{Pictures, Row, Spot};
use crate::sources::Sources;
use crate::text::name;
use raddle_findings::{Finding, Frame, Place, headline_frame};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Lines before and after.
const AROUND: u32 = 3;
/// Lines of all excerpts of a finding.
const LINES_MAX: usize = 60;
/// Longer lines are cut.
const LINE_CHARS_MAX: usize = 160;

pub(super) struct ExcerptLine {
    pub anchor: String,
    pub number: u32,
    pub text: String,
    pub marked: bool,
    /// Lines are left out before this one.
    pub gap: bool,
}

/// Lines of one file.
pub(super) struct Excerpt {
    pub file: String,
    pub lines: Vec<ExcerptLine>,
}

/// Where a place is on the page.
#[derive(Default)]
pub(super) struct Places {
    anchors: HashMap<(String, u32), String>,
    codes: HashMap<(String, u32), String>,
}

impl Places {
    pub fn anchor(&self, spot: &Spot) -> Option<String> {
        let file = base(&spot.file).to_owned();
        self.anchors.get(&(file, spot.line)).cloned()
    }

    /// The source line of a place, without its indentation.
    pub fn code(&self, spot: &Spot) -> Option<String> {
        self.codes.get(&(base(&spot.file).to_owned(), spot.line)).cloned()
    }
}

fn base(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// Excerpts of the finding with this number on the page.
pub(super) fn excerpts(
    finding: &Finding,
    pictures: &Pictures,
    known: &[String],
    sources: &mut Sources,
    number: usize,
) -> (Vec<Excerpt>, Places) {
    let mut whole: BTreeMap<String, String> = BTreeMap::new();
    let mut wanted: Vec<(String, u32)> = Vec::new();
    let mut want = |file: &str, line: u32| {
        if line > 0 && !wanted.contains(&(file.to_owned(), line)) {
            wanted.push((file.to_owned(), line));
        }
    };
    for file in known {
        whole.entry(base(file).to_owned()).or_insert_with(|| file.clone());
    }
    let mut frames: Vec<&Frame> = Vec::new();
    for party in &finding.parties {
        frames.extend(headline_frame(&party.stack));
        frames.extend(party.locks.iter().filter_map(|held| headline_frame(&held.acquired)));
        frames.extend(party.created.as_ref().and_then(|creation| headline_frame(&creation.stack)));
    }
    for object in &finding.objects {
        if let Place::Heap { allocated: Some(allocation), .. } = &object.place {
            frames.extend(headline_frame(&allocation.stack));
        }
    }
    for frame in frames {
        if let (Some(file), Some(line)) = (&frame.file, frame.line) {
            whole.insert(base(file).to_owned(), file.clone());
            want(base(file), line);
        }
    }
    let rows =
        pictures.erroneous.rows.iter().chain(pictures.observed.iter().flat_map(|picture| &picture.rows));
    for spot in rows.flat_map(Row::acts).map(|act| &act.spot) {
        want(base(&spot.file), spot.line);
    }
    let mut files: Vec<(String, BTreeSet<u32>)> = Vec::new();
    let mut room = LINES_MAX;
    for (file, line) in wanted {
        let marked = match files.iter_mut().find(|(known, _)| *known == file) {
            Some((_, marked)) => marked,
            None => {
                files.push((file, BTreeSet::new()));
                &mut files.last_mut().expect("just pushed").1
            }
        };
        let near = marked.iter().any(|other| other.abs_diff(line) <= AROUND);
        let cost = if near { 2 } else { 2 * AROUND as usize + 1 };
        if room >= cost {
            room -= cost;
            marked.insert(line);
        }
    }
    let mut list = Vec::new();
    let mut places = Places::default();
    for (file_number, (file, marked)) in files.into_iter().enumerate() {
        let path = whole.get(&file).unwrap_or(&file);
        let Some(source) = sources.get(path) else { continue };
        let text: Vec<&str> = source.text.lines().collect();
        let mut shown: BTreeSet<u32> = BTreeSet::new();
        for &line in &marked {
            shown.extend(line.saturating_sub(AROUND).max(1)..=line.saturating_add(AROUND));
        }
        let mut lines: Vec<ExcerptLine> = Vec::new();
        for line in shown {
            let Some(text) = text.get(line as usize - 1) else { continue };
            let anchor = format!("f{number}s{file_number}l{line}");
            if marked.contains(&line) {
                places.anchors.insert((file.clone(), line), anchor.clone());
            }
            if marked.contains(&line) {
                let code = cut(text.trim());
                places.codes.insert((file.clone(), line), code);
            }
            let gap = lines.last().is_some_and(|last| last.number + 1 != line);
            let text = cut(text);
            lines.push(ExcerptLine { anchor, number: line, text, marked: marked.contains(&line), gap });
        }
        if !lines.is_empty() {
            list.push(Excerpt { file: name(path), lines });
        }
    }
    (list, places)
}

fn cut(line: &str) -> String {
    let kept: String = line.replace('\t', "    ").chars().take(LINE_CHARS_MAX).collect();
    crate::text::printable(&kept)
}
