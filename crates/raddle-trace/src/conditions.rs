//! Condition instances: which signal woke which wait.
//!
//! RaceQuest (§4.3, §4.3.2) does not reason about condition variables but about their *uses*: an instance is one signal
//! or broadcast together with the waits that it woke. A signal has at most one wait, a broadcast any number; an instance
//! without waits is a *lost signal*, which orders nothing and is kept for replay only.
//!
//! # Matching
//!
//! The library does not say which signal woke a thread, so the trace is matched afterwards, in observed order:
//!
//! * A wait whose beginning is known can only have been woken by something that came after its beginning. If there is a
//!   broadcast among these it is taken (a broadcast is not used up); otherwise the *oldest* signal not used up yet. Who
//!   began later can use fewer signals, all of them younger, so taking the oldest leaves the most for the others: if any
//!   assignment serves all waits, this one does.
//! * A wait whose beginning is not in the trace (foreign traces, §4.3.2's `wait_post` events) takes the nearest earlier
//!   signal or broadcast that is available: the paper's rule.
//! * A wait that finds nothing woke up spuriously.
//!
//! The paper's rule alone (nearest available) would use up signals that an older waiter does not need but a younger one
//! does; that is the deviation. A wait that timed out uses no signal.

use crate::event::{Event, Op};
use crate::ids::{ObjectId, ThreadIx};
use crate::model::EventIx;
use crate::ops_beside;
use rustc_hash::FxHashMap;

/// A wait of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    /// Its `WaitBegin`, if the trace has it.
    pub began: Option<EventIx>,
    /// Its `Wait`.
    pub wait: EventIx,
}

/// One use of a condition variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    pub cond: ObjectId,
    /// The `Signal` or `Broadcast`.
    pub signal: EventIx,
    pub broadcast: bool,
    /// Whom it woke, in observed order. Empty: a lost signal.
    pub woken: Vec<Woken>,
}

/// All condition instances of a trace, in the order of their signals.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    pub instances: Vec<Instance>,
    /// Waits that nothing explains.
    pub spurious: Vec<EventIx>,
    by_wait: FxHashMap<EventIx, u32>,
}

/// What is known of one condition variable while the trace is walked.
#[derive(Default)]
struct Condition {
    /// Instances of signals not used up, oldest first.
    available: Vec<u32>,
    broadcast: Option<u32>,
    waiting: Vec<(ThreadIx, EventIx)>,
}

impl Conditions {
    pub fn of(events: &[Event]) -> Conditions {
        let mut conditions = Conditions::default();
        let mut state: FxHashMap<ObjectId, Condition> = FxHashMap::default();
        for (index, event) in events.iter().enumerate() {
            let ix = EventIx(u32::try_from(index).expect("event numbers have 32 bits"));
            match event.op {
                Op::Signal { cond } | Op::Broadcast { cond } => {
                    let broadcast = matches!(event.op, Op::Broadcast { .. });
                    let number = conditions.instances.len() as u32;
                    conditions.instances.push(Instance { cond, signal: ix, broadcast, woken: Vec::new() });
                    let condition = state.entry(cond).or_default();
                    if broadcast {
                        condition.broadcast = Some(number);
                    } else {
                        condition.available.push(number);
                    }
                }
                Op::WaitBegin { cond, .. } => {
                    state.entry(cond).or_default().waiting.push((event.thread, ix));
                }
                Op::Wait { cond, .. } => {
                    let condition = state.entry(cond).or_default();
                    let began = condition.stop_waiting(event.thread);
                    match conditions.choose(condition, began) {
                        Some(number) => {
                            conditions.instances[number as usize].woken.push(Woken { began, wait: ix });
                            conditions.by_wait.insert(ix, number);
                        }
                        None => conditions.spurious.push(ix),
                    }
                    conditions.forget_useless(condition, began.is_some());
                }
                Op::WaitFailed { cond, .. } => {
                    state.entry(cond).or_default().stop_waiting(event.thread);
                }
                ops_beside!(Condition) => {}
            }
        }
        conditions
    }

    /// The instance that woke a wait.
    pub fn instance_of(&self, wait: EventIx) -> Option<&Instance> {
        self.by_wait.get(&wait).map(|&number| &self.instances[number as usize])
    }

    /// Signals and broadcasts that woke nobody.
    pub fn lost(&self) -> impl Iterator<Item = &Instance> {
        self.instances.iter().filter(|instance| instance.woken.is_empty())
    }

    fn choose(&self, condition: &mut Condition, began: Option<EventIx>) -> Option<u32> {
        let signal = |number: u32| self.instances[number as usize].signal;
        match began {
            Some(began) => {
                if let Some(broadcast) = condition.broadcast.filter(|&number| signal(number) > began) {
                    return Some(broadcast);
                }
                let place = condition.available.iter().position(|&number| signal(number) > began)?;
                Some(condition.available.remove(place))
            }
            None => match (condition.available.last().copied(), condition.broadcast) {
                (Some(single), Some(all)) if signal(all) > signal(single) => Some(all),
                (Some(_), _) => condition.available.pop(),
                (None, all) => all,
            },
        }
    }

    /// Drops signals older than every waiter, so that the list stays short. Only in traces with beginnings.
    fn forget_useless(&self, condition: &mut Condition, beginnings: bool) {
        if !beginnings {
            return;
        }
        let oldest = condition.waiting.iter().map(|&(_, began)| began).min();
        let useful =
            |&number: &u32| oldest.is_some_and(|oldest| self.instances[number as usize].signal > oldest);
        condition.available.retain(useful);
    }
}

impl Condition {
    fn stop_waiting(&mut self, thread: ThreadIx) -> Option<EventIx> {
        let place = self.waiting.iter().position(|&(waiter, _)| waiter == thread)?;
        Some(self.waiting.remove(place).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Shape, generate};

    fn events(ops: &[(u32, Op)]) -> Vec<Event> {
        let event = |&(thread, op)| Event {
            thread: ThreadIx(thread),
            location: Default::default(),
            context: Default::default(),
            kept_calls: 0,
            op,
        };
        ops.iter().map(event).collect()
    }

    const C: ObjectId = ObjectId(1);
    const M: ObjectId = ObjectId(2);
    const BEGIN: Op = Op::WaitBegin { cond: C, lock: M };
    const WAIT: Op = Op::Wait { cond: C, lock: M };
    const SIGNAL: Op = Op::Signal { cond: C };
    const BROADCAST: Op = Op::Broadcast { cond: C };

    fn partners(ops: &[(u32, Op)]) -> Vec<Option<u32>> {
        let events = events(ops);
        let conditions = Conditions::of(&events);
        let waits = events.iter().enumerate().filter(|(_, event)| matches!(event.op, Op::Wait { .. }));
        waits.map(|(ix, _)| conditions.instance_of(EventIx(ix as u32)).map(|i| i.signal.0)).collect()
    }

    #[test]
    fn an_older_waiter_leaves_the_younger_signal_to_a_younger_waiter() {
        let trace = [(1, BEGIN), (0, SIGNAL), (2, BEGIN), (0, SIGNAL), (1, WAIT), (2, WAIT)];
        assert_eq!(partners(&trace), [Some(1), Some(3)]);
    }

    #[test]
    fn a_signal_before_the_wait_began_is_lost() {
        let trace = [(0, SIGNAL), (1, BEGIN), (0, SIGNAL), (1, WAIT)];
        assert_eq!(partners(&trace), [Some(2)]);
        assert_eq!(Conditions::of(&events(&trace)).lost().map(|i| i.signal.0).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn a_broadcast_wakes_everybody_and_nothing_wakes_a_spurious_waiter() {
        let trace = [(1, BEGIN), (2, BEGIN), (0, BROADCAST), (1, WAIT), (2, WAIT), (3, BEGIN), (3, WAIT)];
        assert_eq!(partners(&trace), [Some(2), Some(2), None]);
    }

    /// Without beginnings: the paper's rule, figure 4.7.
    #[test]
    fn a_wait_without_beginning_takes_the_nearest_signal() {
        assert_eq!(partners(&[(0, SIGNAL), (0, SIGNAL), (1, WAIT), (2, WAIT)]), [Some(1), Some(0)]);
    }

    /// The naive twin: every wait of a generated trace had a cause, so a perfect matching exists; and what is matched is
    /// allowed: a signal wakes one, a broadcast comes between beginning and end.
    #[test]
    fn every_wait_of_a_generated_trace_is_explained() {
        let shape =
            Shape { conditions: 2, other_percent: 40, failures: true, ..Shape::locks_only(4, 2, 1, 150) };
        let mut waits = 0;
        for seed in 0..300 {
            let trace = generate(&shape, seed);
            let conditions = Conditions::of(&trace.events);
            assert_eq!(conditions.spurious, [], "seed {seed}");
            for instance in &conditions.instances {
                assert!(instance.broadcast || instance.woken.len() <= 1, "seed {seed}");
                for woken in &instance.woken {
                    let began = woken.began.expect("generated traces have beginnings");
                    assert!(began < instance.signal && instance.signal < woken.wait, "seed {seed}");
                    waits += 1;
                }
            }
        }
        assert!(waits > 300, "the shape makes enough waits to say something: {waits}");
    }
}
