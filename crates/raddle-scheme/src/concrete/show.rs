//! Values as text. Lists may be circular and vectors long: what is shown has a limit, and the work is a stack of its own,
//! so that no depth of nesting can exhaust ours.

use super::state::*;

impl Machine<'_> {
    /// A value as `display` (or `write`) shows it, cut off where it gets long.
    pub fn show(&self, state: &State, value: &Value, quote: bool) -> String {
        enum Part<'a> {
            Value(Value),
            Tail(Value),
            Text(&'a str),
        }
        const PARTS_MAX: usize = 2_000;
        let mut out = String::new();
        let mut work = vec![Part::Value(value.clone())];
        for _ in 0..PARTS_MAX {
            let Some(part) = work.pop() else { return out };
            let value = match part {
                Part::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                Part::Tail(Value::Nil) => {
                    out.push(')');
                    continue;
                }
                Part::Tail(Value::Pair(object)) => {
                    let cells = &state.heap[object.index()].cells;
                    out.push(' ');
                    work.push(Part::Tail(cells[1].clone()));
                    cells[0].clone()
                }
                Part::Tail(other) => {
                    out.push_str(" . ");
                    work.push(Part::Text(")"));
                    other
                }
                Part::Value(value) => value,
            };
            match &value {
                Value::Unspecified => out.push_str("#<unspecified>"),
                Value::Unassigned => out.push_str("#<unassigned>"),
                Value::Nil => out.push_str("()"),
                Value::Bool(b) => out.push_str(if *b { "#t" } else { "#f" }),
                Value::Int(n) => out.push_str(&n.to_string()),
                Value::Big(n) => out.push_str(&n.to_string()),
                Value::Ratio(q) => out.push_str(&q.to_string()),
                Value::Real(x) => out.push_str(&format!("{x:?}")),
                Value::Char(c) if quote => out.push_str(&format!("#\\{c}")),
                Value::Char(c) => out.push(*c),
                Value::Str(s) if quote => out.push_str(&format!("{s:?}")),
                Value::Str(s) => out.push_str(s),
                Value::Symbol(s) => out.push_str(self.program.symbols.name(*s)),
                Value::Made(name) => out.push_str(name),
                Value::LockState(l) => out.push_str(if *l { "#locked" } else { "#unlocked" }),
                Value::Prim(prim) => out.push_str(&format!("#<procedure {}>", prim.name())),
                Value::Closure(lambda, _) => {
                    out.push_str(&format!("#<procedure {}>", self.program.lambda_name(*lambda)));
                }
                Value::Pair(object) => {
                    let cells = &state.heap[object.index()].cells;
                    out.push('(');
                    work.push(Part::Tail(cells[1].clone()));
                    work.push(Part::Value(cells[0].clone()));
                }
                Value::Vector(object) => {
                    out.push_str("#(");
                    work.push(Part::Text(")"));
                    let cells = &state.heap[object.index()].cells;
                    for (at, cell) in cells.iter().take(PARTS_MAX).enumerate().rev() {
                        work.push(Part::Value(cell.clone()));
                        if at > 0 {
                            work.push(Part::Text(" "));
                        }
                    }
                }
                Value::Ref(_) => out.push_str("#<ref>"),
                Value::Lock(object) => {
                    let locked = state.heap[object.index()].cells[0] == Value::LockState(true);
                    out.push_str(if locked { "#<lock, held>" } else { "#<lock>" });
                }
                Value::Escape(_) => out.push_str("#<continuation>"),
                Value::Result(_) => out.push_str("#<value to come>"),
                Value::Thread(thread) => out.push_str(&format!("#<thread {}>", state.thread(*thread).name())),
            }
        }
        out.push('…');
        out
    }
}
