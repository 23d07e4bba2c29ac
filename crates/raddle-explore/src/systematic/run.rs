//! What a search asks for, and what it is told.

use raddle_sched::Operation;
use raddle_sched::dependence::dependent;
use serde::{Deserialize, Serialize};

/// A thread: its place in order of creation. The same prefix of a run creates the same threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadId(pub u32);

impl ThreadId {
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// Which runs are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    None,
    Sleep,
    Dpor,
    Source,
    Optimal,
}

impl Reduction {
    pub const ALL: [Reduction; 5] =
        [Reduction::None, Reduction::Sleep, Reduction::Dpor, Reduction::Source, Reduction::Optimal];
}

/// An operation that a thread performed, or is about to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Event {
    pub thread: ThreadId,
    #[serde(with = "packed")]
    pub op: Operation,
    /// It gave up.
    #[serde(default)]
    pub failed: bool,
}

impl Event {
    /// Must the two stay in this order?
    pub fn ordered_with(&self, other: &Event) -> bool {
        self.thread == other.thread || dependent(&self.op, &other.op)
    }
}

mod packed {
    use raddle_sched::Operation;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(op: &Operation, to: S) -> Result<S::Ok, S::Error> {
        op.pack().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Operation, D::Error> {
        <[u64; 3]>::deserialize(from).map(Operation::unpack)
    }
}

/// One step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub event: Event,
    /// Where in the code; 0: not known.
    pub pc: u64,
    /// Who could have gone instead, and the one who went; sorted.
    pub enabled: Vec<ThreadId>,
}

/// Along which threads a run goes, and whom it leaves alone afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    pub prefix: Vec<ThreadId>,
    /// At this place of the prefix the following threads fall asleep: they do not go before an operation that is dependent on
    /// their own has been performed, at this place or later.
    pub asleep_at: usize,
    pub asleep: Vec<Event>,
}

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Run {
    pub steps: Vec<Step>,
    /// What threads that have not ended were about to do when the run was over, whether they could or not.
    pub pending: Vec<Event>,
    /// Everybody who could go was asleep: the run was given up, or went on as it liked.
    pub blocked: bool,
}

/// Runs the program.
pub trait Executor {
    type Error;

    /// One run along the order, and on to its end. After the prefix the thread that went last goes on while it can and is awake,
    /// then the next one after it in order of creation, and from the beginning if there is none.
    fn run(&mut self, order: &Order) -> Result<Run, Self::Error>;
}
