//! Names of functions as people write them, and patterns of such names.
//!
//! A pattern may have `*`, which stands for any characters. It is compared with the name in the symbol table, the demangled name, and
//! the demangled name without parameters (C++) or hash (Rust). `push` therefore does not mean `Queue::push`; `*::push` does.
//!
//! Compilers split and specialise functions: `f.constprop.0`, `f.isra.0` are `f` with other parameters, `f.cold` and `f.part.0` are
//! pieces of it that nobody calls by name. The former count as `f`, the latter as nothing.

/// The name without what a compiler added to tell a clone from the original; `None` for a mere piece of a function.
pub fn original(name: &str) -> Option<&str> {
    let mut parts = name.split('.');
    let first = parts.next().filter(|first| !first.is_empty());
    let pieces = name.split('.').skip(1).any(|part| matches!(part, "cold" | "part"));
    if pieces {
        return None;
    }
    let clone = |part: &str| {
        matches!(part, "isra" | "constprop" | "lto_priv" | "llvm" | "localalias" | "specialized")
    };
    match first {
        Some(first) if name.split('.').skip(1).any(clone) => Some(first),
        _ => Some(name),
    }
}

/// Did a compiler change the parameters of this function?
pub fn is_clone(name: &str) -> bool {
    original(name).is_some_and(|original| original != name)
}

/// May a compiler have taken the result of this function away, because nobody used it?
pub fn may_lack_result(name: &str) -> bool {
    name.split('.').skip(1).any(|part| part == "isra")
}

/// All that one symbol may be called, the most readable first.
pub fn spellings(symbol: &str) -> Vec<String> {
    let name = original(symbol).unwrap_or(symbol);
    let mut all = Vec::new();
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        all.push(format!("{rust:#}"));
    } else if name.starts_with("_Z")
        && let Ok(parsed) = cpp_demangle::Symbol::new(name)
    {
        let bare = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
        all.extend(parsed.demangle(&bare).ok());
        all.extend(parsed.demangle(&cpp_demangle::DemangleOptions::new()).ok());
    }
    all.push(name.to_owned());
    all.dedup();
    all
}

/// The most readable name of a symbol.
pub fn readable(symbol: &str) -> String {
    spellings(symbol).swap_remove(0)
}

/// Does the text match a pattern with `*`? Linear in memory, quadratic in time at worst.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where to go on when a character differs: behind the last `*`, one character later than last time.
    let mut again: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            again = Some((p + 1, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((star, from)) = again {
            (p, t) = (star, from + 1);
            again = Some((star, from + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|skip| naive(rest, &text[skip..])),
            Some((first, rest)) => text.first() == Some(first) && naive(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn matching_follows_the_definition(pattern in "[ab*]{0,7}", text in "[ab]{0,9}") {
            prop_assert_eq!(matches(&pattern, &text), naive(pattern.as_bytes(), text.as_bytes()));
        }
    }

    #[test]
    fn clones_are_the_function_and_pieces_are_not() {
        assert_eq!(original("f.constprop.0"), Some("f"));
        assert_eq!(original("f.isra.0.cold"), None);
        assert_eq!(original("f.part.2"), None);
        assert_eq!(original("f.1234"), Some("f.1234"));
        assert!(is_clone("f.isra.0") && !is_clone("f"));
        assert_eq!(spellings("_ZN5Queue4pushEi"), ["Queue::push", "Queue::push(int)", "_ZN5Queue4pushEi"]);
        assert_eq!(spellings("_ZN3app4work17h0123456789abcdefE")[0], "app::work");
    }
}
