//! GitLab's Code Quality report: a JSON array with description, check, fingerprint, severity and place of each finding.
//!
//! The report has no findings without a place: those without one get the path `.`, so that they are not lost.

use super::{Listing, file, main_place};
use crate::basis::Grade;
use crate::finding::Finding;
use crate::wording::Wording;
use serde::Serialize;

#[derive(Serialize)]
struct Issue {
    description: String,
    check_name: &'static str,
    fingerprint: String,
    severity: &'static str,
    location: Location,
}

#[derive(Serialize)]
struct Location {
    path: String,
    lines: Lines,
}

#[derive(Serialize)]
struct Lines {
    begin: u32,
}

pub fn gitlab(listing: &Listing, wording: &dyn Wording) -> String {
    let issues: Vec<Issue> =
        listing.findings.iter().map(|finding| issue(finding, listing.root, wording)).collect();
    let mut text = serde_json::to_string_pretty(&issues).expect("issues are plain data");
    text.push('\n');
    text
}

fn issue(finding: &Finding, root: &str, wording: &dyn Wording) -> Issue {
    let severity = match finding.grade() {
        Grade::Confirmed | Grade::Observed => "critical",
        Grade::Unordered => "major",
        Grade::Predicted => "minor",
        Grade::Suspected => "info",
    };
    let (path, begin) = match main_place(finding) {
        Some((_, frame)) => (file(frame, root).to_owned(), frame.line.unwrap_or(1).max(1)),
        None => (".".to_owned(), 1),
    };
    Issue {
        description: wording.headline(finding),
        check_name: finding.kind.name(),
        fingerprint: finding.id.clone(),
        severity,
        location: Location { path, lines: Lines { begin } },
    }
}
