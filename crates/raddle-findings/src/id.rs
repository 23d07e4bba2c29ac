//! Ids of findings: the same error has the same id in the next run, after a comment was added above it, in another
//! folder, with another compiler and optimisation; two different errors have different ids.
//!
//! An id is a hash of
//!
//! - the kind,
//! - the objects: by name, or by where they were allocated,
//! - for each party the calls from the innermost frame up to the first frame of the user's own code and the function
//!   that called it, by function name, and the text of the user's line without comments and blanks,
//! - for a failed assertion its text, for a crash the signal.
//!
//! Line numbers, addresses, thread numbers, what exactly was read or written, and the order of the parties do not take
//! part: `x++` is a read and a write, and which of the two is caught differs from run to run. Calls inside a library are left
//! out, because they differ between compilers and versions of the library; the user's line names the operation. Where the
//! source is not at hand, the line counts from the beginning of its function only if that is known; else the bare line.

use crate::action::Action;
use crate::finding::{Detail, Finding, Frame, Party};
use crate::object::{Object, Place};
use siphasher::sip::SipHasher13;
use std::hash::Hasher;

/// Hexadecimal digits of an id: with 10,000 findings, two of them share an id by chance once in five million stores.
const DIGITS: usize = 12;

/// User functions that take part: the one that does it and its caller.
const CALLERS_MAX: usize = 2;

/// The id of a finding.
pub fn of(finding: &Finding) -> String {
    // Where the others stood when one thread crashed is chance.
    let crashed = |party: &&Party| !finding.parties.iter().any(is_crashed) || is_crashed(party);
    let mut parties: Vec<String> =
        finding.parties.iter().filter(crashed).map(|party| place(&party.stack)).collect();
    parties.sort();
    let mut objects: Vec<String> = finding.objects.iter().map(object).collect();
    objects.sort();
    objects.dedup();
    let mut text = finding.kind.name().to_owned();
    for part in [detail(&finding.detail)].iter().chain(&objects).chain(&parties) {
        text.push('\u{1}');
        text.push_str(part);
    }
    let mut hasher = SipHasher13::new();
    hasher.write(text.as_bytes());
    format!("{:0DIGITS$x}", hasher.finish() >> (64 - 4 * DIGITS))
}

fn is_crashed(party: &Party) -> bool {
    party.action == Action::Crashes
}

fn detail(detail: &Detail) -> String {
    match detail {
        Detail::Crash { assertion: Some(assertion), .. } => assertion.expression.clone(),
        Detail::Crash { signal, .. } => format!("signal {signal}"),
        Detail::Misuse { misuse } => format!("{misuse:?}"),
        Detail::Ending { ended } => format!("{ended:?}"),
        Detail::Contract { line } => format!("contract {line}"),
        Detail::Pattern { accesses } => accesses.clone(),
        Detail::Words { text } => text.clone(),
        Detail::None
        | Detail::NoCommonLock
        | Detail::Together { .. }
        | Detail::Without { .. }
        | Detail::MissedSignal { .. }
        | Detail::AtEndOfTrace
        | Detail::NotReducible
        | Detail::Cycle { .. } => String::new(),
    }
}

fn object(object: &Object) -> String {
    match (&object.name, &object.place) {
        // Which element of an array it was is chance: the same code does it to all.
        (Some(name), _) => without_indices(name),
        (None, Place::Heap { offset, allocated: Some(allocation), .. }) => {
            format!("heap {} {offset}", place(&allocation.stack))
        }
        (None, Place::Global { module, offset }) => format!("{module}+{offset:#x}"),
        (None, Place::Heap { offset, .. }) => format!("heap {offset}"),
        (None, Place::Stack { .. }) => "stack".to_owned(),
        (None, Place::ThreadLocal { .. }) => "thread-local".to_owned(),
        // Addresses and thread numbers differ from run to run.
        (None, Place::Thread { .. } | Place::Foreign | Place::Unknown { .. } | Place::Nowhere) => {
            String::new()
        }
    }
}

/// `forks[1].lock` as `forks[].lock`.
fn without_indices(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut inside = false;
    for c in name.chars() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            _ if inside && c.is_ascii_digit() => continue,
            _ => {}
        }
        text.push(c);
    }
    text
}

fn place(stack: &[Frame]) -> String {
    let user: Vec<&Frame> = stack.iter().filter(|frame| !frame.library).collect();
    let Some(first) = user.first().copied().or(stack.first()) else { return String::new() };
    let mut text = match (&first.source, &first.file, &first.raw) {
        (Some(source), file, _) => format!("{}:{}", base(file.as_deref()), normal_text(source)),
        (None, Some(file), _) => format!("{}:{}", base(Some(file)), first.line.unwrap_or(0)),
        (None, None, Some(raw)) if first.function.is_none() => raw.clone(),
        (None, None, _) => String::new(),
    };
    let functions = user.iter().filter_map(|frame| frame.function.as_deref()).map(normal_function);
    let mut last = String::new();
    // Recursion is one caller.
    let mut distinct = 0;
    for function in functions {
        if function == last {
            continue;
        }
        if distinct == CALLERS_MAX {
            break;
        }
        text.push('\u{2}');
        text.push_str(&function);
        last = function;
        distinct += 1;
    }
    text
}

fn base(file: Option<&str>) -> &str {
    file.map_or("", |file| file.rsplit('/').next().unwrap_or(file))
}

/// A function without what compilers add: gcc's `.constprop.0`, parameters' types stay.
fn normal_function(name: &str) -> String {
    let cut = [".constprop.", ".isra.", ".part.", ".cold", ".lto_priv."]
        .iter()
        .filter_map(|suffix| name.find(suffix))
        .min()
        .unwrap_or(name.len());
    raddle_trace::symbols::normal_name(&name[..cut])
}

/// A source line without comments and blanks.
pub fn normal_text(line: &str) -> String {
    let mut text = String::new();
    let mut chars = line.chars().peekable();
    let mut quote: Option<char> = None;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                text.push(c);
                text.extend(chars.next());
            }
            (Some(end), _) => {
                text.push(c);
                if c == end {
                    quote = None;
                }
            }
            (None, '"') => {
                quote = Some(c);
                text.push(c);
            }
            (None, '/') if chars.peek() == Some(&'/') => break,
            (None, '/') if chars.peek() == Some(&'*') => {
                let mut before = ' ';
                chars.next();
                for c in chars.by_ref() {
                    if before == '*' && c == '/' {
                        break;
                    }
                    before = c;
                }
            }
            (None, c) if c.is_whitespace() => {}
            (None, c) => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Access;
    use crate::basis::Basis;
    use crate::finding::Thread;
    use crate::kind::Kind;
    use crate::object::What;

    fn frame(function: &str, line: u32, source: &str) -> Frame {
        Frame {
            function: Some(function.into()),
            file: Some("/home/me/bank.c".into()),
            line: Some(line),
            source: Some(source.into()),
            ..Frame::default()
        }
    }

    fn library(function: &str) -> Frame {
        Frame {
            function: Some(function.into()),
            file: Some("/usr/include/c++/12/bits/vector.tcc".into()),
            line: Some(100),
            library: true,
            ..Frame::default()
        }
    }

    fn race(object: &str, stacks: [Vec<Frame>; 2]) -> Finding {
        let parties = stacks.map(|stack| {
            let object = Some(Object::named(object, What::Memory));
            let action =
                Action::Accesses { access: Access::Write, bytes: 4, atomic: false, vptr: false, object };
            Party::new(Thread::at("1.1"), action, stack)
        });
        Finding::new(Kind::DataRace, "test", Basis::unordered(), parties.into(), Detail::None)
    }

    #[test]
    fn lines_and_folders_and_order_and_comments_do_not_matter() {
        let one = race("x", [vec![frame("f", 3, "  x++;  // first")], vec![frame("g", 9, "\tx = 2;")]]);
        let mut moved = frame("g", 19, "x=2;   /* set */");
        moved.file = Some("/tmp/other/bank.c".into());
        let two = race("x", [vec![moved], vec![frame("f", 13, "x ++;")]]);
        assert_eq!(one.id, two.id);
        assert_eq!(one.id.len(), DIGITS);
    }

    #[test]
    fn objects_callers_and_texts_matter() {
        let stack = |caller: &str| vec![frame("inc", 3, "(*p)++;"), frame(caller, 9, "inc(p);")];
        let ids = [
            race("a", [stack("f"), stack("f")]).id,
            race("b", [stack("f"), stack("f")]).id,
            race("a", [stack("f"), stack("g")]).id,
            race("a", [vec![frame("inc", 3, "(*p)--;")], stack("f")]).id,
        ];
        for (at, id) in ids.iter().enumerate() {
            assert!(!ids[at + 1..].contains(id), "{ids:?}");
        }
    }

    #[test]
    fn elements_of_an_array_are_one_object_and_fields_are_not() {
        let stack = || vec![frame("f", 3, "take(i);")];
        let id = |name: &str| race(name, [stack(), stack()]).id;
        assert_eq!(id("forks[1].lock"), id("forks[12].lock"));
        assert_ne!(id("forks[1].lock"), id("forks[1].count"));
        assert_ne!(id("x1"), id("x2"));
    }

    #[test]
    fn the_inside_of_libraries_does_not_matter_but_the_users_line_does() {
        let gcc = vec![
            library("std::vector::_M_realloc_insert"),
            library("push_back"),
            frame("f", 3, "a.push_back(1);"),
        ];
        let clang = vec![library("push_back"), frame("f", 3, "a.push_back(1);")];
        let other = vec![library("push_back"), frame("f", 4, "b.push_back(1);")];
        assert_eq!(race("v", [gcc.clone(), gcc]).id, race("v", [clang.clone(), clang.clone()]).id);
        assert_ne!(race("v", [clang.clone(), clang]).id, race("v", [other.clone(), other]).id);
    }

    #[test]
    fn strings_keep_their_blanks_and_slashes() {
        assert_eq!(normal_text(r#" puts("a // b") ; // c"#), r#"puts("a // b");"#);
        assert_eq!(normal_text(r#"x = "\"/*" /* y */ + 1;"#), r#"x="\"/*"+1;"#);
        assert_eq!(normal_text("/* never closed"), "");
    }
}
