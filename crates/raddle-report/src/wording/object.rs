//! What threads, objects and places are called.

use crate::text::{code, name};
use raddle_findings::{Frame, HeldLock, Object, Party, Place, Thread, What, headline_frame};

/// `thread 1.2`.
pub(crate) fn thread(thread: &Thread) -> String {
    path(&thread.path)
}

/// A thread of which only the path is known.
pub(crate) fn path(path: &str) -> String {
    match path {
        "" => "an unknown thread".to_owned(),
        path => format!("thread {}", name(path)),
    }
}

/// A thread when it is mentioned for the first time: with the name that the program gave it, else with its function.
pub(crate) fn introduced(who: &Thread) -> String {
    match (&who.name, &who.entry) {
        (Some(given), _) => format!("{} ({})", thread(who), code(given)),
        (None, Some(entry)) => format!("{} (entry {})", thread(who), code(entry)),
        (None, None) => thread(who),
    }
}

/// `threads 1.1 and 1.2`, each once.
pub(crate) fn threads(parties: &[&Party]) -> String {
    many(parties, |party| name(&party.thread.path))
}

/// ``threads 1.1 (`deposit`) and 1.2 (`withdraw`)``: with the function that a person should look at.
pub(crate) fn threads_in_functions(parties: &[&Party]) -> String {
    many(parties, in_function)
}

fn many(parties: &[&Party], call: impl Fn(&Party) -> String) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut paths: Vec<&str> = Vec::new();
    for party in parties {
        let path = party.thread.path.as_str();
        // Two parties without a known thread are still two.
        if path.is_empty() || !paths.contains(&path) {
            paths.push(path);
            names.push(if path.is_empty() { "an unknown one".to_owned() } else { call(party) });
        }
    }
    match (names.as_slice(), paths.as_slice()) {
        ([], _) => "the program".to_owned(),
        ([_], [""]) => "an unknown thread".to_owned(),
        ([one], _) => format!("thread {one}"),
        (_, paths) if paths.iter().all(|path| path.is_empty()) => format!("{} threads", names.len()),
        (names, _) => format!("threads {}", crate::text::list(names)),
    }
}

fn in_function(party: &Party) -> String {
    let path = name(&party.thread.path);
    match function(&party.stack) {
        Some(function) => format!("{path} ({})", code(function)),
        None => path,
    }
}

/// ``thread 1.1 (`deposit`)``.
pub(crate) fn thread_in_function(party: &Party) -> String {
    threads_in_functions(&[party])
}

fn function(stack: &[Frame]) -> Option<&str> {
    let frame = headline_frame(stack).or_else(|| stack.iter().find(|frame| !frame.library))?;
    frame.function.as_deref()
}

/// What an object is used as, with its article.
fn noun(what: What) -> &'static str {
    match what {
        What::Memory => "memory",
        What::Mutex => "mutex",
        What::Rwlock => "read-write lock",
        What::Condition => "condition variable",
        What::Barrier => "barrier",
        What::Semaphore => "semaphore",
        What::Once => "one-time initialiser",
        What::Futex => "futex",
        What::Thread => "thread",
        What::Other => "object",
    }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" }
}

/// An object by name, with what it is unless it is plain memory: ``mutex `bob` ``, `` `balance` ``, `a heap block`.
pub(crate) fn object(object: &Object) -> String {
    match (&object.name, object.what) {
        (Some(name), What::Memory | What::Other) => code(name),
        (Some(name), what) => format!("{} {}", noun(what), code(name)),
        (None, What::Memory) => memory(&object.place),
        (None, what) => unnamed(what, &object.place),
    }
}

/// A lock: never `memory`.
pub(crate) fn lock(lock: &Object) -> String {
    match (&lock.name, lock.what) {
        (Some(name), What::Memory | What::Other) => format!("lock {}", code(name)),
        (None, What::Memory | What::Other) => format!("a lock {}", at(&lock.place)),
        _ => object(lock),
    }
}

/// Only the name, where there is one.
pub(crate) fn short(object: &Object) -> String {
    object.name.as_ref().map_or_else(|| self::object(object), |name| code(name))
}

fn unnamed(what: What, place: &Place) -> String {
    if let (What::Thread, Place::Thread { thread }) = (what, place) {
        return self::thread(thread);
    }
    let noun = noun(what);
    format!("{} {noun} {}", article(noun), at(place)).trim_end().to_owned()
}

/// Memory that has no name.
fn memory(place: &Place) -> String {
    match place {
        Place::Global { module, offset } => format!("static data at {}+{offset:#x}", name(module)),
        Place::Heap { bytes, offset: 0, .. } => format!("a {bytes}-byte heap block"),
        Place::Heap { bytes, offset, .. } => {
            format!("memory {} into a {bytes}-byte heap block", crate::text::count(*offset, "byte"))
        }
        Place::Stack { thread: Some(thread), .. } => format!("the stack of {}", self::thread(thread)),
        Place::Stack { thread: None, .. } => "a thread's stack".to_owned(),
        Place::ThreadLocal { thread: Some(thread) } => {
            format!("thread-local data of {}", self::thread(thread))
        }
        Place::ThreadLocal { thread: None } => "thread-local data".to_owned(),
        Place::Thread { thread } => self::thread(thread),
        Place::Unknown { address } => format!("memory at address {address:#x}"),
        Place::Foreign | Place::Nowhere => "unknown memory".to_owned(),
    }
}

/// Where an object without a name is: the end of `a mutex ...`.
fn at(place: &Place) -> String {
    match place {
        Place::Global { module, offset } => format!("at {}+{offset:#x}", name(module)),
        Place::Unknown { address } => format!("at address {address:#x}"),
        Place::Foreign | Place::Nowhere => "without a known name".to_owned(),
        Place::Heap { offset: 0, .. } => format!("at the start of {}", memory(place)),
        Place::Heap { bytes, offset, .. } => {
            format!("{} into a {bytes}-byte heap block", crate::text::count(*offset, "byte"))
        }
        Place::Stack { .. } => format!("on {}", memory(place)),
        Place::ThreadLocal { .. } => format!("in {}", memory(place)),
        Place::Thread { thread } => format!("of {}", self::thread(thread)),
    }
}

/// The block of the heap that an object is in.
pub(crate) fn block(object: &Object) -> String {
    match (&object.name, &object.place) {
        (Some(name), _) => code(name),
        (None, Place::Heap { bytes, .. }) => format!("{bytes}-byte heap block"),
        (None, _) => self::object(object),
    }
}

/// The whole story of memory that only its place tells: `8 bytes into a 48-byte heap block allocated by thread 1.1 at
/// pool.c:20`.
pub(crate) fn story(object: &Object) -> Option<String> {
    let (bytes, offset, allocated) = match &object.place {
        Place::Heap { bytes, offset, allocated } => (bytes, offset, allocated),
        Place::Stack { thread: Some(owner), function: Some(function) } => {
            let name = code(object.name.as_ref()?);
            return Some(format!(
                "{name} is a local variable of {} on the stack of {}",
                code(function),
                thread(owner)
            ));
        }
        Place::ThreadLocal { thread: Some(owner) } => {
            let name = code(object.name.as_ref()?);
            return Some(format!("{name} is thread-local: this is the one of {}", thread(owner)));
        }
        Place::Stack { .. }
        | Place::ThreadLocal { .. }
        | Place::Global { .. }
        | Place::Thread { .. }
        | Place::Foreign
        | Place::Unknown { .. }
        | Place::Nowhere => return None,
    };
    let mut text = match offset {
        0 => format!("the first byte of a {bytes}-byte heap block"),
        _ => format!("{} into a {bytes}-byte heap block", crate::text::count(*offset, "byte")),
    };
    if let Some(allocation) = allocated {
        text.push_str(&format!(" allocated by {}", thread(&allocation.thread)));
        if let Some(frame) = headline_frame(&allocation.stack) {
            text.push_str(&format!(" at {}", place(frame)));
        }
    }
    let what = object.name.as_ref().map_or_else(
        || {
            if object.what == What::Memory {
                "the memory".to_owned()
            } else {
                format!("the {}", noun(object.what))
            }
        },
        |name| code(name),
    );
    Some(format!("{what} is {text}"))
}

/// ``mutex `m`, acquired at bank.c:11``.
pub(crate) fn held(held: &HeldLock) -> String {
    let shared = if held.read { " (for reading)" } else { "" };
    match headline_frame(&held.acquired) {
        Some(frame) => format!("{}{shared}, acquired at {}", lock(&held.lock), place(frame)),
        None => format!("{}{shared}", lock(&held.lock)),
    }
}

/// `bank.c:11:5`.
pub(crate) fn place(frame: &Frame) -> String {
    let file = match (&frame.file, &frame.raw) {
        (Some(file), _) => name(file),
        (None, Some(raw)) => return name(raw),
        (None, None) => return "an unknown place".to_owned(),
    };
    match (frame.line, frame.column) {
        (Some(line), Some(column)) => format!("{file}:{line}:{column}"),
        (Some(line), None) => format!("{file}:{line}"),
        (None, _) => file,
    }
}
