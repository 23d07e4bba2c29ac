//! How a run ended, as a finding: crashes with the stack of every thread, deadlocks with the stacks of their parties.

#![warn(clippy::wildcard_enum_match_arm)]

use raddle_findings::finding::Assertion;
use raddle_findings::naming::Namer;
use raddle_findings::{
    Action, Basis, Detail, Finding, Frame, Kind, Object, Party, Place, Thread, Wait, What,
};
use raddle_trace::crash::{CrashReport, CrashedThread, Wait as RawWait};
use raddle_trace::schedule::StepKind;

/// A crash that the runtime could report.
pub fn crash(report: &CrashReport, by: &str, basis: Basis, namer: &mut Namer) -> Finding {
    let mut parties = Vec::new();
    for (at, thread) in report.threads.iter().enumerate() {
        let stack = namer.call_stack(&thread.frames);
        let action = match at {
            0 => Action::Crashes,
            _ => waiting(thread, &report.threads, namer).unwrap_or(Action::IsAt),
        };
        parties.push(Party::new(named(thread, &stack), action, stack));
    }
    let assertion = report.assertion.as_ref().map(|raw| Assertion {
        expression: raw.expression.clone(),
        file: (!raw.file.is_empty()).then(|| raw.file.clone()),
        line: (raw.line > 0).then_some(raw.line),
        function: (!raw.function.is_empty()).then(|| raw.function.clone()),
    });
    let kind = if assertion.is_some() { Kind::AssertionFailure } else { Kind::Crash };
    let assertion = assertion.or_else(|| {
        report.message.as_ref().map(|text| Assertion { expression: text.clone(), ..Assertion::default() })
    });
    let address = (report.address != 0).then_some(report.address);
    let detail = Detail::Crash { signal: report.signal, assertion, address };
    // What others wait for says nothing about which crash it is.
    Finding::about(kind, by, basis, Vec::new(), parties, detail)
}

/// A run in which no thread could ever go on. `report` was written when Raddle ended it.
pub fn stuck(report: &CrashReport, by: &str, namer: &mut Namer) -> Finding {
    let mut parties = Vec::new();
    for thread in &report.threads {
        let stack = namer.call_stack(&thread.frames);
        let object = match thread.waits {
            Some(RawWait::Call { argument, .. }) if argument != 0 => Some(namer.data(argument)),
            _ => None,
        };
        let action = Action::Waits { wait: Wait::Futex, object, holder: None, operation: String::new() };
        parties.push(Party::new(named(thread, &stack), action, stack));
    }
    Finding::about(Kind::BlockedThread, by, Basis::observed(), Vec::new(), parties, Detail::None)
}

/// Calls of the user's own code that tell one crash from another, as in ids of findings.
const PLACE_CALLS: usize = 2;

/// Where a process crashed, for a schedule: the failed assertion, or the innermost calls of the user's own code. What stands below
/// them, the C library or Raddle's runtime, differs between machines and between recording and replaying.
pub fn place(report: &CrashReport, namer: &mut Namer) -> String {
    if let Some(assertion) = &report.assertion {
        return format!("{}:{}", base(&assertion.file), assertion.line);
    }
    let frames = report.threads.first().map_or(&[][..], |thread| &thread.frames);
    let stack = namer.call_stack(frames);
    let call = |frame: &Frame| -> Option<String> {
        let place = match (&frame.file, frame.line) {
            (Some(file), Some(line)) => format!("{}:{line}", base(file)),
            _ => frame.raw.clone()?,
        };
        let function = frame.function.as_ref().map_or_else(String::new, |name| format!(" {name}"));
        Some(format!("{place}{function}"))
    };
    let calls = stack.iter().filter(|frame| !frame.library).filter_map(call).take(PLACE_CALLS);
    calls.collect::<Vec<_>>().join(", called at ").replace(char::is_control, " ")
}

fn base(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// A crash of which nothing is known but the signal.
pub fn bare_crash(signal: i32, by: &str, basis: Basis) -> Finding {
    let detail = Detail::Crash { signal, assertion: None, address: None };
    Finding::about(Kind::Crash, by, basis, Vec::new(), Vec::new(), detail)
}

/// The parties of a deadlock.
pub fn deadlocked(threads: &[CrashedThread], namer: &mut Namer) -> Vec<Party> {
    let mut parties = Vec::new();
    for thread in threads {
        let stack = namer.call_stack(&thread.frames);
        let action = waiting(thread, threads, namer).unwrap_or(Action::IsAt);
        parties.push(Party::new(named(thread, &stack), action, stack));
    }
    parties
}

fn named(thread: &CrashedThread, stack: &[Frame]) -> Thread {
    let outermost = stack.iter().rev().find(|frame| !frame.library && frame.function.is_some());
    Thread { entry: outermost.and_then(|frame| frame.function.clone()), ..Thread::at(thread.name.clone()) }
}

/// What a thread waits for, where a steered run knows it.
fn waiting(thread: &CrashedThread, all: &[CrashedThread], namer: &mut Namer) -> Option<Action> {
    let Some(RawWait::Operation { kind, object, holder }) = thread.waits else { return None };
    let (wait, what) = wait_of(kind);
    let object = match wait {
        Wait::ThreadEnd => {
            let child = all.iter().find(|other| u64::from(other.index) == object);
            child.map(|child| Object {
                name: None,
                what,
                place: Place::Thread { thread: Thread::at(child.name.clone()) },
            })
        }
        Wait::Lock
        | Wait::ReadLock
        | Wait::Signal
        | Wait::Semaphore
        | Wait::Barrier
        | Wait::Initialiser
        | Wait::Futex
        | Wait::Other => (object != 0).then(|| Object { what, ..namer.data(object) }),
    };
    let holder = holder.and_then(|index| all.iter().find(|other| other.index == index));
    let operation = if wait == Wait::Other { kind.word().to_owned() } else { String::new() };
    Some(Action::Waits { wait, object, holder: holder.map(|other| other.name.clone()), operation })
}

/// What a thread waits for in an operation, and what kind of object that is.
fn wait_of(kind: StepKind) -> (Wait, What) {
    match kind {
        StepKind::Lock | StepKind::Relock => (Wait::Lock, What::Mutex),
        StepKind::ReadLock => (Wait::ReadLock, What::Rwlock),
        StepKind::Join => (Wait::ThreadEnd, What::Thread),
        StepKind::Wait | StepKind::Wake => (Wait::Signal, What::Condition),
        StepKind::SemWait => (Wait::Semaphore, What::Semaphore),
        StepKind::BarrierEnter | StepKind::BarrierExit => (Wait::Barrier, What::Barrier),
        StepKind::OncePassed | StepKind::OnceBegin => (Wait::Initialiser, What::Once),
        StepKind::FutexWait => (Wait::Futex, What::Futex),
        StepKind::Fork
        | StepKind::Start
        | StepKind::End
        | StepKind::Detach
        | StepKind::Cancel
        | StepKind::Unlock
        | StepKind::Signal
        | StepKind::Broadcast
        | StepKind::SemPost
        | StepKind::OnceEnd
        | StepKind::Load
        | StepKind::Store
        | StepKind::Rmw
        | StepKind::Fence
        | StepKind::FutexWake
        | StepKind::Acquire
        | StepKind::Release
        | StepKind::Custom
        | StepKind::Read
        | StepKind::Write
        | StepKind::Syscall
        | StepKind::Handler => (Wait::Other, What::Other),
    }
}
