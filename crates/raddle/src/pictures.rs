//! The schedules that pictures of findings are drawn from.

use crate::launch::identity::Identity;
use crate::output::OutputArgs;
use raddle_findings::file::Exploration;
use raddle_findings::{Finding, Grade, Store};
use raddle_report::picture::{Names, lanes};
use raddle_report::{Page, Shown, Sources};
use raddle_trace::schedule::Schedule;
use raddle_trace::symbols::Symbolizer;
use raddle_trace::tables::Module;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Longer schedules are not drawn: reading them takes longer than anybody looks.
const SCHEDULE_BYTES_MAX: u64 = 64 << 20;

/// The schedule of a finding, if it can be read. A picture is an extra: what is wrong with the file, `replay` says.
fn schedule(path: &Path) -> Option<Schedule> {
    let bytes = std::fs::metadata(path).ok()?.len();
    if bytes > SCHEDULE_BYTES_MAX {
        return None;
    }
    Schedule::parse(&std::fs::read_to_string(path).ok()?).ok()
}

/// A finding with its schedule, and with that of the recorded run where the store has it.
fn shown(finding: &Finding) -> Shown<'_> {
    let path = finding.schedule.as_ref().map(Path::new);
    let store = path.and_then(Store::of_file);
    let recorded = path
        .zip(store.as_ref())
        .and_then(|(path, store)| schedule(&store.recorded_path(path.parent()?.file_name()?.to_str()?)));
    let erroneous = path.and_then(schedule);
    let root = store.map_or_else(PathBuf::new, |store| store.root());
    let names = erroneous.as_ref().map_or_else(Names::default, |schedule| {
        let schedules: Vec<&Schedule> = std::iter::once(schedule).chain(&recorded).collect();
        variables(&schedules, &root)
    });
    Shown { finding, schedule: erroneous, observed: recorded, names }
}

/// Names of the program's variables that schedules call `program+0x1234`, if the program is still the one that was run.
fn variables(schedules: &[&Schedule], root: &Path) -> Names {
    let mut names = Names::default();
    let Some(head) = schedules.first().map(|schedule| &schedule.head) else { return names };
    let program = root.join(&head.program);
    let Some(file) = program.file_name().and_then(|file| file.to_str()) else { return names };
    if !program.is_file() || !Identity::of(&program).fits(head) {
        return names;
    }
    let path = program.display().to_string();
    let mut symbols =
        Symbolizer::new(&[Module { path, start: 0, end: u64::MAX, bias: 0, build_id: Vec::new() }]);
    let mut known: HashSet<&str> = HashSet::new();
    for schedule in schedules {
        let steps = schedule.steps.iter().map(|step| step.object);
        for object in steps.chain(schedule.blocks.iter().map(|block| block.object)) {
            let place = schedule.name(object);
            if !known.insert(place) {
                continue;
            }
            let offset = place.strip_prefix(file).and_then(|rest| rest.strip_prefix("+0x"));
            let offset = offset.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            if let Some(data) = offset.and_then(|offset| symbols.data(offset)) {
                names.add(place.to_owned(), data.path);
            }
        }
    }
    names
}

/// Columns of a picture in text: in wider ones the eye loses the line.
const COLUMNS_MAX: usize = 80;

/// The lanes of a finding for the terminal; empty if there is nothing to draw.
pub fn in_text(finding: &Finding, width: usize) -> String {
    lanes(&shown(finding).draw().erroneous, width.min(COLUMNS_MAX))
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
