//! What the user is told when something is wrong, and where.
//!
//! Every stage (lexer, parser, resolver, type checker, evaluator) reports through [`Diagnostic`]: one sentence that
//! says what is wrong, one place it is wrong at, further labelled places that explain it, and notes that say what to
//! do next. Rendering goes through annotate-snippets, so it looks like the compiler messages people know.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::source::{SourceMap, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
}

/// Which stage refused; part of `--json` output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Syntax,
    Names,
    Types,
    Evaluation,
}

impl Stage {
    pub fn name(self) -> &'static str {
        match self {
            Stage::Syntax => "syntax",
            Stage::Names => "names",
            Stage::Types => "types",
            Stage::Evaluation => "evaluation",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub stage: Stage,
    pub message: String,
    pub span: Span,
    /// What is said directly under the place; may be empty.
    pub label: String,
    pub more: Vec<(Span, String)>,
    pub notes: Vec<String>,
}

impl Diagnostic {
    pub fn error(stage: Stage, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            stage,
            message: message.into(),
            span,
            label: String::new(),
            more: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub fn warning(stage: Stage, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(stage, span, message) }
    }

    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    pub fn also(mut self, span: Span, label: impl Into<String>) -> Diagnostic {
        self.more.push((span, label.into()));
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Renders diagnostics, with or without colours.
pub fn render(sources: &SourceMap, diagnostics: &[Diagnostic], color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for diagnostic in diagnostics {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&renderer.render(&[group(sources, diagnostic)]));
        out.push('\n');
    }
    out
}

fn group<'a>(sources: &'a SourceMap, diagnostic: &'a Diagnostic) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(diagnostic.message.as_str()));
    let main = sources.file(diagnostic.span.file);
    let mut snippet = Snippet::source(main.text.as_str()).path(main.name.as_str()).annotation(
        AnnotationKind::Primary.span(clip(&main.text, diagnostic.span)).label(diagnostic.label.as_str()),
    );
    for (span, label) in diagnostic.more.iter().filter(|(span, _)| span.file == diagnostic.span.file) {
        snippet =
            snippet.annotation(AnnotationKind::Context.span(clip(&main.text, *span)).label(label.as_str()));
    }
    group = group.element(snippet);
    for (span, label) in diagnostic.more.iter().filter(|(span, _)| span.file != diagnostic.span.file) {
        let file = sources.file(span.file);
        group = group.element(
            Snippet::source(file.text.as_str())
                .path(file.name.as_str())
                .annotation(AnnotationKind::Context.span(clip(&file.text, *span)).label(label.as_str())),
        );
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    group
}

/// Brings a range into the text and onto character boundaries, because the renderer slices with it.
fn clip(text: &str, span: Span) -> std::ops::Range<usize> {
    let mut start = (span.start as usize).min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = (span.end as usize).clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn renders_like_a_compiler() {
        let mut map = SourceMap::default();
        let file = map.add("a.csp", "P = a -> Q\nQ = 3\n");
        let diagnostic = Diagnostic::error(Stage::Types, Span::new(file, 9, 10), "expected a process")
            .label("this is an `Int`")
            .also(Span::new(file, 11, 12), "`Q` is defined here")
            .note("a prefix continues with a process");
        expect![[r#"
            error: expected a process
             --> a.csp:1:10
              |
            1 | P = a -> Q
              |          ^ this is an `Int`
            2 | Q = 3
              | - `Q` is defined here
              |
              = note: a prefix continues with a process
        "#]]
        .assert_eq(&render(&map, &[diagnostic], false));
    }

    #[test]
    fn survives_ranges_outside_the_text() {
        let mut map = SourceMap::default();
        let file = map.add("a.csp", "\u{e9}");
        let diagnostic = Diagnostic::error(Stage::Syntax, Span::new(file, 1, 900), "odd");
        assert!(render(&map, &[diagnostic], false).contains("odd"));
    }
}
