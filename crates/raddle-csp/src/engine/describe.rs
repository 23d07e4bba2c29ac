//! Short names of terms for messages and for the components of a counterexample.

use crate::process::{ProcId, Process, Processes};

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
