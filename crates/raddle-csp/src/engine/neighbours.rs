//! Freedom from deadlock seen in neighbours: pairs of leaves instead of the states of the whole.
//!
//! In a deadlock every leaf waits: it can do nothing alone, and of each step that it offers with others some partner
//! refuses its part. So for a leaf's state to stand in a deadlock there has to be, for each of its neighbours, a state
//! that can be reached together with it, waits as well, and refuses what they could do together. States for which some
//! neighbour has none are struck out, which may leave others without one, until nothing changes. If a leaf has no state
//! left, there is no deadlock.
//!
//! That is the state dependency digraph of Martin and Jassim ("An efficient technique for deadlock analysis of large
//! scale process networks", FME 1997) as a greatest fixpoint: where they ask for a cycle of waiting states, each state
//! here needs a partner for *every* neighbour, so that the absence of a cycle is one of the cases. Antonino,
//! Gibson-Robinson and Roscoe ("Efficient deadlock-freedom checking using local analysis and SAT solving", 2016) look at
//! the same pairs. What is reached together is found by exploring the two leaves with the rest of the world taken to
//! agree to everything, so more pairs may be kept than there are: the answer "free" is certain, the other one says
//! nothing, and the search decides.
//!
//! The cost is that of the pairs of neighbours, whatever the number of leaves. It is asked once, when the search has
//! found [`super::probe::FIRST_PAIRS`] pairs; [`super::CheckOptions::every_state`] turns it off. Rules with negative
//! premises (`prioritise`) and operators that switch operands on and off are left to the search.

use rustc_hash::{FxHashMap, FxHashSet};

use super::machine::State;
use super::model::Model;
use super::rules::{OMEGA, is_control};
use crate::process::EventId;

/// Pairs of states, and steps between them, that are looked at before giving up: about a second.
const WORK_MAX: u64 = 30_000_000;

/// A set of states of a leaf.
#[derive(Clone, PartialEq, Eq)]
struct States(Vec<u64>);

impl States {
    fn none(len: usize) -> States {
        States(vec![0; len.div_ceil(64)])
    }

    fn has(&self, s: State) -> bool {
        self.0[s as usize / 64] & 1 << (s % 64) != 0
    }

    /// Whether it was not there before.
    fn add(&mut self, s: State) -> bool {
        let fresh = !self.has(s);
        self.0[s as usize / 64] |= 1 << (s % 64);
        fresh
    }

    fn remove(&mut self, s: State) {
        self.0[s as usize / 64] &= !(1 << (s % 64));
    }

    fn meets(&self, other: &States) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|&w| w == 0)
    }
}

/// How the events of the leaves make steps of the whole.
struct Rules {
    /// By leaf: the events it does alone.
    alone: Vec<FxHashSet<EventId>>,
    /// By leaf and event: the rules with others, by number.
    joint: Vec<FxHashMap<EventId, Vec<usize>>>,
    /// The parts of these rules.
    parts: Vec<Vec<(usize, EventId)>>,
}

impl Rules {
    /// Nothing if there are rules that this analysis does not know.
    fn of(model: &Model) -> Option<Rules> {
        let combinator = &model.combinator;
        if !model.outer.is_empty() || combinator.leaves.iter().any(|l| l.is_controller) {
            return None;
        }
        let leaves = combinator.leaves.len();
        let mut rules = Rules {
            alone: vec![FxHashSet::default(); leaves],
            joint: vec![FxHashMap::default(); leaves],
            parts: Vec::new(),
        };
        for rule in &combinator.rules {
            if !rule.resets.is_empty() || rule.parts.iter().any(|(_, e)| is_control(*e)) {
                return None;
            }
            // That all have ended. Without this rule there are more deadlocks, not fewer.
            if rule.parts.iter().any(|&(_, e)| e == OMEGA) {
                continue;
            }
            if let [(leaf, event)] = rule.parts[..] {
                rules.alone[leaf.0 as usize].insert(event);
                continue;
            }
            let parts: Vec<_> = rule.parts.iter().map(|&(leaf, event)| (leaf.0 as usize, event)).collect();
            for &(leaf, event) in &parts {
                rules.joint[leaf].entry(event).or_default().push(rules.parts.len());
            }
            rules.parts.push(parts);
        }
        Some(rules)
    }

    /// The leaves that take part in a step with this one.
    fn neighbours(&self, leaf: usize) -> Vec<usize> {
        let rules = self.joint[leaf].values().flatten();
        let mut list: Vec<usize> = rules.flat_map(|&r| self.parts[r].iter().map(|p| p.0)).collect();
        list.sort_unstable();
        list.dedup();
        list.retain(|&other| other != leaf);
        list
    }

    fn part(&self, rule: usize, leaf: usize) -> Option<EventId> {
        self.parts[rule].iter().find(|p| p.0 == leaf).map(|p| p.1)
    }
}

/// Whether neighbours alone show that no reachable state is a deadlock. True is certain, false is not.
pub fn deadlock_free(model: &Model) -> bool {
    Rules::of(model).and_then(|rules| Analysis { model, rules, work: 0 }.run()).unwrap_or(false)
}

struct Analysis<'m> {
    model: &'m Model,
    rules: Rules,
    work: u64,
}

impl Analysis<'_> {
    fn len(&self, leaf: usize) -> usize {
        self.model.combinator.leaves[leaf].machine.len()
    }

    fn from(&self, leaf: usize, s: State) -> &[(EventId, State)] {
        self.model.combinator.leaves[leaf].machine.from(s)
    }

    fn worked(&mut self, more: usize) -> Option<()> {
        self.work += more as u64;
        (self.work <= WORK_MAX).then_some(())
    }

    fn run(&mut self) -> Option<bool> {
        let leaves = self.model.combinator.leaves.len();
        // The states in which a leaf can do nothing alone.
        let mut waiting: Vec<States> = (0..leaves)
            .map(|leaf| {
                let mut set = States::none(self.len(leaf));
                for s in self.model.combinator.leaves[leaf].machine.states() {
                    if !self.from(leaf, s).iter().any(|(e, _)| self.rules.alone[leaf].contains(e)) {
                        set.add(s);
                    }
                }
                set
            })
            .collect();
        if waiting.iter().any(States::is_empty) {
            return Some(true);
        }
        // By leaf and neighbour, and by the leaf's state: the neighbour's states in which both may wait for each other.
        let mut beside: Vec<Vec<(usize, Vec<States>)>> = vec![Vec::new(); leaves];
        for leaf in 0..leaves {
            for other in self.rules.neighbours(leaf) {
                if leaf < other {
                    let (there, back) = self.pair(leaf, other, &waiting)?;
                    beside[leaf].push((other, there));
                    beside[other].push((leaf, back));
                }
            }
        }
        loop {
            let mut changed = false;
            for leaf in 0..leaves {
                for s in self.model.combinator.leaves[leaf].machine.states() {
                    if !waiting[leaf].has(s) {
                        continue;
                    }
                    self.worked(1 + beside[leaf].len())?;
                    if !self.may_wait(leaf, s, &beside[leaf], &waiting)? {
                        waiting[leaf].remove(s);
                        changed = true;
                    }
                }
                if waiting[leaf].is_empty() {
                    return Some(true);
                }
            }
            if !changed {
                return Some(false);
            }
        }
    }

    /// Whether each neighbour has a state beside `s` in which it waits, and each step with several others one that
    /// refuses.
    fn may_wait(
        &mut self,
        leaf: usize,
        s: State,
        beside: &[(usize, Vec<States>)],
        waiting: &[States],
    ) -> Option<bool> {
        if !beside.iter().all(|(other, by)| by[s as usize].meets(&waiting[*other])) {
            return Some(false);
        }
        let mut work = 0;
        let all_refused = self.from(leaf, s).iter().all(|(event, _)| {
            let joint = self.rules.joint[leaf].get(event).map_or(&[][..], |list| list);
            joint.iter().filter(|&&r| self.rules.parts[r].len() > 2).all(|&r| {
                self.rules.parts[r].iter().any(|&(other, wanted)| {
                    let Some((_, by)) = beside.iter().find(|(o, _)| *o == other) else { return false };
                    let machine = &self.model.combinator.leaves[other].machine;
                    machine.states().any(|t| {
                        work += 1;
                        by[s as usize].has(t) && waiting[other].has(t) && machine.after(t, wanted).is_empty()
                    })
                })
            })
        });
        self.worked(work)?;
        Some(all_refused)
    }

    /// The pairs of states of two neighbours that can be reached together in which both wait and refuse each other; from
    /// the first to the second, and back.
    fn pair(&mut self, a: usize, b: usize, waiting: &[States]) -> Option<(Vec<States>, Vec<States>)> {
        let (a_len, b_len) = (self.len(a), self.len(b));
        self.worked(a_len.checked_mul(b_len)?.div_ceil(8))?;
        let mut reached = vec![States::none(b_len); a_len];
        let mut there = vec![States::none(b_len); a_len];
        let mut back = vec![States::none(a_len); b_len];
        reached[0].add(0);
        let mut open: Vec<(State, State)> = vec![(0, 0)];
        // What the other one does in the rules for an event: nothing in those it has no part in.
        let partner = |this: usize, other: usize, event: EventId| -> (bool, Vec<EventId>) {
            let mut moves_alone = self.rules.alone[this].contains(&event);
            let mut with = Vec::new();
            for &r in self.rules.joint[this].get(&event).map_or(&[][..], |list| list) {
                match self.rules.part(r, other) {
                    Some(e) => with.push(e),
                    None => moves_alone = true,
                }
            }
            with.sort_unstable();
            with.dedup();
            (moves_alone, with)
        };
        let roles = |this: usize, other: usize| -> FxHashMap<EventId, (bool, Vec<EventId>)> {
            let events = self.model.combinator.leaves[this].machine.alphabet();
            events.into_iter().map(|e| (e, partner(this, other, e))).collect()
        };
        let (roles_a, roles_b) = (roles(a, b), roles(b, a));
        let mut steps = 0;
        while let Some((s, t)) = open.pop() {
            let mut go = |s: State, t: State| {
                steps += 1;
                if reached[s as usize].add(t) {
                    open.push((s, t));
                }
            };
            for &(event, next) in self.from(a, s) {
                let (alone, with) = &roles_a[&event];
                if *alone {
                    go(next, t);
                }
                for &wanted in with {
                    for &(_, after) in self.model.combinator.leaves[b].machine.after(t, wanted) {
                        go(next, after);
                    }
                }
            }
            for &(event, next) in self.from(b, t) {
                if roles_b[&event].0 {
                    go(s, next);
                }
            }
            if self.work + steps > WORK_MAX {
                return None;
            }
            if waiting[a].has(s) && waiting[b].has(t) && !self.agree(a, s, b, t) {
                there[s as usize].add(t);
                back[t as usize].add(s);
            }
        }
        self.worked(steps as usize)?;
        Some((there, back))
    }

    /// Whether the two can do a step in which nobody else takes part.
    fn agree(&self, a: usize, s: State, b: usize, t: State) -> bool {
        self.from(a, s).iter().any(|(event, _)| {
            let joint = self.rules.joint[a].get(event).map_or(&[][..], |list| list);
            joint.iter().any(|&r| {
                self.rules.parts[r].len() == 2
                    && self.rules.part(r, b).is_some_and(|wanted| {
                        !self.model.combinator.leaves[b].machine.after(t, wanted).is_empty()
                    })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::CheckOptions;
    use crate::lang::session::Script;

    fn both(text: &str) -> (bool, bool) {
        let Ok(mut script) = Script::from_text("test.csp", text) else { panic!("a correct script:\n{text}") };
        let process = script.process("SYS").expect("a process");
        let options = CheckOptions::default();
        let free = script
            .with_checker(&options, |checker| deadlock_free(&checker.compile(process).expect("a component")));
        (free, script.check(0, &options).expect("an answer").holds)
    }

    fn philosophers(n: usize, left_handed: bool) -> String {
        let first = if left_handed { "if i == 0 then LEFT(i) else RIGHT(i)" } else { "RIGHT(i)" };
        format!(
            "N = {n}\nID = {{0..N-1}}\nchannel pick, put : ID.ID\nchannel eat : ID\nRIGHT(i) = pick.i.i -> pick.i.(i+1)%N -> eat.i -> put.i.(i+1)%N -> put.i.i -> RIGHT(i)\nLEFT(i) = pick.i.(i+1)%N -> pick.i.i -> eat.i -> put.i.i -> put.i.(i+1)%N -> LEFT(i)\nPHIL(i) = {first}\nFORK(i) = pick.i.i -> put.i.i -> FORK(i) [] pick.((i-1)%N).i -> put.((i-1)%N).i -> FORK(i)\nSYS = (||| i:ID @ PHIL(i)) [| {{|pick, put|}} |] (||| i:ID @ FORK(i))\nassert SYS :[deadlock free]"
        )
    }

    #[test]
    fn neighbours_settle_philosophers_of_any_number() {
        assert_eq!(both(&philosophers(4, true)), (true, true));
        assert_eq!(both(&philosophers(4, false)), (false, false));
        // 10^20 states.
        let Ok(mut script) = Script::from_text("test.csp", philosophers(30, true)) else { panic!("correct") };
        let outcome = script.check(0, &CheckOptions::default()).expect("an answer");
        assert!(outcome.holds && outcome.statistics.by_neighbours);
        // Small checks visit every state as ever, and so do those that are asked to.
        for (n, every_state) in [(4, false), (8, true)] {
            let Ok(mut script) = Script::from_text("test.csp", philosophers(n, true)) else {
                panic!("correct")
            };
            let options = CheckOptions { every_state, ..CheckOptions::default() };
            let outcome = script.check(0, &options).expect("an answer");
            assert!(outcome.holds && !outcome.statistics.by_neighbours, "{n}");
        }
    }

    /// What the analysis calls free of deadlock is, on random networks; the twin is the search of all states.
    #[test]
    fn what_neighbours_call_free_is_free() {
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % below
        };
        let (mut settled, mut dead, mut open) = (0, 0, 0);
        for _ in 0..600 {
            let leaves = 2 + random(3) as usize;
            // Who takes part in each event: one, two, or all.
            let events: Vec<Vec<usize>> = (0..3 + random(4))
                .map(|_| match random(6) {
                    0 => vec![random(leaves as u64) as usize],
                    1 => (0..leaves).collect(),
                    _ => {
                        let a = random(leaves as u64) as usize;
                        vec![a, (a + 1 + random(leaves as u64 - 1) as usize) % leaves]
                    }
                })
                .collect();
            let mut text = format!("channel e : {{0..{}}}\n", events.len() - 1);
            let mut operands = Vec::new();
            for leaf in 0..leaves {
                let own: Vec<usize> = (0..events.len()).filter(|&e| events[e].contains(&leaf)).collect();
                let set: Vec<String> = own.iter().map(|e| format!("e.{e}")).collect();
                operands.push(format!("({leaf}, {{{}}})", set.join(", ")));
                let states = 1 + random(3);
                for s in 0..states {
                    let mut arms: Vec<String> = Vec::new();
                    for _ in 0..1 + random(2) {
                        if let Some(e) = own.get(random(own.len().max(1) as u64) as usize) {
                            arms.push(format!("e.{e} -> P({leaf}, {})", random(states)));
                        }
                    }
                    let body = match random(12) {
                        0 => "SKIP".into(),
                        1 => format!("(STOP |~| {})", arms.first().map_or("SKIP", |a| a.as_str())),
                        _ if arms.is_empty() => "SKIP".into(),
                        _ => arms.join(" [] "),
                    };
                    text += &format!("P({leaf}, {s}) = {body}\n");
                }
            }
            text += &format!(
                "A = <{}>\nSYS = || (i, a) : set(A) @ [a] P(i, 0)\nassert SYS :[deadlock free [F]]\n",
                operands.join(", ")
            );
            match both(&text) {
                (true, true) => settled += 1,
                (true, false) => panic!("a deadlock that the neighbours do not see:\n{text}"),
                (false, false) => dead += 1,
                (false, true) => open += 1,
            }
        }
        assert!(
            settled > 30 && dead > 30,
            "{settled} settled, {dead} with deadlocks, {open} left to the search"
        );
    }
}
