//! The arena that interns terms, sets, renamings and calls.
//!
//! Constructors apply only simplifications that are sound in every model and cost nothing to believe: neutral elements
//! and single operands. Anything cleverer belongs to the compressions, where it is tested against the oracle.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{
    Branch, CallId, Compression, EventId, EventSet, EventSetId, EventTable, ProcId, Process, RenamingId,
};

/// Interner of process terms and of what they refer to.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    /// The events of the script.
    pub events: EventTable,
    terms: Vec<Process>,
    term_ids: FxHashMap<Process, ProcId>,
    sets: Vec<EventSet>,
    set_ids: FxHashMap<EventSet, EventSetId>,
    renamings: Vec<Arc<[(EventId, EventId)]>>,
    renaming_ids: FxHashMap<Arc<[(EventId, EventId)]>, RenamingId>,
    call_names: Vec<Arc<str>>,
    bytes: u64,
}

impl Processes {
    /// Interns a term as it is.
    pub fn intern(&mut self, term: Process) -> ProcId {
        if let Some(&id) = self.term_ids.get(&term) {
            return id;
        }
        let id = ProcId(u32::try_from(self.terms.len()).expect("fewer than 2^32 terms"));
        // The term stands in the list and in the index, which keeps some room free.
        self.bytes += 3 * size_of::<Process>() as u64 + 16 + payload_bytes(&term);
        self.terms.push(term.clone());
        self.term_ids.insert(term, id);
        id
    }

    /// About how many bytes the terms and the names of calls take.
    pub fn memory_bytes(&self) -> u64 {
        self.bytes
    }

    pub fn get(&self, id: ProcId) -> &Process {
        &self.terms[id.0 as usize]
    }

    /// Number of interned terms.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    // ---- sets, renamings, calls

    /// Interns a set of events.
    pub fn set(&mut self, set: EventSet) -> EventSetId {
        if let Some(&id) = self.set_ids.get(&set) {
            return id;
        }
        let id = EventSetId(self.sets.len() as u32);
        self.sets.push(set.clone());
        self.set_ids.insert(set, id);
        id
    }

    /// Interns the set of the given events.
    pub fn set_of(&mut self, events: impl IntoIterator<Item = EventId>) -> EventSetId {
        self.set(events.into_iter().collect())
    }

    /// The set with `✓` added, see [`Process::Parallel`].
    pub fn with_tick(&mut self, set: EventSetId) -> EventSetId {
        let set = self.events_of(set).with_tick();
        self.set(set)
    }

    pub fn events_of(&self, set: EventSetId) -> &EventSet {
        &self.sets[set.0 as usize]
    }

    /// Interns a renaming: pairs (old, new), sorted here. An old event with several new ones may become any of them.
    pub fn renaming(&mut self, pairs: impl IntoIterator<Item = (EventId, EventId)>) -> RenamingId {
        let mut pairs: Vec<_> =
            pairs.into_iter().filter(|(old, new)| old.is_visible() && new.is_visible()).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let pairs: Arc<[_]> = pairs.into();
        if let Some(&id) = self.renaming_ids.get(&pairs) {
            return id;
        }
        let id = RenamingId(self.renamings.len() as u32);
        self.renamings.push(pairs.clone());
        self.renaming_ids.insert(pairs, id);
        id
    }

    /// The pairs (old, new) of a renaming, sorted.
    pub fn pairs_of(&self, renaming: RenamingId) -> &[(EventId, EventId)] {
        &self.renamings[renaming.0 as usize]
    }

    /// The images of `event`: itself if the renaming does not mention it.
    pub fn renamed(&self, renaming: RenamingId, event: EventId) -> impl Iterator<Item = EventId> + '_ {
        let pairs = self.pairs_of(renaming);
        let start = pairs.partition_point(|&(old, _)| old < event);
        let end = start + pairs[start..].partition_point(|&(old, _)| old == event);
        let itself = (start == end).then_some(event);
        itself.into_iter().chain(pairs[start..end].iter().map(|&(_, new)| new))
    }

    /// A new call number; `name` is what diagnostics and counterexamples call it, e.g. `PHIL(3)`.
    pub fn fresh_call(&mut self, name: impl Into<Arc<str>>) -> CallId {
        let id = CallId(self.call_names.len() as u32);
        let name: Arc<str> = name.into();
        self.bytes += name.len() as u64 + 48;
        self.call_names.push(name);
        id
    }

    pub fn call_name(&self, call: CallId) -> &str {
        &self.call_names[call.0 as usize]
    }

    // ---- constructors

    /// A new named process, to be defined later.
    pub fn call(&mut self, name: impl Into<Arc<str>>) -> ProcId {
        let call = self.fresh_call(name);
        self.intern(Process::Call(call))
    }

    pub fn stop(&mut self) -> ProcId {
        self.intern(Process::Stop)
    }

    pub fn skip(&mut self) -> ProcId {
        self.intern(Process::Skip)
    }

    pub fn omega(&mut self) -> ProcId {
        self.intern(Process::Omega)
    }

    pub fn div(&mut self) -> ProcId {
        self.intern(Process::Div)
    }

    pub fn chaos(&mut self, set: EventSetId) -> ProcId {
        self.intern(Process::Chaos(set))
    }

    pub fn run(&mut self, set: EventSetId) -> ProcId {
        if self.events_of(set).is_empty() {
            return self.stop();
        }
        self.intern(Process::Run(set))
    }

    /// `event -> then`.
    pub fn prefix(&mut self, event: EventId, then: ProcId) -> ProcId {
        self.prefixes(vec![(event, then)])
    }

    /// `e1 -> P1 [] e2 -> P2 [] …`; `STOP` if there are none.
    pub fn prefixes(&mut self, mut branches: Vec<Branch>) -> ProcId {
        debug_assert!(branches.iter().all(|(e, _)| e.is_visible()), "only visible events can be prefixed");
        branches.sort_unstable();
        branches.dedup();
        if branches.is_empty() {
            return self.stop();
        }
        self.intern(Process::Prefix(branches.into()))
    }

    /// `event1 -> event2 -> … -> then`.
    pub fn chain(&mut self, events: &[EventId], then: ProcId) -> ProcId {
        events.iter().rev().fold(then, |rest, &event| self.prefix(event, rest))
    }

    /// `|~|`.
    ///
    /// # Panics
    /// Without operands: CSP gives the empty internal choice no meaning, and the language refuses it earlier.
    pub fn internal_choice(&mut self, mut operands: Vec<ProcId>) -> ProcId {
        assert!(!operands.is_empty(), "an internal choice needs an operand");
        operands.sort_unstable();
        operands.dedup();
        if let [only] = operands[..] {
            return only;
        }
        self.intern(Process::InternalChoice(operands.into()))
    }

    /// `[]`; `STOP` without operands.
    pub fn external_choice(&mut self, mut operands: Vec<ProcId>) -> ProcId {
        let stop = self.stop();
        operands.retain(|&p| p != stop);
        match operands[..] {
            [] => stop,
            [only] => only,
            _ => self.intern(Process::ExternalChoice(operands.into())),
        }
    }

    /// `P [> Q`.
    pub fn sliding(&mut self, p: ProcId, q: ProcId) -> ProcId {
        self.intern(Process::Sliding(p, q))
    }

    /// `P [+ set +] Q`.
    pub fn sync_choice(&mut self, p: ProcId, set: EventSetId, q: ProcId) -> ProcId {
        self.intern(Process::SyncChoice(p, set, q))
    }

    /// `P ; Q`.
    pub fn sequence(&mut self, p: ProcId, q: ProcId) -> ProcId {
        self.intern(Process::Sequence(p, q))
    }

    /// `|||`; `SKIP` without operands.
    pub fn interleave(&mut self, operands: Vec<ProcId>) -> ProcId {
        match operands[..] {
            [] => self.skip(),
            [only] => only,
            _ => self.intern(Process::Interleave(operands.into())),
        }
    }

    /// `[| set |]`; `SKIP` without operands.
    pub fn parallel(&mut self, operands: Vec<ProcId>, set: EventSetId) -> ProcId {
        match operands[..] {
            [] => self.skip(),
            [only] => only,
            _ => self.intern(Process::Parallel(operands.into(), set)),
        }
    }

    /// `|| i @ [A_i] P_i`; `SKIP` without operands.
    pub fn alphabetised(&mut self, operands: Vec<(ProcId, EventSetId)>) -> ProcId {
        if operands.is_empty() {
            return self.skip();
        }
        self.intern(Process::Alphabetised(operands.into()))
    }

    /// `P [ a <-> b, … ] Q`.
    pub fn linked(
        &mut self,
        p: ProcId,
        links: impl IntoIterator<Item = (EventId, EventId)>,
        q: ProcId,
    ) -> ProcId {
        let mut links: Vec<_> = links.into_iter().collect();
        links.sort_unstable();
        links.dedup();
        self.intern(Process::Linked(p, links.into(), q))
    }

    /// `P \ set`.
    pub fn hide(&mut self, p: ProcId, set: EventSetId) -> ProcId {
        if self.events_of(set).is_empty() {
            return p;
        }
        self.intern(Process::Hide(p, set))
    }

    /// `P |\ set`.
    pub fn project(&mut self, p: ProcId, set: EventSetId) -> ProcId {
        self.intern(Process::Project(p, set))
    }

    /// `P [[ old <- new, … ]]`.
    pub fn rename(&mut self, p: ProcId, renaming: RenamingId) -> ProcId {
        if self.pairs_of(renaming).is_empty() {
            return p;
        }
        self.intern(Process::Rename(p, renaming))
    }

    /// `P /\ Q`.
    pub fn interrupt(&mut self, p: ProcId, q: ProcId) -> ProcId {
        self.intern(Process::Interrupt(p, q))
    }

    /// `P [| set |> Q`.
    pub fn exception(&mut self, p: ProcId, set: EventSetId, q: ProcId) -> ProcId {
        self.intern(Process::Exception(p, set, q))
    }

    /// `P /+ set +\ Q`.
    pub fn sync_interrupt(&mut self, p: ProcId, set: EventSetId, q: ProcId) -> ProcId {
        self.intern(Process::SyncInterrupt(p, set, q))
    }

    /// `prioritise(P, <set1, …>)`.
    pub fn prioritise(&mut self, p: ProcId, order: Vec<EventSetId>) -> ProcId {
        self.intern(Process::Prioritise(p, order.into()))
    }

    /// `prioritisepo(P, …)` with the pairs (above, below) of a transitively closed order.
    pub fn prioritise_order(&mut self, p: ProcId, mut above: Vec<(EventId, EventId)>) -> ProcId {
        above.sort_unstable();
        above.dedup();
        self.intern(Process::PrioritiseOrder(p, above.into()))
    }

    /// A deterministic process that refines `P`, unless `P` diverges.
    pub fn determinise(&mut self, p: ProcId) -> ProcId {
        let chased = self.chase(p);
        self.one_of_each(chased)
    }

    /// See [`Process::OneOfEach`].
    pub fn one_of_each(&mut self, p: ProcId) -> ProcId {
        self.intern(Process::OneOfEach(p))
    }

    /// `chase(P)`.
    pub fn chase(&mut self, p: ProcId) -> ProcId {
        self.intern(Process::Chase(p))
    }

    /// `normal(P)`, `sbisim(P)`, ….
    pub fn compress(&mut self, compression: Compression, p: ProcId) -> ProcId {
        self.intern(Process::Compress(compression, p))
    }
}

/// What a term holds outside of itself.
fn payload_bytes(term: &Process) -> u64 {
    let pairs = match term {
        Process::Prefix(list) => list.len(),
        Process::InternalChoice(list) | Process::ExternalChoice(list) | Process::Interleave(list) => {
            list.len()
        }
        Process::Parallel(list, _) => list.len(),
        Process::Alphabetised(list) => list.len(),
        Process::Linked(_, list, _) => list.len(),
        Process::Prioritise(_, list) => list.len(),
        Process::PrioritiseOrder(_, list) => list.len(),
        _ => return 0,
    };
    16 + 8 * pairs as u64
}
