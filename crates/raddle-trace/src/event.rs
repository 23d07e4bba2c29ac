//! Events: what a thread did, as analyses see it.
//!
//! An [`Event`] is one step of one thread. A trace hands events out in the *observed order*: synchronisation events and
//! atomics in the order of their global sequence numbers, plain memory accesses between the synchronisation events of
//! their own thread (they are ordered only within their thread, which is all that prediction needs).
//!
//! The model is the one of RaceQuest's table 4.1 (each event is a *completed* operation) with four additions: requests
//! (a thread began to wait for a lock), atomics with order and values, allocations, and the two halves of a condition
//! wait. A condition wait appears as `Unlock(m) [wait]`, `WaitBegin(c, m)`, ..., `Wait(c, m)` or `WaitFailed(c, m)`,
//! `Lock(m) [wait]`. Which signal woke which wait (the *condition instance*) is computed by [`crate::conditions`].

use crate::describe::{Field, Fields};
use crate::ids::{Addr, ContextIx, LocationIx, ObjectId, TextIx, ThreadIx};
use crate::payload::{self, INIT_BARRIER, INIT_SEMAPHORE, Payload, WordReader};
use crate::tables::Tables;
use raddle_wire::record::SyncOp;

/// One step of one thread. 48 bytes; traces have many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub thread: ThreadIx,
    /// Code location (program counter or STD location) of the operation.
    pub location: LocationIx,
    /// Call context in which it happened; the full stack is this context plus `location`.
    pub context: ContextIx,
    /// How many calls of the context, outermost first, have not returned since the thread's event before. Two events with
    /// the same context are in the same activation of a function only if the calls that lead to it were kept; a trace
    /// that knows no calls has 0 here, like its contexts.
    pub kept_calls: u32,
    pub op: Op,
}

/// Memory order of an atomic operation, in the compilers' numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Order {
    Relaxed = 0,
    Consume = 1,
    Acquire = 2,
    Release = 3,
    AcqRel = 4,
    SeqCst = 5,
}

impl Order {
    pub const ALL: [Order; 6] =
        [Order::Relaxed, Order::Consume, Order::Acquire, Order::Release, Order::AcqRel, Order::SeqCst];

    pub fn from_u8(value: u8) -> Option<Order> {
        Order::ALL.get(usize::from(value)).copied()
    }

    /// Does a load, RMW or fence of this order acquire? (Consume is promoted to acquire.)
    pub fn acquires(self) -> bool {
        !matches!(self, Order::Relaxed | Order::Release)
    }

    /// Does a store, RMW or fence of this order release?
    pub fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel | Order::SeqCst)
    }
}

/// What an atomic operation does to its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicKind {
    Load,
    Store,
    /// Any read-modify-write that stored, including a successful compare-exchange.
    Rmw,
    /// A compare-exchange that failed; behaves as a load.
    CasFailed,
}

impl AtomicKind {
    pub fn reads(self) -> bool {
        !matches!(self, AtomicKind::Store)
    }

    pub fn writes(self) -> bool {
        matches!(self, AtomicKind::Store | AtomicKind::Rmw)
    }
}

/// How a lock was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Patience {
    /// Waits for ever.
    #[default]
    Blocking,
    /// try_lock and friends.
    Try,
    /// timedlock, clocklock.
    Timed,
}

/// Facts about a lock operation beside the lock itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LockFlags {
    pub patience: Patience,
    /// The lock is a read-write lock.
    pub rwlock: bool,
    pub spin: bool,
    /// The operation is the mutex half of a condition wait.
    pub wait: bool,
    /// A recursive acquisition or release that did not change the owner.
    pub nested: bool,
    /// The previous owner died holding the lock.
    pub owner_died: bool,
}

/// A plain access, or a range of bytes accessed by one library call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccessFlags {
    pub volatile: bool,
    /// C++ virtual table pointer.
    pub vptr: bool,
    /// Made by a library function (memcpy, strlen, ...) on the program's behalf.
    pub library: bool,
}

macro_rules! events {
    (
        events { $(
            $(#[$meta:meta])*
            $name:ident = $number:literal $word:literal $object:ident $effect:ident $blocks:tt $outcome:ident $order:ident
            $segment:tt $step:tt $(/ $half:tt)?
            { $($of_object:ident: $object_field:ident)? } { $($of_argument:ident: $argument_field:ident),* } $($text:ident)?;
        )* }
        bare { $(
            $(#[$bare_meta:meta])*
            $bare:ident = $bare_number:literal $bare_word:literal $bare_object:ident $bare_effect:ident $bare_blocks:tt
            $bare_outcome:ident $bare_order:ident $bare_segment:tt $bare_step:tt;
        )* }
        lives { $(
            $(#[$life_meta:meta])*
            $life:ident = $life_number:literal $life_word:literal $life_object:ident $life_effect:ident $life_blocks:tt
            $life_outcome:ident $life_order:ident $life_segment:tt $life_step:tt $what:ident $kind:ident;
        )* }
        marks { $(
            $(#[$mark_meta:meta])*
            $mark:ident = $mark_number:literal $mark_word:literal $mark_object:ident $mark_effect:ident $mark_blocks:tt
            $mark_outcome:ident $mark_order:ident $mark_segment:tt $mark_step:tt;
        )* }
    ) => {
        /// What happened. Memory has records of its own; everything else is a line of the table of operations
        /// ([`raddle_wire::operations`]), under the same name and with the payload that the line says.
        ///
        /// `Lock` is exclusive: a mutex, a spin lock, or a read-write lock in write mode. `Unlock` releases whichever mode the thread
        /// holds. `Acquire` and `Release` are annotated happens-before: everything before a `Release` of an object is before what
        /// follows its `Acquire`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Op {
            Read {
                addr: Addr,
                size: u32,
                flags: AccessFlags,
            },
            Write {
                addr: Addr,
                size: u32,
                flags: AccessFlags,
            },
            /// `read` and `written` are the low 64 bits of the values (0 where there is none).
            Atomic {
                addr: Addr,
                size: u8,
                kind: AtomicKind,
                order: Order,
                read: u64,
                written: u64,
            },
            Fence {
                order: Order,
            },
            Alloc {
                addr: Addr,
                size: u64,
            },
            Free {
                addr: Addr,
            },
            /// Accesses that a limit kept out of the trace.
            Lost {
                count: u64,
            },
            $(
                #[doc = concat!("[`SyncOp::", stringify!($name), "`].")]
                $name {
                    $($of_object: <payload::$object_field as Payload>::Value,)?
                    $($of_argument: <payload::$argument_field as Payload>::Value,)*
                    $($text: TextIx,)?
                },
            )*
            $(
                #[doc = concat!("[`SyncOp::", stringify!($bare), "`].")]
                $bare,
            )*
            /// The life of a synchronisation object begins: the address may have belonged to another one before.
            Init {
                object: ObjectId,
                kind: ObjectKind,
            },
            /// It ends.
            Destroy {
                object: ObjectId,
                kind: ObjectKind,
            },
        }

        impl Op {
            /// The line of the table that an event is, with its object and its argument in a record. `None` for what has
            /// records of its own.
            #[allow(clippy::identity_op, reason = "fields that a line has not are left out of the sum")]
            pub fn sync_words(&self) -> Option<(SyncOp, u64, u64)> {
                Some(match *self {
                    $(Op::$name { $($of_object,)? $($of_argument,)* .. } => (
                        SyncOp::$name,
                        0 $(| payload::$object_field::word($of_object))?,
                        0 $(| payload::$argument_field::word($of_argument))*,
                    ),)*
                    $(Op::$bare => (SyncOp::$bare, 0, 0),)*
                    $(Op::$what { object, kind: ObjectKind::$kind } => (SyncOp::$life, object.0, 0),)*
                    // These lives begin with operations that know more; a trace in another format may not.
                    Op::Init { object, kind: ObjectKind::Barrier } => (SyncOp::MutexInit, object.0, INIT_BARRIER),
                    Op::Init { object, kind: ObjectKind::Semaphore } => {
                        (SyncOp::MutexInit, object.0, INIT_SEMAPHORE)
                    }
                    $crate::ops_about!(Memory) => return None,
                })
            }

            /// The event of a record. `None` if its words make no sense, or if it is no event.
            pub(crate) fn from_sync_words(
                sync: SyncOp,
                object: u64,
                argument: u64,
                text: TextIx,
                reader: &mut impl WordReader,
            ) -> Option<Op> {
                let _ = text;
                match (sync, argument) {
                    (SyncOp::MutexInit, INIT_BARRIER) => {
                        return Some(Op::Init { object: reader.object(object), kind: ObjectKind::Barrier });
                    }
                    (SyncOp::MutexInit, INIT_SEMAPHORE) => {
                        return Some(Op::Init { object: reader.object(object), kind: ObjectKind::Semaphore });
                    }
                    (_, _) => {}
                }
                Some(match sync {
                    $(SyncOp::$name => Op::$name {
                        $($of_object: payload::$object_field::read(object, reader)?,)?
                        $($of_argument: payload::$argument_field::read(argument, reader)?,)*
                        $($text: text,)?
                    },)*
                    $(SyncOp::$bare => Op::$bare,)*
                    $(SyncOp::$life => Op::$what { object: reader.object(object), kind: ObjectKind::$kind },)*
                    $(SyncOp::$mark => return None,)*
                })
            }

            /// The text that follows its record.
            pub(crate) fn text(&self) -> Option<TextIx> {
                $($(if let Op::$name { $text, .. } = *self {
                    return Some($text);
                })?)*
                None
            }

            /// What an operation of the table says beside its name, in the order of its payload. Nothing for what has records
            /// of its own.
            pub(crate) fn describe(&self, tables: &Tables, fields: &mut Fields) {
                match *self {
                    $(Op::$name { $($of_object,)? $($of_argument,)* $($text,)? } => {
                        $(fields.push((stringify!($text), Field::Text(tables.text($text).to_owned())));)?
                        $(payload::$object_field::describe(stringify!($of_object), $of_object, tables, fields);)?
                        $(payload::$argument_field::describe(stringify!($of_argument), $of_argument, tables, fields);)*
                    })*
                    $(Op::$bare => {})*
                    Op::Init { object, kind } | Op::Destroy { object, kind } => {
                        payload::Object::describe("object", object, tables, fields);
                        fields.push(("what", Field::Text(kind.word().to_owned())));
                    }
                    $crate::ops_about!(Memory) => {}
                }
            }
        }

        /// Does a text follow the record of an operation?
        pub(crate) const fn has_text(sync: SyncOp) -> bool {
            match sync {
                $(SyncOp::$name => !concat!("" $(, stringify!($text))?).is_empty(),)*
                $(SyncOp::$bare => false,)*
                $(SyncOp::$life => false,)*
                // The only mark that has one.
                $(SyncOp::$mark => matches!(SyncOp::$mark, SyncOp::ThreadName),)*
            }
        }
    };
}

raddle_wire::operation_table!(events);

/// A pattern: all events about the kinds of objects that are named, for the end of a match over `Op` that means other kinds. `Memory` are
/// the events that are no lines of the table, `Life` those that begin and end an object's life, and `Sync` is every line of the
/// table.
///
/// Whoever names the events of a kind one by one is stopped by the compiler when the table has a new line for that kind.
#[macro_export]
macro_rules! ops_about {
    ($($kind:ident),+) => {
        $($crate::op_group!($kind))|+
    };
}

/// A pattern: all events but those about one kind of object.
#[macro_export]
macro_rules! ops_beside {
    // Goes through all kinds, leaves out the one that is named and keeps the others.
    (@$beside:ident [$($kept:ident)*]) => { $crate::ops_about!($($kept),*) };
    (@Thread [$($kept:ident)*] Thread $($rest:ident)*) => { $crate::ops_beside!(@Thread [$($kept)*] $($rest)*) };
    (@Lock [$($kept:ident)*] Lock $($rest:ident)*) => { $crate::ops_beside!(@Lock [$($kept)*] $($rest)*) };
    (@Condition [$($kept:ident)*] Condition $($rest:ident)*) => { $crate::ops_beside!(@Condition [$($kept)*] $($rest)*) };
    (@Barrier [$($kept:ident)*] Barrier $($rest:ident)*) => { $crate::ops_beside!(@Barrier [$($kept)*] $($rest)*) };
    (@Semaphore [$($kept:ident)*] Semaphore $($rest:ident)*) => { $crate::ops_beside!(@Semaphore [$($kept)*] $($rest)*) };
    (@Once [$($kept:ident)*] Once $($rest:ident)*) => { $crate::ops_beside!(@Once [$($kept)*] $($rest)*) };
    (@Futex [$($kept:ident)*] Futex $($rest:ident)*) => { $crate::ops_beside!(@Futex [$($kept)*] $($rest)*) };
    (@Annotated [$($kept:ident)*] Annotated $($rest:ident)*) => { $crate::ops_beside!(@Annotated [$($kept)*] $($rest)*) };
    (@Signal [$($kept:ident)*] Signal $($rest:ident)*) => { $crate::ops_beside!(@Signal [$($kept)*] $($rest)*) };
    (@Channel [$($kept:ident)*] Channel $($rest:ident)*) => { $crate::ops_beside!(@Channel [$($kept)*] $($rest)*) };
    (@$beside:ident [$($kept:ident)*] $next:ident $($rest:ident)*) => {
        $crate::ops_beside!(@$beside [$($kept)* $next] $($rest)*)
    };
    ($beside:ident) => {
        $crate::ops_beside!(
            @$beside [] Memory Nothing Thread Lock Condition Barrier Semaphore Once Futex Annotated Signal Channel Life
        )
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! op_group {
    (Memory) => {
        Op::Read { .. }
            | Op::Write { .. }
            | Op::Atomic { .. }
            | Op::Fence { .. }
            | Op::Alloc { .. }
            | Op::Free { .. }
            | Op::Lost { .. }
    };
    (Life) => {
        Op::Init { .. } | Op::Destroy { .. }
    };
    (Sync) => {
        $crate::ops_about!(
            Nothing, Thread, Lock, Condition, Barrier, Semaphore, Once, Futex, Annotated, Signal, Channel,
            Life
        )
    };
    ($kind:ident) => {
        $crate::raddle_wire::operations_about!($kind)
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    Mutex,
    Rwlock,
    Condition,
    Barrier,
    Semaphore,
}

impl ObjectKind {
    pub const fn word(self) -> &'static str {
        match self {
            ObjectKind::Mutex => "mutex",
            ObjectKind::Rwlock => "rwlock",
            ObjectKind::Condition => "condition",
            ObjectKind::Barrier => "barrier",
            ObjectKind::Semaphore => "semaphore",
        }
    }
}

impl Op {
    /// Plain accesses are ordered only within their thread; everything else has a place in the global order.
    pub fn is_plain_access(&self) -> bool {
        matches!(self, Op::Read { .. } | Op::Write { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::WordReader;

    struct Words(ObjectId);

    impl WordReader for Words {
        fn addr(&self, word: u64) -> Addr {
            Addr(word)
        }

        fn wait_mutex(&mut self) -> &mut ObjectId {
            &mut self.0
        }
    }

    /// Every line of the table is an event that leads back to the same line and the same words, or it is a mark.
    #[test]
    fn lines_become_events_and_lines_again() {
        let mut marks = Vec::new();
        for &sync in SyncOp::ALL {
            // Bits that every payload keeps: a small number that is no lock bit but NESTED.
            let (object, argument) = (0x400, 0x400);
            match Op::from_sync_words(sync, object, argument, TextIx(0), &mut Words(ObjectId(7))) {
                None => marks.push(sync),
                Some(op) => {
                    let (back, object_back, argument_back) = op.sync_words().expect("a line of the table");
                    assert_eq!(back, sync, "{op:?}");
                    assert!(object_back == object || object_back == 0, "{op:?}");
                    assert!(argument_back == argument || argument_back == 0, "{op:?}");
                    let again = Op::from_sync_words(
                        back,
                        object_back,
                        argument_back,
                        TextIx(0),
                        &mut Words(ObjectId(7)),
                    );
                    assert_eq!(again, Some(op));
                    assert_eq!(crate::describe::kind(&op), sync.word());
                    assert_eq!(has_text(sync), op.text().is_some());
                }
            }
        }
        assert_eq!(marks, [SyncOp::ModuleLoad, SyncOp::ThreadName, SyncOp::Other]);
    }

    #[test]
    fn events_stay_small() {
        assert_eq!(size_of::<Event>(), 48);
    }
}
