//! Detectors of the survey against their definitions, and on the survey's own examples.

mod common;

use common::{HB, Naive, cases, plain, run};
use raddle_detect::detectors::correlated::{Correlated, Thresholds};
use raddle_detect::detectors::nonprogress::NonProgress;
use raddle_detect::detectors::order::{GivenPlace, Order, OrderFacts};
use raddle_detect::detectors::trade::Trade;
use raddle_detect::detectors::units::Units;
use raddle_detect::detectors::views::Views;
use raddle_detect::region::Regions;
use raddle_detect::training::PlaceName;
use raddle_findings::Kind;
use raddle_trace::generate::{Shape, generate};
use raddle_trace::std_format::StdReader;
use raddle_trace::{MemoryTrace, ThreadIx};
use std::collections::{BTreeMap, BTreeSet};

fn read(text: &str) -> MemoryTrace {
    MemoryTrace::read(&mut StdReader::new(text.as_bytes(), "t.std", None)).unwrap()
}

#[test]
fn trade_is_happens_before_from_the_second_thread_on() {
    let (mut found, mut left_out) = (0, 0);
    for seed in 0..cases(200) {
        let trace = generate(&Shape::locks_only(3, 2, 3, 60), seed);
        let races = Naive::new(&trace, HB).races();
        // Where a second thread comes to each variable.
        let mut owner: BTreeMap<u64, ThreadIx> = BTreeMap::new();
        let mut shared: BTreeMap<u64, usize> = BTreeMap::new();
        for (index, event) in trace.events.iter().enumerate() {
            let Some((addr, ..)) = plain(event) else { continue };
            if *owner.entry(addr).or_insert(event.thread) != event.thread {
                shared.entry(addr).or_insert(index);
            }
        }
        let counts = |first: usize| {
            plain(&trace.events[first]).is_some_and(|a| shared.get(&a.0).is_some_and(|&from| first >= from))
        };
        let expected: BTreeSet<u64> =
            races.iter().filter(|(first, _)| counts(*first)).map(|(_, second)| *second as u64).collect();
        let mut trade = Trade::keep_all();
        run(&trace, &mut trade);
        let told: BTreeSet<u64> = trade.races().all().iter().map(|(position, _)| *position).collect();
        assert_eq!(told, expected, "seed {seed}");
        found += told.len();
        left_out += usize::from(races.iter().any(|(_, second)| !told.contains(&(*second as u64))));
    }
    assert!(found > 50 && left_out > 10, "{found} found, {left_out} left out");
}

/// Writes of units that were intruded upon before, by looking at all accesses of each unit.
fn naive_units(trace: &MemoryTrace) -> BTreeSet<u64> {
    let accesses: Vec<(usize, ThreadIx, u64, bool)> = trace
        .events
        .iter()
        .enumerate()
        .filter_map(|(index, event)| plain(event).map(|(addr, _, write)| (index, event.thread, addr, write)))
        .collect();
    let shared = |upto: usize, addr: u64| {
        let threads: BTreeSet<ThreadIx> =
            accesses.iter().filter(|a| a.0 <= upto && a.2 == addr).map(|a| a.1).collect();
        threads.len() > 1
    };
    // Where the unit of each access began.
    let mut begins: BTreeMap<ThreadIx, usize> = BTreeMap::new();
    let mut violations = BTreeSet::new();
    let mut told: BTreeMap<ThreadIx, usize> = BTreeMap::new();
    for &(index, thread, addr, write) in &accesses {
        let begin = *begins.entry(thread).or_insert(index);
        let wrote =
            accesses.iter().any(|a| a.1 == thread && (begin..index).contains(&a.0) && a.2 == addr && a.3);
        let begin = if !write && wrote && shared(index, addr) { index } else { begin };
        begins.insert(thread, begin);
        if !write || !shared(index, addr) {
            continue;
        }
        // An intrusion since the unit began, and since the last one that was told.
        let from = told.get(&thread).copied().unwrap_or(0).max(begin);
        let mine = |upto: usize, var: u64| {
            accesses.iter().filter(move |a| a.1 == thread && (begin..upto).contains(&a.0) && a.2 == var)
        };
        let intruded = accesses
            .iter()
            .filter(|a| a.1 != thread && a.0 > from && a.0 < index)
            .any(|a| (a.3 && mine(a.0, a.2).next().is_some()) || (!a.3 && mine(a.0, a.2).any(|m| m.3)));
        if intruded {
            violations.insert(index as u64);
            told.insert(thread, index);
        }
    }
    violations
}

#[test]
fn units_are_strict_two_phase_locking() {
    let mut found = 0;
    for seed in 0..cases(300) {
        let trace = generate(&Shape::locks_only(3, 2, 4, 50), seed);
        let mut units = Units::default();
        run(&trace, &mut units);
        let told: BTreeSet<u64> = units.violations().iter().copied().collect();
        assert_eq!(told, naive_units(&trace), "seed {seed}");
        found += told.len();
    }
    assert!(found > 100, "{found}");
}

/// Two units add under a lock, each in two sections: one addition is lost. In one section none is.
#[test]
fn units_find_the_lost_update() {
    let lost = "T1|acq(l)|1\nT1|r(x)|2\nT1|rel(l)|3\nT2|acq(l)|1\nT2|r(x)|2\nT2|rel(l)|3\n\
                T2|acq(l)|4\nT2|w(x)|5\nT2|rel(l)|6\nT1|acq(l)|4\nT1|w(x)|5\nT1|rel(l)|6\n";
    let reports = run(&read(lost), &mut Units::default());
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].kind, Kind::AtomicityViolation);
    let one =
        "T1|acq(l)|1\nT1|r(x)|2\nT1|w(x)|5\nT1|rel(l)|6\nT2|acq(l)|1\nT2|r(x)|2\nT2|w(x)|5\nT2|rel(l)|6\n";
    assert!(run(&read(&one.repeat(3)), &mut Units::default()).is_empty());
}

/// A pair of fields, each under its own lock, read in two steps. `outer` locks around them, or marks them.
fn pair(writer: [&str; 2], reader: [&str; 2]) -> String {
    let mut text = String::new();
    let mut line = |thread: &str, op: &str| {
        if !op.is_empty() {
            text.push_str(&format!("{thread}|{op}|{}\n", op.len()));
        }
    };
    for _ in 0..5 {
        for (thread, outer, access) in [("T1", writer, "w"), ("T2", reader, "r")] {
            line(thread, outer[0]);
            for field in ["x", "y"] {
                line(thread, &format!("acq(lock_{field})"));
                line(thread, &format!("{access}({field})"));
                line(thread, &format!("rel(lock_{field})"));
            }
            line(thread, outer[1]);
        }
    }
    text
}

#[test]
fn the_high_level_race_of_two_fields_is_found() {
    let plain = read(&pair(["", ""], ["", ""]));
    let correlated = || Correlated::new(Thresholds::default(), Regions::Marked);
    assert_eq!(run(&plain, &mut correlated()).len(), 1, "each field has its lock, both have none");
    // Under a common lock it is none.
    let guarded = read(&pair(["acq(l)", "rel(l)"], ["acq(l)", "rel(l)"]));
    assert!(run(&guarded, &mut correlated()).is_empty());
    // The user's regions are units and views.
    let marked = read(&pair(["begin(set)", "end(set)"], ["", ""]));
    assert_eq!(run(&marked, &mut correlated()).len(), 1);
    assert!(run(&plain, &mut Views::new(Regions::Marked)).is_empty(), "without a mark no view has both");
    let reports = run(&marked, &mut Views::new(Regions::Marked));
    assert!(!reports.is_empty() && reports.iter().all(|report| report.kind == Kind::HighLevelRace));
    let both = read(&pair(["begin(set)", "end(set)"], ["begin(get)", "end(get)"]));
    assert!(run(&both, &mut Views::new(Regions::CriticalSections)).is_empty());
}

#[test]
fn flags_that_go_up_and_down_are_a_livelock() {
    // Each raises its flag, sees the other's, lowers its own, and begins again.
    let round =
        "T1|aw(f1,1)|1\nT2|aw(f2,1)|11\nT1|ar(f2,1)|2\nT2|ar(f1,1)|12\nT1|aw(f1,0)|3\nT2|aw(f2,0)|13\n";
    let reports = run(&read(&round.repeat(50)), &mut NonProgress::new(100, 1_000));
    assert!(reports.iter().any(|report| report.kind == Kind::Livelock), "{reports:?}");
    // A counter is progress, and so is memory in between.
    let counts: String = (1..200).map(|n| format!("T1|aw(c,{n})|1\nT2|aw(d,{n})|2\n")).collect();
    assert!(run(&read(&counts), &mut NonProgress::new(100, 1_000)).is_empty());
    let works = format!("{round}T1|w(x)|4\nT2|w(y)|14\n").repeat(50);
    assert!(run(&read(&works), &mut NonProgress::new(100, 1_000)).is_empty());
}

#[test]
fn a_lock_that_is_a_word_starves_who_never_gets_it() {
    use raddle_trace::{Addr, AtomicKind, ContextIx, Event, Location, Op, Order as Memory};
    let mut trace = MemoryTrace::default();
    trace.tables.add_thread(Some(ThreadIx(0)));
    let places = [1, 2, 3].map(|number| trace.tables.intern_location(Location::Foreign(number)));
    let mut push = |thread: u32, place: usize, kind, read, written| {
        let op = Op::Atomic { addr: Addr(64), size: 4, kind, order: Memory::SeqCst, read, written };
        let (location, context) = (places[place], ContextIx::ROOT);
        trace.events.push(Event { thread: ThreadIx(thread), location, context, kept_calls: 0, op });
    };
    for _ in 0..30 {
        push(0, 0, AtomicKind::Rmw, 0, 1);
        push(1, 1, AtomicKind::Rmw, 1, 1);
        push(0, 2, AtomicKind::Store, 0, 0);
    }
    let reports = run(&trace, &mut NonProgress::new(10_000, 20));
    assert_eq!(reports.len(), 1);
    assert_eq!((reports[0].kind, reports[0].parts[0].location), (Kind::Starvation, places[1]));
    assert!(run(&trace, &mut NonProgress::new(10_000, 40)).is_empty());
}

#[test]
fn readers_do_not_starve_a_reader() {
    let text = format!("T1|reqr(l)|1\n{}", "T2|acqr(l)|2\nT2|relr(l)|3\n".repeat(30));
    assert!(run(&read(&text), &mut NonProgress::new(10_000, 20)).is_empty());
    let text = format!("T1|reqr(l)|1\n{}", "T2|acqw(l)|2\nT2|relw(l)|3\n".repeat(30));
    assert_eq!(run(&read(&text), &mut NonProgress::new(10_000, 20)).len(), 1);
}

#[test]
fn order_sees_atomics_and_what_never_happens() {
    let given = || {
        let pair = (GivenPlace::Location(1), GivenPlace::Location(2));
        OrderFacts::given(&[pair], &mut |_, _| Vec::<PlaceName>::new())
    };
    let check = |text: &str| {
        let mut order = Order::new(Some(given()));
        let reports = run(&read(text), &mut order);
        (reports.len(), order.violations().len(), order.missing().len())
    };
    assert_eq!(check("T1|aw(x)|1\nT2|ar(x)|2\n"), (0, 0, 0));
    assert_eq!(check("T2|ar(x)|2\nT1|aw(x)|1\n"), (1, 1, 0), "an atomic used before it is set");
    assert_eq!(check("T2|r(x)|2\nT1|w(y)|7\n"), (1, 0, 1), "used, and never initialised");
    assert_eq!(check("T1|w(y)|7\n"), (0, 0, 0));
    // Learnt: only what every good run with the second place showed.
    let learn = |texts: &[&str]| {
        let mut facts = OrderFacts::default();
        for text in texts {
            let trace = read(text);
            let mut order = Order::new(None);
            run(&trace, &mut order);
            facts.add(order.facts(&trace.tables));
        }
        let mut order = Order::new(Some(facts));
        run(&read("T2|r(x)|2\n"), &mut order).len()
    };
    assert_eq!(learn(&["T1|w(x)|1\nT2|r(x)|2\n", "T1|w(x)|1\nT2|r(x)|2\n", "T1|w(z)|5\n"]), 1);
    assert_eq!(learn(&["T1|w(x)|1\nT2|r(x)|2\n", "T2|r(x)|2\n"]), 0);
}
