//! Source files and places in them.
//!
//! A script is one file plus everything it includes. All of them live in one [`SourceMap`], so that a place is a
//! small `Copy` value ([`Span`]: file and byte range) that every later stage can carry about and that only becomes
//! "file, line, column" when a diagnostic is shown.

/// A file of a [`SourceMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A byte range in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    pub file: FileId,
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(file: FileId, start: usize, end: usize) -> Span {
        debug_assert!(start <= end);
        Span { file, start: start as u32, end: end as u32 }
    }

    /// The smallest range that covers both; they have to be in one file, otherwise the first wins.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// Longest script in bytes: offsets are 32 bits wide.
pub const SOURCE_BYTES_MAX: usize = 256 << 20;

#[derive(Clone, Debug)]
pub struct SourceFile {
    pub name: String,
    pub text: String,
}

#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let text = text.into();
        assert!(text.len() <= SOURCE_BYTES_MAX, "callers check the size of a file before they add it");
        self.files.push(SourceFile { name: name.into(), text });
        FileId((self.files.len() - 1) as u32)
    }

    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    pub fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    pub fn slice(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// Line and column of the start of a place, both counted from one; columns count characters.
    pub fn line_column(&self, span: Span) -> (usize, usize) {
        let text = &self.file(span.file).text;
        let before = text.get(..span.start as usize).unwrap_or(text);
        let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }

    /// `file:line:column`, the form editors understand.
    pub fn place(&self, span: Span) -> String {
        let (line, column) = self.line_column(span);
        format!("{}:{line}:{column}", self.file(span.file).name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lines_and_characters_from_one() {
        let mut map = SourceMap::default();
        let file = map.add("a.csp", "P = STOP\nQ = \u{e9} R");
        assert_eq!(map.line_column(Span::new(file, 0, 1)), (1, 1));
        assert_eq!(map.line_column(Span::new(file, 16, 17)), (2, 7));
        assert_eq!(map.place(Span::new(file, 9, 10)), "a.csp:2:1");
    }
}
