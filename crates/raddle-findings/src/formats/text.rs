//! Text on one line: what stands in a line-oriented format must not end the line, hide it or turn it around.

/// Longer texts are cut: services refuse longer annotations, and nobody reads them.
const CHARS_MAX: usize = 4000;

/// Without control characters and marks of direction, which are written as `\u{..}`; cut to a sensible length.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(CHARS_MAX));
    for (at, c) in text.chars().enumerate() {
        if at == CHARS_MAX {
            line.push_str("...");
            break;
        }
        match c {
            '\n' | '\t' => line.push(' '),
            _ if is_unprintable(c) => line.extend(c.escape_unicode()),
            _ => line.push(c),
        }
    }
    line
}

/// Control characters, separators of lines, and what changes the direction of the text after it.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_lines() {
        assert_eq!(one_line("a\nb\x1b[0m\u{202e}c"), "a b\\u{1b}[0m\\u{202e}c");
        assert_eq!(one_line(&"x".repeat(100_000)).len(), CHARS_MAX + 3);
    }
}
