//! The denotational semantics, clause by clause.
//!
//! Traces, stable failures and divergences of each operator from those of its operands, after Roscoe, "Understanding
//! Concurrent Systems" (2010), chapters 9 to 12, in set notation turned into loops. Failures are the *stable* ones;
//! divergences are kept beside them, and the failures-divergences model is the two read together (a divergence allows
//! everything after it).
//!
//! Everything is exact up to the bound as long as an operator does not shorten traces. Hiding and linking do: a trace
//! beyond the bound could become one within it, so on operands that reach the bound they give no answer (`None`), and a
//! test skips the case. `prioritise` has no denotational semantics in these models and `chase` none at all; both are
//! `None` too and are held against the firing rules instead.

use super::denotation::{Denotation, Refusals, Traces, refusals, tick_bit};
use crate::process::{Definitions, EventId, EventSetId, ProcId, Process, Processes};

/// The events of a test, in the order of their bits.
pub struct Alphabet {
    pub events: Vec<EventId>,
}

impl Alphabet {
    fn index(&self, event: EventId) -> usize {
        self.events.iter().position(|&e| e == event).expect("events of the alphabet")
    }

    fn bits(&self, arena: &Processes, set: EventSetId) -> usize {
        arena.events_of(set).iter().fold(0, |bits, e| bits | 1 << self.index(e))
    }
}

/// What a term denotes up to `length`; `None` where the bound does not suffice, see the module's head.
pub fn denote(
    arena: &mut Processes,
    definitions: &mut dyn Definitions,
    p: ProcId,
    alphabet: &Alphabet,
    length: usize,
) -> Option<Denotation> {
    let space = Traces { events: alphabet.events.len(), length };
    let mut of = |arena: &mut Processes, q: ProcId| denote(arena, definitions, q, alphabet, length);
    let result = match arena.get(p).clone() {
        Process::Stop => stop(space),
        Process::Skip => skip(space),
        Process::Omega => return None,
        Process::Div => {
            let mut d = Denotation::nothing(space);
            d.traces[0] = true;
            d.divergences[0] = true;
            d
        }
        Process::Run(set) => forever(space, alphabet.bits(arena, set), false),
        Process::Chaos(set) => forever(space, alphabet.bits(arena, set), true),
        Process::Prefix(branches) => {
            let mut d = Denotation::nothing(space);
            d.traces[0] = true;
            let offered = branches.iter().fold(0, |bits, &(e, _)| bits | 1usize << alphabet.index(e));
            d.failures[0] = refusals(space.events, |x| x & offered == 0);
            for &(event, next) in branches.iter() {
                if length == 0 {
                    d.truncated = true;
                    continue;
                }
                let rest = denote(arena, definitions, next, alphabet, length - 1)?;
                d.truncated |= rest.truncated;
                for (n, tail) in rest.space.all() {
                    let mut trace = vec![alphabet.index(event) as u8];
                    trace.extend(tail);
                    add(&mut d, &trace, &rest, n);
                }
            }
            d
        }
        Process::InternalChoice(list) => {
            let mut d = Denotation::nothing(space);
            for &q in list.iter() {
                union(&mut d, &of(arena, q)?);
            }
            d
        }
        Process::ExternalChoice(list) => {
            let mut d = stop(space);
            for &q in list.iter() {
                let other = of(arena, q)?;
                let both = d.failures[0] & other.failures[0];
                union(&mut d, &other);
                d.failures[0] = both;
            }
            d
        }
        Process::Sliding(l, r) => {
            let (mut d, r) = (of(arena, l)?, of(arena, r)?);
            d.failures[0] = 0;
            union(&mut d, &r);
            d
        }
        Process::Sequence(l, r) => {
            let (l, r) = (of(arena, l)?, of(arena, r)?);
            sequence(&l, &r)
        }
        Process::Interleave(list) => {
            let parts: Vec<_> = list.iter().map(|&q| of(arena, q)).collect::<Option<_>>()?;
            parts[1..].iter().fold(parts[0].clone(), |d, q| parallel(&d, q, 0))
        }
        Process::Parallel(list, set) => {
            let bits = alphabet.bits(arena, set);
            let parts: Vec<_> = list.iter().map(|&q| of(arena, q)).collect::<Option<_>>()?;
            parts[1..].iter().fold(parts[0].clone(), |d, q| parallel(&d, q, bits))
        }
        Process::Alphabetised(list) => {
            let mut whole: Option<(Denotation, usize)> = None;
            for &(q, set) in list.iter() {
                let bits = alphabet.bits(arena, set);
                let own = restrict(&of(arena, q)?, bits);
                whole = Some(match whole {
                    None => (own, bits),
                    Some((d, known)) => (parallel(&d, &own, known & bits), known | bits),
                });
            }
            whole.expect("a parallel composition has operands").0
        }
        Process::Linked(l, links, r) => {
            let (l, r) = (of(arena, l)?, of(arena, r)?);
            if l.truncated || r.truncated {
                return None;
            }
            let links: Vec<_> = links.iter().map(|&(a, b)| (alphabet.index(a), alphabet.index(b))).collect();
            linked(&l, &links, &r)
        }
        Process::Hide(q, set) => hide(&of(arena, q)?, alphabet.bits(arena, set))?,
        Process::Project(q, set) => {
            let all = (1 << space.events) - 1;
            hide(&of(arena, q)?, all & !alphabet.bits(arena, set))?
        }
        Process::Rename(q, renaming) => {
            let inner = of(arena, q)?;
            let images: Vec<Vec<usize>> = alphabet
                .events
                .iter()
                .map(|&e| arena.renamed(renaming, e).map(|f| alphabet.index(f)).collect())
                .collect();
            rename(&inner, &images)
        }
        Process::Interrupt(l, r) => {
            let (l, r) = (of(arena, l)?, of(arena, r)?);
            sync_interrupt(&l, 0, &r)
        }
        Process::SyncInterrupt(l, set, r) => {
            let bits = alphabet.bits(arena, set);
            let (l, r) = (of(arena, l)?, of(arena, r)?);
            sync_interrupt(&l, bits, &r)
        }
        Process::SyncChoice(l, set, r) => {
            let bits = alphabet.bits(arena, set);
            let (l, r) = (of(arena, l)?, of(arena, r)?);
            sync_choice(&l, bits, &r)
        }
        Process::Exception(l, set, r) => {
            let bits = alphabet.bits(arena, set);
            let (l, r) = (of(arena, l)?, of(arena, r)?);
            exception(&l, bits, &r)
        }
        Process::Prioritise(..)
        | Process::PrioritiseOrder(..)
        | Process::OneOfEach(_)
        | Process::Chase(_) => return None,
        Process::Compress(_, q) => of(arena, q)?,
        Process::Call(call) => {
            let body = definitions.unfold(call, arena).ok()?;
            denote(arena, definitions, body, alphabet, length)?
        }
    };
    Some(result.closed())
}

fn stop(space: Traces) -> Denotation {
    let mut d = Denotation::nothing(space);
    d.traces[0] = true;
    d.failures[0] = refusals(space.events, |_| true);
    d
}

fn skip(space: Traces) -> Denotation {
    let mut d = Denotation::nothing(space);
    d.traces[0] = true;
    d.ticks[0] = true;
    d
}

fn forever(space: Traces, set: usize, may_refuse: bool) -> Denotation {
    let mut d = Denotation::nothing(space);
    for (n, trace) in space.all() {
        if trace.iter().all(|&e| has(set, e)) {
            d.traces[n] = true;
            d.failures[n] = refusals(space.events, |x| may_refuse || x & set == 0);
        }
    }
    d.truncated = set != 0;
    d
}

fn has(set: usize, event: u8) -> bool {
    set & 1 << event != 0
}

/// Adds to `d` after `trace` what `from` has after its trace `n`.
fn add(d: &mut Denotation, trace: &[u8], from: &Denotation, n: usize) {
    if trace.len() > d.space.length {
        d.truncated |= from.traces[n];
        return;
    }
    let m = d.space.number(trace);
    d.traces[m] |= from.traces[n];
    d.ticks[m] |= from.ticks[n];
    d.failures[m] |= from.failures[n];
    d.divergences[m] |= from.divergences[n];
}

fn union(d: &mut Denotation, other: &Denotation) {
    for n in 0..d.space.count() {
        d.traces[n] |= other.traces[n];
        d.ticks[n] |= other.ticks[n];
        d.failures[n] |= other.failures[n];
        d.divergences[n] |= other.divergences[n];
    }
    d.truncated |= other.truncated;
}

/// Records that `trace` happened, with these refusals, and whether it diverges.
fn note(d: &mut Denotation, trace: &[u8], failures: Refusals, tick: bool, diverges: bool) {
    if trace.len() > d.space.length {
        d.truncated = true;
        return;
    }
    let m = d.space.number(trace);
    d.traces[m] = true;
    d.ticks[m] |= tick;
    d.failures[m] |= failures;
    d.divergences[m] |= diverges;
}

/// `{x | combine holds for some y in l, z in r}`, over all refusal sets.
fn combined(
    events: usize,
    l: Refusals,
    r: Refusals,
    combine: impl Fn(usize, usize, usize) -> bool,
) -> Refusals {
    let all = 0..1usize << (events + 1);
    let members = |set: Refusals| all.clone().filter(move |&x| set & 1 << x != 0);
    refusals(events, |x| members(l).any(|y| members(r).any(|z| combine(x, y, z))))
}

fn sequence(l: &Denotation, r: &Denotation) -> Denotation {
    let space = l.space;
    let tick = tick_bit(space.events);
    let mut d = Denotation::nothing(space);
    d.truncated = l.truncated || r.truncated;
    for (n, s) in space.all() {
        if !l.traces[n] {
            continue;
        }
        let quiet = refusals(space.events, |x| l.failures[n] & 1 << (x | tick) != 0);
        note(&mut d, &s, quiet, false, l.divergences[n]);
        if l.ticks[n] {
            for (m, t) in space.all().filter(|(m, _)| r.traces[*m]) {
                add(&mut d, &[&s[..], &t].concat(), r, m);
            }
        }
    }
    d
}

/// All ways to merge two traces that share the events of `set`.
fn merges(s: &[u8], t: &[u8], set: usize) -> Vec<Vec<u8>> {
    let then = |e: u8, rest: Vec<Vec<u8>>| {
        rest.into_iter().map(move |mut u| {
            u.insert(0, e);
            u
        })
    };
    match (s.split_first(), t.split_first()) {
        (None, None) => vec![Vec::new()],
        _ => {
            let mut all = Vec::new();
            if let Some((&a, rest)) = s.split_first()
                && !has(set, a)
            {
                all.extend(then(a, merges(rest, t, set)));
            }
            if let Some((&b, rest)) = t.split_first()
                && !has(set, b)
            {
                all.extend(then(b, merges(s, rest, set)));
            }
            if let (Some((&a, left)), Some((&b, right))) = (s.split_first(), t.split_first())
                && a == b
                && has(set, a)
            {
                all.extend(then(a, merges(left, right, set)));
            }
            all
        }
    }
}

fn parallel(l: &Denotation, r: &Denotation, set: usize) -> Denotation {
    let space = l.space;
    let shared = set | tick_bit(space.events);
    let mut d = Denotation::nothing(space);
    d.truncated = l.truncated || r.truncated;
    for (n, s) in space.all().filter(|(n, _)| l.traces[*n]) {
        for (m, t) in space.all().filter(|(m, _)| r.traces[*m]) {
            let together = merges(&s, &t, set);
            if together.is_empty() {
                continue;
            }
            let failures = combined(space.events, l.failures[n], r.failures[m], |x, y, z| {
                y & !shared == z & !shared && x == y | z
            });
            for u in together {
                note(&mut d, &u, failures, l.ticks[n] && r.ticks[m], l.divergences[n] || r.divergences[m]);
            }
        }
    }
    d
}

/// Only events of `set` may happen.
fn restrict(p: &Denotation, set: usize) -> Denotation {
    let space = p.space;
    let tick = tick_bit(space.events);
    let mut d = Denotation::nothing(space);
    d.truncated = p.truncated;
    for (n, s) in space.all() {
        if p.traces[n] && s.iter().all(|&e| has(set, e)) {
            let failures = refusals(space.events, |x| p.failures[n] & 1 << (x & (set | tick)) != 0);
            note(&mut d, &s, failures, p.ticks[n], p.divergences[n]);
        }
    }
    d
}

fn linked(l: &Denotation, links: &[(usize, usize)], r: &Denotation) -> Denotation {
    let space = l.space;
    let tick = tick_bit(space.events);
    let lefts = links.iter().fold(0, |bits, &(a, _)| bits | 1usize << a);
    let rights = links.iter().fold(0, |bits, &(_, b)| bits | 1usize << b);
    let mut d = Denotation::nothing(space);
    for (n, s) in space.all().filter(|(n, _)| l.traces[*n]) {
        for (m, t) in space.all().filter(|(m, _)| r.traces[*m]) {
            let failures = combined(space.events, l.failures[n], r.failures[m], |x, y, z| {
                let stable = links.iter().all(|&(a, b)| y & 1 << a != 0 || z & 1 << b != 0);
                let refused = |bit: usize| {
                    let left = bit & lefts != 0 || y & bit != 0;
                    let right = bit & rights != 0 || z & bit != 0;
                    if bit == tick { y & bit != 0 || z & bit != 0 } else { left && right }
                };
                stable && (0..=space.events).all(|i| x & 1 << i == 0 || refused(1 << i))
            });
            for u in link_merges(&s, &t, links, lefts, rights) {
                note(&mut d, &u, failures, l.ticks[n] && r.ticks[m], l.divergences[n] || r.divergences[m]);
            }
        }
    }
    d
}

fn link_merges(s: &[u8], t: &[u8], links: &[(usize, usize)], lefts: usize, rights: usize) -> Vec<Vec<u8>> {
    if s.is_empty() && t.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    let prepend = |e: u8, rest: Vec<Vec<u8>>| rest.into_iter().map(move |u| [&[e][..], &u].concat());
    if let Some((&a, rest)) = s.split_first()
        && !has(lefts, a)
    {
        all.extend(prepend(a, link_merges(rest, t, links, lefts, rights)));
    }
    if let Some((&b, rest)) = t.split_first()
        && !has(rights, b)
    {
        all.extend(prepend(b, link_merges(s, rest, links, lefts, rights)));
    }
    if let (Some((&a, left)), Some((&b, right))) = (s.split_first(), t.split_first())
        && links.contains(&(a as usize, b as usize))
    {
        all.extend(link_merges(left, right, links, lefts, rights));
    }
    all
}

fn hide(p: &Denotation, set: usize) -> Option<Denotation> {
    if p.truncated {
        return None;
    }
    let space = p.space;
    let mut d = Denotation::nothing(space);
    for (n, s) in space.all().filter(|(n, _)| p.traces[*n]) {
        let rest: Vec<u8> = s.into_iter().filter(|&e| !has(set, e)).collect();
        let failures = refusals(space.events, |x| p.failures[n] & 1 << (x | set) != 0);
        note(&mut d, &rest, failures, p.ticks[n], p.divergences[n]);
    }
    Some(d)
}

fn rename(p: &Denotation, images: &[Vec<usize>]) -> Denotation {
    let space = p.space;
    let tick = tick_bit(space.events);
    let mut d = Denotation::nothing(space);
    d.truncated = p.truncated;
    for (n, s) in space.all().filter(|(n, _)| p.traces[*n]) {
        let before = |x: usize| {
            let refused = (0..space.events).filter(|&e| images[e].iter().any(|&f| x & 1 << f != 0));
            refused.fold(x & tick, |bits, e| bits | 1 << e)
        };
        let failures = refusals(space.events, |x| p.failures[n] & 1 << before(x) != 0);
        let mut named: Vec<Vec<u8>> = vec![Vec::new()];
        for &e in &s {
            named = named
                .into_iter()
                .flat_map(|t| images[e as usize].iter().map(move |&f| [&t[..], &[f as u8]].concat()))
                .collect();
        }
        for t in named {
            note(&mut d, &t, failures, p.ticks[n], p.divergences[n]);
        }
    }
    d
}

/// Refusals of two operands that share the events of `set` and must both refuse the others.
fn half_shared(events: usize, l: Refusals, r: Refusals, set: usize) -> Refusals {
    combined(events, l, r, |x, y, z| x & set & !(y | z) == 0 && x & !set & !(y & z) == 0)
}

fn sync_interrupt(l: &Denotation, set: usize, r: &Denotation) -> Denotation {
    let space = l.space;
    let mut d = Denotation::nothing(space);
    d.truncated = l.truncated || r.truncated;
    for (n, s) in space.all().filter(|(n, _)| l.traces[*n]) {
        let shared: Vec<u8> = s.iter().copied().filter(|&e| has(set, e)).collect();
        let m = space.number(&shared);
        if !r.traces[m] {
            continue;
        }
        let failures = half_shared(space.events, l.failures[n], r.failures[m], set);
        note(&mut d, &s, failures, l.ticks[n] || r.ticks[m], l.divergences[n] || r.divergences[m]);
        for (k, t) in space.all().filter(|(k, _)| r.traces[*k]) {
            if t.len() > shared.len() && t.starts_with(&shared) && !has(set, t[shared.len()]) {
                add(&mut d, &[&s[..], &t[shared.len()..]].concat(), r, k);
            }
        }
    }
    d
}

fn sync_choice(l: &Denotation, set: usize, r: &Denotation) -> Denotation {
    let space = l.space;
    let mut d = Denotation::nothing(space);
    d.truncated = l.truncated || r.truncated;
    for (n, s) in space.all() {
        let open = s.iter().take_while(|&&e| has(set, e)).count();
        let m = space.number(&s[..open]);
        if !l.traces[m] || !r.traces[m] {
            continue;
        }
        if open == s.len() {
            let failures = half_shared(space.events, l.failures[n], r.failures[n], set);
            note(&mut d, &s, failures, l.ticks[n] || r.ticks[n], l.divergences[n] || r.divergences[n]);
        } else {
            for side in [l, r] {
                if side.traces[n] {
                    add(&mut d, &s, side, n);
                }
            }
        }
    }
    d
}

fn exception(l: &Denotation, set: usize, r: &Denotation) -> Denotation {
    let space = l.space;
    let mut d = Denotation::nothing(space);
    d.truncated = l.truncated || r.truncated;
    for (n, s) in space.all().filter(|(n, _)| l.traces[*n]) {
        match s.iter().position(|&e| has(set, e)) {
            None => add(&mut d, &s, l, n),
            Some(i) if i + 1 == s.len() => {
                for (m, t) in space.all().filter(|(m, _)| r.traces[*m]) {
                    add(&mut d, &[&s[..], &t].concat(), r, m);
                }
            }
            Some(_) => {}
        }
    }
    d
}
