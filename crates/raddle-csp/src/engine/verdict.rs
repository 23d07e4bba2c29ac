//! Options of a check and what it answers.
//!
//! Everything here is plain data in terms of [`EventId`]; [`super::render`] turns it into text, JSON and SVG.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::room::Work;
use crate::process::{EvalError, EventId};

/// Called while a check runs.
pub type OnProgress = Arc<dyn Fn(&Progress) + Send + Sync>;

/// How to check.
#[derive(Clone)]
pub struct CheckOptions {
    /// Threads that explore; at least one.
    pub workers: usize,
    /// Above this many bytes of states the search goes on on disk. `None`: memory only.
    pub memory_limit_bytes: Option<u64>,
    /// Folder for the spilled states; the system's temporary folder if absent.
    pub spill_folder: Option<PathBuf>,
    /// How many different counterexamples to look for; at least one.
    pub counterexamples: usize,
    /// Leaf processes (and compressed ones) with more states than this are an error, not an endless computation.
    pub leaf_states_max: usize,
    /// Leaf processes whose terms, definitions and transitions need more bytes than this are an error, too, and so are
    /// compressions and normal forms that do. Estimated.
    pub leaf_memory_max_bytes: u64,
    /// Whether a deadlock is to be reached by as few events as possible, also when a directed search finds another one much
    /// earlier (see [`super::probe`]).
    pub shortest: bool,
    /// Whether a check for deadlock visits every state also where neighbouring leaves show that there is none (see
    /// [`super::neighbours`]).
    pub every_state: bool,
    /// Give up, with an error, after this many state pairs.
    pub pairs_max: Option<u64>,
    /// Called from time to time while exploring, from the thread that called `check`.
    pub progress: Option<OnProgress>,
    /// Set it to stop the check with [`CheckError::Cancelled`].
    pub cancel: Option<Arc<AtomicBool>>,
}

impl Default for CheckOptions {
    fn default() -> CheckOptions {
        CheckOptions {
            workers: 1,
            memory_limit_bytes: None,
            spill_folder: None,
            counterexamples: 1,
            shortest: false,
            every_state: false,
            leaf_states_max: 2_000_000,
            leaf_memory_max_bytes: 768 << 20,
            pairs_max: None,
            progress: None,
            cancel: None,
        }
    }
}

/// Where a running check is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Progress {
    /// Components are still being made; `pairs` are the states of the one in work.
    pub compiling: bool,
    /// Which one that is.
    pub component: String,
    /// Finished plies: the visible events of the traces explored so far.
    pub plies: u64,
    /// Pairs found so far.
    pub pairs: u64,
    pub transitions: u64,
    /// Bytes held for states, without what was spilled.
    pub memory_bytes: u64,
    pub elapsed: Duration,
}

/// Sizes of a finished check.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Statistics {
    /// Distinct (specification node, implementation state) pairs visited.
    pub pairs: u64,
    /// Transitions taken from them.
    pub transitions: u64,
    /// Nodes of the specification's normal form that were built.
    pub spec_nodes: u64,
    pub plies: u64,
    /// Components of the implementation's state vector.
    pub components: usize,
    /// Bits of the packed pair, and bytes it is stored in.
    pub state_bits: usize,
    pub state_bytes: usize,
    /// The most bytes held for states at one time: vectors and index.
    pub memory_bytes_max: u64,
    /// Bytes written to disk.
    pub spilled_bytes: u64,
    /// Whether neighbouring components settled it before all pairs were visited.
    pub by_neighbours: bool,
    /// Time to compile and time to explore.
    pub compile_time: Duration,
    pub explore_time: Duration,
}

/// The answer to an assertion.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Whether the assertion, with its `not`, holds.
    pub holds: bool,
    /// Whether the bare property holds; differs from `holds` under `not`.
    pub property_holds: bool,
    /// Why the property does not hold: shortest first, at most as many as asked for. Empty if it holds.
    pub counterexamples: Vec<Counterexample>,
    pub statistics: Statistics,
}

/// One step of the implementation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// What the whole does; may be `τ`.
    pub event: EventId,
    /// What the components do in it: (index into [`Counterexample::components`], the component's own event).
    pub parts: Vec<(usize, EventId)>,
}

/// A behaviour of the implementation that breaks the property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counterexample {
    /// The visible events before the violation, a `✓` included if it happened.
    pub trace: Vec<EventId>,
    /// The same with the `τ`s, step by step. For [`Behaviour::Event`] and
    /// [`Behaviour::Revival`] the last step is the forbidden event, which
    /// `trace` does not contain.
    pub path: Vec<Step>,
    pub behaviour: Behaviour,
    pub components: Vec<Component>,
    /// Refusals on the way that the violation depends on (models `R` and `RD`), in the order of the trace.
    pub on_the_way: Vec<Offered>,
}

/// A stable state on the way of a counterexample.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offered {
    /// The event of the trace that came next.
    pub position: usize,
    /// All that was offered there.
    pub offers: Vec<EventId>,
}

/// A leaf of the composition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Component {
    /// What it is called in the source.
    pub name: String,
    /// Its states, after reduction.
    pub states: usize,
    /// In a counterexample, for a compressed process: what its own components did.
    pub inside: Vec<Inner>,
}

/// A component of a compressed process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inner {
    pub name: String,
    /// What it did, its `τ`s left out.
    pub trace: Vec<EventId>,
    pub inside: Vec<Inner>,
}

/// What is wrong after the trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Behaviour {
    /// The implementation does an event that the specification does not allow; `allowed` is what it would.
    Event { event: EventId, allowed: Vec<EventId> },
    /// The implementation is stable and offers only `offers`; the specification insists on all of one of `required`.
    Refusal { offers: Vec<EventId>, required: Vec<Vec<EventId>> },
    /// The implementation is stable, offers only `offers` and does `event`; the specification does `event` here only where it
    /// offers something else as well, or is not stable (models `V` and `R`). The path ends with the event.
    Revival { event: EventId, offers: Vec<EventId> },
    /// Nothing can happen any more.
    Deadlock,
    /// `τ` for ever: the steps of a loop that starts after the path.
    Divergence { cycle: Vec<Step> },
    /// `event` can happen after the trace and can be refused after it by a state that offers only `offers`. The path
    /// leads to the refusing state.
    Nondeterminism { event: EventId, offers: Vec<EventId> },
    /// The trace asked for is not possible: after [`Counterexample::trace`] the process cannot do `event`, or, in `F`
    /// and `FD` when `event` is absent, cannot refuse all else.
    MissingTrace { event: Option<EventId>, possible: Vec<EventId> },
}

/// Why there is no answer. Never to be read as "holds".
#[derive(Clone, Debug, thiserror::Error)]
pub enum CheckError {
    /// A definition could not be evaluated.
    #[error("{0}")]
    Eval(#[from] EvalError),
    #[error(
        "the recursion of {name} is unguarded: its first events depend on themselves; put an event before the recursive call"
    )]
    UnguardedRecursion { name: String },
    #[error("{name} has more than {limit} states; raise the limit or check that its parameters are bounded")]
    TooManyStates { name: String, limit: usize },
    /// A machine or normal form outgrew [`CheckOptions::leaf_memory_max_bytes`].
    #[error(
        "{work} {name} needs more than {limit_mb} MB of memory; there are {states} states so far; {advice}",
        advice = work.advice()
    )]
    Memory { work: Work, name: String, within: Option<String>, states: usize, limit_mb: u64 },
    #[error("stopped after {limit} state pairs, as asked")]
    PairLimit { limit: u64 },
    #[error("the state vector needs {bits} bits, more than the {limit} supported; compress some components")]
    VectorTooLong { bits: usize, limit: usize },
    #[error("the composition of {name} gives more than {limit} rules; compress an operand or rename less")]
    TooManyRules { name: String, limit: usize },
    #[error("the check was cancelled")]
    Cancelled,
    #[error("cannot use the spill folder {folder}: {cause}")]
    Spill { folder: String, cause: String },
    #[error("{0}")]
    Unsupported(String),
}
