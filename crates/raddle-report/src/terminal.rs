//! A finding as rustc would print it: one title, an excerpt of the source for each party, stacks, locks, notes, and the
//! command that makes it happen again.

use crate::sources::{Source, Sources};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use raddle_findings::{Finding, Frame, Grade, HeldLock, Party, kind_name};
use std::rc::Rc;

/// Calls of a stack that are shown; the rest is counted.
const FRAMES_MAX: usize = 16;

/// How to print.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub color: bool,
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Style { color: false, width: 110 }
    }
}

/// Something to point at in a source file.
struct Mark {
    line: u32,
    column: Option<u32>,
    label: String,
    primary: bool,
}

/// Marks of one file, in order of first mention.
struct Excerpt {
    file: String,
    source: Option<Rc<Source>>,
    marks: Vec<Mark>,
}

/// Renders one finding.
pub fn render(finding: &Finding, sources: &mut Sources, style: Style) -> String {
    let level = match finding.grade {
        Grade::Confirmed => Level::ERROR,
        Grade::Predicted => Level::WARNING,
        Grade::Suspected => Level::NOTE.with_name("suspicion"),
    };
    let excerpts = excerpts(finding, sources);
    let kind = kind_name(finding.kind);
    let mut group = Group::with_title(level.primary_title(finding.message.as_str()).id(kind));
    for excerpt in &excerpts {
        group = show_excerpt(group, excerpt);
    }
    for text in notes(finding) {
        group = group.element(Level::NOTE.message(text));
    }
    for text in helps(finding) {
        group = group.element(Level::HELP.message(text));
    }
    let renderer = if style.color { Renderer::styled() } else { Renderer::plain() };
    let mut text = renderer.term_width(style.width).render(&[group]);
    text.push('\n');
    text
}

fn excerpts(finding: &Finding, sources: &mut Sources) -> Vec<Excerpt> {
    let mut list: Vec<Excerpt> = Vec::new();
    let mut mark = |frame: &Frame, label: String, primary: bool| {
        let (Some(file), Some(line)) = (&frame.file, frame.line) else { return };
        let ix = list.iter().position(|excerpt| excerpt.file == *file).unwrap_or_else(|| {
            list.push(Excerpt { file: file.clone(), source: sources.get(file), marks: Vec::new() });
            list.len() - 1
        });
        let marks = &mut list[ix].marks;
        match marks.iter_mut().find(|mark| mark.line == line && mark.column == frame.column) {
            Some(same) => {
                same.label = format!("{}; {label}", same.label);
                same.primary |= primary;
            }
            None => marks.push(Mark { line, column: frame.column, label, primary }),
        }
    };
    for party in &finding.parties {
        if let Some(frame) = known_place(&party.stack) {
            mark(frame, format!("thread {} {}", party.thread, party.action), true);
        }
        for held in &party.locks {
            if let Some(frame) = known_place(&held.acquired) {
                mark(frame, format!("thread {} acquired `{}` here", party.thread, held.lock), false);
            }
        }
    }
    list
}

fn known_place(stack: &[Frame]) -> Option<&Frame> {
    stack.iter().find(|frame| frame.file.is_some() && frame.line.is_some())
}

fn show_excerpt<'a>(group: Group<'a>, excerpt: &'a Excerpt) -> Group<'a> {
    let Some(source) = &excerpt.source else { return show_places(group, excerpt) };
    let mut snippet = Snippet::source(source.text.as_str()).path(excerpt.file.as_str());
    let mut shown = 0;
    for mark in &excerpt.marks {
        if let Some(span) = source.span(mark.line, mark.column) {
            let kind = if mark.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
            snippet = snippet.annotation(kind.span(span).label(mark.label.as_str()));
            shown += 1;
        }
    }
    // A file that is shorter than the place in it has changed since.
    if shown < excerpt.marks.len() { show_places(group, excerpt) } else { group.element(snippet) }
}

/// Without a source there are still the places; the notes tell what happens there.
fn show_places<'a>(mut group: Group<'a>, excerpt: &'a Excerpt) -> Group<'a> {
    for mark in &excerpt.marks {
        let mut origin = Origin::path(excerpt.file.as_str()).line(mark.line as usize);
        if let Some(column) = mark.column {
            origin = origin.char_column(column as usize);
        }
        group = group.element(origin);
    }
    group
}

fn notes(finding: &Finding) -> Vec<String> {
    let mut notes: Vec<String> = finding.parties.iter().map(stack_note).collect();
    if !finding.objects.is_empty() {
        let names: Vec<String> = finding.objects.iter().map(|object| format!("`{object}`")).collect();
        notes.push(format!("concerns {}", names.join(", ")));
    }
    notes.extend(finding.notes.iter().cloned());
    let grade = match finding.grade {
        Grade::Confirmed => "confirmed: it was made to happen, or was observed",
        Grade::Predicted => {
            "predicted: a schedule exists in the model of the trace, it was not made to happen"
        }
        Grade::Suspected => "suspected: the detector is imprecise by design",
    };
    notes.push(format!("finding {}, {grade}; found by {}", finding.id, finding.by));
    notes
}

fn helps(finding: &Finding) -> Vec<String> {
    match (&finding.schedule, finding.grade) {
        (Some(schedule), Grade::Confirmed) => {
            vec![format!("make it happen again: raddle replay {schedule}")]
        }
        (Some(schedule), _) => vec![format!("try the predicted schedule: raddle replay {schedule}")],
        (None, _) => Vec::new(),
    }
}

fn stack_note(party: &Party) -> String {
    let mut text = format!("thread {} {}", party.thread, party.action);
    text.push_str(&stack_lines(&party.stack));
    match party.locks.as_slice() {
        [] => {}
        locks => {
            let held: Vec<String> = locks.iter().map(held_text).collect();
            text.push_str(&format!("\nholding {}", held.join(", ")));
        }
    }
    text
}

fn held_text(held: &HeldLock) -> String {
    match known_place(&held.acquired) {
        Some(frame) => format!("`{}` (acquired at {})", held.lock, place(frame)),
        None => format!("`{}`", held.lock),
    }
}

fn stack_lines(stack: &[Frame]) -> String {
    let mut text = String::new();
    for (depth, frame) in stack.iter().take(FRAMES_MAX).enumerate() {
        let name = frame.function.as_deref().or(frame.raw.as_deref()).unwrap_or("?");
        text.push_str(&format!("\n  #{depth} {name}"));
        if frame.file.is_some() {
            text.push_str(&format!(" at {}", place(frame)));
        } else if let (Some(_), Some(raw)) = (&frame.function, &frame.raw) {
            text.push_str(&format!(" ({raw})"));
        }
    }
    if stack.len() > FRAMES_MAX {
        text.push_str(&format!("\n  ... and {} more calls", stack.len() - FRAMES_MAX));
    }
    text
}

fn place(frame: &Frame) -> String {
    let file = frame.file.as_deref().unwrap_or("?");
    match (frame.line, frame.column) {
        (Some(line), Some(column)) => format!("{file}:{line}:{column}"),
        (Some(line), None) => format!("{file}:{line}"),
        (None, _) => file.to_owned(),
    }
}
