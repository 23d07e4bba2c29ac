//! What can be asserted of processes.
//!
//! The meaning of each form, in the order of the variants of [`Property`]:
//!
//! * `Spec [M= Impl`: every behaviour of `Impl` that the model `M` records is a behaviour of `Spec`.
//! * deadlock free: in `F`, no stable state without an offer is reachable (`Ω` is not such a state); in `FD` also no
//!   divergence is. In `T` the question makes no sense; the language refuses it.
//! * divergence (livelock) free: no reachable state can do `τ` for ever.
//! * deterministic: no trace `s⌢⟨a⟩` with the failure `(s, {a})`; in `FD` also no divergence.
//! * has trace `t`: `P [M= t1 -> … -> tn -> STOP`, that is, `P` may behave like the bare trace; a final `✓` in the
//!   trace stands for `SKIP` instead of `STOP`.
//!
//! `not` in front turns the verdict round; errors stay errors.

use crate::process::{EventId, EventSetId, ProcId};

/// The semantic model of a check.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum SemanticModel {
    /// `[T=`
    Traces,
    /// `[F=`: stable failures.
    Failures,
    /// `[FD=`: failures and divergences.
    FailuresDivergences,
    /// `[V=`: stable revivals (see `engine::refusals`).
    Revivals,
    /// `[VD=`: revivals and divergences.
    RevivalsDivergences,
    /// `[R=`: refusal testing.
    Refusals,
    /// `[RD=`: refusal testing and divergences.
    RefusalsDivergences,
}

impl SemanticModel {
    /// The letters between `[` and `=`.
    pub fn name(self) -> &'static str {
        match self {
            SemanticModel::Traces => "T",
            SemanticModel::Failures => "F",
            SemanticModel::FailuresDivergences => "FD",
            SemanticModel::Revivals => "V",
            SemanticModel::RevivalsDivergences => "VD",
            SemanticModel::Refusals => "R",
            SemanticModel::RefusalsDivergences => "RD",
        }
    }

    /// Whether it records divergences (and nothing after them).
    pub fn has_divergences(self) -> bool {
        use SemanticModel::{FailuresDivergences, RefusalsDivergences, RevivalsDivergences};
        matches!(self, FailuresDivergences | RevivalsDivergences | RefusalsDivergences)
    }
}

/// The claim itself, without `not` and options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Property {
    Refines { model: SemanticModel, spec: ProcId, implementation: ProcId },
    DeadlockFree { model: SemanticModel, process: ProcId },
    DivergenceFree { process: ProcId },
    Deterministic { model: SemanticModel, process: ProcId },
    HasTrace { model: SemanticModel, process: ProcId, trace: Vec<EventId> },
}

/// How hard partial order reduction tries, see `engine::reduction`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum PartialOrder {
    /// Every enabled rule is explored.
    #[default]
    Off,
    /// Only sets grown from one component that need no other: cheap, reduces less.
    Fast,
    /// The smallest stubborn set over all starting components.
    Precise,
    /// The first proper stubborn set found.
    Hybrid,
}

/// An assertion with its options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assertion {
    pub property: Property,
    /// `not` in front.
    pub negated: bool,
    /// `:[partial order reduce [...]]`.
    pub partial_order: PartialOrder,
    /// `:[tau priority]: A`: both sides are taken as `prioritise(P, <{}, A>)`.
    pub tau_priority: Option<EventSetId>,
}

impl Assertion {
    /// The plain claim.
    pub fn new(property: Property) -> Assertion {
        Assertion { property, negated: false, partial_order: PartialOrder::Off, tau_priority: None }
    }
}
