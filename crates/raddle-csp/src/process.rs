//! Closed CSP processes as an interned operator tree: the seam between the language and the engine.
//!
//! A [`Process`] is one operator applied to already interned operands ([`ProcId`]). Every value of the language is gone
//! by the time a term gets here: events are numbers of an [`EventTable`], sets of events and renamings are interned, and
//! the bodies of recursive definitions stand behind [`Process::Call`] and are asked for one at a time through
//! [`Definitions::unfold`]. Interning (hash-consing) is what makes exploration by terms end: two routes to the same
//! behaviour meet in the same `ProcId`, provided the supplier of definitions gives equal `CallId`s to equal calls.
//!
//! # Termination: tick is a signal
//!
//! The semantics is that of Roscoe, "Understanding Concurrent Systems" (2010), which is also FDR's:
//!
//! * `✓` ([`EventId::TICK`]) is not under the control of the environment. A state that can do `✓` may refuse every
//!   visible event, whatever else it offers; and such a state is never *stable*. Hence the failures of a process are
//!   `(s, X)` for a state reached by `s` that can do neither `τ` nor `✓` and offers nothing of `X`; `(s, X)` for
//!   `X ⊆ Σ` (so not containing `✓`) whenever `✓` is possible after `s`; and `(s⌢⟨✓⟩, X)` for every `X`.
//! * After `✓` comes [`Process::Omega`], a state with no transitions that is *not* a deadlock.
//! * A parallel composition terminates when all its operands have: the `✓` of an operand becomes a `τ` that leaves
//!   `Ω` in its place, and `Ω ∥ … ∥ Ω` does `✓`. If the set of the operator contains `✓` (it does in timed sections, and
//!   only there), the operands do `✓` together instead, like any other event of the set.
//! * `✓` is never hidden or renamed, and resolves choices like a visible event.
//! * `P ; Q` turns the `✓` of `P` into a `τ` to `Q`. In `P △ Q`, `P Θ_A Q` and their kin a `✓` of an operand that could
//!   act terminates the whole.
//!
//! `τ` ([`EventId::TAU`]) never resolves a choice, an interrupt or a sliding choice.
//!
//! # Recursion
//!
//! `Call` is transparent: it has the transitions of the body. A call whose transitions need its own transitions
//! (`P = P [] Q`) is an unguarded recursion, which the engine reports as an error at the definition. `P = P |~| Q` is
//! fine: the internal choice is a `τ`, and `P` diverges, as it should.

mod arena;
mod equations;
mod event;

use std::fmt;
use std::sync::Arc;

pub use arena::Processes;
pub use equations::Equations;
pub use event::{EventId, EventName, EventSet, EventTable};

/// An interned process term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ProcId(pub u32);

/// A call of a (possibly parameterised) definition, with its arguments; one number for equal calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct CallId(pub u32);

/// An interned [`EventSet`]. Never contains `τ`, and `✓` only as the set of a parallel operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct EventSetId(pub u32);

/// An interned relation on visible events, see [`Processes::renaming`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RenamingId(pub u32);

/// One arm of a prefix choice: the event, then the continuation.
pub type Branch = (EventId, ProcId);

/// A compression: a function from machines to (usually smaller) machines with the same behaviour.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Compression {
    /// The explicit machine, unchanged (`explicate`).
    Explicate,
    /// Quotient by strong bisimulation (`sbisim`).
    StrongBisimulation,
    /// Quotient by divergence-respecting weak bisimulation (`wbisim`).
    WeakBisimulation,
    /// Quotient by divergence-respecting delay bisimulation (`dbisim`).
    DelayBisimulation,
    /// Node elimination along `τ` (`diamond`).
    Diamond,
    /// Strongly connected components of `τ` merged (`tau_loop_factor`).
    TauLoopFactor,
    /// The normal form (`normal`).
    Normal,
}

impl Compression {
    /// The name the function has in CSPM.
    pub fn name(self) -> &'static str {
        match self {
            Compression::Explicate => "explicate",
            Compression::StrongBisimulation => "sbisim",
            Compression::WeakBisimulation => "wbisim",
            Compression::DelayBisimulation => "dbisim",
            Compression::Diamond => "diamond",
            Compression::TauLoopFactor => "tau_loop_factor",
            Compression::Normal => "normal",
        }
    }
}

/// A closed process term. Build terms through [`Processes`], which interns them and simplifies the trivial cases.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Process {
    /// Refuses everything.
    Stop,
    /// Terminates: `✓`, then `Ω`.
    Skip,
    /// The state after `✓`.
    Omega,
    /// Does `τ` for ever.
    Div,
    /// The most nondeterministic process over the set that does not diverge: `STOP |~| ?x:A -> CHAOS(A)`.
    Chaos(EventSetId),
    /// Offers the whole set for ever.
    Run(EventSetId),
    /// External choice of prefixes, `e1 -> P1 [] e2 -> P2 [] …`. An event may occur more than once.
    Prefix(Arc<[Branch]>),
    /// `|~|`, of at least one operand.
    InternalChoice(Arc<[ProcId]>),
    /// `[]`.
    ExternalChoice(Arc<[ProcId]>),
    /// `P [> Q`: offers `P` until a `τ` withdraws it in favour of `Q`.
    Sliding(ProcId, ProcId),
    /// `P [+ A +] Q`: like `[]`, but events of `A` are done by both together and do not resolve the choice.
    SyncChoice(ProcId, EventSetId, ProcId),
    /// `P ; Q`.
    Sequence(ProcId, ProcId),
    /// `|||`.
    Interleave(Arc<[ProcId]>),
    /// `P [| A |] Q …`: all operands share the events of `A`, the others are free. With `✓` in `A` they terminate together.
    Parallel(Arc<[ProcId]>, EventSetId),
    /// `|| (P_i, A_i)`: operand `i` may do only events of `A_i`, and an event is done by all operands whose set has it.
    /// Either all sets have `✓` or none.
    Alphabetised(Arc<[(ProcId, EventSetId)]>),
    /// `P [ a <-> b, … ] Q`: an `a` of `P` and a `b` of `Q` happen together as a `τ`; linked events do not happen alone.
    Linked(ProcId, Arc<[(EventId, EventId)]>, ProcId),
    /// `P \ A`.
    Hide(ProcId, EventSetId),
    /// `P |\ A`: hides everything but `A`.
    Project(ProcId, EventSetId),
    /// `P [[ a <- b, … ]]`. An event outside the relation's domain keeps its name.
    Rename(ProcId, RenamingId),
    /// `P /\ Q`.
    Interrupt(ProcId, ProcId),
    /// `P [| A |> Q`: an event of `A` done by `P` hands over to `Q`.
    Exception(ProcId, EventSetId, ProcId),
    /// `P /+ A +\ Q`: like `/\`, but events of `A` are done by both together and do not interrupt.
    SyncInterrupt(ProcId, EventSetId, ProcId),
    /// `prioritise(P, <A1, …, An>)`: `τ`, `✓` and `A1` come first; an event of a later set happens only when nothing of
    /// an earlier one can. Events in no set are neither slowed nor slow others.
    Prioritise(ProcId, Arc<[EventSetId]>),
    /// `prioritisepo(P, …)`: an event happens only when nothing that is set above it can. The pairs are (above, below),
    /// sorted and transitively closed; `τ` and `✓` may be above.
    PrioritiseOrder(ProcId, Arc<[(EventId, EventId)]>),
    /// At most one of the transitions with each event, and only `✓` where there is one: `deter(P)` is this of `chase(P)`.
    OneOfEach(ProcId),
    /// `chase(P)`: follows `τ`s, always the first one, until there is none. Keeps the semantics only of processes
    /// whose `τ`s are confluent.
    Chase(ProcId),
    /// A compression function applied to `P`.
    Compress(Compression, ProcId),
    /// A named definition, unfolded when its transitions are wanted.
    Call(CallId),
}

/// A place in a source text: number of the file, byte offsets. The engine carries it, the language gives it meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    pub file: u32,
    pub start: u32,
    pub end: u32,
}

/// What went wrong while the body of a call was computed (pattern without match, recursion too deep, …).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EvalError {
    /// The cause, one sentence.
    pub message: String,
    /// Where in the source, if known.
    pub place: Option<Place>,
    /// What to do next, or the calls that led here; one line each.
    pub notes: Vec<String>,
}

impl EvalError {
    pub fn new(message: impl Into<String>) -> EvalError {
        EvalError { message: message.into(), place: None, notes: Vec::new() }
    }

    pub fn at(mut self, place: Place) -> EvalError {
        self.place = Some(place);
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> EvalError {
        self.notes.push(note.into());
        self
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EvalError {}

/// Supplies the bodies of calls, one at a time and at most once each (the arena remembers them).
///
/// The engine calls this while it compiles, from one thread. The body may contain further calls, which must not be
/// evaluated now: that laziness is what makes `P(n) = a -> P(n+1)` a term instead of an endless computation.
pub trait Definitions {
    fn unfold(&mut self, call: CallId, arena: &mut Processes) -> Result<ProcId, EvalError>;

    /// About how many bytes are held for the calls made so far; counted against the limit for leaves.
    fn memory_bytes(&self) -> u64 {
        0
    }
}
