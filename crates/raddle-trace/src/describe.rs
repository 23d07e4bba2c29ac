//! Events in words: a kind and named fields, the same for people (`key=value`) and for machines (JSON).

use crate::encode::sync_words;
use crate::event::{AccessFlags, AtomicKind, Event, LockFlags, ObjectKind, Op, Order, Patience};
use crate::ids::ThreadIx;
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
    if let Some((sync, ..)) = sync_words(op) {
        return sync.word();
    }
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
        Op::Start { .. }
        | Op::End
        | Op::Fork { .. }
        | Op::Join { .. }
        | Op::JoinFailed { .. }
        | Op::Detach { .. }
        | Op::Cancel { .. }
        | Op::Request { .. }
        | Op::Lock { .. }
        | Op::LockFailed { .. }
        | Op::ReadLock { .. }
        | Op::ReadLockFailed { .. }
        | Op::Unlock { .. }
        | Op::Signal { .. }
        | Op::Broadcast { .. }
        | Op::WaitBegin { .. }
        | Op::Wait { .. }
        | Op::WaitFailed { .. }
        | Op::BarrierInit { .. }
        | Op::BarrierEnter { .. }
        | Op::BarrierExit { .. }
        | Op::SemInit { .. }
        | Op::SemRequest { .. }
        | Op::SemWait { .. }
        | Op::SemWaitFailed { .. }
        | Op::SemPost { .. }
        | Op::OnceBegin { .. }
        | Op::OnceEnd { .. }
        | Op::OncePassed { .. }
        | Op::Init { .. }
        | Op::Destroy { .. }
        | Op::FutexWake { .. }
        | Op::FutexWait { .. }
        | Op::FutexWaitFailed { .. }
        | Op::SignalEnter { .. }
        | Op::SignalExit { .. }
        | Op::ProcessFork { .. }
        | Op::ProcessExec { .. }
        | Op::ProcessExit { .. }
        | Op::Custom { .. }
        | Op::AtomicBegin { .. }
        | Op::AtomicEnd { .. }
        | Op::Acquire { .. }
        | Op::Release { .. }
        | Op::BenignRace { .. }
        | Op::Yield => unreachable!("has a line in the table"),
    }
}

/// What an operation says beside its kind.
pub fn fields(op: &Op, tables: &Tables) -> Fields {
    let number = |value: u64| Field::Number(i128::from(value));
    let thread = |thread: ThreadIx| Field::Text(thread_name(tables, thread));
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
        Op::Start { parent } => vec![("parent", thread(parent))],
        Op::End | Op::Yield => Vec::new(),
        Op::Fork { child } | Op::Join { child } | Op::JoinFailed { child } | Op::Detach { child } => {
            vec![("child", thread(child))]
        }
        Op::Cancel { thread: other } => vec![("target", thread(other))],
        Op::Request { lock, read, flags } => {
            let mut fields = lock_fields(lock.0, flags);
            if read {
                fields.push(("reading", Field::Flag));
            }
            fields
        }
        Op::Lock { lock, flags }
        | Op::LockFailed { lock, flags }
        | Op::ReadLock { lock, flags }
        | Op::ReadLockFailed { lock, flags }
        | Op::Unlock { lock, flags } => lock_fields(lock.0, flags),
        Op::Signal { cond } | Op::Broadcast { cond } => vec![("cond", Field::Address(cond.0))],
        Op::WaitBegin { cond, lock } | Op::Wait { cond, lock } | Op::WaitFailed { cond, lock } => {
            vec![("cond", Field::Address(cond.0)), ("lock", Field::Address(lock.0))]
        }
        Op::BarrierInit { barrier, count } => {
            vec![("barrier", Field::Address(barrier.0)), ("count", number(count.into()))]
        }
        Op::BarrierEnter { barrier } | Op::BarrierExit { barrier } => {
            vec![("barrier", Field::Address(barrier.0))]
        }
        Op::SemInit { sem, value } => vec![("sem", Field::Address(sem.0)), ("value", number(value.into()))],
        Op::SemRequest { sem } | Op::SemWait { sem } | Op::SemWaitFailed { sem } | Op::SemPost { sem } => {
            vec![("sem", Field::Address(sem.0))]
        }
        Op::OnceBegin { once } | Op::OnceEnd { once } | Op::OncePassed { once } => {
            vec![("once", Field::Address(once.0))]
        }
        Op::Init { object, kind } | Op::Destroy { object, kind } => {
            vec![("object", Field::Address(object.0)), ("what", text(object_kind(kind)))]
        }
        Op::FutexWake { word, count } => {
            vec![("word", Field::Address(word.0)), ("count", number(count.into()))]
        }
        Op::FutexWait { word } | Op::FutexWaitFailed { word } => vec![("word", Field::Address(word.0))],
        Op::SignalEnter { signal } | Op::SignalExit { signal } => vec![("signal", number(signal.into()))],
        Op::ProcessFork { pid } => vec![("pid", number(pid.into()))],
        Op::ProcessExec { path } => vec![("path", text(tables.text(path)))],
        Op::ProcessExit { status } => vec![("status", Field::Number(status.into()))],
        Op::Custom { name, object } => {
            vec![("name", text(tables.text(name))), ("object", Field::Address(object.0))]
        }
        Op::AtomicBegin { name } | Op::AtomicEnd { name } => vec![("name", text(tables.text(name)))],
        Op::Acquire { object } | Op::Release { object } => vec![("object", Field::Address(object.0))],
        Op::BenignRace { addr, size } => {
            vec![("addr", Field::Address(addr.0)), ("size", number(size.into()))]
        }
        Op::Lost { count } => vec![("count", number(count))],
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
    match tables.location(event.location) {
        Location::Unknown => {}
        location => {
            line.push_str(" @");
            line.push_str(&location_text(location));
        }
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
    match tables.location(event.location) {
        Location::Unknown => {}
        location => {
            object.insert("location".into(), location_text(location).into());
        }
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

fn object_kind(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Mutex => "mutex",
        ObjectKind::Rwlock => "rwlock",
        ObjectKind::Condition => "condition",
        ObjectKind::Barrier => "barrier",
        ObjectKind::Semaphore => "semaphore",
    }
}

fn access_flags(flags: AccessFlags, fields: &mut Fields) {
    let names = [(flags.volatile, "volatile"), (flags.vptr, "vptr"), (flags.library, "library")];
    fields.extend(names.into_iter().filter(|(set, _)| *set).map(|(_, name)| (name, Field::Flag)));
}

fn lock_fields(lock: u64, flags: LockFlags) -> Fields {
    let mut fields = vec![("lock", Field::Address(lock))];
    let names = [
        (flags.patience == Patience::Try, "try"),
        (flags.patience == Patience::Timed, "timed"),
        (flags.rwlock, "rwlock"),
        (flags.spin, "spin"),
        (flags.wait, "wait"),
        (flags.nested, "nested"),
        (flags.owner_died, "owner-died"),
    ];
    fields.extend(names.into_iter().filter(|(set, _)| *set).map(|(_, name)| (name, Field::Flag)));
    fields
}
