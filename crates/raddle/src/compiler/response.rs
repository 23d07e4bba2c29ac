//! Response files: `@file` stands for the arguments written in that file.
//!
//! The syntax is the one gcc and clang share: arguments are separated by white space; single or double quotes keep white
//! space together; a backslash takes the next character as it is. A file that cannot be read is not an error: the
//! argument then means itself. Files may name further files; [`DEPTH_MAX`] ends a circle.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// How deep response files may name each other. Build systems use one level.
const DEPTH_MAX: u32 = 16;

/// Replaces every readable `@file` by what it contains.
pub fn expand(arguments: &[OsString]) -> Vec<OsString> {
    let mut expanded = Vec::with_capacity(arguments.len());
    for argument in arguments {
        expand_into(argument, DEPTH_MAX, &mut expanded);
    }
    expanded
}

fn expand_into(argument: &OsStr, depth: u32, expanded: &mut Vec<OsString>) {
    let bytes = argument.as_bytes();
    if let Some(path) = bytes.strip_prefix(b"@")
        && depth > 0
        && let Ok(contents) = std::fs::read(OsStr::from_bytes(path))
    {
        for word in split(&contents) {
            expand_into(&word, depth - 1, expanded);
        }
    } else {
        expanded.push(argument.to_owned());
    }
}

/// Splits the text of a response file.
pub fn split(text: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote: Option<u8> = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\\', _) => word.get_or_insert_default().extend(bytes.next()),
            (_, Some(open)) if byte == open => quote = None,
            (_, Some(_)) => word.get_or_insert_default().push(byte),
            (b'"' | b'\'', None) => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (byte, None) if byte.is_ascii_whitespace() || byte == 0x0b => {
                words.extend(word.take().map(OsString::from_vec));
            }
            (_, None) => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word.map(OsString::from_vec));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(split(text.as_bytes()), expected);
    }

    #[test]
    fn words_quotes_and_backslashes() {
        check("", &[]);
        check("  -c\n a.c\t", &["-c", "a.c"]);
        check("-DX=\"a b\" 'c d' e\\ f", &["-DX=a b", "c d", "e f"]);
        check("'' \"\"", &["", ""]);
        check("\"un closed", &["un closed"]);
        check("a\\", &["a"]);
    }

    #[test]
    fn files_name_files_and_circles_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("inner"), "-O2 x.c").unwrap();
        std::fs::write(path("outer"), format!("-c @{}", path("inner").display())).unwrap();
        std::fs::write(path("circle"), format!("-g @{}", path("circle").display())).unwrap();
        let at = |name: &str| OsString::from(format!("@{}", path(name).display()));
        assert_eq!(expand(&[at("outer"), "y.c".into()]), ["-c", "-O2", "x.c", "y.c"]);
        assert_eq!(expand(&[at("missing")]), [at("missing")]);
        assert_eq!(expand(&[at("circle")]).len(), DEPTH_MAX as usize + 1);
    }
}
