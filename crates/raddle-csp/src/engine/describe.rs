//! Short names of terms for messages and for the components of a counterexample.

use crate::process::{EventSetId, ProcId, Process, Processes};

/// Characters after which a name is cut.
const NAME_LENGTH_MAX: usize = 60;

/// What to call a term: the name of the call if it is one, otherwise its operator over the names of its operands.
pub fn term(arena: &Processes, p: ProcId) -> String {
    let mut text = String::new();
    write_term(arena, p, 3, &mut text);
    if text.chars().count() > NAME_LENGTH_MAX {
        text = text.chars().take(NAME_LENGTH_MAX - 1).collect();
        text.push('…');
    }
    text
}

/// The operators of a term down to the names of calls, with its sets: what a process is, not what to call it.
pub fn full(arena: &Processes, p: ProcId) -> String {
    let mut text = String::new();
    write_full(arena, p, FULL_DEPTH_MAX, &mut text);
    if text.len() > FULL_LENGTH_MAX {
        text = text.chars().take(FULL_LENGTH_MAX).collect();
        text.push('…');
    }
    text
}

/// Levels and characters of a term that is shown in full.
const FULL_DEPTH_MAX: usize = 64;
const FULL_LENGTH_MAX: usize = 20_000;

fn events_of(arena: &Processes, set: EventSetId) -> String {
    let names: Vec<String> = arena
        .events_of(set)
        .iter()
        .filter(|e| e.is_visible())
        .map(|e| arena.events.name(e).to_string())
        .collect();
    format!("{{{}}}", names.join(", "))
}

fn write_full(arena: &Processes, p: ProcId, depth: usize, out: &mut String) {
    if depth == 0 || out.len() > FULL_LENGTH_MAX {
        out.push('…');
        return;
    }
    let below = |q: ProcId, out: &mut String| {
        let simple = matches!(
            arena.get(q),
            Process::Stop | Process::Skip | Process::Div | Process::Call(_) | Process::Omega
        );
        if !simple {
            out.push('(');
        }
        write_full(arena, q, depth - 1, out);
        if !simple {
            out.push(')');
        }
    };
    let join = |list: &[ProcId], symbol: &str, out: &mut String| {
        for (i, &q) in list.iter().enumerate() {
            if i > 0 {
                out.push_str(symbol);
            }
            below(q, out);
        }
    };
    match arena.get(p) {
        Process::Chaos(set) => out.push_str(&format!("CHAOS({})", events_of(arena, *set))),
        Process::Run(set) => out.push_str(&format!("RUN({})", events_of(arena, *set))),
        Process::Prefix(branches) => {
            for (i, &(event, next)) in branches.iter().enumerate() {
                if i > 0 {
                    out.push_str(" [] ");
                }
                out.push_str(&arena.events.name(event).to_string());
                out.push_str(" -> ");
                match arena.get(next) {
                    Process::Prefix(inner) if inner.len() == 1 => write_full(arena, next, depth - 1, out),
                    _ => below(next, out),
                }
            }
        }
        Process::InternalChoice(list) => join(list, " |~| ", out),
        Process::ExternalChoice(list) => join(list, " [] ", out),
        Process::Sliding(l, r) => join(&[*l, *r], " [> ", out),
        Process::SyncChoice(l, set, r) => {
            join(&[*l, *r], &format!(" [+ {} +] ", events_of(arena, *set)), out)
        }
        Process::Sequence(l, r) => join(&[*l, *r], " ; ", out),
        Process::Interleave(list) => join(list, " ||| ", out),
        Process::Parallel(list, set) => join(list, &format!(" [| {} |] ", events_of(arena, *set)), out),
        Process::Alphabetised(list) if list.len() == 2 => {
            let [(l, of_l), (r, of_r)] = [list[0], list[1]];
            let sets = format!(" [{} || {}] ", events_of(arena, of_l), events_of(arena, of_r));
            join(&[l, r], &sets, out);
        }
        Process::Alphabetised(list) => {
            for (i, &(q, set)) in list.iter().enumerate() {
                out.push_str(if i > 0 { " || [" } else { "[" });
                out.push_str(&events_of(arena, set));
                out.push_str("] ");
                below(q, out);
            }
        }
        Process::Linked(l, links, r) => {
            let name = |e| arena.events.name(e).to_string();
            let links: Vec<String> =
                links.iter().map(|&(a, b)| format!("{} <-> {}", name(a), name(b))).collect();
            join(&[*l, *r], &format!(" [{}] ", links.join(", ")), out);
        }
        Process::Hide(q, set) => {
            below(*q, out);
            out.push_str(&format!(" \\ {}", events_of(arena, *set)));
        }
        Process::Project(q, set) => {
            below(*q, out);
            out.push_str(&format!(" |\\ {}", events_of(arena, *set)));
        }
        Process::Rename(q, renaming) => {
            below(*q, out);
            let name = |e| arena.events.name(e).to_string();
            let pairs = arena.pairs_of(*renaming).iter();
            let pairs: Vec<String> = pairs.map(|&(a, b)| format!("{} <- {}", name(a), name(b))).collect();
            out.push_str(&format!("[[{}]]", pairs.join(", ")));
        }
        Process::Interrupt(l, r) => join(&[*l, *r], " /\\ ", out),
        Process::Exception(l, set, r) => join(&[*l, *r], &format!(" [| {} |> ", events_of(arena, *set)), out),
        Process::SyncInterrupt(l, set, r) => {
            join(&[*l, *r], &format!(" /+ {} +\\ ", events_of(arena, *set)), out);
        }
        Process::Prioritise(q, order) => {
            out.push_str("prioritise(");
            write_full(arena, *q, depth - 1, out);
            let order: Vec<String> = order.iter().map(|&set| events_of(arena, set)).collect();
            out.push_str(&format!(", <{}>)", order.join(", ")));
        }
        Process::PrioritiseOrder(q, above) => {
            out.push_str("prioritisepo(");
            write_full(arena, *q, depth - 1, out);
            let name = |e| arena.events.name(e).to_string();
            let pairs: Vec<String> =
                above.iter().map(|&(a, b)| format!("({}, {})", name(a), name(b))).collect();
            out.push_str(&format!(", {{{}}})", pairs.join(", ")));
        }
        Process::OneOfEach(q) => match arena.get(*q) {
            Process::Chase(inner) => full_function("deter", arena, *inner, depth, out),
            _ => full_function("deter", arena, *q, depth, out),
        },
        Process::Chase(q) => full_function("chase", arena, *q, depth, out),
        Process::Compress(c, q) => full_function(c.name(), arena, *q, depth, out),
        Process::Stop | Process::Skip | Process::Omega | Process::Div | Process::Call(_) => {
            write_term(arena, p, 1, out);
        }
    }
}

fn full_function(name: &str, arena: &Processes, p: ProcId, depth: usize, out: &mut String) {
    out.push_str(name);
    out.push('(');
    write_full(arena, p, depth - 1, out);
    out.push(')');
}

fn write_term(arena: &Processes, p: ProcId, depth: usize, out: &mut String) {
    let join = |list: &mut dyn Iterator<Item = ProcId>, symbol: &str, out: &mut String| {
        for (i, q) in list.enumerate() {
            if i > 0 {
                out.push_str(symbol);
            }
            if i > 3 {
                out.push('…');
                return;
            }
            write_term(arena, q, depth.saturating_sub(1), out);
        }
    };
    if depth == 0 && !matches!(arena.get(p), Process::Call(_) | Process::Stop | Process::Skip | Process::Div)
    {
        out.push('…');
        return;
    }
    match arena.get(p) {
        Process::Stop => out.push_str("STOP"),
        Process::Skip => out.push_str("SKIP"),
        Process::Omega => out.push('Ω'),
        Process::Div => out.push_str("DIV"),
        Process::Chaos(_) => out.push_str("CHAOS"),
        Process::Run(_) => out.push_str("RUN"),
        Process::Prefix(branches) => {
            for (i, &(event, next)) in branches.iter().enumerate() {
                if i > 0 {
                    out.push_str(" [] ");
                }
                if i > 2 {
                    out.push('…');
                    return;
                }
                out.push_str(&arena.events.name(event).to_string());
                out.push_str(" -> ");
                write_term(arena, next, depth - 1, out);
            }
        }
        Process::InternalChoice(list) => join(&mut list.iter().copied(), " |~| ", out),
        Process::ExternalChoice(list) => join(&mut list.iter().copied(), " [] ", out),
        Process::Sliding(l, r) => join(&mut [*l, *r].into_iter(), " [> ", out),
        Process::SyncChoice(l, _, r) => join(&mut [*l, *r].into_iter(), " [+…+] ", out),
        Process::Sequence(l, r) => join(&mut [*l, *r].into_iter(), " ; ", out),
        Process::Interleave(list) => join(&mut list.iter().copied(), " ||| ", out),
        Process::Parallel(list, _) => join(&mut list.iter().copied(), " [|…|] ", out),
        Process::Alphabetised(list) => join(&mut list.iter().map(|&(q, _)| q), " [… || …] ", out),
        Process::Linked(l, _, r) => join(&mut [*l, *r].into_iter(), " [… <-> …] ", out),
        Process::Hide(q, _) => {
            write_term(arena, *q, depth - 1, out);
            out.push_str(" \\ …");
        }
        Process::Project(q, _) => {
            write_term(arena, *q, depth - 1, out);
            out.push_str(" |\\ …");
        }
        Process::Rename(q, _) => {
            write_term(arena, *q, depth - 1, out);
            out.push_str("[[…]]");
        }
        Process::Interrupt(l, r) => join(&mut [*l, *r].into_iter(), " /\\ ", out),
        Process::Exception(l, _, r) => join(&mut [*l, *r].into_iter(), " [|…|> ", out),
        Process::SyncInterrupt(l, _, r) => join(&mut [*l, *r].into_iter(), " /+…+\\ ", out),
        Process::Prioritise(q, _) => function("prioritise", arena, *q, depth, out),
        Process::PrioritiseOrder(q, _) => function("prioritisepo", arena, *q, depth, out),
        Process::OneOfEach(q) => match arena.get(*q) {
            Process::Chase(inner) => function("deter", arena, *inner, depth, out),
            _ => function("deter", arena, *q, depth, out),
        },
        Process::Chase(q) => function("chase", arena, *q, depth, out),
        Process::Compress(c, q) => function(c.name(), arena, *q, depth, out),
        Process::Call(call) => out.push_str(arena.call_name(*call)),
    }
}

fn function(name: &str, arena: &Processes, p: ProcId, depth: usize, out: &mut String) {
    out.push_str(name);
    out.push('(');
    write_term(arena, p, depth - 1, out);
    out.push(')');
}
