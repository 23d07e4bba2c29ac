//! A finding as rustc would print it: one title, an excerpt of the source for each party, stacks, locks, how it is known, and
//! the command that makes it happen again.
//!
//! Labels point at the first frame of the user's own code, whatever library it called. What does not fit the width is
//! wrapped between words; only single words, lines of the source and the labels below them may be wider.

use crate::sources::{Source, Sources};
use crate::stack;
use crate::text::{count, printable};
use crate::wording::{English, held, place};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use raddle_findings::{Action, Finding, Frame, Grade, Party, Place, Wait, Wording, headline_frame};
use std::rc::Rc;

/// Columns before the text of a note: `   = note: `, with line numbers of up to four digits.
const NOTE_MARGIN: usize = 13;
/// Columns of a title beside its text and its kind: `suspicion[]: `.
const TITLE_MARGIN: usize = 13;
/// Narrower terminals are treated as if they were this wide.
const WIDTH_MIN: usize = 40;

/// Parties that are shown: a crash has one for every thread of the process.
const PARTIES_MAX: usize = 8;
/// Parties that are named beside one place in the source.
const LABELS_MAX: usize = 3;

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub color: bool,
    pub width: usize,
    /// All frames of libraries, and what only somebody who knows the analyses wants to know.
    pub verbose: bool,
}

impl Default for Style {
    fn default() -> Self {
        Style { color: false, width: 110, verbose: false }
    }
}

/// Something to point at in a source file.
struct Mark {
    line: u32,
    column: Option<u32>,
    label: String,
    /// How many parties the label speaks of.
    labels: usize,
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
    let english = English { verbose: style.verbose };
    let width = style.width.max(WIDTH_MIN);
    let level = match finding.grade() {
        Grade::Confirmed | Grade::Observed | Grade::Unordered => Level::ERROR,
        Grade::Predicted => Level::WARNING,
        Grade::Suspected => Level::NOTE.with_name("suspicion"),
    };
    let excerpts = excerpts(finding, sources, &english);
    let title = wrap(&english.headline(finding), width, finding.kind.name().len() + TITLE_MARGIN);
    let mut group = Group::with_title(level.primary_title(title).id(finding.kind.name()));
    for excerpt in &excerpts {
        group = show_excerpt(group, excerpt);
    }
    for text in notes(finding, &english) {
        group = group.element(Level::NOTE.message(wrap(&text, width, NOTE_MARGIN)));
    }
    if finding.schedule.is_some() {
        group = group.element(Level::HELP.message(format!("raddle replay {}", printable(&finding.id))));
    }
    let last = format!("finding {}, found by `{}`", printable(&finding.id), printable(&finding.by));
    group = group.element(Level::NOTE.message(wrap(&last, width, NOTE_MARGIN)));
    let renderer = if style.color { Renderer::styled() } else { Renderer::plain() };
    let mut text = renderer.term_width(width).render(&[group]);
    text.push('\n');
    text
}

/// Wraps each line of a text; continued lines are indented as the line itself.
fn wrap(text: &str, width: usize, margin: usize) -> String {
    let lines = text.lines().map(|line| {
        let indent = &line[..line.len() - line.trim_start().len()];
        let options = textwrap::Options::new(width.saturating_sub(margin).max(20))
            .subsequent_indent(indent)
            .break_words(false)
            .word_splitter(textwrap::WordSplitter::NoHyphenation)
            .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit);
        textwrap::fill(line, options)
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn excerpts(finding: &Finding, sources: &mut Sources, english: &English) -> Vec<Excerpt> {
    let mut list: Vec<Excerpt> = Vec::new();
    let mut mark = |stack: &[Frame], label: String, primary: bool| {
        let Some(frame) = headline_frame(stack) else { return };
        let (Some(file), Some(line)) = (&frame.file, frame.line) else { return };
        let shown = printable(file);
        let ix = list.iter().position(|excerpt| excerpt.file == shown).unwrap_or_else(|| {
            list.push(Excerpt { file: shown, source: sources.get(file), marks: Vec::new() });
            list.len() - 1
        });
        let marks = &mut list[ix].marks;
        match marks.iter_mut().find(|mark| mark.line == line && mark.column == frame.column) {
            Some(same) if same.label == label => {}
            Some(same) => {
                same.labels += 1;
                match same.labels {
                    ..=LABELS_MAX => same.label = format!("{}; {label}", same.label),
                    at if at == LABELS_MAX + 1 => same.label.push_str("; and more"),
                    _ => {}
                }
                same.primary |= primary;
            }
            None => marks.push(Mark { line, column: frame.column, label, labels: 1, primary }),
        }
    };
    for party in shown(finding, english) {
        mark(&party.stack, label(party, english), true);
        // A thread that is gone has no stack; it has a beginning.
        if let (None, Some(creation)) = (headline_frame(&party.stack), &party.created) {
            mark(&creation.stack, english.created(party, creation), true);
        }
        for held in &party.locks {
            mark(&held.acquired, english.acquired(party, held), false);
        }
    }
    for object in &finding.objects {
        if let Place::Heap { allocated: Some(allocation), .. } = &object.place {
            mark(&allocation.stack, english.allocated(object, allocation), false);
        }
    }
    list
}

/// A party beside its line, in few words: the title names the object, and the notes below introduce the thread and say who
/// holds what it waits for.
fn label(party: &Party, english: &English) -> String {
    let mut brief = Party::new(party.thread.clone(), party.action.clone(), Vec::new());
    match &mut brief.action {
        Action::Accesses { object, vptr: false, .. } => *object = None,
        Action::Waits { wait, holder, .. } if *wait != Wait::ThreadEnd => *holder = None,
        _ => {}
    }
    format!("{} {}", crate::wording::thread(&party.thread), english.action(&brief))
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

/// The parties that are shown.
fn shown<'a>(finding: &'a Finding, english: &English) -> &'a [Party] {
    let most = if english.verbose { usize::MAX } else { PARTIES_MAX };
    &finding.parties[..finding.parties.len().min(most)]
}

fn notes(finding: &Finding, english: &English) -> Vec<String> {
    let parties = shown(finding, english);
    let mut notes: Vec<String> = parties.iter().map(|party| party_note(party, english)).collect();
    if let Ok(more @ 1..) = u64::try_from(finding.parties.len() - parties.len()) {
        notes.push(format!("{} not shown; `-v` shows all", count(more, "more thread")));
    }
    notes.extend(english.notes(finding));
    notes
}

fn party_note(party: &Party, english: &English) -> String {
    let mut text = format!("{} {}", english.thread(party), english.action(party));
    text.push_str(&stack::lines(&party.stack, english.verbose));
    for lock in &party.locks {
        text.push_str(&format!("\nholding {}", held(lock)));
    }
    if let Some(creation) = &party.created {
        let by = crate::wording::thread(&creation.by);
        match headline_frame(&creation.stack) {
            Some(frame) => text.push_str(&format!("\ncreated by {by} at {}", place(frame))),
            None => text.push_str(&format!("\ncreated by {by}")),
        }
        if english.verbose {
            text.push_str(&stack::lines(&creation.stack, true));
        }
    }
    text
}
