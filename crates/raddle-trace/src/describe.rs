//! Events in words: a kind and named fields, the same for people (`key=value`) and for machines (JSON).

use crate::event::{AccessFlags, AtomicKind, Event, Op, Order};
use crate::ids::ThreadIx;
use crate::ops_about;
use crate::tables::{Location, Tables};

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// Memory or an object, shown in hexadecimal.
    Address(u64),
    Number(i128),
    Text(String),
    /// Present or not, shown by its name alone.
    Flag,
}

impl std::fmt::Display for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Field::Address(address) => write!(f, "{address:#x}"),
            Field::Number(number) => write!(f, "{number}"),
            Field::Text(text) => write!(f, "{text:?}"),
            Field::Flag => Ok(()),
        }
    }
}

pub type Fields = Vec<(&'static str, Field)>;

/// One word for an operation; `raddle trace dump --kind` selects by it.
pub fn kind(op: &Op) -> &'static str {
    match op {
        Op::Read { .. } => "read",
        Op::Write { .. } => "write",
        Op::Atomic { kind: AtomicKind::Load, .. } => "atomic-load",
        Op::Atomic { kind: AtomicKind::Store, .. } => "atomic-store",
        Op::Atomic { kind: AtomicKind::Rmw, .. } => "atomic-rmw",
        Op::Atomic { kind: AtomicKind::CasFailed, .. } => "atomic-cas-failed",
        Op::Fence { .. } => "fence",
        Op::Alloc { .. } => "alloc",
        Op::Free { .. } => "free",
        Op::Lost { .. } => "lost",
        ops_about!(Sync) => op.sync_words().map_or("", |(sync, ..)| sync.word()),
    }
}

/// What an operation says beside its kind.
pub fn fields(op: &Op, tables: &Tables) -> Fields {
    let number = |value: u64| Field::Number(i128::from(value));
    let text = |text: &str| Field::Text(text.to_owned());
    match *op {
        Op::Read { addr, size, flags } | Op::Write { addr, size, flags } => {
            let mut fields = vec![("addr", Field::Address(addr.0)), ("size", number(size.into()))];
            access_flags(flags, &mut fields);
            fields
        }
        Op::Atomic { addr, size, kind, order, read, written } => {
            let mut fields = vec![
                ("addr", Field::Address(addr.0)),
                ("size", number(size.into())),
                ("order", text(order_name(order))),
            ];
            if kind.reads() {
                fields.push(("read", number(read)));
            }
            if kind.writes() {
                fields.push(("written", number(written)));
            }
            fields
        }
        Op::Fence { order } => vec![("order", text(order_name(order)))],
        Op::Alloc { addr, size } => vec![("addr", Field::Address(addr.0)), ("size", number(size))],
        Op::Free { addr } => vec![("addr", Field::Address(addr.0))],
        Op::Lost { count } => vec![("count", number(count))],
        ops_about!(Sync) => {
            let mut fields = Vec::new();
            op.describe(tables, &mut fields);
            fields
        }
    }
}

/// One line: number, thread, kind, fields, location.
pub fn line(number: u64, event: &Event, tables: &Tables) -> String {
    let mut line = format!("{number} {} {}", thread_name(tables, event.thread), kind(&event.op));
    for (name, field) in fields(&event.op, tables) {
        line.push(' ');
        line.push_str(name);
        if field != Field::Flag {
            line.push('=');
            line.push_str(&field.to_string());
        }
    }
    let location = tables.location(event.location);
    if *location != Location::Unknown {
        line.push_str(" @");
        line.push_str(&location_text(location));
    }
    line
}

/// One JSON object with the same contents as [`line()`].
pub fn json(number: u64, event: &Event, tables: &Tables) -> serde_json::Map<String, serde_json::Value> {
    use serde_json::Value;
    let mut object = serde_json::Map::new();
    object.insert("n".into(), number.into());
    object.insert("thread".into(), thread_name(tables, event.thread).into());
    object.insert("kind".into(), kind(&event.op).into());
    for (name, field) in fields(&event.op, tables) {
        let value = match field {
            Field::Address(address) => Value::String(format!("{address:#x}")),
            Field::Number(number) => match (u64::try_from(number), i64::try_from(number)) {
                (Ok(number), _) => number.into(),
                (_, Ok(number)) => number.into(),
                _ => number.to_string().into(),
            },
            Field::Text(text) => text.into(),
            Field::Flag => true.into(),
        };
        object.insert(name.into(), value);
    }
    let location = tables.location(event.location);
    if *location != Location::Unknown {
        object.insert("location".into(), location_text(location).into());
    }
    object
}

/// A location without symbols.
pub fn location_text(location: &Location) -> String {
    match location {
        Location::Unknown => "?".into(),
        Location::Pc(pc) => format!("{pc:#x}"),
        Location::Foreign(number) => format!("L{number}"),
    }
}

/// The stable name of a thread.
pub fn thread_name(tables: &Tables, thread: ThreadIx) -> String {
    tables.threads.get(thread.index()).map_or_else(|| format!("?{}", thread.0), |thread| thread.name.clone())
}

/// Memory order as C++ writes it.
pub fn order_name(order: Order) -> &'static str {
    match order {
        Order::Relaxed => "relaxed",
        Order::Consume => "consume",
        Order::Acquire => "acquire",
        Order::Release => "release",
        Order::AcqRel => "acq_rel",
        Order::SeqCst => "seq_cst",
    }
}

fn access_flags(flags: AccessFlags, fields: &mut Fields) {
    let names = [(flags.volatile, "volatile"), (flags.vptr, "vptr"), (flags.library, "library")];
    fields.extend(names.into_iter().filter(|(set, _)| *set).map(|(_, name)| (name, Field::Flag)));
}
