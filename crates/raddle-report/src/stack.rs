//! A stack, one call a line, innermost first. Calls inside libraries are folded: what a library does is rarely the error. So are
//! calls that a function makes of itself in one place.

use crate::text::{count, name};
use crate::wording::place;
use raddle_findings::Frame;

/// Calls of a stack that are shown; the rest is counted.
const FRAMES_MAX: usize = 16;

/// Each line begins with the end of the one before. `whole`: nothing is folded.
pub(crate) fn lines(stack: &[Frame], whole: bool) -> String {
    let mut text = String::new();
    let mut shown = 0;
    let mut at = 0;
    // A stack without any code of the user is shown as it is: there is nothing better.
    let fold = !whole && stack.iter().any(|frame| !frame.library);
    while at < stack.len() {
        if shown == FRAMES_MAX && !whole {
            text.push_str(&format!("\n  ... {}", count(as_u64(stack.len() - at), "more frame")));
            break;
        }
        let library = stack[at..].iter().take_while(|frame| fold && frame.library).count();
        if library > 0 {
            text.push_str(&format!("\n  ... {}", count(as_u64(library), "library frame")));
            at += library;
        } else {
            let this = call(&stack[at]);
            text.push_str(&format!("\n  #{at} {this}"));
            at += 1;
            shown += 1;
            let again = stack[at..].iter().take_while(|frame| !whole && call(frame) == this).count();
            if again > 0 {
                text.push_str(&format!("\n  ... the same call {}", count(as_u64(again), "more time")));
                at += again;
            }
        }
    }
    text
}

fn as_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// One call: the function and its place.
pub fn call(frame: &Frame) -> String {
    match (&frame.function, &frame.file, &frame.raw) {
        (Some(function), Some(_), _) => format!("{} at {}", name(function), place(frame)),
        (Some(function), None, Some(raw)) => format!("{} ({})", name(function), name(raw)),
        (Some(function), None, None) => name(function),
        (None, Some(_), Some(raw)) => format!("{} at {}", name(raw), place(frame)),
        (None, ..) => place(frame),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, library: bool) -> Frame {
        Frame { function: Some(function.into()), library, ..Frame::default() }
    }

    #[test]
    fn frames_of_libraries_are_folded_unless_there_is_nothing_else() {
        let stack = [frame("insert", true), frame("push", true), frame("f", false), frame("start", true)];
        assert_eq!(lines(&stack, false), "\n  ... 2 library frames\n  #2 f\n  ... 1 library frame");
        assert_eq!(lines(&stack, true), "\n  #0 insert\n  #1 push\n  #2 f\n  #3 start");
        assert_eq!(lines(&stack[..1], false), "\n  #0 insert");
    }

    #[test]
    fn long_stacks_are_cut() {
        let stack: Vec<Frame> = (0..20).map(|at| frame(&format!("f{at}"), false)).collect();
        assert!(lines(&stack, false).ends_with("\n  #15 f15\n  ... 4 more frames"));
    }

    #[test]
    fn recursion_is_told_once() {
        let mut stack = vec![frame("deeper", false); 20];
        stack.push(frame("main", false));
        assert_eq!(lines(&stack, false), "\n  #0 deeper\n  ... the same call 19 more times\n  #20 main");
        assert_eq!(lines(&stack, true).lines().count(), 22);
    }
}
