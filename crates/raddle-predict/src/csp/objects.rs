//! The processes of synchronisation objects: what forks and joins, locks, conditions, barriers, semaphores, one-time
//! initialisations and registers allow.

use super::*;
use raddle_wire::{Demand, Effect, Situation};

/// Does an object in this state let an operation with this effect happen? What a process offers follows from the table's rule.
fn lets(now: Situation, effect: Effect) -> bool {
    effect.demand().is_met(now)
}

/// The rule as a guard over the parameter that counts.
fn guard(demand: Demand, count: &str) -> String {
    // The least count that meets it: the rule knows none other than "is there enough?".
    let least = (0..=1).find(|&least| demand.is_met(Situation::count(least)));
    let least = least.expect("a count of one meets every demand on counts");
    if least == 0 { String::new() } else { format!("{count} > {} & ", least - 1) }
}

impl Writer<'_> {
    pub(super) fn forks_and_joins(&mut self, parts: &mut Vec<String>) {
        if !self.used.forked.is_empty() {
            let start = if self.has("start") { "start.c -> STOP" } else { "STOP" };
            let fork = if self.has("fork") { format!("fork?t!c -> {start}") } else { start.to_owned() };
            let _ = writeln!(self.text, "FORK(c) = {fork}");
            parts.extend(self.used.forked.iter().map(|child| format!("FORK({child})")));
        }
        if !self.used.joined.is_empty() {
            match (self.has("end"), self.has("join")) {
                (true, true) => {
                    self.text.push_str("JOIN(c) = end.c -> JOINED(c)\nJOINED(c) = join?t!c -> JOINED(c)\n")
                }
                (true, false) => self.text.push_str("JOIN(c) = end.c -> STOP\n"),
                (false, _) => self.text.push_str("JOIN(c) = STOP\n"),
            }
            parts.extend(self.used.joined.iter().map(|child| format!("JOIN({child})")));
        }
    }

    pub(super) fn locks(&mut self, parts: &mut Vec<String>) {
        if self.used.locks.is_empty() {
            return;
        }
        let choice = |wanted: Vec<(bool, String)>| {
            let kept: Vec<String> =
                wanted.into_iter().filter(|(keep, _)| *keep).map(|(_, text)| text).collect();
            if kept.is_empty() { "STOP".to_owned() } else { kept.join("\n  [] ") }
        };
        let (lock, rdlock, unlock) = (self.has("lock"), self.has("rdlock"), self.has("unlock"));
        let (trylock, tryrdlock) = (self.has("trylock"), self.has("tryrdlock"));
        let (missed, rdmissed) = (self.has("missed"), self.has("rdmissed"));
        let shared = rdlock || tryrdlock;
        let (free, held, read) =
            (Situation::lock(false, false), Situation::lock(true, false), Situation::lock(false, true));
        // A lock is offered where the rule allows it; that a try fails, where it does not.
        let writers = |now| lets(now, Effect::Locks);
        let readers = |now| lets(now, Effect::LocksShared);
        let offers = |now: Situation, write: &str, share: &str, who: &str, same: &str| {
            vec![
                (lock && writers(now), format!("lock?t!m -> {write}")),
                (trylock && writers(now), format!("trylock?t!m -> {write}")),
                (rdlock && readers(now), format!("rdlock?t{who}!m -> {share}")),
                (tryrdlock && readers(now), format!("tryrdlock?t{who}!m -> {share}")),
                (missed && !writers(now), format!("missed?u!m -> {same}")),
                (rdmissed && !readers(now), format!("rdmissed?u!m -> {same}")),
            ]
        };
        let free = choice(offers(free, "HELD(m, t)", "READ(m, {t})", "", "MUTEX(m)"));
        let mut when_held = vec![(unlock, "unlock.t.m -> MUTEX(m)".to_owned())];
        when_held.extend(offers(held, "HELD(m, t)", "READ(m, {t})", "", "HELD(m, t)"));
        let _ = writeln!(self.text, "MUTEX(m) = {free}\nHELD(m, t) = {}", choice(when_held));
        if shared {
            let others = ":diff(thread, readers)";
            let mut when_read =
                offers(read, "HELD(m, t)", "READ(m, union(readers, {t}))", others, "READ(m, readers)");
            when_read.push((
                unlock,
                "unlock?t:readers!m -> (if card(readers) == 1 then MUTEX(m) else READ(m, diff(readers, {t})))".into(),
            ));
            let _ = writeln!(self.text, "READ(m, readers) = {}", choice(when_read));
        }
        parts.extend(self.used.locks.iter().map(|lock| format!("MUTEX({lock})")));
    }

    pub(super) fn conditions(&mut self, parts: &mut Vec<String>) {
        if self.used.instances.is_empty() {
            return;
        }
        let mut waiting: Vec<&str> = Vec::new();
        let mut sent: Vec<&str> = Vec::new();
        let pieces = [
            ("waitbegin", "waitbegin?t!c -> SIGNAL(c, union(waiters, {t}))", ""),
            (
                "waitblind",
                "waitblind?t!c -> SIGNAL(c, union(waiters, {t}))",
                "waitblind?t!c -> SENT(c, woken)",
            ),
            ("signal", "signal?t!c -> SENT(c, waiters)", ""),
            ("broadcast", "broadcast?t!c -> SENT(c, waiters)", ""),
            ("late", "", "late?t!c -> SENT(c, woken)"),
            ("wait", "", "wait?t:woken!c -> SENT(c, diff(woken, {t}))"),
        ];
        for (channel, before, after) in pieces {
            if self.has(channel) {
                waiting.extend((!before.is_empty()).then_some(before));
                sent.extend((!after.is_empty()).then_some(after));
            }
        }
        let join =
            |parts: Vec<&str>| if parts.is_empty() { "STOP".to_owned() } else { parts.join("\n  [] ") };
        let _ =
            writeln!(self.text, "SIGNAL(c, waiters) = {}\nSENT(c, woken) = {}", join(waiting), join(sent));
        parts.extend(self.used.instances.iter().map(|instance| format!("SIGNAL({instance}, {{}})")));
    }

    pub(super) fn barriers(&mut self, parts: &mut Vec<String>) {
        if self.used.barriers.is_empty() {
            return;
        }
        let leave = if self.has("barrier_exit") {
            "\n  [] barrier_exit?t:leaving!b -> BARRIER(b, max, inside, diff(leaving, {t}))"
        } else {
            ""
        };
        let _ = writeln!(
            self.text,
            "BARRIER(b, max, inside, leaving) = barrier_enter?t:diff(thread, union(inside, leaving))!b ->\n      \
             (if card(inside) + 1 == max then BARRIER(b, max, {{}}, union(leaving, union(inside, {{t}})))\n       \
             else BARRIER(b, max, union(inside, {{t}}), leaving)){leave}"
        );
        for &barrier in &self.used.barriers {
            let count = self.program.barriers[barrier as usize].count;
            parts.push(format!("BARRIER({barrier}, {count}, {{}}, {{}})"));
        }
    }

    pub(super) fn semaphores(&mut self, parts: &mut Vec<String>) {
        if self.used.semaphores.is_empty() {
            return;
        }
        let mut choice: Vec<String> = Vec::new();
        if self.has("sem_post") {
            choice.push("i < max & sem_post?t!s -> SEMAPHORE(s, i + 1, max)".to_owned());
        }
        if self.has("sem_wait") {
            let enough = guard(Effect::Takes.demand(), "i");
            choice.push(format!("{enough}sem_wait?t!s -> SEMAPHORE(s, i - 1, max)"));
        }
        let _ = writeln!(self.text, "SEMAPHORE(s, i, max) = {}", choice.join("\n  [] "));
        for &sem in &self.used.semaphores {
            let semaphore = &self.program.semaphores[sem as usize];
            let posts: usize = semaphore.posts.iter().map(|(_, posts)| posts.len()).sum();
            parts.push(format!(
                "SEMAPHORE({sem}, {}, {})",
                semaphore.start,
                semaphore.start as usize + posts
            ));
        }
    }

    pub(super) fn onces(&mut self, parts: &mut Vec<String>) {
        if self.used.onces.is_empty() {
            return;
        }
        let once = |now: Situation, same: &str| {
            let offers = [
                ("once_begin", lets(now, Effect::OnceBegins), "once_begin?t!o -> ONCE_RUNS(o)".to_owned()),
                // Passing before anybody has begun is to run the initialiser oneself.
                ("once_early", !now.begun, format!("once_early?t!o -> {same}")),
                ("once_end", now.begun && !now.initialised, "once_end?t!o -> ONCE_DONE(o)".to_owned()),
                ("once_passed", lets(now, Effect::OncePasses), format!("once_passed?t!o -> {same}")),
            ];
            let offered = offers.into_iter().filter(|(channel, is, _)| *is && self.has(channel));
            let offered: Vec<String> = offered.map(|(_, _, text)| text).collect();
            if offered.is_empty() { "STOP".to_owned() } else { offered.join("\n  [] ") }
        };
        let processes = [
            ("ONCE(o)", Situation::once(false, false)),
            ("ONCE_RUNS(o)", Situation::once(true, false)),
            ("ONCE_DONE(o)", Situation::once(true, true)),
        ];
        let lines: Vec<String> =
            processes.into_iter().map(|(name, now)| format!("{name} = {}\n", once(now, name))).collect();
        self.text.extend(lines);
        for &once in &self.used.onces {
            debug_assert!(OnceIx(once).index() < self.program.onces.len());
            parts.push(format!("ONCE({once})"));
        }
    }

    pub(super) fn registers(&mut self, parts: &mut Vec<String>) {
        if self.used.registers.is_empty() {
            return;
        }
        let pieces = [
            ("load", "load?t!r!v -> REGISTER(r, v)"),
            ("store", "store?t!r?w -> REGISTER(r, w)"),
            ("rmw", "rmw?t!r!v?w -> REGISTER(r, w)"),
            ("other", "other?t!r?w:diff(value, {v}) -> REGISTER(r, v)"),
        ];
        let choice: Vec<&str> =
            pieces.iter().filter(|(channel, _)| self.has(channel)).map(|(_, text)| *text).collect();
        let _ = writeln!(self.text, "REGISTER(r, v) = {}", choice.join("\n  [] "));
        for &register in &self.used.registers {
            let start = self.value(self.program.registers[register as usize].start);
            parts.push(format!("REGISTER({register}, {start})"));
        }
    }

    pub(super) fn order_processes(&mut self, parts: &mut Vec<String>) {
        if self.used.orders.is_empty() {
            return;
        }
        let after = if self.has("after") { "after.k -> STOP" } else { "STOP" };
        let mut choice: Vec<String> = Vec::new();
        if self.has("before") {
            choice.push(format!("before.k -> {after}"));
        }
        if self.has("unmet") {
            choice.push("unmet.k -> STOP".to_owned());
        }
        let choice = if choice.is_empty() { "STOP".to_owned() } else { choice.join(" [] ") };
        let _ = writeln!(self.text, "ORDER(k) = {choice}");
        parts.extend(self.used.orders.iter().map(|order| format!("ORDER({order})")));
    }
}
