//! Signals that another waiter takes.
//!
//! The program pairs each signal with the wait that it woke. A signal wakes *some* waiter, though: had another thread begun
//! to wait before it was sent, that one might have been woken instead, and the rightful one have gone on waiting. Here
//! two signals of a condition exchange their waits, and the program that comes out is searched for states in which it is
//! stuck. Where the second signal is sent by the very thread that the first one should have woken, nobody wakes that
//! thread any more.
//!
//! The program has the steps of the trace, and every thread goes on as it did after its wait: at the optimistic level a
//! candidate that a replay decides, at the sound one a correct reordering but for the choice of who is woken.
//!
//! The observed order is no run of such a program, so that the search begins where nothing has happened, and gets a small part
//! of the budget.

use crate::clocks::Clocks;
use crate::program::{Action, Program};
use raddle_trace::conditions::Conditions;
use raddle_trace::model::EventIx;
use raddle_trace::{Event, ThreadIx};
use rustc_hash::FxHashMap;

/// Pairs of signals that are tried.
const PAIRS_MAX: usize = 32;
/// Longer traces are left alone: each pair takes a program of its own, and the search begins at the beginning.
const EVENTS_MAX: usize = 20_000;

/// The signals whose waits are exchanged: the first goes to the wait of the second.
pub type Exchange = (EventIx, EventIx);

/// Pairs of signals that could have woken the other's waiter.
pub fn exchanges(events: &[Event], program: &Program, must: &Clocks) -> Vec<Exchange> {
    if events.len() > EVENTS_MAX {
        return Vec::new();
    }
    let conditions = Conditions::of(events);
    // The steps of signals and of the beginnings of waits.
    let mut steps: FxHashMap<EventIx, (ThreadIx, u32)> = FxHashMap::default();
    for thread in program.thread_ids() {
        for (pos, step) in program.steps(thread).iter().enumerate() {
            if matches!(step.action, Action::Signal { .. } | Action::WaitBegin { .. }) {
                steps.insert(step.event, (thread, pos as u32));
            }
        }
    }
    let single: Vec<_> = conditions
        .instances
        .iter()
        .filter(|instance| !instance.broadcast)
        .filter_map(|instance| match instance.woken[..] {
            [woken] => {
                let signal = *steps.get(&instance.signal)?;
                Some((instance.cond, instance.signal, signal, *steps.get(&woken.began?)?))
            }
            _ => None,
        })
        .collect();
    let mut pairs = Vec::new();
    for a in &single {
        for b in &single {
            let ((sender, sent), (waiter, began)) = (a.2, b.3);
            let same_condition = a.0 == b.0 && a.1 != b.1;
            // The other one waits when the signal is sent: it does not need it to have been sent.
            let could_wait = sender != waiter && must.at(waiter, began)[sender.index()] <= sent;
            if same_condition && waiter != a.3.0 && could_wait && pairs.len() < PAIRS_MAX {
                pairs.push((a.1, b.1));
            }
        }
    }
    pairs
}
