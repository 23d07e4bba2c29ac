//! Where a piece of program text stands.
//!
//! A [`Span`] is a half-open byte range of the one file under analysis. Code that the expander takes from the
//! built-in prelude carries [`Span::PRELUDE`], which lies in no file; whoever prints a place asks
//! [`Source::place`] and gets a line and a column, or the word `prelude`.

/// Half-open byte range in the source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// The place of every expression of the prelude.
    pub const PRELUDE: Span = Span { start: u32::MAX, end: u32::MAX };

    pub fn new(start: usize, end: usize) -> Span {
        debug_assert!(start <= end && end < u32::MAX as usize);
        Span { start: start as u32, end: end as u32 }
    }

    pub fn is_prelude(self) -> bool {
        self == Span::PRELUDE
    }
}

/// The largest file that is read; offsets are 32 bit and one value is reserved.
pub const SOURCE_BYTES_MAX: usize = 1 << 30;

/// A named text with its line starts.
#[derive(Clone, Debug)]
pub struct Source {
    pub name: String,
    pub text: String,
    line_starts: Vec<u32>,
}

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        let text = text.into();
        let mut line_starts = vec![0];
        line_starts.extend(
            text.bytes()
                .enumerate()
                .filter(|&(at, byte)| byte == b'\n' && at < SOURCE_BYTES_MAX)
                .map(|(at, _)| at as u32 + 1),
        );
        Source { name: name.into(), text, line_starts }
    }

    /// One-based line and column (in characters) of an offset.
    pub fn line_column(&self, offset: u32) -> (usize, usize) {
        let line = self.line_starts.partition_point(|&start| start <= offset) - 1;
        let start = self.line_starts[line] as usize;
        let end = (offset as usize).min(self.text.len());
        let column = self.text.get(start..end).map_or(end - start, |s| s.chars().count());
        (line + 1, column + 1)
    }

    /// `line:column`, or `prelude`.
    pub fn place(&self, span: Span) -> String {
        if span.is_prelude() {
            return "prelude".to_owned();
        }
        let (line, column) = self.line_column(span.start);
        format!("{line}:{column}")
    }

    /// The whole lines that two offsets stand in and those between them: bytes, and the number of the first.
    pub fn lines(&self, from: usize, to: usize) -> (std::ops::Range<usize>, usize) {
        let line = |offset: usize| self.line_starts.partition_point(|&start| start as usize <= offset) - 1;
        let (first, last) = (line(from), line(to.max(from)));
        let end = self.line_starts.get(last + 1).map_or(self.text.len(), |&start| start as usize);
        (self.line_starts[first] as usize..end, first + 1)
    }

    /// The text of a span on one line, shortened to at most `max` characters.
    pub fn excerpt(&self, span: Span, max: usize) -> String {
        if span.is_prelude() {
            return "prelude".to_owned();
        }
        let raw = self.text.get(span.start as usize..span.end as usize).unwrap_or("");
        let mut out = String::new();
        for word in raw.split_whitespace() {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(word);
            if out.chars().count() > max {
                let kept: String = out.chars().take(max.saturating_sub(1)).collect();
                return kept + "…";
            }
        }
        out
    }
}

/// What is wrong with a program, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    pub span: Span,
    pub message: String,
    pub help: Option<String>,
}

impl SyntaxError {
    pub fn new(span: Span, message: impl Into<String>) -> SyntaxError {
        SyntaxError { span, message: message.into(), help: None }
    }

    pub fn help(mut self, help: impl Into<String>) -> SyntaxError {
        self.help = Some(help.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_not_bytes() {
        let source = Source::new("x.scm", "a\nλ b\n");
        assert_eq!(source.line_column(0), (1, 1));
        assert_eq!(source.line_column(2), (2, 1));
        assert_eq!(source.line_column(5), (2, 3), "λ is two bytes and one column");
        assert_eq!(source.place(Span::PRELUDE), "prelude");
    }

    #[test]
    fn lines_are_whole() {
        let source = Source::new("x.scm", "ab\ncd\nef");
        assert_eq!(source.lines(1, 1), (0..3, 1));
        assert_eq!(source.lines(4, 7), (3..8, 2));
        assert_eq!(source.lines(8, 8), (6..8, 3));
    }

    #[test]
    fn excerpts_fit_on_one_line() {
        let source = Source::new("x.scm", "(begin\n   1\n   2)");
        assert_eq!(source.excerpt(Span::new(0, 17), 40), "(begin 1 2)");
        assert_eq!(source.excerpt(Span::new(0, 17), 8), "(begin …");
    }
}
