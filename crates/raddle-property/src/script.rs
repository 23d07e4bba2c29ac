//! One script of two: the model of the trace, and what the user wrote.
//!
//! The model defines what the user's script mentions and does not define itself: one channel an event, the sets of values of its fields
//! (`open_arg1`, ...), `thread`, `sync_set`, PROGRAM, the watchdog `WD` and a small library of patterns. Where both want one name for
//! different things (a `datatype` with `load` and the loads of the model), the model's gives way.

use crate::events::{Events, Value};
use raddle_predict::csp::Model;
use std::collections::BTreeSet;
use std::fmt::Write;

/// What the model's own channels may be called in a property.
pub const SYNCHRONISATION: &[&str] = &[
    "fork",
    "join",
    "start",
    "end",
    "lock",
    "rdlock",
    "unlock",
    "trylock",
    "tryrdlock",
    "signal",
    "broadcast",
    "waitbegin",
    "wait",
    "barrier_enter",
    "barrier_exit",
    "sem_wait",
    "sem_post",
    "once_begin",
    "once_end",
    "once_passed",
    "load",
    "store",
    "rmw",
];

/// The user's script, as far as its words matter.
#[derive(Clone, Debug)]
pub struct Property {
    pub name: String,
    pub text: String,
    words: BTreeSet<String>,
    defined: BTreeSet<String>,
}

/// Words of a text that are not in comments or strings, each with the sign behind it.
fn words(text: &str) -> Vec<(&str, char)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        if rest.starts_with("--") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("{-") {
            at += rest.find("-}").map_or(rest.len(), |end| end + 2);
        } else if let Some(quoted) = rest.strip_prefix('"') {
            at += quoted.find('"').map_or(rest.len(), |end| end + 2);
        } else if bytes[at].is_ascii_alphabetic() {
            let end =
                rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '\''))).unwrap_or(rest.len());
            let next = rest[end..].trim_start().chars().next().unwrap_or(' ');
            found.push((&rest[..end], next));
            at += end;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}

/// What a script defines: channels, types and their values, and every name that a line begins with and that has an `=`.
fn defined(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut comment = false;
    for line in text.lines() {
        comment |= line.trim_start().starts_with("{-");
        if comment {
            comment = !line.contains("-}");
            continue;
        }
        let line = line.split("--").next().unwrap_or("");
        let found = words(line);
        match found.first() {
            Some(&("channel", _)) => {
                let list = line.trim_start().trim_start_matches("channel");
                let list = list.split(':').next().unwrap_or("");
                names.extend(list.split(',').map(|name| name.trim().to_owned()));
            }
            Some(&("datatype" | "subtype" | "nametype", _)) => {
                names.extend(found[1..].iter().map(|(word, _)| (*word).to_owned()))
            }
            Some(&("assert" | "include" | "transparent" | "external" | "print" | "module", _)) | None => {}
            Some(&(word, _)) => {
                let after = line.trim_start().strip_prefix(word).unwrap_or("").trim_start();
                let after = match after.strip_prefix('(') {
                    Some(parameters) => parameters.split_once(')').map_or("", |(_, rest)| rest).trim_start(),
                    None => after,
                };
                if after.starts_with('=') && !after.starts_with("==") {
                    names.insert(word.to_owned());
                }
            }
        }
    }
    names
}

impl Property {
    pub fn new(name: &str, text: &str) -> Property {
        let used = words(text).into_iter().map(|(word, _)| word.to_owned()).collect();
        Property { name: name.to_owned(), text: text.to_owned(), words: used, defined: defined(text) }
    }

    pub fn mentions(&self, word: &str) -> bool {
        self.words.contains(word)
    }

    fn lacks(&self, word: &str) -> bool {
        self.mentions(word) && !self.defined.contains(word)
    }

    /// Channels of synchronisation that the script takes from the model.
    pub fn synchronisation(&self) -> Vec<&'static str> {
        SYNCHRONISATION.iter().copied().filter(|channel| self.lacks(channel)).collect()
    }

    /// May the script see events of synchronisation at all?
    pub fn sees_synchronisation(&self) -> bool {
        self.mentions("sync_set") || self.mentions("Events") || !self.synchronisation().is_empty()
    }

    /// A name of the model, as it may be called beside this script.
    pub fn renamed(&self, name: &str, events: &Events) -> String {
        match self.defined.contains(name) || events.channels.contains_key(name) {
            true => format!("model_{name}"),
            false => name.to_owned(),
        }
    }
}

/// What PROGRAM is in a script.
pub enum Program<'a> {
    /// The whole trace.
    Model,
    /// Exactly these events, and whether the program came to its end.
    Sequence(&'a [String], bool),
    /// Anything: only what stands around it matters.
    Open,
}

const LIBRARY: &[(&str, &str)] = &[
    (
        "WD",
        "channel error\nWD(E, watched) = (E ; error -> SKIP) /\\ ([] e : watched @ e -> WD(E, watched))\n",
    ),
    ("NEVER", "-- None of these events.\nNEVER(events) = STOP\n"),
    (
        "BETWEEN",
        "-- Events of `during` only between one of `open` and one of `close`.\nBETWEEN(open, during, close) = [] e : open @ e -> BETWEEN_OPEN(open, during, close)\nBETWEEN_OPEN(open, during, close) = ([] e : during @ e -> BETWEEN_OPEN(open, during, close)) [] ([] e : close @ e -> BETWEEN(open, during, close))\n",
    ),
    (
        "AT_MOST_ONE",
        "-- After one of `enter`, one of `leave` before the next.\nAT_MOST_ONE(enter, leave) = [] e : enter @ e -> ([] l : leave @ l -> AT_MOST_ONE(enter, leave))\n",
    ),
    (
        "IN_ORDER",
        "-- These events in this order, each once.\nIN_ORDER(<>) = STOP\nIN_ORDER(<e> ^ rest) = e -> IN_ORDER(rest)\n",
    ),
    (
        "EVENTUALLY",
        "-- One of these events before the end (for `[F=`).\nEVENTUALLY(events) = [] e : events @ e -> RUN_OR_END(events)\nRUN_OR_END(events) = ([] e : events @ e -> RUN_OR_END(events)) |~| STOP\n",
    ),
    (
        "UNSERIALISABLE",
        "-- Vaziri's patterns for one variable, whose events are `x.thread.load` and `x.thread.store`: what thread t does to x with an access of another between.\nUNSERIALISABLE(x, t) = x.t.load -> x?u:diff(thread, {t})!store -> x.t?a -> SKIP [] x.t.store -> x?u:diff(thread, {t})!load -> x.t.store -> SKIP [] x.t.store -> x?u:diff(thread, {t})!store -> x.t?a -> SKIP\n",
    ),
];

/// Gives every word its new name.
fn rename(text: &str, property: &Property, events: &Events) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        out.push_str(&rest[..at]);
        let word = &rest[at..];
        let end =
            word.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '\''))).unwrap_or(word.len());
        let name = &word[..end];
        // What a thread says itself is marked, see `spoken`.
        match name.strip_prefix(MARK) {
            Some(own) => out.push_str(own),
            None if matches!(name, "PROGRAM" | "thread") || KEYWORDS.contains(&name) => out.push_str(name),
            None => out.push_str(&property.renamed(name, events)),
        }
        rest = &word[end..];
    }
    out.push_str(rest);
    out
}

const KEYWORDS: &[&str] = &[
    "channel", "nametype", "datatype", "if", "then", "else", "let", "within", "SKIP", "STOP", "diff", "union",
];

/// Before events of the program's own, in texts of the model.
pub const MARK: &str = "Own";

/// Events of one step as the script calls them.
pub fn step_events(texts: &[String], property: &Property, events: &Events) -> Vec<String> {
    texts.iter().map(|text| rename(text, property, events)).collect()
}

/// The model's part of the script.
pub fn compose(property: &Property, events: &Events, model: &Model, program: &Program<'_>) -> String {
    let mut text = String::from("-- The model of a trace.\n");
    text.push_str(&rename(&model.declarations, property, events));
    own_channels(&mut text, property, events);
    let named: Vec<String> = model.channels.iter().map(|name| property.renamed(name, events)).collect();
    if property.lacks("sync_set") {
        match named.is_empty() {
            true => text.push_str("sync_set = {}\n"),
            false => _ = writeln!(text, "sync_set = {{| {} |}}", named.join(", ")),
        }
    }
    match program {
        Program::Model => {
            let processes = model.processes.replace("\nPROGRAM = ", "\nTRACE = ");
            text.push_str(&rename(&processes, property, events));
            let (trace, stray, end) = (
                property.renamed("TRACE", events),
                property.renamed("stray", events),
                property.renamed("endthreads", events),
            );
            // Who leaves the observed path does something that the trace does not show: that is neither an event nor an end.
            let _ = writeln!(text, "PROGRAM = {trace} [| {{{stray}}} |> {end} -> SKIP\n");
        }
        Program::Sequence(done, ended) => {
            sequence(&mut text, done, *ended, &property.renamed("endthreads", events))
        }
        Program::Open => {
            let all: Vec<String> = events.channels.keys().cloned().chain(named).collect();
            match all.is_empty() {
                true => text.push_str("PROGRAM = STOP\n"),
                false => {
                    let _ = writeln!(text, "PROGRAM = [] e : {{| {} |}} @ e -> PROGRAM\n", all.join(", "));
                }
            }
        }
    }
    for (name, definition) in LIBRARY {
        if property.lacks(name) {
            text.push_str(definition);
        }
    }
    text
}

/// Channels and sets of values that the script takes from the model.
fn own_channels(text: &mut String, property: &Property, events: &Events) {
    let mut new_words: BTreeSet<&str> = BTreeSet::new();
    for value in events.channels.values().flatten().flatten() {
        if let Value::Word(word) = value
            && !property.defined.contains(word)
        {
            new_words.insert(word);
        }
    }
    if !new_words.is_empty() {
        let list: Vec<&str> = new_words.into_iter().collect();
        let _ = writeln!(text, "datatype word = {}", list.join(" | "));
    }
    for (channel, fields) in &events.channels {
        for (number, values) in fields.iter().enumerate() {
            let name = format!("{channel}_arg{}", number + 1);
            if !property.defined.contains(&name) {
                let list: Vec<String> = values.iter().map(|value| events.written(value)).collect();
                // `{-` would begin a comment.
                let _ = writeln!(text, "{name} = {{ {} }}", list.join(", "));
            }
        }
        if !property.defined.contains(channel) {
            let sets: String = (1..=fields.len()).map(|number| format!(".{channel}_arg{number}")).collect();
            let _ = writeln!(text, "channel {channel} : thread{sets}");
        }
    }
    // What the trace does not have: no value, and a channel that is never used.
    for word in &property.words {
        let argument = word.rsplit_once("_arg").filter(|(_, number)| number.parse::<u32>().is_ok());
        let Some((channel, number)) = argument else { continue };
        let known = events.channels.get(channel).map_or(0, Vec::len);
        if number.parse().is_ok_and(|number: usize| number > known) && property.lacks(word) {
            // With a type, or a channel of nothing but such sets would have none.
            let _ = writeln!(text, "{word} = diff({{0}}, {{0}})");
        }
    }
}

/// PROGRAM that does one thing after the other.
fn sequence(text: &mut String, done: &[String], ended: bool, end: &str) {
    const CHAIN_MAX: usize = 40;
    let last = if ended { format!("{end} -> SKIP") } else { "STOP".to_owned() };
    let pieces: Vec<&[String]> = if done.is_empty() { vec![&[]] } else { done.chunks(CHAIN_MAX).collect() };
    for (number, piece) in pieces.iter().enumerate() {
        let name = if number == 0 { "PROGRAM".to_owned() } else { format!("PROGRAM_{number}") };
        let next = if number + 1 < pieces.len() { format!("PROGRAM_{}", number + 1) } else { last.clone() };
        let chain: String = piece.iter().map(|event| format!("{event} -> ")).collect();
        let _ = writeln!(text, "{name} = {chain}{next}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_defines_is_known() {
        let text = "-- a = b\ndatatype access = load | store\nchannel x, y : thread.access\nP(a, b) = x.a -> STOP\nQ = STOP\nassert P == 1\n";
        let property = Property::new("p.csp", text);
        for name in ["access", "load", "store", "x", "y", "P", "Q"] {
            assert!(property.defined.contains(name), "{name}");
        }
        assert!(!property.defined.contains("a") && !property.defined.contains("assert"));
        assert!(property.lacks("thread") && !property.lacks("load"));
    }
}
