//! Text from outside, made fit to be printed: names come from debug information and from the tested program, which may put
//! anything there.

/// Longer names are cut in the middle.
const NAME_CHARS_MAX: usize = 120;
/// Longer sentences that a program said itself are cut at the end.
const WORDS_CHARS_MAX: usize = 600;

/// Control characters, separators of lines, and what changes the direction of the text after it.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// What cannot be printed as it is, is written as `\u{..}`.
pub(crate) fn printable(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => line.push(' '),
            _ if is_unprintable(c) => line.extend(c.escape_unicode()),
            _ => line.push(c),
        }
    }
    line
}

/// A name: of a function, a file, a thread.
pub(crate) fn name(text: &str) -> String {
    let chars = text.chars().count();
    if chars <= NAME_CHARS_MAX {
        return printable(text);
    }
    let half = (NAME_CHARS_MAX - 3) / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(chars - half).collect();
    format!("{}...{}", printable(&head), printable(&tail))
}

/// A name as code.
pub(crate) fn code(text: &str) -> String {
    format!("`{}`", name(text))
}

/// What a program says in its own words.
pub(crate) fn words(text: &str) -> String {
    let mut line: String = text.trim().chars().take(WORDS_CHARS_MAX).collect();
    if text.trim().chars().count() > WORDS_CHARS_MAX {
        line.push_str("...");
    }
    printable(&line)
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// `1 run`, `2 runs`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_printable_and_short() {
        assert_eq!(code("a\u{202e}\x1b"), "`a\\u{202e}\\u{1b}`");
        assert!(name(&"x".repeat(100_000)).len() <= NAME_CHARS_MAX);
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }
}
