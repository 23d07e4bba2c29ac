//! What the payload column of the table of operations means: for each of its words, the type of the field, its place in the words of
//! a record, and how it is shown.
//!
//! A record of an operation has two words, object and argument. Fields that share a word have bits of their own in it.

use crate::describe::{Field, Fields, thread_name};
pub use crate::event::LockFlags;
use crate::event::Patience;
use crate::ids::{Addr, ObjectId, ThreadIx};
use crate::tables::Tables;
use raddle_wire::record::lock;

/// Argument of a `MutexInit` that stands for a barrier or a semaphore whose count is not known. A runtime always knows
/// the count; only converted traces have these.
pub const INIT_BARRIER: u64 = 1 << 47;
pub const INIT_SEMAPHORE: u64 = 1 << 46;

/// What reading a word needs to know about the thread that wrote it.
pub trait WordReader {
    fn addr(&self, word: u64) -> Addr;

    fn object(&self, word: u64) -> ObjectId {
        ObjectId(self.addr(word).0)
    }

    /// The mutex of the thread's condition wait, which only the beginning of the wait names.
    fn wait_mutex(&mut self) -> &mut ObjectId;
}

/// A field of an event.
pub trait Payload {
    type Value: Copy;

    /// Its bits in the record's word.
    fn word(value: Self::Value) -> u64;

    /// `None` if the word makes no sense.
    fn read(word: u64, reader: &mut impl WordReader) -> Option<Self::Value>;

    fn describe(name: &'static str, value: Self::Value, tables: &Tables, fields: &mut Fields);
}

fn narrow(word: u64) -> u32 {
    u32::try_from(word).unwrap_or(u32::MAX)
}

/// A thread by its index.
pub struct Thread;

impl Payload for Thread {
    type Value = ThreadIx;

    fn word(value: ThreadIx) -> u64 {
        value.0.into()
    }

    fn read(word: u64, _: &mut impl WordReader) -> Option<ThreadIx> {
        u32::try_from(word).ok().map(ThreadIx)
    }

    fn describe(name: &'static str, value: ThreadIx, tables: &Tables, fields: &mut Fields) {
        fields.push((name, Field::Text(thread_name(tables, value))));
    }
}

/// The thread that created this one. One that is not known does not make the event senseless.
pub struct Parent;

impl Payload for Parent {
    type Value = ThreadIx;

    fn word(value: ThreadIx) -> u64 {
        value.0.into()
    }

    fn read(word: u64, _: &mut impl WordReader) -> Option<ThreadIx> {
        Some(ThreadIx(narrow(word)))
    }

    fn describe(name: &'static str, value: ThreadIx, tables: &Tables, fields: &mut Fields) {
        Thread::describe(name, value, tables, fields);
    }
}

/// A thread that something is done to. The acting thread has the name `thread` already.
pub struct Target;

impl Payload for Target {
    type Value = ThreadIx;

    fn word(value: ThreadIx) -> u64 {
        Thread::word(value)
    }

    fn read(word: u64, reader: &mut impl WordReader) -> Option<ThreadIx> {
        Thread::read(word, reader)
    }

    fn describe(_: &'static str, value: ThreadIx, tables: &Tables, fields: &mut Fields) {
        Thread::describe("target", value, tables, fields);
    }
}

/// A synchronisation object by its address.
pub struct Object;

impl Payload for Object {
    type Value = ObjectId;

    fn word(value: ObjectId) -> u64 {
        value.0
    }

    fn read(word: u64, reader: &mut impl WordReader) -> Option<ObjectId> {
        Some(reader.object(word))
    }

    fn describe(name: &'static str, value: ObjectId, _: &Tables, fields: &mut Fields) {
        fields.push((name, Field::Address(value.0)));
    }
}

/// The mutex that a condition wait releases.
pub struct MutexOfWait;

impl Payload for MutexOfWait {
    type Value = ObjectId;

    fn word(value: ObjectId) -> u64 {
        value.0
    }

    fn read(word: u64, reader: &mut impl WordReader) -> Option<ObjectId> {
        *reader.wait_mutex() = reader.object(word);
        Some(*reader.wait_mutex())
    }

    fn describe(name: &'static str, value: ObjectId, tables: &Tables, fields: &mut Fields) {
        Object::describe(name, value, tables, fields);
    }
}

/// The same mutex at the end of the wait. A runtime names it only at the beginning; a converted trace may name it here, too.
pub struct SameMutex;

impl Payload for SameMutex {
    type Value = ObjectId;

    fn word(value: ObjectId) -> u64 {
        value.0
    }

    fn read(word: u64, reader: &mut impl WordReader) -> Option<ObjectId> {
        Some(if word == 0 { *reader.wait_mutex() } else { reader.object(word) })
    }

    fn describe(name: &'static str, value: ObjectId, tables: &Tables, fields: &mut Fields) {
        Object::describe(name, value, tables, fields);
    }
}

/// Memory.
pub struct Address;

impl Payload for Address {
    type Value = Addr;

    fn word(value: Addr) -> u64 {
        value.0
    }

    fn read(word: u64, reader: &mut impl WordReader) -> Option<Addr> {
        Some(reader.addr(word))
    }

    fn describe(name: &'static str, value: Addr, _: &Tables, fields: &mut Fields) {
        fields.push((name, Field::Address(value.0)));
    }
}

/// A count, a size, the number of a signal or process. Larger ones than fit are the largest.
pub struct Number;

impl Payload for Number {
    type Value = u32;

    fn word(value: u32) -> u64 {
        value.into()
    }

    fn read(word: u64, _: &mut impl WordReader) -> Option<u32> {
        Some(narrow(word))
    }

    fn describe(name: &'static str, value: u32, _: &Tables, fields: &mut Fields) {
        fields.push((name, Field::Number(value.into())));
    }
}

/// An exit status.
pub struct Status;

impl Payload for Status {
    type Value = i32;

    fn word(value: i32) -> u64 {
        u64::from(value as u32)
    }

    fn read(word: u64, _: &mut impl WordReader) -> Option<i32> {
        Some(word as i32)
    }

    fn describe(name: &'static str, value: i32, _: &Tables, fields: &mut Fields) {
        fields.push((name, Field::Number(value.into())));
    }
}

/// Is a lock asked for in order to read?
pub struct ReadMode;

impl Payload for ReadMode {
    type Value = bool;

    fn word(value: bool) -> u64 {
        if value { lock::READ } else { 0 }
    }

    fn read(word: u64, _: &mut impl WordReader) -> Option<bool> {
        Some(word & lock::READ != 0)
    }

    fn describe(_: &'static str, value: bool, _: &Tables, fields: &mut Fields) {
        if value {
            fields.push(("reading", Field::Flag));
        }
    }
}

impl Payload for LockFlags {
    type Value = LockFlags;

    fn word(value: LockFlags) -> u64 {
        let patience = match value.patience {
            Patience::Blocking => 0,
            Patience::Try => lock::TRY,
            Patience::Timed => lock::TIMED,
        };
        let bits = [
            (value.rwlock, lock::RWLOCK),
            (value.spin, lock::SPIN),
            (value.wait, lock::WAIT),
            (value.nested, lock::NESTED),
            (value.owner_died, lock::OWNER_DIED),
        ];
        bits.iter().filter(|(set, _)| *set).fold(patience, |all, (_, bit)| all | bit)
    }

    fn read(word: u64, _: &mut impl WordReader) -> Option<LockFlags> {
        let patience = if word & lock::TRY != 0 {
            Patience::Try
        } else if word & lock::TIMED != 0 {
            Patience::Timed
        } else {
            Patience::Blocking
        };
        Some(LockFlags {
            patience,
            rwlock: word & lock::RWLOCK != 0,
            spin: word & lock::SPIN != 0,
            wait: word & lock::WAIT != 0,
            nested: word & lock::NESTED != 0,
            owner_died: word & lock::OWNER_DIED != 0,
        })
    }

    fn describe(_: &'static str, value: LockFlags, _: &Tables, fields: &mut Fields) {
        let names = [
            (value.patience == Patience::Try, "try"),
            (value.patience == Patience::Timed, "timed"),
            (value.rwlock, "rwlock"),
            (value.spin, "spin"),
            (value.wait, "wait"),
            (value.nested, "nested"),
            (value.owner_died, "owner-died"),
        ];
        fields.extend(names.into_iter().filter(|(set, _)| *set).map(|(_, name)| (name, Field::Flag)));
    }
}
