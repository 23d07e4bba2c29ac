//! What is wrong with a file of aspects, and what to do about it.

use super::Span;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing keeps this from working, but it may not be what was meant.
    Warning,
    Error,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub span: Span,
    /// The cause.
    pub message: String,
    /// The next thing to do.
    pub help: Option<String>,
}

impl Diagnostic {
    pub fn error(span: &Span, message: impl Into<String>, help: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            span: span.clone(),
            message: message.into(),
            help: Some(help.into()),
        }
    }

    pub fn warning(span: &Span, message: impl Into<String>, help: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(span, message, help) }
    }

    /// As rustc shows it: the line, the place in it, the cause, the next step.
    pub fn render(&self, path: &str, text: &str, color: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut start = self.span.0.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let mut end = self.span.0.end.clamp(start, text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        let snippet =
            Snippet::source(text).path(path).annotation(AnnotationKind::Primary.span(start..end).label(""));
        let title = level.primary_title(self.message.as_str()).element(snippet);
        let help =
            self.help.as_ref().map(|help| Group::with_title(Level::HELP.secondary_title(help.as_str())));
        let groups: Vec<Group> = std::iter::once(title).chain(help).collect();
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&groups)
    }
}
