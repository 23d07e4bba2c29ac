//! Events of the program's own, as a trace has them: a name with fields, `open(94302,load)`, or the name and object of a `RADDLE_EVENT`.

#![warn(clippy::wildcard_enum_match_arm)]

use raddle_trace::model::EventIx;
use raddle_trace::{MemoryTrace, Op};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// A value of an event's field.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    Number(i64),
    Word(String),
    /// Memory that could not be read.
    Unreadable,
}

impl Value {
    fn of(text: &str) -> Value {
        match text.parse() {
            Ok(number) => Value::Number(number),
            Err(_) if text == "unreadable" => Value::Unreadable,
            Err(_) => Value::Word(text.to_owned()),
        }
    }
}

/// Name and fields of an event, from the text of its record.
pub fn parse(text: &str, object: u64) -> (String, Vec<Value>) {
    match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        Some((name, "")) => (name.to_owned(), Vec::new()),
        Some((name, fields)) => (name.to_owned(), fields.split(',').map(Value::of).collect()),
        None => (text.to_owned(), vec![Value::Number(object as i64)]),
    }
}

/// All events of a trace, and the values that they carry.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// In CSPM, with the thread: `open.0.94302`.
    pub spoken: FxHashMap<EventIx, String>,
    /// By channel: the values of each field.
    pub channels: BTreeMap<String, Vec<BTreeSet<Value>>>,
    /// The number that stands for what could not be read: no event carries it otherwise.
    unreadable: i64,
}

impl Events {
    /// Events whose names the property mentions; the others cannot matter to it.
    pub fn of(trace: &MemoryTrace, mentions: impl Fn(&str) -> bool) -> Events {
        let mut events = Events::default();
        let mut found = Vec::new();
        for (index, event) in trace.events.iter().enumerate() {
            let Op::Custom { name, object } = event.op else { continue };
            let (name, fields) = parse(trace.tables.text(name), object.0);
            if !mentions(&name) {
                continue;
            }
            let known = events.channels.entry(name.clone()).or_default();
            known.resize(known.len().max(fields.len()), BTreeSet::new());
            for (values, field) in known.iter_mut().zip(&fields) {
                values.insert(field.clone());
            }
            found.push((EventIx(index as u32), event.thread, name, fields));
        }
        let numbers = events.channels.values().flatten().flatten();
        let least = numbers.filter_map(|value| match value {
            Value::Number(number) => Some(*number),
            Value::Word(_) | Value::Unreadable => None,
        });
        events.unreadable = least.min().unwrap_or(0).min(0).saturating_sub(1);
        for (ix, thread, name, fields) in found {
            let mut text = format!("{name}.{}", thread.0);
            for field in &fields {
                text.push('.');
                text.push_str(&events.written(field));
            }
            events.spoken.insert(ix, text);
        }
        events
    }

    /// A value in CSPM.
    pub fn written(&self, value: &Value) -> String {
        match value {
            Value::Number(number) => number.to_string(),
            Value::Word(word) => word.clone(),
            Value::Unreadable => self.unreadable.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_names_with_fields() {
        assert_eq!(
            parse("open(5,load)", 0),
            ("open".into(), vec![Value::Number(5), Value::Word("load".into())])
        );
        assert_eq!(parse("ack()", 0), ("ack".into(), vec![]));
        assert_eq!(parse("x(-3,unreadable)", 0).1, [Value::Number(-3), Value::Unreadable]);
        assert_eq!(parse("deposit", 7), ("deposit".into(), vec![Value::Number(7)]));
    }
}
