//! Models that see more of a refusal than that it came last: revivals and refusal testing.
//!
//! Both observe a process that has become *stable* (it can do neither `τ` nor `✓`) in a state that offers just `O`, so that
//! it refuses everything else, and then does an event `a` of `O` from that very state.
//!
//! * *Stable revivals* (`[V=`; Roscoe, "Revivals, stuckness and the hierarchy of CSP models", 2009; "Understanding
//!   Concurrent Systems", 2010, 12.3) record the traces, the traces after which nothing is offered at all, and `(s, X, a)`:
//!   after `s` the process can refuse `X` and then do `a`.
//! * *Refusal testing* (`[R=`; Phillips 1987, Mukarram 1993; Roscoe 2010, 11.5 and 12.1) records `⟨X0, a1, X1, …, an, Xn⟩`, in
//!   which each `X` is a set refused before the next event or `•`, nothing seen.
//!
//! Take a pair of a node `S` (the states that the specification can be in) and a stable state that offers `O`. What it shows
//! is matched by the states of `S` that are stable and offer nothing outside of `O`: the part `S_O` of the node
//! ([`super::normal::NormalForm::refusing`]). There must be one, and each event of `O` must be possible from `S_O`. With
//! revivals the history does not remember refusals and the search goes on with the node after `a` from `S`; with refusal
//! testing it goes on with that after `a` from `S_O`. To go on with both is not necessary: the node from `S_O` is a part of
//! that from `S`, so what it allows the other one allows, too; and a divergence of the specification that needs `•` in the
//! place of a refusal that was seen is no divergence after that refusal.
//!
//! A state that can do `✓` is not stable and shows its events only, as everywhere else (head of `process.rs`). Divergences
//! (`[VD=`, `[RD=`) are treated as in failures-divergences. Partial order reduction keeps failures, not these models, and is
//! left out.

use std::sync::Arc;

use super::combinator::{Label, TICK};
use super::layout::Key;
use super::normal::{LabelSet, Node, NodeId, set_words};
use super::search::{Search, Specification, lock};
use super::verdict::CheckError;

/// What is remembered of refusals in the middle of a behaviour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterRefusal {
    /// The event that follows the last one.
    Revivals,
    /// All of them.
    Testing,
}

/// A pair as these models see it.
pub struct Look<const W: usize> {
    pub node: Arc<Node>,
    /// The part of the node that matches what is refused here; absent if there is none or nothing is seen to be refused.
    refusing: Option<Arc<Node>>,
    kind: AfterRefusal,
    /// It is stable and refuses what the specification cannot refuse.
    pub refuses_too_much: bool,
    pub offers: LabelSet,
    pub next: Vec<(Label, Key<W>, u32)>,
}

/// Whether an event is allowed.
pub enum Allowed {
    /// It leads to this node.
    To(NodeId),
    /// Not at all.
    Never,
    /// Only where more is refused than here, or nothing is seen to be.
    NotAfterRefusal,
}

impl<const W: usize> Look<W> {
    /// Whether the specification, after an event, has fewer possibilities left because of what is refused before it.
    pub fn narrows(&self, label: Label) -> bool {
        let part = self.refusing.as_ref().filter(|_| self.kind == AfterRefusal::Testing);
        part.is_some_and(|part| part.after(label) != self.node.after(label))
    }

    pub fn after(&self, label: Label) -> Allowed {
        let Some(plain) = self.node.after(label) else { return Allowed::Never };
        match &self.refusing {
            None => Allowed::To(plain),
            Some(part) => match part.after(label) {
                None => Allowed::NotAfterRefusal,
                Some(after) if self.kind == AfterRefusal::Testing => Allowed::To(after),
                Some(_) => Allowed::To(plain),
            },
        }
    }
}

/// Looks at a pair: what it offers, and which part of its node matches that.
pub fn look<const W: usize>(
    search: &Search<'_, W>,
    key: &Key<W>,
    kind: AfterRefusal,
) -> Result<Look<W>, CheckError> {
    let Specification::Normal(form) = search.specification else {
        unreachable!("refinement has a specification");
    };
    let model = search.model;
    let mut offers: LabelSet = vec![0; set_words(model.labels.len())].into();
    let mut next = Vec::new();
    model.visibles(key, |label, to, rule| {
        offers[label as usize / 64] |= 1 << (label % 64);
        next.push((label, *to, rule));
        false
    });
    let stable = offers[0] & 1 << TICK == 0 && !model.is_terminated(key) && !model.taus(key, |_, _, _| true);
    let id = search.node_field.get(key);
    let mut form = lock(form);
    let node = form.node(id)?;
    let part = if stable { form.refusing(id, &offers)? } else { None };
    let refusing = part.map(|part| form.node(part)).transpose()?;
    let refuses_too_much = stable && refusing.is_none();
    Ok(Look { node, refusing, kind, refuses_too_much, offers, next })
}
