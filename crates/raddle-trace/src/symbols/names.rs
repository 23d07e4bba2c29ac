//! Names of functions: from a compiler's symbol to what a programmer wrote, and to a form that is the same for all
//! compilers.

use std::borrow::Cow;

/// A symbol as a programmer wrote it. Names without a mangler's prefix are left alone: to C++ demanglers the variable
/// `m` would be the type `unsigned long`.
pub fn demangle(symbol: &str) -> String {
    match is_mangled(symbol) {
        true => addr2line::demangle_auto(Cow::Borrowed(symbol), None).into_owned(),
        false => symbol.to_owned(),
    }
}

/// Has the symbol a mangler's prefix?
pub fn is_mangled(symbol: &str) -> bool {
    ["_Z", "__Z", "_R"].iter().any(|prefix| symbol.starts_with(prefix))
}

/// The normal form of a demangled name, the same whichever compiler and optimisation made the function:
///
/// - a lambda is `{lambda#1}` (gcc has `{lambda(int)#1}`, clang `$_0`), and its call operator is the lambda itself;
/// - copies that an optimiser made of a function (`.constprop.0`, `[clone .cold]`) have the function's name;
/// - without ABI tags, without Rust's hash, and `>>` instead of `> >`.
///
/// The numbers of lambdas are the compilers': gcc counts those with the same
/// parameters in a function, clang all of a file, so they agree for the first lambda and may differ for later ones;
/// [`super::CodeFrame::function_line`] tells those apart.
pub fn normal_name(name: &str) -> String {
    let mut name = lambdas(without_tags(without_copies(name)).as_str());
    while name.contains("> >") {
        name = name.replace("> >", ">>");
    }
    without_hash(&name).to_owned()
}

/// Removes what stands behind a name for a copy of the function.
fn without_copies(name: &str) -> &str {
    let mut name = name.trim_end();
    if let Some(clone) = name.find(" [clone ").or_else(|| name.find(" (.")).filter(|at| *at > 0) {
        name = &name[..clone];
    }
    const COPIES: [&str; 7] = ["constprop", "isra", "part", "cold", "llvm", "lto_priv", "localalias"];
    loop {
        let Some((before, last)) = name.rsplit_once('.') else { return name };
        let number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
        let word = if number { before.rsplit_once('.') } else { Some((before, last)) };
        match word {
            Some((before, word)) if COPIES.contains(&word) && !before.is_empty() => name = before,
            _ => return name,
        }
    }
}

/// Removes `[abi:cxx11]`.
fn without_tags(name: &str) -> String {
    let mut kept = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("[abi:") {
        let Some(end) = rest[at..].find(']') else { break };
        kept.push_str(&rest[..at]);
        rest = &rest[at + end + 1..];
    }
    kept + rest
}

/// Removes the hash that Rust's legacy mangling puts behind a path.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => path,
        _ => name,
    }
}

fn lambdas(name: &str) -> String {
    let mut kept = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(next) = rest.find(['{', '$']) {
        kept.push_str(&rest[..next]);
        rest = &rest[next..];
        match lambda(rest) {
            Some((number, length)) => {
                kept.push_str(&format!("{{lambda#{number}}}"));
                rest = without_call_operator(&rest[length..]);
            }
            None => {
                kept.push_str(&rest[..1]);
                rest = &rest[1..];
            }
        }
    }
    kept + rest
}

/// The number of the lambda at the start of a text, and the length of what stands for it there.
fn lambda(text: &str) -> Option<(u64, usize)> {
    if let Some(number) = text.strip_prefix("$_") {
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = number[..digits].parse().ok()?;
        return Some((number.checked_add(1)?, 2 + digits));
    }
    let behind = text.strip_prefix("{lambda")?;
    let parameters = balanced(behind, '(', ')').unwrap_or(0);
    let number = behind[parameters..].strip_prefix('#')?;
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    number[digits..].starts_with('}').then_some(())?;
    Some((number[..digits].parse().ok()?, "{lambda".len() + parameters + 1 + digits + 1))
}

fn without_call_operator(text: &str) -> &str {
    let Some(mut rest) = text.strip_prefix("::operator()") else { return text };
    rest = &rest[balanced(rest, '<', '>').unwrap_or(0)..];
    let Some(parameters) = balanced(rest, '(', ')') else { return rest };
    rest = &rest[parameters..];
    rest.strip_prefix(" const").unwrap_or(rest)
}

/// The length of a bracketed text at the start.
fn balanced(text: &str, open: char, close: char) -> Option<usize> {
    if !text.starts_with(open) {
        return None;
    }
    let mut depth = 0usize;
    for (at, character) in text.char_indices() {
        if character == open {
            depth += 1;
        } else if character == close {
            depth -= 1;
            if depth == 0 {
                return Some(at + close.len_utf8());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_demangled() {
        assert_eq!(demangle("_ZN4bank8withdrawEi"), "bank::withdraw(int)");
        assert_eq!(demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"), "core::fmt::Formatter::pad");
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("m"), "m", "a variable, not the C++ type `unsigned long`");
    }

    #[test]
    fn compilers_agree_on_normal_names() {
        for (name, normal) in [
            ("main::{lambda()#1}::operator()() const", "main::{lambda#1}"),
            ("main::$_0::operator()() const", "main::{lambda#1}"),
            (
                "bank::run(int)::{lambda(int, (anonymous namespace)::x)#2}::operator()(int) const",
                "bank::run(int)::{lambda#2}",
            ),
            ("bank::run(int)::$_1::operator()(int) const", "bank::run(int)::{lambda#2}"),
            (
                "main::{lambda()#1}::operator()() const::{lambda()#1}::operator()() const",
                "main::{lambda#1}::{lambda#1}",
            ),
            (
                "void std::__invoke_impl<void, main::{lambda()#1}>(std::__invoke_other, main::{lambda()#1}&&)",
                "void std::__invoke_impl<void, main::{lambda#1}>(std::__invoke_other, main::{lambda#1}&&)",
            ),
            ("main::{lambda(auto:1)#1}::operator()<int>(int) const", "main::{lambda#1}"),
            ("f(std::vector<std::pair<int, int> > const&)", "f(std::vector<std::pair<int, int>> const&)"),
            ("deposit.constprop.0.isra.0", "deposit"),
            ("deposit(int) [clone .cold]", "deposit(int)"),
            ("name[abi:cxx11]()", "name()"),
            ("bank::withdraw::h0123456789abcdef", "bank::withdraw"),
            ("bank::main::{{closure}}", "bank::main::{{closure}}"),
            ("$_", "$_"),
            ("{lambda", "{lambda"),
            ("main", "main"),
        ] {
            assert_eq!(normal_name(name), normal, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_normal_form(name in "([a-z:<>(){}$_#0-9. ]|\\{lambda|\\$_|::operator\\(\\)|\\[abi:|é){0,24}") {
            let _ = normal_name(&name);
        }
    }
}
