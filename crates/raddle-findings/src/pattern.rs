//! Patterns of suppression files, as ThreadSanitizer has them.
//!
//! A pattern matches if it occurs anywhere in the text. `*` stands for any characters, `^` at the beginning ties the
//! pattern to the beginning of the text, `$` at the end ties it to the end. Nothing else is special. (ThreadSanitizer
//! looks only at the first place where a piece occurs, so that its `b$` misses `abcb`; here every place counts.)

/// A compiled pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pieces: Vec<String>,
    from_start: bool,
    to_end: bool,
}

impl Pattern {
    pub fn new(text: &str) -> Pattern {
        let (text, from_start) = text.strip_prefix('^').map_or((text, false), |rest| (rest, true));
        let (text, to_end) = text.strip_suffix('$').map_or((text, false), |rest| (rest, true));
        Pattern { pieces: text.split('*').map(str::to_owned).collect(), from_start, to_end }
    }

    /// An empty text is matched by nothing: it stands for what is not known.
    pub fn matches(&self, text: &str) -> bool {
        if text.is_empty() {
            return false;
        }
        let Some((first, rest)) = self.pieces.split_first() else { return true };
        let Some((last, middle)) = rest.split_last() else {
            return match (self.from_start, self.to_end) {
                (true, true) => text == first,
                (true, false) => text.starts_with(first.as_str()),
                (false, true) => text.ends_with(first.as_str()),
                (false, false) => text.contains(first.as_str()),
            };
        };
        // The earliest place for each piece leaves most room for the others; only the last may be tied to the end.
        let after_first = match self.from_start {
            true => text.strip_prefix(first.as_str()),
            false => after(text, first),
        };
        let rest = middle.iter().try_fold(after_first, |text, piece| Some(after(text?, piece)));
        match rest.flatten() {
            Some(text) if self.to_end => text.ends_with(last.as_str()),
            Some(text) => text.contains(last.as_str()),
            None => false,
        }
    }
}

fn after<'a>(text: &'a str, piece: &str) -> Option<&'a str> {
    text.find(piece).map(|at| &text[at + piece.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, tried out character by character.
    fn naive(pattern: &str, text: &str) -> bool {
        fn here(pattern: &[char], text: &[char]) -> bool {
            match pattern.split_first() {
                None => true,
                Some(('$', [])) => text.is_empty(),
                Some(('*', rest)) => (0..=text.len()).any(|skip| here(rest, &text[skip..])),
                Some((c, rest)) => text.first() == Some(c) && here(rest, &text[1..]),
            }
        }
        let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
        if text.is_empty() {
            return false;
        }
        match pattern.split_first() {
            Some(('^', rest)) => here(rest, &text),
            _ => (0..=text.len()).any(|skip| here(&pattern, &text[skip..])),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn matches_as_defined(pattern in "\\^?[ab*]{0,6}\\$?", text in "[ab]{0,7}") {
            prop_assert_eq!(Pattern::new(&pattern).matches(&text), naive(&pattern, &text));
        }
    }

    #[test]
    fn examples() {
        for (pattern, text, expected) in [
            ("foo", "my_foo_bar", true),
            ("^foo", "my_foo_bar", false),
            ("^my*bar$", "my_foo_bar", true),
            ("lib*.so", "/usr/lib/libx.so.3", true),
            ("b$", "abcb", true),
            ("*", "x", true),
            ("*", "", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(text), expected, "{pattern} {text}");
        }
    }
}
