//! JUnit XML: one test case a finding. A finding that makes the command fail is a failure; what was held back, suppressed or
//! known before is skipped, so that a reader of the report sees that it exists.

use super::{Listing, file, main_place};
use crate::finding::Finding;
use crate::wording::Wording;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

pub fn junit(listing: &Listing, wording: &dyn Wording) -> String {
    let mut suite = TestSuite::new("raddle");
    for finding in listing.findings {
        let status = match finding.grade() >= listing.fail_on {
            true => failure(finding, wording),
            false => skipped(finding, finding.grade().name(), wording),
        };
        suite.add_test_case(case(finding, status, listing.root));
    }
    for (list, why) in [
        (listing.held_back, "held-back"),
        (listing.suppressed, "suppressed"),
        (listing.known.unwrap_or_default(), "known"),
    ] {
        for finding in list {
            suite.add_test_case(case(finding, skipped(finding, why, wording), listing.root));
        }
    }
    let mut report = Report::new("raddle");
    report.add_test_suite(suite);
    report.to_string().expect("text is written into memory")
}

/// The writer drops control characters; these two are no characters of XML either.
fn xml(text: &str) -> String {
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

fn failure(finding: &Finding, wording: &dyn Wording) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_message(xml(&wording.headline(finding))).set_type(finding.grade().name());
    status.set_description(xml(&details(finding, wording)));
    status
}

fn skipped(finding: &Finding, why: &str, wording: &dyn Wording) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(xml(&wording.headline(finding))).set_type(why);
    status
}

fn details(finding: &Finding, wording: &dyn Wording) -> String {
    let parties =
        finding.parties.iter().map(|party| format!("{} {}", wording.thread(party), wording.action(party)));
    parties.chain(wording.notes(finding)).collect::<Vec<_>>().join("\n")
}

fn case(finding: &Finding, status: TestCaseStatus, root: &str) -> TestCase {
    let mut case = TestCase::new(xml(&format!("{} {}", finding.kind.name(), finding.id)), status);
    case.set_classname(finding.kind.name());
    if let Some((_, frame)) = main_place(finding) {
        case.extra.insert("file".into(), xml(file(frame, root)).into());
        if let Some(line) = frame.line {
            case.extra.insert("line".into(), line.to_string().into());
        }
    }
    case
}
