//! Source files for excerpts.
//!
//! Debug information names files as the compiler saw them; the tree may have moved since. A file is looked for under its
//! own name, then below the given folders with ever shorter tails of its path. What is found is read once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Larger files get no excerpt.
const SOURCE_BYTES_MAX: u64 = 16 << 20;

/// Finds and keeps source files.
pub struct Sources {
    roots: Vec<PathBuf>,
    files: HashMap<String, Option<Rc<Source>>>,
}

/// A source file and where its lines begin.
pub struct Source {
    pub text: String,
    starts: Vec<usize>,
}

impl Source {
    fn new(text: String) -> Source {
        let after_newlines =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(after_newlines).collect();
        Source { text, starts }
    }

    /// The bytes that a place stands for: from the column to the end of the word there, or the line without its margins.
    pub fn span(&self, line: u32, column: Option<u32>) -> Option<std::ops::Range<usize>> {
        let index = (line as usize).checked_sub(1)?;
        let start = *self.starts.get(index)?;
        let end = self.starts.get(index + 1).map_or(self.text.len(), |next| next - 1);
        let text = self.text[start..end].trim_end();
        if let Some(offset) = column.and_then(|column| (column as usize).checked_sub(1))
            && let Some(rest) = text.get(offset..)
            && !rest.is_empty()
        {
            let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let first = rest.chars().next().map_or(1, char::len_utf8);
            return Some(start + offset..start + offset + word.max(first));
        }
        let margin = text.len() - text.trim_start().len();
        (margin < text.len()).then(|| start + margin..start + text.len())
    }
}

impl Sources {
    pub fn new(roots: Vec<PathBuf>) -> Sources {
        Sources { roots, files: HashMap::new() }
    }

    pub fn get(&mut self, file: &str) -> Option<Rc<Source>> {
        if let Some(known) = self.files.get(file) {
            return known.clone();
        }
        let found =
            self.candidates(file).iter().find_map(|path| read(path)).map(|text| Rc::new(Source::new(text)));
        self.files.insert(file.to_owned(), found.clone());
        found
    }

    fn candidates(&self, file: &str) -> Vec<PathBuf> {
        let path = Path::new(file);
        let mut candidates = vec![path.to_owned()];
        let parts: Vec<_> =
            path.components().filter(|part| matches!(part, std::path::Component::Normal(_))).collect();
        for root in &self.roots {
            for skip in 0..parts.len() {
                candidates.push(root.join(parts[skip..].iter().collect::<PathBuf>()));
            }
        }
        candidates
    }
}

fn read(path: &Path) -> Option<String> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > SOURCE_BYTES_MAX {
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_words_or_trimmed_lines() {
        let source = Source::new("int x;\n    balance += amount;  \n\n}\n".into());
        let text = |line, column| source.span(line, column).map(|span| &source.text[span]);
        assert_eq!(text(2, Some(5)), Some("balance"));
        assert_eq!(text(2, Some(13)), Some("+"));
        assert_eq!(text(2, None), Some("balance += amount;"));
        assert_eq!(text(2, Some(999)), Some("balance += amount;"));
        assert_eq!(text(3, None), None);
        assert_eq!(text(0, None), None);
        assert_eq!(text(99, None), None);
    }

    #[test]
    fn moved_trees_are_found_by_the_tail_of_the_path() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/bank.c"), "int x;\n").unwrap();
        let mut sources = Sources::new(vec![folder.path().to_owned()]);
        assert_eq!(sources.get("/build/elsewhere/src/bank.c").unwrap().text, "int x;\n");
        assert!(sources.get("/build/elsewhere/src/none.c").is_none());
    }
}
