//! The table of operations: everything that is known about an operation, on one line.
//!
//! An *operation* is something that a thread does to a synchronisation object, to another thread or to its process. The columns:
//!
//! | column | meaning |
//! | --- | --- |
//! | name, number | the variant of [`SyncOp`] and the byte that stands for it in records |
//! | word | what `raddle trace dump` and the corpus call the event |
//! | object | the kind of object that it concerns ([`ObjectKind`]) |
//! | effect | what it does to that object ([`Effect`]); from it follows when it can be taken ([`Effect::demand`]) |
//! | blocks | may its thread have to wait for it? |
//! | outcome | it was done, it failed, or it is announced ([`Outcome`]) |
//! | order | what it passes on between threads ([`Order`]) |
//! | segment | does it end the thread segment? Operations that order nothing do not |
//! | step | the visible operation that it is in schedules ([`StepKind`]), or `-`; behind a slash, what it is as the mutex half of a condition wait |
//! | payload | what the event says: fields that its object holds, fields that its argument holds, the name of a text that follows |
//!
//! The lines stand in four groups: events with a payload; events without (`bare`); those that begin or end an object's life, which
//! are one event for every kind of object (`lives`); and records that are no events (`marks`).
//!
//! From this table come `SyncOp` and the way back from its number, the kinds and words of steps, visibility
//! ([`crate::step::of`]), segment ends, the class of the online detector, and in `raddle-trace` the events (`Op`) with their
//! encoding, decoding and descriptions. A match over operations has no `_` arm: it names events, or all events
//! about a kind of object ([`operations_about`](crate::operations_about)), so that the compiler shows every place that a new line
//! concerns. The lint `wildcard_enum_match_arm` is on wherever operations are named; a test looks that it is.

mod groups;
mod rules;
mod steps;
mod table;
#[cfg(test)]
mod tests;

pub use rules::{Demand, Effect, ObjectKind, Order, Outcome, Situation};
pub use steps::StepKind;
pub(crate) use steps::constants;

use crate::record::lock;

macro_rules! step_kind {
    (-) => {
        None
    };
    ($kind:ident) => {
        Some(StepKind::$kind)
    };
}

macro_rules! half_kind {
    ($step:tt) => {
        step_kind!($step)
    };
    ($step:tt / $half:tt) => {
        step_kind!($half)
    };
}

macro_rules! yes {
    (blocks) => {
        true
    };
    (ends) => {
        true
    };
    (-) => {
        false
    };
}

macro_rules! operations {
    (
        events { $(
            $(#[$meta:meta])*
            $name:ident = $number:literal $word:literal $object:ident $effect:ident $blocks:tt $outcome:ident $order:ident
            $segment:tt $step:tt $(/ $half:tt)? { $($of_object:tt)* } { $($of_argument:tt)* } $($text:ident)?;
        )* }
        $($rest:tt)*
    ) => {
        operations! { @columns
            [$(
                $(#[$meta])*
                $name = $number $word $object $effect $blocks $outcome $order $segment $step $(/ $half)?;
            )*]
            $($rest)*
        }
    };
    (@columns [$($done:tt)*] bare { $($bare:tt)* } lives { $(
            $(#[$meta:meta])*
            $name:ident = $number:literal $word:literal $object:ident $effect:ident $blocks:tt $outcome:ident $order:ident
            $segment:tt $step:tt $what:ident $kind:ident;
        )* } marks { $($marks:tt)* }
    ) => {
        operations! { @all
            $($done)*
            $($bare)*
            $(
                $(#[$meta])*
                $name = $number $word $object $effect $blocks $outcome $order $segment $step;
            )*
            $($marks)*
        }
    };
    (@all $(
        $(#[$meta:meta])*
        $name:ident = $number:literal $word:literal $object:ident $effect:ident $blocks:tt $outcome:ident $order:ident
        $segment:tt $step:tt $(/ $half:tt)?;
    )*) => {
        /// Aux of `Sync` records, and the meaning of word1 (`object`) and of the `Ext` argument (`arg`).
        ///
        /// Events are written when the operation has completed, except those that say *before*.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum SyncOp {
            $($(#[$meta])* $name = $number,)*
        }

        impl SyncOp {
            /// Every operation, in the order of its number.
            pub const ALL: &[SyncOp] = &{
                let lines = [$(SyncOp::$name),*];
                let mut all = lines;
                let mut at = 0;
                while at < lines.len() {
                    all[lines[at] as usize - 1] = lines[at];
                    at += 1;
                }
                all
            };
            pub const LAST: u8 = SyncOp::ALL.len() as u8;

            pub const fn from_u8(value: u8) -> Option<SyncOp> {
                Some(match value {
                    $($number => SyncOp::$name,)*
                    _ => return None,
                })
            }

            /// What the event is called.
            pub const fn word(self) -> &'static str {
                match self {
                    $(SyncOp::$name => $word,)*
                }
            }

            pub const fn object_kind(self) -> ObjectKind {
                match self {
                    $(SyncOp::$name => ObjectKind::$object,)*
                }
            }

            pub const fn effect(self) -> Effect {
                match self {
                    $(SyncOp::$name => Effect::$effect,)*
                }
            }

            /// May a thread have to wait for it?
            pub const fn blocks(self) -> bool {
                match self {
                    $(SyncOp::$name => yes!($blocks),)*
                }
            }

            pub const fn outcome(self) -> Outcome {
                match self {
                    $(SyncOp::$name => Outcome::$outcome,)*
                }
            }

            pub const fn order(self) -> Order {
                match self {
                    $(SyncOp::$name => Order::$order,)*
                }
            }

            /// Does a thread segment end with it?
            pub const fn ends_segment(self) -> bool {
                match self {
                    $(SyncOp::$name => yes!($segment),)*
                }
            }

            /// The visible operation that it is, if it is one; this is the definition of *visible*.
            pub const fn step(self, argument: u64) -> Option<StepKind> {
                let half_of_wait = argument & lock::WAIT != 0;
                match self {
                    $(SyncOp::$name => if half_of_wait { half_kind!($step $(/ $half)?) } else { step_kind!($step) },)*
                }
            }
        }
    };
}

crate::operation_table!(operations);
