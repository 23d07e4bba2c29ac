//! Values as text, in the notation of CSPM.

use super::Evaluator;
use super::env::Slot;
use super::value::{Code, List, Set, Value};
use crate::engine::describe;
use crate::process::{ProcId, Process};

/// Longest text of a value inside a message or a name.
const SHORT_MAX: usize = 80;

/// What has been written, and how processes are.
struct Text {
    text: String,
    terms: bool,
}

impl Text {
    fn push(&mut self, c: char) {
        self.text.push(c);
    }

    fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }
}

impl Evaluator {
    /// As a user is shown it: processes without a name as terms.
    pub fn show(&self, value: &Value) -> String {
        let mut out = Text { text: String::new(), terms: true };
        self.write(value, &mut out);
        out.text
    }

    /// For names and messages: cut off where it gets long, and processes without a name by their number, which tells
    /// different ones apart.
    pub(super) fn show_short(&self, value: &Value) -> String {
        let mut out = Text { text: String::new(), terms: false };
        self.write(value, &mut out);
        let full = out.text;
        if full.chars().count() <= SHORT_MAX {
            return full;
        }
        let cut: String = full.chars().take(SHORT_MAX).collect();
        // Names of calls have to stay different; the hash stands for what was cut off.
        let hash = full
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        format!("{cut}...#{:08x}", hash >> 32)
    }

    fn write_list(&self, items: &[Value], out: &mut Text) {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            self.write(item, out);
        }
    }

    fn write_dotted(&self, list: &List, out: &mut Text) {
        for (i, part) in list.items.iter().enumerate() {
            if i > 0 {
                out.push('.');
            }
            self.write(part, out);
        }
    }

    fn write(&self, value: &Value, out: &mut Text) {
        match value {
            Value::Int(n) => out.push_str(&n.to_string()),
            Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            Value::Char(c) => out.push_str(&format!("{c:?}")),
            Value::Tuple(list) => {
                out.push('(');
                self.write_list(&list.items, out);
                out.push(')');
            }
            Value::Seq(seq) => {
                let text: Option<String> = seq
                    .items()
                    .iter()
                    .map(|v| if let Value::Char(c) = v { Some(*c) } else { None })
                    .collect();
                match text {
                    Some(text) if !text.is_empty() => out.push_str(&format!("{text:?}")),
                    _ => {
                        out.push('<');
                        self.write_list(seq.items(), out);
                        out.push('>');
                    }
                }
            }
            Value::SeqFrom(n) => out.push_str(&format!("<{n}..>")),
            Value::Lazy(lazy) => {
                out.push('(');
                for (i, slot) in lazy.slots.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    self.write_slot(slot, out);
                }
                out.push(')');
            }
            Value::Stream(cell) => {
                out.push('<');
                self.write_slot(&cell.head, out);
                out.push_str(", ...>");
            }
            Value::Set(set) => self.write_set(set, out),
            Value::Map(map) => {
                out.push_str("(|");
                for (i, (k, v)) in map.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { " " });
                    self.write(k, out);
                    out.push_str(" => ");
                    self.write(v, out);
                }
                out.push_str(" |)");
            }
            Value::LazyMap(map) => {
                out.push_str("(|");
                for (i, (k, slot)) in map.entries.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { " " });
                    self.write(k, out);
                    out.push_str(" => ");
                    self.write_slot(slot, out);
                }
                out.push_str(" |)");
            }
            Value::LazyDot(lazy) => {
                for (i, slot) in lazy.slots.iter().enumerate() {
                    out.push_str(if i > 0 { "." } else { "" });
                    self.write_slot(slot, out);
                }
            }
            Value::Data(con, fields) => {
                out.push_str(&self.program.resolved.var(*con).path);
                if !fields.items.is_empty() {
                    out.push('.');
                    self.write_dotted(fields, out);
                }
            }
            Value::Dot(list) => self.write_dotted(list, out),
            Value::Function(closure) => match closure.code {
                Code::Definition(_, var) => out.push_str(&self.program.resolved.var(var).path),
                Code::Lambda(_) => out.push_str(&format!("<function {}>", closure.id)),
            },
            Value::Builtin(builtin) => out.push_str(builtin.name()),
            Value::Image(_) => out.push_str("<function>"),
            Value::Process(id) => out.push_str(&self.show_process(*id, out.terms)),
        }
    }

    /// What has not been evaluated is left open.
    fn write_slot(&self, slot: &Slot, out: &mut Text) {
        match slot {
            Slot::Value(value) => self.write(value, out),
            Slot::Thunk(_) | Slot::Empty => out.push_str("..."),
        }
    }

    fn write_set(&self, set: &Set, out: &mut Text) {
        match set {
            Set::List(list) => {
                out.push('{');
                self.write_list(&list.items, out);
                out.push('}');
            }
            Set::Integers => out.push_str("Int"),
            Set::From(n) => out.push_str(&format!("{{{n}..}}")),
            Set::Chars => out.push_str("Char"),
            Set::Processes => out.push_str("Proc"),
            Set::Sequences(of) => {
                out.push_str("Seq(");
                self.write_set(of, out);
                out.push(')');
            }
            Set::Subsets(of) => {
                out.push_str("Set(");
                self.write_set(of, out);
                out.push(')');
            }
            Set::Maps(k, v) => {
                out.push_str("Map(");
                self.write_set(k, out);
                out.push_str(", ");
                self.write_set(v, out);
                out.push(')');
            }
            Set::Either(a, b) => {
                out.push_str("union(");
                self.write_set(a, out);
                out.push_str(", ");
                self.write_set(b, out);
                out.push(')');
            }
            Set::Datatype(decl) => {
                let var = self.program.resolved.defines.get(decl).and_then(|v| v.first());
                out.push_str(var.map_or("?", |&v| &self.program.resolved.var(v).path));
            }
            Set::Dots(sets) | Set::Tuples(sets) => {
                let tuple = matches!(set, Set::Tuples(_));
                out.push_str(if tuple { "(" } else { "" });
                for (i, set) in sets.iter().enumerate() {
                    if i > 0 {
                        out.push_str(if tuple { ", " } else { "." });
                    }
                    self.write_set(set, out);
                }
                out.push_str(if tuple { ")" } else { "" });
            }
        }
    }

    fn show_process(&self, id: ProcId, terms: bool) -> String {
        match self.arena.get(id) {
            Process::Call(call) => self.arena.call_name(*call).to_owned(),
            Process::Stop => "STOP".into(),
            Process::Skip => "SKIP".into(),
            Process::Div => "DIV".into(),
            _ if terms => describe::full(&self.arena, id),
            _ => format!("<process {}>", id.0),
        }
    }
}
