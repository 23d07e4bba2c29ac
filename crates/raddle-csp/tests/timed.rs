//! Timed sections against the operational rules of Timed CSP, written down a second time.
//!
//! Random processes stand in a timed section of a script and, term by term, in the twin below, which knows nothing of
//! how the section is translated: its rules say for each operator who lets time pass and who terminates with whom
//! (Schneider 2000; Ouaknine 2001; libcspm, `CSPM.Evaluator.Expr`). Traces, stable failures and divergences up to the
//! bound have to be the same. `RADDLE_TEST_CASES=N` sets the number of processes for each operator; a failure prints
//! the seed, and `RADDLE_TEST_SEED=S RADDLE_TEST_CASES=1` repeats it.

use raddle_csp::engine::{CheckError, CheckOptions};
use raddle_csp::lang::session::Script;
use raddle_csp::process::EventId;
use raddle_csp::semantics::observe::{Transitions, observe};
use raddle_csp::semantics::random::Random;

const LENGTH: usize = 4;
const DEPTH: usize = 3;
/// `a` and `b`; sets of them are two bits.
const NAMES: [&str; 2] = ["a", "b"];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Timed {
    Stop,
    Skip,
    /// What is left of a `WAIT`.
    Wait(usize),
    /// `L = a -> L`
    Loop,
    Prefix(usize, Box<Timed>),
    /// What is left of the time that an event takes.
    After(usize, Box<Timed>),
    Guard(bool, Box<Timed>),
    External(Box<[Timed; 2]>),
    Internal(Box<[Timed; 2]>),
    Sliding(Box<[Timed; 2]>),
    Sharing(u8, Box<[Timed; 2]>),
    Sequence(Box<[Timed; 2]>),
    Interleave(Box<[Timed; 2]>),
    Parallel(u8, Box<[Timed; 2]>),
    Alphabetised(u8, u8, Box<[Timed; 2]>),
    Hide(u8, Box<Timed>),
    Rename(Box<Timed>),
    Interrupt(Box<[Timed; 2]>),
    Exception(u8, Box<[Timed; 2]>),
    Ended,
}

const OPERATORS: usize = 18;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Tau,
    Tick,
    Tock,
    Event(usize),
}

fn has(set: u8, event: usize) -> bool {
    set & 1 << event != 0
}

fn two(p: Timed, q: Timed) -> Box<[Timed; 2]> {
    Box::new([p, q])
}

fn braces(set: u8) -> String {
    let names: Vec<&str> = (0..2).filter(|&e| has(set, e)).map(|e| NAMES[e]).collect();
    format!("{{{}}}", names.join(", "))
}

impl Timed {
    fn random(random: &mut Random, operator: usize, depth: usize) -> Timed {
        if depth == 0 && operator > 3 {
            let simple = random.below(4);
            return Timed::random(random, simple, 0);
        }
        let below = |random: &mut Random| {
            let operator = if random.one_in(3) { 4 } else { random.below(OPERATORS) };
            Timed::random(random, operator, depth - 1)
        };
        let set = random.below(4) as u8;
        let event = random.below(2);
        match operator {
            0 => Timed::Stop,
            1 => Timed::Skip,
            2 => Timed::Wait(random.below(3)),
            3 => Timed::Loop,
            4 => Timed::Prefix(event, Box::new(below(random))),
            5 => Timed::Guard(random.one_in(2), Box::new(below(random))),
            6 => Timed::External(two(below(random), below(random))),
            7 => Timed::Internal(two(below(random), below(random))),
            8 => Timed::Sliding(two(below(random), below(random))),
            9 => Timed::Sharing(set, two(below(random), below(random))),
            10 => Timed::Sequence(two(below(random), below(random))),
            11 => Timed::Interleave(two(below(random), below(random))),
            12 => Timed::Parallel(set, two(below(random), below(random))),
            13 => Timed::Alphabetised(set, random.below(4) as u8, two(below(random), below(random))),
            14 => Timed::Hide(set, Box::new(below(random))),
            15 => Timed::Rename(Box::new(below(random))),
            16 => Timed::Interrupt(two(below(random), below(random))),
            _ => Timed::Exception(set, two(below(random), below(random))),
        }
    }

    fn text(&self) -> String {
        let join =
            |pair: &[Timed; 2], operator: &str| format!("({} {operator} {})", pair[0].text(), pair[1].text());
        match self {
            Timed::Stop => "STOP".into(),
            Timed::Skip => "SKIP".into(),
            Timed::Wait(n) => format!("WAIT({n})"),
            Timed::Loop => "L".into(),
            Timed::Prefix(event, p) => format!("({} -> {})", NAMES[*event], p.text()),
            Timed::Guard(open, p) => format!("({open} & {})", p.text()),
            Timed::External(pair) => join(pair, "[]"),
            Timed::Internal(pair) => join(pair, "|~|"),
            Timed::Sliding(pair) => join(pair, "[>"),
            Timed::Sharing(set, pair) => join(pair, &format!("[+ {} +]", braces(*set))),
            Timed::Sequence(pair) => join(pair, ";"),
            Timed::Interleave(pair) => join(pair, "|||"),
            Timed::Parallel(set, pair) => join(pair, &format!("[| {} |]", braces(*set))),
            Timed::Alphabetised(l, r, pair) => join(pair, &format!("[{} || {}]", braces(*l), braces(*r))),
            Timed::Hide(set, p) => format!("({} \\ {})", p.text(), braces(*set)),
            Timed::Rename(p) => format!("({}[[a <- b]])", p.text()),
            Timed::Interrupt(pair) => join(pair, "/\\"),
            Timed::Exception(set, pair) => join(pair, &format!("[| {} |>", braces(*set))),
            Timed::After(..) | Timed::Ended => unreachable!("nobody writes these"),
        }
    }

    /// The steps, where an event `e` takes `duration[e]` units of time.
    fn steps(&self, duration: [usize; 2]) -> Vec<(Act, Timed)> {
        let mut out = Vec::new();
        match self {
            Timed::Ended => {}
            Timed::Stop | Timed::Guard(false, _) => out.push((Act::Tock, Timed::Stop)),
            Timed::Skip | Timed::Wait(0) => {
                out.extend([(Act::Tick, Timed::Ended), (Act::Tock, Timed::Skip)]);
            }
            Timed::Wait(n) => out.push((Act::Tock, Timed::Wait(n - 1))),
            Timed::Loop => {
                out.push((Act::Event(0), after(duration[0], Timed::Loop)));
                out.push((Act::Tock, Timed::Loop));
            }
            Timed::Prefix(event, p) => {
                out.push((Act::Event(*event), after(duration[*event], (**p).clone())));
                out.push((Act::Tock, self.clone()));
            }
            Timed::After(n, p) => out.push((Act::Tock, after(n - 1, (**p).clone()))),
            Timed::Guard(true, p) => out = p.steps(duration),
            Timed::Internal(pair) => out.extend(pair.iter().map(|p| (Act::Tau, p.clone()))),
            Timed::Sliding(pair) => {
                out.push((Act::Tau, pair[1].clone()));
                for (act, p) in pair[0].steps(duration) {
                    let p = if act == Act::Tau { Timed::Sliding(two(p, pair[1].clone())) } else { p };
                    out.push((act, p));
                }
            }
            Timed::External(pair) => choice(pair, 0, duration, &Timed::External, &mut out),
            Timed::Sharing(set, pair) => {
                choice(pair, *set, duration, &|pair| Timed::Sharing(*set, pair), &mut out);
            }
            Timed::Sequence(pair) => {
                for (act, p) in pair[0].steps(duration) {
                    out.push(match act {
                        Act::Tick => (Act::Tau, pair[1].clone()),
                        _ => (act, Timed::Sequence(two(p, pair[1].clone()))),
                    });
                }
            }
            Timed::Interleave(pair) => beside(pair, [3, 3], 0, duration, &Timed::Interleave, &mut out),
            Timed::Parallel(set, pair) => {
                beside(pair, [3, 3], *set, duration, &|pair| Timed::Parallel(*set, pair), &mut out);
            }
            Timed::Alphabetised(l, r, pair) => {
                let make = |pair| Timed::Alphabetised(*l, *r, pair);
                beside(pair, [*l, *r], l & r, duration, &make, &mut out);
            }
            Timed::Hide(set, p) => {
                for (act, p) in p.steps(duration) {
                    let hidden = matches!(act, Act::Event(e) if has(*set, e));
                    out.push((if hidden { Act::Tau } else { act }, Timed::Hide(*set, Box::new(p))));
                }
            }
            Timed::Rename(p) => {
                for (act, p) in p.steps(duration) {
                    let act = if act == Act::Event(0) { Act::Event(1) } else { act };
                    out.push((act, Timed::Rename(Box::new(p))));
                }
            }
            Timed::Interrupt(pair) => {
                let [left, right] = [pair[0].steps(duration), pair[1].steps(duration)];
                for (act, p) in &left {
                    match act {
                        Act::Tock => out.extend(
                            passing(&right).map(|q| (Act::Tock, Timed::Interrupt(two(p.clone(), q.clone())))),
                        ),
                        Act::Tick => out.push((Act::Tick, Timed::Ended)),
                        _ => out.push((*act, Timed::Interrupt(two(p.clone(), pair[1].clone())))),
                    }
                }
                for (act, q) in right {
                    match act {
                        Act::Tock => {}
                        Act::Tau => out.push((act, Timed::Interrupt(two(pair[0].clone(), q)))),
                        Act::Tick | Act::Event(_) => out.push((act, q)),
                    }
                }
            }
            Timed::Exception(set, pair) => {
                for (act, p) in pair[0].steps(duration) {
                    out.push(match act {
                        Act::Event(e) if has(*set, e) => (act, pair[1].clone()),
                        _ => (act, Timed::Exception(*set, two(p, pair[1].clone()))),
                    });
                }
            }
        }
        out
    }
}

fn after(units: usize, p: Timed) -> Timed {
    if units == 0 { p } else { Timed::After(units, Box::new(p)) }
}

/// Where the passing of a unit of time leads.
fn passing(steps: &[(Act, Timed)]) -> impl Iterator<Item = &Timed> {
    steps.iter().filter(|(act, _)| *act == Act::Tock).map(|(_, p)| p)
}

/// A choice that shared events and time do not resolve.
fn choice(
    pair: &[Timed; 2],
    shared: u8,
    duration: [usize; 2],
    make: &dyn Fn(Box<[Timed; 2]>) -> Timed,
    out: &mut Vec<(Act, Timed)>,
) {
    let steps = [pair[0].steps(duration), pair[1].steps(duration)];
    let together = |act: Act| act == Act::Tock || matches!(act, Act::Event(e) if has(shared, e));
    for (side, own) in steps.iter().enumerate() {
        for (act, p) in own.iter().filter(|(act, _)| !together(*act)) {
            out.push(match act {
                Act::Tau if side == 0 => (Act::Tau, make(two(p.clone(), pair[1].clone()))),
                Act::Tau => (Act::Tau, make(two(pair[0].clone(), p.clone()))),
                _ => (*act, p.clone()),
            });
        }
    }
    for (act, p) in steps[0].iter().filter(|(act, _)| together(*act)) {
        for (_, q) in steps[1].iter().filter(|(other, _)| other == act) {
            out.push((*act, make(two(p.clone(), q.clone()))));
        }
    }
}

/// Operands that do shared events, time and termination together, and each only events of its alphabet.
fn beside(
    pair: &[Timed; 2],
    alphabets: [u8; 2],
    shared: u8,
    duration: [usize; 2],
    make: &dyn Fn(Box<[Timed; 2]>) -> Timed,
    out: &mut Vec<(Act, Timed)>,
) {
    let steps = [pair[0].steps(duration), pair[1].steps(duration)];
    for (side, own) in steps.iter().enumerate() {
        for (act, p) in own {
            let alone = match act {
                Act::Tau => true,
                Act::Event(e) => has(alphabets[side], *e) && !has(shared, *e),
                Act::Tick | Act::Tock => false,
            };
            if alone && side == 0 {
                out.push((*act, make(two(p.clone(), pair[1].clone()))));
            } else if alone {
                out.push((*act, make(two(pair[0].clone(), p.clone()))));
            }
        }
    }
    let together = |act: Act| match act {
        Act::Tau => false,
        Act::Tick | Act::Tock => true,
        Act::Event(e) => has(shared, e),
    };
    for (act, p) in steps[0].iter().filter(|(act, _)| together(*act)) {
        for (_, q) in steps[1].iter().filter(|(other, _)| other == act) {
            let next = if *act == Act::Tick { Timed::Ended } else { make(two(p.clone(), q.clone())) };
            out.push((*act, next));
        }
    }
}

/// The twin with the events of a script.
struct Twin {
    duration: [usize; 2],
    tock: EventId,
    events: [EventId; 2],
}

impl Transitions for Twin {
    type State = Timed;

    fn moves(&mut self, state: &Timed) -> Result<Vec<(EventId, Timed)>, CheckError> {
        let event = |act| match act {
            Act::Tau => EventId::TAU,
            Act::Tick => EventId::TICK,
            Act::Tock => self.tock,
            Act::Event(e) => self.events[e],
        };
        Ok(state.steps(self.duration).into_iter().map(|(act, next)| (event(act), next)).collect())
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn first_event(script: &mut Script, name: &str) -> EventId {
    let process = script.process(&format!("{name} -> STOP")).expect("an event of the script");
    script
        .with_checker(&CheckOptions::default(), |checker| checker.machine(process, false))
        .expect("a small machine")
        .from(0)[0]
        .0
}

#[test]
fn timed_sections_are_what_the_rules_say() {
    let (cases, first) = (number("RADDLE_TEST_CASES", 60), number("RADDLE_TEST_SEED", 0));
    let options = CheckOptions { leaf_states_max: 3000, ..CheckOptions::default() };
    let mut compared = 0;
    for operator in 0..OPERATORS {
        for seed in first..first + cases {
            let mut random = Random::new(seed.wrapping_mul(1000) + operator as u64);
            let duration = [random.below(3), random.below(3)];
            let term = Timed::random(&mut random, operator, DEPTH);
            let text = term.text();
            let case = format!("operator {operator}, RADDLE_TEST_SEED={seed}: {text}, {duration:?}");
            let script = format!(
                "channel tock, a, b\nd(a) = {}\nd(b) = {}\nTimed(d) {{\n  L = a -> L\n  MAIN = {text}\n}}\n",
                duration[0], duration[1]
            );
            let mut script = match Script::from_text("timed.csp", script) {
                Ok(script) => script,
                Err(refused) => panic!("{case}: {:?}", refused.diagnostics),
            };
            let [tock, a, b] = ["tock", "a", "b"].map(|name| first_event(&mut script, name));
            let alphabet = [tock, a, b];
            let mut twin = Twin { duration, tock, events: [a, b] };
            let meant = observe(&mut twin, term, &alphabet, LENGTH).expect("the twin has all steps");
            let main = script.process("MAIN").unwrap_or_else(|d| panic!("{case}: {d:?}"));
            for reduce in [false, true] {
                let machine = script.with_checker(&options, |checker| checker.machine(main, reduce));
                let Ok(mut machine) = machine else { continue };
                let found =
                    observe(&mut machine, 0, &alphabet, LENGTH).expect("machines have all transitions");
                let same = found.traces == meant.traces
                    && found.ticks == meant.ticks
                    && found.failures == meant.failures
                    && found.divergences == meant.divergences;
                assert!(same, "{case}\nfound {found:?}\nmeant {meant:?}");
                compared += 1;
            }
        }
    }
    assert!(compared as u64 > cases * OPERATORS as u64, "most processes are small enough: {compared}");
}
