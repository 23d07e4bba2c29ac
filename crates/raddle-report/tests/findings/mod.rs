//! A finding of each kind, as the detectors make them.
#![allow(dead_code)]

use raddle_findings::basis::{Ended, Step, ThreadState};
use raddle_findings::finding::{Assertion, Creation};
use raddle_findings::object::Allocation;
use raddle_findings::*;

pub const BANK: &str = "\
#include <pthread.h>

int balance;
pthread_mutex_t alice, bob;

void withdraw(int amount) {
    balance -= amount;
}

void deposit(int amount) {
    pthread_mutex_lock(&alice);
    balance += amount;
    pthread_mutex_lock(&bob);
    pthread_mutex_unlock(&bob);
    pthread_mutex_unlock(&alice);
}

void transfer(void) {
    pthread_mutex_lock(&bob);
    pthread_mutex_lock(&alice);
}
";

pub fn frame(function: &str, line: u32, column: u32) -> Frame {
    Frame {
        function: Some(function.into()),
        file: Some("src/bank.c".into()),
        line: Some(line),
        column: Some(column),
        raw: Some("bank+0x1234".into()),
        source: None,
        library: false,
    }
}

fn library(function: &str) -> Frame {
    Frame {
        function: Some(function.into()),
        file: Some("/usr/include/c++/14/vector".into()),
        line: Some(99),
        library: true,
        ..Frame::default()
    }
}

pub fn thread(path: &str, entry: &str) -> Thread {
    Thread { path: path.into(), entry: Some(entry.into()), name: None }
}

fn memory(name: &str) -> Object {
    Object {
        name: Some(name.into()),
        what: What::Memory,
        place: Place::Global { module: "bank".into(), offset: 64 },
    }
}

fn mutex(name: &str) -> Object {
    Object { what: What::Mutex, ..memory(name) }
}

fn condition(name: &str) -> Object {
    Object { what: What::Condition, ..memory(name) }
}

fn party(path: &str, entry: &str, action: Action, at: Frame) -> Party {
    Party::new(thread(path, entry), action, vec![at])
}

fn writes(bytes: u64) -> Action {
    Action::Accesses {
        access: Access::Write,
        bytes,
        atomic: false,
        vptr: false,
        object: Some(memory("balance")),
    }
}

fn role(role: Role) -> Action {
    Action::plays(role)
}

pub fn replayed(shown: Shown) -> Basis {
    Basis::Replayed { shown, replays: 2 }
}

pub fn race() -> Finding {
    let mut one = party("1.1", "worker", writes(4), frame("withdraw", 7, 13));
    one.stack.extend([library("std::invoke"), library("std::thread::run"), frame("worker", 30, 5)]);
    one.created = Some(Box::new(Creation { by: Thread::at("1"), stack: vec![frame("main", 40, 5)] }));
    let mut two = party("1.2", "worker", writes(4), frame("deposit", 12, 13));
    two.locks = vec![HeldLock { lock: mutex("alice"), read: false, acquired: vec![frame("deposit", 11, 5)] }];
    let mut finding =
        Finding::new(Kind::DataRace, "predict", replayed(Shown::Parked), vec![one, two], Detail::None);
    finding.remarks = vec![
        Remark::ObservedOrder { first: "1.2".into(), then: "1.1".into(), events: (12, 30) },
        Remark::AlsoFoundBy { detectors: vec!["eraser".into(), "shb".into()] },
    ];
    finding.schedule = Some(".raddle/x/schedule".into());
    finding
}

pub fn step(operation: &str, ordinal: u32, place: &str) -> Step {
    Step { operation: operation.into(), ordinal, place: place.into() }
}

pub fn diverged() -> Attempt {
    Attempt::Diverged {
        after_steps: 7,
        thread: "1.2".into(),
        expected: Some(step("lock", 4, "src/bank.c:12")),
        found: Some(step("unlock", 4, "src/bank.c:14")),
    }
}

pub fn standstill() -> Attempt {
    let state = |thread: &str, phase: &str| ThreadState {
        thread: thread.into(),
        phase: phase.into(),
        at: Some(step("lock", 2, "src/bank.c:11")),
    };
    Attempt::Standstill { after_steps: 12, threads: vec![state("1.1", "waiting"), state("1.2", "ready")] }
}

pub fn invisible() -> Basis {
    let spin = Invisible {
        what: InvisibleKind::InlineAssembly,
        module: "bank".into(),
        function: Some("spin_lock".into()),
        place: Some("src/spin.h:8".into()),
    };
    let openmp = Invisible {
        what: InvisibleKind::LibraryNotRebuilt,
        module: "libgomp.so.1".into(),
        function: None,
        place: None,
    };
    Basis::Unordered { replays: 0, invisible: vec![spin, openmp], attempts: vec![Attempt::Ordered] }
}

fn cycle(kind: Kind, basis: Basis) -> Finding {
    let waits = |name: &str, holder: &str| Action::Waits {
        wait: Wait::Lock,
        object: Some(mutex(name)),
        holder: Some(holder.into()),
        operation: String::new(),
    };
    let holds = |name: &str, function: &str, line: u32| {
        vec![HeldLock { lock: mutex(name), read: false, acquired: vec![frame(function, line, 5)] }]
    };
    let mut one = party("1.1", "worker", waits("bob", "1.2"), frame("deposit", 13, 5));
    one.locks = holds("alice", "deposit", 11);
    let mut two = party("1.2", "worker", waits("alice", "1.1"), frame("transfer", 20, 5));
    two.locks = holds("bob", "transfer", 19);
    Finding::new(kind, "predict", basis, vec![one, two], Detail::None)
}

fn heap() -> Object {
    let stack = vec![library("operator new"), frame("pool_new", 20, 9)];
    let allocated = Some(Box::new(Allocation { thread: Thread::at("1.1"), stack }));
    Object { name: None, what: What::Memory, place: Place::Heap { bytes: 48, offset: 8, allocated } }
}

fn crash(kind: Kind, detail: Detail) -> Finding {
    let one = party("1.1", "worker", Action::Crashes, frame("withdraw", 7, 13));
    let two = party("1.2", "worker", Action::IsAt, frame("deposit", 12, 13));
    let mut finding = Finding::new(kind, "explore", replayed(Shown::Ended), vec![one, two], detail);
    finding.seen = Some(Seen { count: 3, runs: 200, first_run: 17, seed: 42 });
    finding
}

pub fn of(kind: Kind) -> Finding {
    let [here, there] = [frame("withdraw", 7, 13), frame("deposit", 12, 13)];
    let pair = |one: Action, two: Action| {
        vec![party("1.1", "worker", one, here.clone()), party("1.2", "worker", two, there.clone())]
    };
    let about = |basis: Basis, objects: Vec<Object>, parties: Vec<Party>, detail: Detail| {
        Finding::about(kind, "check", basis, objects, parties, detail)
    };
    match kind {
        Kind::DataRace => race(),
        Kind::UseAfterFree => {
            let read = Action::Accesses {
                access: Access::Read,
                bytes: 8,
                atomic: false,
                vptr: false,
                object: Some(heap()),
            };
            let frees = Action::Frees { object: Some(heap()) };
            Finding::new(kind, "hb", Basis::unordered(), pair(read, frees), Detail::None)
        }
        Kind::HighLevelRace => about(
            Basis::rule(),
            vec![memory("x"), memory("y")],
            pair(role(Role::AccessesTogether), role(Role::AccessesSome)),
            Detail::None,
        ),
        Kind::AtomicityViolation => {
            let mut parties = pair(role(Role::BeginsRegion), role(Role::Interferes));
            parties.push(party("1.1", "worker", role(Role::EndsRegion), frame("withdraw", 8, 1)));
            let detail = Detail::Pattern { accesses: "read write read".into() };
            about(Basis::rule(), vec![memory("balance")], parties, detail)
        }
        Kind::OrderViolation => about(
            replayed(Shown::Ended),
            vec![memory("config")],
            pair(role(Role::ComesFirst), role(Role::ShouldComeFirst)),
            Detail::None,
        ),
        Kind::Deadlock => cycle(kind, replayed(Shown::Blocked)),
        Kind::LockOrder => cycle(kind, Basis::rule()),
        Kind::MissedSignal => {
            let signals = Action::SignalsNobody { object: Some(condition("ready")) };
            let waits = Action::waits(Wait::Signal, Some(condition("ready")));
            let detail = Detail::MissedSignal { still_waits: true };
            let mut finding =
                Finding::new(kind, "predict", replayed(Shown::Blocked), pair(waits, signals), detail);
            let frame = Box::new(frame("withdraw", 6, 9));
            finding.remarks.push(Remark::CheckedWithoutLock { thread: "1.1".into(), frame });
            finding
        }
        Kind::BlockedThread => {
            let waits =
                Action::waits(Wait::Semaphore, Some(Object { what: What::Semaphore, ..memory("items") }));
            let parties = vec![party("1.1", "worker", waits, here)];
            Finding::new(kind, "predict", Basis::observed(), parties, Detail::AtEndOfTrace)
        }
        Kind::Livelock => about(
            Basis::rule(),
            Vec::new(),
            pair(role(Role::RepeatsItself), role(Role::RepeatsItself)),
            Detail::None,
        ),
        Kind::Starvation => {
            let waits = Action::waits(Wait::Lock, Some(mutex("alice")));
            let again = Action::Plays { role: Role::AcquiresAgain, object: Some(mutex("alice")) };
            Finding::new(
                kind,
                "progress",
                Basis::rule(),
                pair(waits, again),
                Detail::Without { progress_steps: 1000 },
            )
        }
        Kind::NonProgress => {
            let parties = vec![party("1.1", "worker", role(Role::RepeatsItself), here)];
            about(Basis::observed(), Vec::new(), parties, Detail::Without { progress_steps: 5000 })
        }
        Kind::ContractViolation => {
            let mut parties = pair(role(Role::BeginsSequence), role(Role::InterruptsSequence));
            parties.push(party("1.1", "worker", role(Role::EndsSequence), frame("withdraw", 8, 1)));
            about(Basis::rule(), Vec::new(), parties, Detail::Contract { line: 3 })
        }
        Kind::LockMisuse => {
            let releases = Action::Releases { object: Some(mutex("alice")) };
            let parties = vec![party("1.1", "worker", releases, here)];
            let detail = Detail::Misuse { misuse: Misuse::UnlockNotHeld };
            Finding::new(kind, "runtime", Basis::observed(), parties, detail)
        }
        Kind::ThreadLeak => {
            let mut leaked = party("1.1", "worker", Action::IsLeaked, here);
            leaked.stack.clear();
            leaked.created =
                Some(Box::new(Creation { by: Thread::at("1"), stack: vec![frame("main", 18, 5)] }));
            Finding::new(kind, "runtime", Basis::observed(), vec![leaked], Detail::None)
        }
        Kind::Crash => crash(kind, Detail::Crash { signal: 11, assertion: None, address: Some(0) }),
        Kind::AssertionFailure => {
            let assertion = Assertion {
                expression: "balance >= 0".into(),
                file: Some("src/bank.c".into()),
                line: Some(7),
                function: Some("withdraw".into()),
            };
            crash(kind, Detail::Crash { signal: 6, assertion: Some(assertion), address: None })
        }
        Kind::PropertyViolation => crash(kind, Detail::Words { text: "never two writers".into() }),
        Kind::FailedStatus => {
            let mut finding = crash(kind, Detail::Ending { ended: Ended::Status(3) });
            finding.parties.clear();
            finding
        }
        Kind::WrongOutput => {
            let mut finding = crash(kind, Detail::None);
            finding.parties.clear();
            finding
        }
    }
}
