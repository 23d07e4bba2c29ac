//! Findings and errors as a person reads them: the source with the expressions underlined.

use crate::finding::{Finding, Grade, Kind, Report, Verdict};
use crate::syntax::source::{Source, Span, SyntaxError};
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

/// Lines of an abstract path that are shown.
const PATH_LINES_MAX: usize = 12;
/// Lines of source that one picture of a finding may span.
const LINES_MAX: usize = 200;
/// Findings that are shown to a person.
const FINDINGS_MAX: usize = 100;

fn renderer(color: bool) -> Renderer {
    if color { Renderer::styled() } else { Renderer::plain() }
}

/// Where to underline. Of something that covers many lines, the first of them.
fn range(source: &Source, span: Span) -> Range<usize> {
    let len = source.text.len();
    if span.is_prelude() {
        return 0..0;
    }
    let range = (span.start as usize).min(len)..(span.end as usize).min(len);
    let (lines, _) = source.lines(range.start, range.end);
    if source.text[lines].lines().take(LINES_MAX + 1).count() <= LINES_MAX {
        return range;
    }
    let (first, _) = source.lines(range.start, range.start);
    range.start..range.start.max(first.end.saturating_sub(1))
}

/// Snippets that show the given places, in their order: one where they are close together, else one for each. The
/// renderer reads all that it is given, which must not be a file of a million lines for each finding.
fn snippets<'a>(
    source: &'a Source,
    marks: &[(AnnotationKind, Range<usize>, Option<&'a str>)],
) -> Vec<Snippet<'a, Annotation<'a>>> {
    let show = |marks: &[(AnnotationKind, Range<usize>, Option<&'a str>)]| {
        let from = marks.iter().map(|mark| mark.1.start).min().unwrap_or(0);
        let to = marks.iter().map(|mark| mark.1.end).max().unwrap_or(0);
        let (bytes, line) = source.lines(from, to);
        let mut snippet =
            Snippet::source(&source.text[bytes.clone()]).line_start(line).path(source.name.as_str());
        for (kind, range, label) in marks {
            let annotation = kind.span(range.start - bytes.start..range.end - bytes.start);
            snippet = snippet.annotation(match label {
                Some(label) => annotation.label(*label),
                None => annotation,
            });
        }
        snippet
    };
    let from = marks.iter().map(|mark| mark.1.start).min().unwrap_or(0);
    let to = marks.iter().map(|mark| mark.1.end).max().unwrap_or(0);
    let (bytes, _) = source.lines(from, to);
    if source.text[bytes].lines().take(LINES_MAX + 1).count() <= LINES_MAX {
        vec![show(marks)]
    } else {
        marks.chunks(1).map(show).collect()
    }
}

/// All syntax errors of a file.
pub fn syntax_errors(source: &Source, errors: &[SyntaxError], color: bool) -> String {
    let mut out = String::new();
    for error in errors {
        let mut group = Group::with_title(Level::ERROR.primary_title(&error.message));
        for snippet in snippets(source, &[(AnnotationKind::Primary, range(source, error.span), None)]) {
            group = group.element(snippet);
        }
        if let Some(help) = &error.help {
            group = group.element(Level::HELP.message(help));
        }
        let _ = writeln!(out, "{}", renderer(color).render(&[group]));
    }
    out
}

/// One finding with all of its places.
pub fn finding(source: &Source, finding: &Finding, color: bool) -> String {
    let grade = match finding.grade {
        Grade::Confirmed => "confirmed",
        Grade::Suspected => "suspected",
    };
    let benign = if finding.benign { "benign " } else { "" };
    let title = format!("{grade} {benign}{}: {}", finding.kind.title(), finding.message);
    let level = match (finding.benign, finding.grade) {
        (true, _) => Level::NOTE,
        (false, Grade::Suspected) => Level::WARNING,
        (false, Grade::Confirmed) => Level::ERROR,
    };
    let labels: Vec<String> =
        finding.parts.iter().map(|part| format!("{} {}", part.thread, part.what)).collect();
    let mut marks = Vec::new();
    for (at, (part, label)) in finding.parts.iter().zip(&labels).enumerate() {
        if part.span.is_prelude() {
            continue;
        }
        let kind = if at == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        marks.push((kind, range(source, part.span), Some(label.as_str())));
    }
    let mut group = Group::with_title(level.primary_title(&title));
    if !marks.is_empty() {
        for snippet in snippets(source, &marks) {
            group = group.element(snippet);
        }
    }
    for (part, label) in finding.parts.iter().zip(&labels) {
        if part.span.is_prelude() {
            group = group.element(Level::NOTE.message(format!("{label} (in the prelude)")));
        }
    }
    if !finding.path.is_empty() {
        let skipped = finding.path.len().saturating_sub(PATH_LINES_MAX);
        let mut text = String::from("abstract path:");
        if skipped > 0 {
            let _ = write!(text, "\n(the first {skipped} steps are left out)");
        }
        for line in &finding.path[skipped..] {
            let _ = write!(text, "\n{line}");
        }
        group = group.element(Level::NOTE.message(text));
    }
    if let Some(schedule) = &finding.schedule {
        let threads: Vec<String> = schedule
            .steps
            .iter()
            .map(|step| match step {
                crate::concrete::schedule::Step::Act { thread, .. } => {
                    crate::concrete::state::path_name(thread)
                }
                crate::concrete::schedule::Step::Choose(value) => format!("choose {value}"),
            })
            .collect();
        let text = if threads.is_empty() {
            "it happens in every run".to_owned()
        } else if threads.len() <= 40 {
            format!("replay: raddle scheme run {} --schedule {}", source.name, threads.join(","))
        } else {
            format!("a schedule of {} steps replays it; --schedules DIR stores it", threads.len())
        };
        group = group.element(Level::NOTE.message(text));
    }
    renderer(color).render(&[group])
}

/// The whole report. Nobody reads thousands of findings: beyond the first hundred they are counted.
pub fn report(source: &Source, report: &Report, color: bool) -> String {
    rest(source, report, &BTreeSet::new(), color)
}

/// The report without the findings that were shown before, given by their keys.
pub fn rest(source: &Source, report: &Report, shown: &BTreeSet<String>, color: bool) -> String {
    let mut out = String::new();
    for f in report.findings.iter().take(FINDINGS_MAX).filter(|f| !shown.contains(&f.key())) {
        let _ = writeln!(out, "{}\n", finding(source, f, color));
    }
    if let Some(more) = report.findings.len().checked_sub(FINDINGS_MAX).filter(|&more| more > 0) {
        let _ = writeln!(out, "... and {more} more (--json has them all)");
    }
    let _ = writeln!(out, "{}", summary(report));
    out
}

/// The last line.
pub fn summary(report: &Report) -> String {
    let count = |test: &dyn Fn(&Finding) -> bool| report.findings.iter().filter(|f| test(f)).count();
    let mut line = match &report.verdict {
        Verdict::Clean(why) => format!("{}: clean ({why})", report.file),
        Verdict::Unknown(why) => format!("{}: unknown ({why})", report.file),
        Verdict::Found => {
            // Suspects have a count of their own, unless there is nothing else: the published analyses only suspect.
            let confirmed = |f: &Finding| !f.benign && f.grade == Grade::Confirmed;
            let (all, sure) = (report.serious(), count(&confirmed));
            let kinds = [Kind::Race, Kind::Deadlock, Kind::Livelock, Kind::UnretriedCas, Kind::Error];
            let words: Vec<String> = kinds
                .iter()
                .map(|&kind| {
                    (count(&|f| f.kind == kind && !f.benign && (sure == 0 || confirmed(f))), kind.title())
                })
                .filter(|(count, _)| *count > 0)
                .map(|(count, title)| format!("{count} {title}{}", if count == 1 { "" } else { "s" }))
                .collect();
            let mut line = format!("{}: {}", report.file, words.join(", "));
            if sure > 0 && all > sure {
                let _ = write!(line, "; {} suspected", all - sure);
            }
            line
        }
    };
    let benign = count(&|f| f.benign);
    if benign > 0 {
        let _ = write!(line, "; {benign} benign race{}", if benign == 1 { "" } else { "s" });
    }
    line
}

/// What `--stats` prints.
pub fn phases(report: &Report) -> String {
    let mut out = format!("{:<24} {:>9} {:>9} {:>9}  outcome\n", "phase", "states", "edges", "seconds");
    for phase in &report.phases {
        let _ = write!(
            out,
            "{:<24} {:>9} {:>9} {:>9.4}  {}",
            phase.name, phase.states, phase.edges, phase.seconds, phase.outcome
        );
        let _ = match &phase.incomplete {
            Some(reason) => writeln!(out, " (incomplete: {reason})"),
            None => writeln!(out),
        };
    }
    out
}
