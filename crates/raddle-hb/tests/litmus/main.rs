//! Weak behaviours against the axioms of C11, without starting a process.
//!
//! Each litmus test of the corpus, and random ones beside them, is executed by a small machine over [`raddle_hb`] in *every*
//! interleaving and with *every* choice among stores. What it prints over all of these must be exactly what the axioms
//! allow but for load buffering ([`axioms`], by brute force), and it must find a race exactly if some allowed execution
//! has one.

mod axioms;
mod machine;
mod program;

#[path = "../common/mod.rs"]
mod common;

use axioms::Outcomes;
use common::{Random, cases};
use program::{Order, Program, Statement};
use std::collections::BTreeSet;
use std::path::Path;

/// Tests of the corpus, by manifest: name and program.
fn corpus() -> Vec<(String, Program)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus");
    let header = std::fs::read_to_string(folder.join("litmus.h")).unwrap();
    let mut manifests: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    manifests.sort();
    assert!(!manifests.is_empty(), "there are litmus tests in the corpus");
    manifests
        .into_iter()
        .map(|path| {
            let manifest: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
            let list = |key: &str| -> Vec<String> {
                let values = manifest.get(key).and_then(toml::Value::as_array).into_iter().flatten();
                values.filter_map(toml::Value::as_str).map(str::to_owned).collect()
            };
            let source = std::fs::read_to_string(folder.join(&list("files")[0])).unwrap();
            let cflags = list("cflags");
            let defines: Vec<String> =
                cflags.iter().filter_map(|flag| flag.strip_prefix("-D")).map(str::to_owned).collect();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, program::read(&source, &header, &defines))
        })
        .collect()
}

#[test]
#[cfg_attr(miri, ignore = "reads files; the random programs stand for them")]
fn the_corpus_does_what_the_axioms_allow() {
    for (name, program) in corpus() {
        let (right, found) = (axioms::outcomes(&program), machine::explore(&program));
        assert_eq!(found.races, right.races, "{name}: a race, after {} executions", found.executions);
        // A program with a race may do anything.
        if !right.races {
            assert_eq!(
                found.printed, right.without_buffering,
                "{name}, after {} executions",
                found.executions
            );
        }
    }
}

fn statement(random: &mut Random, register: &mut usize) -> Statement {
    let location = ["x", "y"][random.below(2)].to_owned();
    let orders = [Order::Relaxed, Order::Acquire, Order::Release, Order::AcqRel, Order::SeqCst];
    let mut of = |some: &[Order]| some[random.below(some.len())];
    let (loads, stores, any) = (
        of(&[Order::Relaxed, Order::Acquire, Order::SeqCst]),
        of(&[Order::Relaxed, Order::Release, Order::SeqCst]),
        of(&orders),
    );
    let fence = of(&orders[1..]);
    let mut next = || {
        *register += 1;
        format!("r{register}")
    };
    match random.below(8) {
        0..=2 => Statement::Load { register: next(), location, order: loads },
        3..=5 => Statement::Store { location, value: 1 + random.below(2) as i64, order: stores },
        6 => Statement::Add { register: Some(next()), location, amount: 4, order: any },
        _ => Statement::Fence(fence),
    }
}

fn random_program(random: &mut Random) -> Program {
    let mut register = 0;
    // What the axioms have to try grows faster than exponentially: five statements, one of which may add.
    let mut left = if cfg!(miri) { 3 } else { 5 };
    let mut may_add = true;
    let threads: Vec<Vec<Statement>> = (0..2 + usize::from(random.chance(3)))
        .map(|_| {
            let count = (1 + random.below(3)).min(left);
            left -= count;
            let mut next = || {
                loop {
                    let next = statement(random, &mut register);
                    if !matches!(next, Statement::Add { .. }) || core::mem::take(&mut may_add) {
                        return next;
                    }
                }
            };
            (0..count).map(|_| next()).collect()
        })
        .collect();
    let at_end = ["x", "y"].map(|location| Statement::Load {
        register: format!("final {location}"),
        location: location.to_owned(),
        order: Order::Relaxed,
    });
    let printed = (1..=register).map(|n| format!("r{n}"));
    let printed = printed.chain(["final x".to_owned(), "final y".to_owned()]).collect();
    Program { threads, at_end: at_end.into(), printed }
}

/// Does a thread store twice to a location? Then a release sequence through a plain store may keep others from being put in.
fn has_sequences(program: &Program) -> bool {
    program.threads.iter().any(|thread| {
        let stores: Vec<&str> = thread
            .iter()
            .filter_map(|statement| match statement {
                Statement::Store { location, .. } => Some(location.as_str()),
                _ => None,
            })
            .collect();
        stores.iter().collect::<BTreeSet<_>>().len() < stores.len()
    })
}

#[test]
fn random_programs_do_what_the_axioms_allow() {
    let mut compared = 0;
    for case in 0..cases(400) {
        let program = random_program(&mut Random(case));
        let found = machine::explore(&program);
        let right: Outcomes = axioms::outcomes(&program);
        let more: Vec<_> = found.printed.difference(&right.allowed).collect();
        assert!(more.is_empty(), "case {case}: {more:?} is not allowed in {program:#?}");
        if !has_sequences(&program) {
            let less: Vec<_> = right.executable.difference(&found.printed).collect();
            assert!(less.is_empty(), "case {case}: {less:?} is allowed in {program:#?}");
            compared += 1;
        }
    }
    assert!(compared > 0);
}
