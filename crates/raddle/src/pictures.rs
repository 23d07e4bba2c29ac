//! The schedules that pictures of findings are drawn from.

use crate::output::OutputArgs;
use raddle_findings::file::Exploration;
use raddle_findings::{Finding, Grade};
use raddle_report::picture::{Names, Run, draw, lanes};
use raddle_report::{Page, Shown, Sources};
use raddle_trace::schedule::Schedule;
use std::path::Path;

/// Longer schedules are not drawn: reading them takes longer than anybody looks.
const SCHEDULE_BYTES_MAX: u64 = 64 << 20;

/// The schedule of a finding, if it can be read. A picture is an extra: what is wrong with the file, `replay` says.
fn schedule(path: Option<&String>) -> Option<Schedule> {
    let path = Path::new(path?);
    let bytes = std::fs::metadata(path).ok()?.len();
    if bytes > SCHEDULE_BYTES_MAX {
        return None;
    }
    Schedule::parse(&std::fs::read_to_string(path).ok()?).ok()
}

/// The store keeps no recorded run beside the erroneous one, so that there is nothing to compare with.
fn shown(finding: &Finding) -> Shown<'_> {
    Shown { finding, schedule: schedule(finding.schedule.as_ref()), observed: None }
}

/// Columns of a picture in text: in wider ones the eye loses the line.
const COLUMNS_MAX: usize = 80;

/// The lanes of a finding for the terminal; empty if there is nothing to draw.
pub fn in_text(finding: &Finding, width: usize) -> String {
    let Shown { schedule, .. } = shown(finding);
    let run = schedule.as_ref().map(|schedule| Run::new(schedule, Names::of(finding)));
    lanes(&draw(finding, run.as_ref(), None).erroneous, width.min(COLUMNS_MAX))
}

/// What a page needs to know beside the findings.
pub struct About<'a> {
    pub command: &'a str,
    pub program: &'a [String],
    pub exploration: Option<&'a Exploration>,
    pub held_back: &'a [Finding],
    pub suppressed: usize,
    pub known: usize,
}

/// The page of a command's findings, the surest first.
pub fn page(findings: &[Finding], about: &About<'_>, args: &OutputArgs, sources: &mut Sources) -> String {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|finding| std::cmp::Reverse(finding.grade()));
    let page = Page {
        command: about.command,
        program: about.program,
        findings: sorted.into_iter().map(shown).collect(),
        exploration: about.exploration,
        not_shown: not_shown(about, args),
    };
    page.html(sources)
}

fn not_shown(about: &About<'_>, args: &OutputArgs) -> Vec<String> {
    let mut list = Vec::new();
    for grade in Grade::ALL {
        match about.held_back.iter().filter(|finding| finding.grade() == grade).count() {
            0 => {}
            number => list.push(format!("{number} {} (--all shows them)", grade.name())),
        }
    }
    if about.suppressed > 0 {
        list.push(format!("{} suppressed by --suppressions", about.suppressed));
    }
    if about.known > 0 || args.baseline.is_some() {
        list.push(format!("{} known from the baseline", about.known));
    }
    list.push(
        "only code that the runs reached was looked at: what no run executed cannot be found".to_owned(),
    );
    list
}
