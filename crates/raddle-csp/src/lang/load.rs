//! Reading a script with everything it includes.

use std::path::{Path, PathBuf};

use super::ast::{Ast, Decl, DeclId};
use super::diagnostic::{Diagnostic, Stage};
use super::parser::parse_file;
use super::source::{FileId, SOURCE_BYTES_MAX, SourceMap, Span};

/// Deepest chain of includes.
pub const INCLUDE_DEPTH_MAX: usize = 32;
/// Most files of one script.
pub const FILES_MAX: usize = 1_000;

/// Where the text of a file comes from; tests and editors keep them in memory.
pub trait Files {
    fn read(&self, path: &Path) -> Result<String, String>;
}

/// The file system.
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> Result<String, String> {
        let size = std::fs::metadata(path).map_err(|e| e.to_string())?.len();
        if size > SOURCE_BYTES_MAX as u64 {
            return Err(format!("it has {size} bytes; at most {SOURCE_BYTES_MAX} are read"));
        }
        Ok(decode(std::fs::read(path).map_err(|e| e.to_string())?))
    }
}

/// The text of a script: UTF-8, or Latin-1, because old scripts have accents in their comments, one byte each.
pub fn decode(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| e.as_bytes().iter().map(|&b| char::from(b)).collect())
}

/// The bytes of a text in the encoding that `original` had.
pub fn encode(text: &str, original: &[u8]) -> Vec<u8> {
    if std::str::from_utf8(original).is_ok() {
        return text.as_bytes().to_vec();
    }
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
}

#[derive(Debug, Default)]
pub struct Loaded {
    pub sources: SourceMap,
    pub ast: Ast,
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses a text that is already in memory; includes are relative to `name`.
pub fn load_text(files: &dyn Files, name: &str, text: impl Into<String>) -> Loaded {
    let mut loader = Loader { files, loaded: Loaded::default(), open: vec![PathBuf::from(name)] };
    let file = loader.loaded.sources.add(name, text);
    let top = loader.file(file);
    loader.loaded.ast.top = top;
    loader.loaded
}

struct Loader<'a> {
    files: &'a dyn Files,
    loaded: Loaded,
    /// The chain of files being read, outermost first.
    open: Vec<PathBuf>,
}

impl Loader<'_> {
    fn file(&mut self, file: FileId) -> Vec<DeclId> {
        let text = self.loaded.sources.file(file).text.clone();
        let (decls, diagnostics) = parse_file(&mut self.loaded.ast, file, &text);
        self.loaded.diagnostics.extend(diagnostics);
        self.splice(decls)
    }

    /// Replaces includes by the declarations of the included files, also inside timed sections and modules.
    fn splice(&mut self, decls: Vec<DeclId>) -> Vec<DeclId> {
        let mut out = Vec::with_capacity(decls.len());
        for id in decls {
            match self.loaded.ast.decl(id).clone() {
                Decl::Include { path } => out.extend(self.include(&path, self.loaded.ast.decl_span(id))),
                Decl::Timed { duration, decls } => {
                    let decls = self.splice(decls);
                    *self.loaded.ast.decl_mut(id) = Decl::Timed { duration, decls };
                    out.push(id);
                }
                Decl::Module { name, params, private, public } => {
                    let private = self.splice(private);
                    let public = self.splice(public);
                    *self.loaded.ast.decl_mut(id) = Decl::Module { name, params, private, public };
                    out.push(id);
                }
                _ => out.push(id),
            }
        }
        out
    }

    /// Where FDR looks for an included file is beside the script it was started with (libcspm, `CSPM.Parser.Monad`); many
    /// collections of scripts were written for tools that look beside the including file, so that is tried next.
    fn located(&mut self, path: &str, span: Span) -> (PathBuf, Result<String, String>) {
        let beside = |file: Option<&PathBuf>| {
            let folder = file.and_then(|f| f.parent()).unwrap_or(Path::new(""));
            folder.join(path)
        };
        let (root, own) = (beside(self.open.first()), beside(self.open.last()));
        let found = self.files.read(&root);
        if root == own {
            return (root, found);
        }
        match (found, self.files.read(&own)) {
            (Ok(text), Ok(other)) => {
                let differ = if text == other { "" } else { ", and they differ" };
                let message = format!("`{path}` is found in two places{differ}");
                self.loaded.diagnostics.push(
                    Diagnostic::warning(Stage::Syntax, span, message).note(format!(
                        "`{}` is taken, as FDR does; not `{}`",
                        root.display(),
                        own.display()
                    )),
                );
                (root, Ok(text))
            }
            (Ok(text), Err(_)) => (root, Ok(text)),
            (Err(_), other) => (own, other),
        }
    }

    fn include(&mut self, path: &str, span: Span) -> Vec<DeclId> {
        let (full, text) = self.located(path, span);
        let refuse = |message: String| Diagnostic::error(Stage::Syntax, span, message);
        if self.open.contains(&full) {
            self.loaded.diagnostics.push(refuse(format!("`{}` includes itself", full.display())));
            return Vec::new();
        }
        if self.open.len() >= INCLUDE_DEPTH_MAX || self.loaded.sources.files().count() >= FILES_MAX {
            self.loaded.diagnostics.push(
                refuse("too many files are included".into())
                    .note(format!("at most {INCLUDE_DEPTH_MAX} levels and {FILES_MAX} files are read")),
            );
            return Vec::new();
        }
        match text {
            Ok(text) => {
                let file = self.loaded.sources.add(full.display().to_string(), text);
                self.open.push(full);
                let decls = self.file(file);
                self.open.pop();
                decls
            }
            Err(cause) => {
                self.loaded.diagnostics.push(
                    refuse(format!("cannot read `{}`: {cause}", full.display())).note(
                        "paths are relative to the script that is checked, or to the file that includes",
                    ),
                );
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Memory(&'static [(&'static str, &'static str)]);

    impl Files for Memory {
        fn read(&self, path: &Path) -> Result<String, String> {
            let found = self.0.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "no such file".to_owned())
        }
    }

    #[test]
    fn includes_are_spliced_relative_to_the_including_file() {
        let files = Memory(&[("d/b.csp", "include \"c.csp\"\nQ = R"), ("d/c.csp", "R = STOP")]);
        let loaded = load_text(&files, "a.csp", "include \"d/b.csp\"\nP = Q");
        assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
        assert_eq!(loaded.ast.top.len(), 3);
    }

    /// libcspm, `CSPM.Parser.Monad`: the folder of the root script comes first.
    #[test]
    fn includes_are_looked_for_beside_the_root_script_first() {
        let files = Memory(&[
            ("d/b.csp", "include \"c.csp\"\nQ = R"),
            ("d/c.csp", "R = STOP"),
            ("c.csp", "R = SKIP"),
        ]);
        let loaded = load_text(&files, "a.csp", "include \"d/b.csp\"\nP = Q");
        let messages: Vec<_> = loaded.diagnostics.iter().map(|d| d.message.as_str()).collect();
        assert_eq!(messages, ["`c.csp` is found in two places, and they differ"]);
        assert!(!loaded.diagnostics[0].is_error());
        let names: Vec<_> = loaded.sources.files().map(|f| f.name.to_string()).collect();
        assert_eq!(names, ["a.csp", "d/b.csp", "c.csp"]);
    }

    #[test]
    fn latin_1_stays_latin_1() {
        let bytes = b"-- caf\xe9\nP = STOP\n".to_vec();
        assert_eq!(decode(bytes.clone()), "-- caf\u{e9}\nP = STOP\n");
        assert_eq!(encode(&decode(bytes.clone()), &bytes), bytes);
        let utf8 = "-- caf\u{e9}\n".as_bytes().to_vec();
        assert_eq!(encode(&decode(utf8.clone()), &utf8), utf8);
    }

    #[test]
    fn cycles_and_missing_files_are_reported() {
        let files = Memory(&[("b.csp", "include \"a.csp\"")]);
        let loaded = load_text(&files, "a.csp", "include \"b.csp\"\ninclude \"c.csp\"");
        let messages: Vec<_> = loaded.diagnostics.iter().map(|d| d.message.as_str()).collect();
        assert_eq!(messages, ["`a.csp` includes itself", "cannot read `c.csp`: no such file"]);
    }
}
