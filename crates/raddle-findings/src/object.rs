//! What a finding is about: memory, locks, threads.
//!
//! An object has a place (which memory it is) and, where debug information gives one, the name by which the programmer
//! calls it: `forks[1].lock`, `account.balance`. Two objects with the same name and place are the same.

use crate::finding::{Frame, Thread};
use serde::{Deserialize, Serialize};

/// What an object is used as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    #[default]
    Memory,
    Mutex,
    Rwlock,
    Condition,
    Barrier,
    Semaphore,
    Once,
    Futex,
    Thread,
    /// Something that the program or a model of it names.
    Other,
}

/// Which memory an object is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "in", rename_all = "kebab-case")]
pub enum Place {
    /// Static data: `module+0x1234`.
    Global { module: String, offset: u64 },
    /// A block of the heap.
    Heap {
        bytes: u64,
        /// Where in the block.
        offset: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allocated: Option<Box<Allocation>>,
    },
    Stack {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<Thread>,
        /// Whose local variable it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        function: Option<String>,
    },
    ThreadLocal {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<Thread>,
    },
    /// A thread itself.
    Thread { thread: Thread },
    /// A name of a converted trace.
    Foreign,
    /// Memory that has no name: not static, not a block of the heap that was seen being allocated.
    Unknown { address: u64 },
    #[default]
    Nowhere,
}

/// Who allocated a block, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Allocation {
    pub thread: Thread,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<Frame>,
}

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Object {
    /// As the programmer writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub what: What,
    pub place: Place,
}

impl Object {
    pub fn named(name: &str, what: What) -> Object {
        Object { name: Some(name.to_owned()), what, place: Place::Foreign }
    }

    /// Is it known which object this is? An address without a name may be a stack that the next thread gets, or the next call.
    pub fn is_identified(&self) -> bool {
        match self.place {
            Place::Unknown { .. } | Place::Nowhere => false,
            Place::Stack { .. } | Place::ThreadLocal { .. } => self.name.is_some(),
            Place::Global { .. } | Place::Heap { .. } | Place::Thread { .. } | Place::Foreign => true,
        }
    }
}
