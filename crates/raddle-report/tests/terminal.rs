//! Golden diagnostics: each kind of finding, each grade, folded and whole stacks, with and without the source.

mod findings;

use expect_test::{Expect, expect};
use findings::{BANK, diverged, invisible, of, race, replayed, standstill};
use raddle_findings::{Attempt, Basis, Fidelity, Finding, Frame, Kind, Shown};
use raddle_report::{Sources, Style, Summary, render};

fn rendered(finding: &Finding, with_source: bool, style: Style) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut sources = Sources::new(vec![folder.path().to_owned()]);
    if with_source {
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/bank.c"), BANK).unwrap();
    }
    render(finding, &mut sources, style)
}

/// As on a terminal of 80 columns.
fn check(finding: &Finding, expected: Expect) {
    let text = rendered(finding, true, Style { width: 80, ..Style::default() });
    let wide = text.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "wider than the terminal");
    expected.assert_eq(&text);
}

fn with_basis(basis: Basis) -> Finding {
    Finding { basis, schedule: None, remarks: Vec::new(), ..race() }
}

#[test]
fn data_race() {
    check(
        &of(Kind::DataRace),
        expect![[r#"
            error[data-race]: data race on `balance` between threads 1.1 (`withdraw`)
                              and 1.2 (`deposit`)
              --> src/bank.c:7:13
               |
             7 |     balance -= amount;
               |             ^ thread 1.1 writes 4 bytes
            ...
            11 |     pthread_mutex_lock(&alice);
               |     ------------------ thread 1.2 acquired mutex `alice` here
            12 |     balance += amount;
               |             ^ thread 1.2 writes 4 bytes
               |
               = note: thread 1.1 (entry `worker`) writes 4 bytes of `balance`
                         #0 withdraw at src/bank.c:7:13
                         ... 2 library frames
                         #3 worker at src/bank.c:30:5
                       created by thread 1 at src/bank.c:40:5
               = note: thread 1.2 (entry `worker`) writes 4 bytes of `balance`
                         #0 deposit at src/bank.c:12:13
                       holding mutex `alice`, acquired at src/bank.c:11:5
               = note: confirmed: replayed from the stored schedule 2 times: both threads
                       stood before their accesses at the same moment
               = note: in the recorded run thread 1.2 came first, then thread 1.1
               = note: also found by `eraser`, `shb`
               = help: raddle replay f8363faafed9
               = note: finding f8363faafed9, found by `predict`
        "#]],
    );
}

#[test]
fn use_after_free() {
    check(
        &of(Kind::UseAfterFree),
        expect![[r#"
            error[use-after-free]: use after free: thread 1.1 (`withdraw`) can access
                                   memory 8 bytes into a 48-byte heap block after thread
                                   1.2 (`deposit`) frees it
              --> src/bank.c:7:13
               |
             7 |     balance -= amount;
               |             ^ thread 1.1 reads 8 bytes
            ...
            12 |     balance += amount;
               |             ^ thread 1.2 frees the 48-byte heap block
            ...
            20 |     pthread_mutex_lock(&alice);
               |         -------------- 48-byte heap block was allocated here by thread 1.1
               |
               = note: thread 1.1 (entry `worker`) reads 8 bytes of memory 8 bytes into a
                       48-byte heap block
                         #0 withdraw at src/bank.c:7:13
               = note: thread 1.2 (entry `worker`) frees the 48-byte heap block
                         #0 deposit at src/bank.c:12:13
               = note: unordered: no synchronisation visible to Raddle orders the two
                       accesses
               = note: the memory is 8 bytes into a 48-byte heap block allocated by thread
                       1.1 at src/bank.c:20:9
               = note: finding 9f9f2ce1e93d, found by `hb`
        "#]],
    );
}

#[test]
fn high_level_race() {
    check(
        &of(Kind::HighLevelRace),
        expect![[r#"
        suspicion[high-level-race]: `x` and `y`: thread 1.1 (`withdraw`) accesses them
                                    in one critical section, thread 1.2 (`deposit`) in
                                    several
          --> src/bank.c:7:13
           |
         7 |     balance -= amount;
           |             ^ thread 1.1 accesses the variables in one critical section
        ...
        12 |     balance += amount;
           |             ^ thread 1.2 accesses only some of them
           |
           = note: thread 1.1 (entry `worker`) accesses the variables in one critical
                   section
                     #0 withdraw at src/bank.c:7:13
           = note: thread 1.2 (entry `worker`) accesses only some of them
                     #0 deposit at src/bank.c:12:13
           = note: suspected: a pattern of critical sections says so; the program may
                   intend it
           = note: finding 4703e6804884, found by `check`
    "#]],
    );
}

#[test]
fn atomicity_violation() {
    check(
        &of(Kind::AtomicityViolation),
        expect![[r#"
        suspicion[atomicity-violation]: atomicity violation on `balance`: thread 1.2
                                        (`deposit`) can interfere with thread 1.1
                                        (`withdraw`)
          --> src/bank.c:7:13
           |
         7 |     balance -= amount;
           |             ^ thread 1.1 begins the region that should be atomic
         8 | }
           | ^ thread 1.1 ends the region that should be atomic
        ...
        12 |     balance += amount;
           |             ^ thread 1.2 interferes
           |
           = note: thread 1.1 (entry `worker`) begins the region that should be atomic
                     #0 withdraw at src/bank.c:7:13
           = note: thread 1.2 (entry `worker`) interferes
                     #0 deposit at src/bank.c:12:13
           = note: thread 1.1 (entry `worker`) ends the region that should be atomic
                     #0 withdraw at src/bank.c:8:1
           = note: suspected: a pattern of accesses says so; the program may intend it
           = note: the accesses `read write read` have no equivalent serial order
           = note: finding e9b58398f513, found by `check`
    "#]],
    );
}

#[test]
fn order_violation() {
    check(
        &of(Kind::OrderViolation),
        expect![[r#"
        error[order-violation]: order violation on `config`: thread 1.1 (`withdraw`)
                                can run before thread 1.2 (`deposit`)
          --> src/bank.c:7:13
           |
         7 |     balance -= amount;
           |             ^ thread 1.1 comes first
        ...
        12 |     balance += amount;
           |             ^ thread 1.2 should come first
           |
           = note: thread 1.1 (entry `worker`) comes first
                     #0 withdraw at src/bank.c:7:13
           = note: thread 1.2 (entry `worker`) should come first
                     #0 deposit at src/bank.c:12:13
           = note: confirmed: replayed from the stored schedule 2 times: the program
                   ended in the same way each time
           = note: finding 5852bad5008b, found by `check`
    "#]],
    );
}

#[test]
fn deadlock() {
    check(
        &of(Kind::Deadlock),
        expect![[r#"
        error[deadlock]: threads 1.1 and 1.2 can deadlock
          --> src/bank.c:13:5
           |
        11 |     pthread_mutex_lock(&alice);
           |     ------------------ thread 1.1 acquired mutex `alice` here
        12 |     balance += amount;
        13 |     pthread_mutex_lock(&bob);
           |     ^^^^^^^^^^^^^^^^^^ thread 1.1 waits for mutex `bob`
        ...
        19 |     pthread_mutex_lock(&bob);
           |     ------------------ thread 1.2 acquired mutex `bob` here
        20 |     pthread_mutex_lock(&alice);
           |     ^^^^^^^^^^^^^^^^^^ thread 1.2 waits for mutex `alice`
           |
           = note: thread 1.1 (entry `worker`) waits for mutex `bob`, held by thread
                   1.2
                     #0 deposit at src/bank.c:13:5
                   holding mutex `alice`, acquired at src/bank.c:11:5
           = note: thread 1.2 (entry `worker`) waits for mutex `alice`, held by thread
                   1.1
                     #0 transfer at src/bank.c:20:5
                   holding mutex `bob`, acquired at src/bank.c:19:5
           = note: confirmed: replayed from the stored schedule 2 times: all threads
                   involved were blocked and no other thread could wake them
           = note: locks involved: `bob`, `alice`
           = note: finding a673a7277178, found by `predict`
    "#]],
    );
}

#[test]
fn lock_order() {
    check(
        &of(Kind::LockOrder),
        expect![[r#"
        suspicion[lock-order]: locks `bob` and `alice` are acquired in conflicting
                               orders by threads 1.1 and 1.2
          --> src/bank.c:13:5
           |
        11 |     pthread_mutex_lock(&alice);
           |     ------------------ thread 1.1 acquired mutex `alice` here
        12 |     balance += amount;
        13 |     pthread_mutex_lock(&bob);
           |     ^^^^^^^^^^^^^^^^^^ thread 1.1 waits for mutex `bob`
        ...
        19 |     pthread_mutex_lock(&bob);
           |     ------------------ thread 1.2 acquired mutex `bob` here
        20 |     pthread_mutex_lock(&alice);
           |     ^^^^^^^^^^^^^^^^^^ thread 1.2 waits for mutex `alice`
           |
           = note: thread 1.1 (entry `worker`) waits for mutex `bob`, held by thread
                   1.2
                     #0 deposit at src/bank.c:13:5
                   holding mutex `alice`, acquired at src/bank.c:11:5
           = note: thread 1.2 (entry `worker`) waits for mutex `alice`, held by thread
                   1.1
                     #0 transfer at src/bank.c:20:5
                   holding mutex `bob`, acquired at src/bank.c:19:5
           = note: suspected: the lock order alone says so; other synchronisation may
                   keep the threads apart
           = note: locks involved: `bob`, `alice`
           = note: finding 77061862855d, found by `predict`
    "#]],
    );
}

#[test]
fn missed_signal() {
    check(
        &of(Kind::MissedSignal),
        expect![[r#"
        error[missed-signal]: thread 1.1 (`withdraw`) waits forever: it missed the
                              signal on condition variable `ready` sent by thread
                              1.2 (`deposit`)
          --> src/bank.c:7:13
           |
         7 |     balance -= amount;
           |             ^ thread 1.1 waits for a signal on condition variable `ready`
        ...
        12 |     balance += amount;
           |             ^ thread 1.2 signals `ready` while no thread waits
           |
           = note: thread 1.1 (entry `worker`) waits for a signal on condition
                   variable `ready`
                     #0 withdraw at src/bank.c:7:13
           = note: thread 1.2 (entry `worker`) signals `ready` while no thread waits
                     #0 deposit at src/bank.c:12:13
           = note: confirmed: replayed from the stored schedule 2 times: all threads
                   involved were blocked and no other thread could wake them
           = note: thread 1.1 checked the condition at src/bank.c:6:9 without holding
                   the lock that protects it; the signal can come between this check
                   and the wait
           = note: finding 3981d535ff28, found by `predict`
    "#]],
    );
}

#[test]
fn blocked_thread() {
    check(
        &of(Kind::BlockedThread),
        expect![[r#"
        error[blocked-thread]: thread 1.1 (`withdraw`) waits forever for semaphore
                               `items`
         --> src/bank.c:7:13
          |
        7 |     balance -= amount;
          |             ^ thread 1.1 waits for semaphore `items`
          |
          = note: thread 1.1 (entry `worker`) waits for semaphore `items`
                    #0 withdraw at src/bank.c:7:13
          = note: observed: it happened in the run that Raddle watched
          = note: the recorded run ends in this state
          = note: finding ba31a689d122, found by `predict`
    "#]],
    );
}

#[test]
fn livelock() {
    check(
        &of(Kind::Livelock),
        expect![[r#"
        suspicion[livelock]: threads 1.1 (`withdraw`) and 1.2 (`deposit`) keep running
                             without making progress (livelock)
          --> src/bank.c:7:13
           |
         7 |     balance -= amount;
           |             ^ thread 1.1 repeats the same steps
        ...
        12 |     balance += amount;
           |             ^ thread 1.2 repeats the same steps
           |
           = note: thread 1.1 (entry `worker`) repeats the same steps
                     #0 withdraw at src/bank.c:7:13
           = note: thread 1.2 (entry `worker`) repeats the same steps
                     #0 deposit at src/bank.c:12:13
           = note: suspected: a heuristic reports it; it may be harmless
           = note: finding 87312738a4e9, found by `check`
    "#]],
    );
}

#[test]
fn starvation() {
    check(
        &of(Kind::Starvation),
        expect![[r#"
        suspicion[starvation]: thread 1.1 (`withdraw`) is starved: other threads
                               acquired mutex `alice` 1000 times while it waited
          --> src/bank.c:7:13
           |
         7 |     balance -= amount;
           |             ^ thread 1.1 waits for mutex `alice`
        ...
        12 |     balance += amount;
           |             ^ thread 1.2 acquires mutex `alice` again
           |
           = note: thread 1.1 (entry `worker`) waits for mutex `alice`
                     #0 withdraw at src/bank.c:7:13
           = note: thread 1.2 (entry `worker`) acquires mutex `alice` again
                     #0 deposit at src/bank.c:12:13
           = note: suspected: a heuristic reports it; it may be harmless
           = note: finding 637ea8ddd0b8, found by `progress`
    "#]],
    );
}

#[test]
fn non_progress() {
    check(
        &of(Kind::NonProgress),
        expect![[r#"
        error[non-progress]: thread 1.1 (`withdraw`) made no progress for 5000 steps
         --> src/bank.c:7:13
          |
        7 |     balance -= amount;
          |             ^ thread 1.1 repeats the same steps
          |
          = note: thread 1.1 (entry `worker`) repeats the same steps
                    #0 withdraw at src/bank.c:7:13
          = note: observed: it happened in the run that Raddle watched
          = note: finding 9159eb1717d1, found by `check`
    "#]],
    );
}

#[test]
fn contract_violation() {
    check(
        &of(Kind::ContractViolation),
        expect![[r#"
            suspicion[contract-violation]: contract on line 3 violated: thread 1.2
                                           (`deposit`) can call in the middle of the call
                                           sequence of thread 1.1 (`withdraw`)
              --> src/bank.c:7:13
               |
             7 |     balance -= amount;
               |             ^ thread 1.1 begins the call sequence
             8 | }
               | ^ thread 1.1 ends the call sequence
            ...
            12 |     balance += amount;
               |             ^ thread 1.2 calls in between
               |
               = note: thread 1.1 (entry `worker`) begins the call sequence
                         #0 withdraw at src/bank.c:7:13
               = note: thread 1.2 (entry `worker`) calls in between
                         #0 deposit at src/bank.c:12:13
               = note: thread 1.1 (entry `worker`) ends the call sequence
                         #0 withdraw at src/bank.c:8:1
               = note: suspected: a heuristic reports it; it may be harmless
               = note: finding 716ca2fd0778, found by `check`
        "#]],
    );
}

#[test]
fn lock_misuse() {
    check(
        &of(Kind::LockMisuse),
        expect![[r#"
        error[lock-misuse]: thread 1.1 (`withdraw`) unlocks mutex `alice`, which it
                            does not hold
         --> src/bank.c:7:13
          |
        7 |     balance -= amount;
          |             ^ thread 1.1 releases mutex `alice`
          |
          = note: thread 1.1 (entry `worker`) releases mutex `alice`
                    #0 withdraw at src/bank.c:7:13
          = note: observed: it happened in the run that Raddle watched
          = note: finding ff7a534bba44, found by `runtime`
    "#]],
    );
}

#[test]
fn thread_leak() {
    check(
        &of(Kind::ThreadLeak),
        expect![[r#"
            error[thread-leak]: thread 1.1 ended but was never joined or detached
              --> src/bank.c:18:5
               |
            18 | void transfer(void) {
               |     ^ thread 1.1 was created here by thread 1
               |
               = note: thread 1.1 (entry `worker`) ended without being joined or detached
                       created by thread 1 at src/bank.c:18:5
               = note: observed: it happened in the run that Raddle watched
               = note: finding 4eb709b713a2, found by `runtime`
        "#]],
    );
}

#[test]
fn crash() {
    check(
        &of(Kind::Crash),
        expect![[r#"
            error[crash]: thread 1.1 (`withdraw`) crashed with SIGSEGV (segmentation
                          fault) at address 0x0
              --> src/bank.c:7:13
               |
             7 |     balance -= amount;
               |             ^ thread 1.1 crashes
            ...
            12 |     balance += amount;
               |             ^ thread 1.2 was here when the process ended
               |
               = note: thread 1.1 (entry `worker`) crashes
                         #0 withdraw at src/bank.c:7:13
               = note: thread 1.2 (entry `worker`) was here when the process ended
                         #0 deposit at src/bank.c:12:13
               = note: confirmed: replayed from the stored schedule 2 times: the program
                       ended in the same way each time
               = note: 3 of 200 explored runs ended like this, the first was run 17 (seed
                       42)
               = note: finding 0a158c7e2d0d, found by `explore`
        "#]],
    );
}

#[test]
fn assertion_failure() {
    check(
        &of(Kind::AssertionFailure),
        expect![[r#"
            error[assertion-failure]: assertion `balance >= 0` failed in thread 1.1
                                      (`withdraw`)
              --> src/bank.c:7:13
               |
             7 |     balance -= amount;
               |             ^ thread 1.1 crashes
            ...
            12 |     balance += amount;
               |             ^ thread 1.2 was here when the process ended
               |
               = note: thread 1.1 (entry `worker`) crashes
                         #0 withdraw at src/bank.c:7:13
               = note: thread 1.2 (entry `worker`) was here when the process ended
                         #0 deposit at src/bank.c:12:13
               = note: confirmed: replayed from the stored schedule 2 times: the program
                       ended in the same way each time
               = note: the assertion in `withdraw` at src/bank.c:7 ended the program with
                       SIGABRT (aborted)
               = note: 3 of 200 explored runs ended like this, the first was run 17 (seed
                       42)
               = note: finding 3d33333f258f, found by `explore`
        "#]],
    );
}

#[test]
fn property_violation() {
    check(
        &of(Kind::PropertyViolation),
        expect![[r#"
            error[property-violation]: property violated: never two writers
              --> src/bank.c:7:13
               |
             7 |     balance -= amount;
               |             ^ thread 1.1 crashes
            ...
            12 |     balance += amount;
               |             ^ thread 1.2 was here when the process ended
               |
               = note: thread 1.1 (entry `worker`) crashes
                         #0 withdraw at src/bank.c:7:13
               = note: thread 1.2 (entry `worker`) was here when the process ended
                         #0 deposit at src/bank.c:12:13
               = note: confirmed: replayed from the stored schedule 2 times: the program
                       ended in the same way each time
               = note: 3 of 200 explored runs ended like this, the first was run 17 (seed
                       42)
               = note: finding 0dc8c94e5f21, found by `explore`
        "#]],
    );
}

#[test]
fn failed_status() {
    check(
        &of(Kind::FailedStatus),
        expect![[r#"
            error[failed-status]: the program exited with status 3
             |
             = note: confirmed: replayed from the stored schedule 2 times: the program
                     ended in the same way each time
             = note: 3 of 200 explored runs ended like this, the first was run 17 (seed
                     42)
             = note: finding 6156f4788391, found by `explore`
        "#]],
    );
}

#[test]
fn wrong_output() {
    check(
        &of(Kind::WrongOutput),
        expect![[r#"
            error[wrong-output]: the program's output differs from the expected output
             |
             = note: confirmed: replayed from the stored schedule 2 times: the program
                     ended in the same way each time
             = note: 3 of 200 explored runs ended like this, the first was run 17 (seed
                     42)
             = note: finding 9079eda0dee8, found by `explore`
        "#]],
    );
}

#[test]
fn an_observed_race() {
    check(
        &with_basis(Basis::Observed { attempts: vec![Attempt::OutOfTime] }),
        expect![[r#"
            error[data-race]: data race on `balance` between threads 1.1 (`withdraw`)
                              and 1.2 (`deposit`)
              --> src/bank.c:7:13
               |
             7 |     balance -= amount;
               |             ^ thread 1.1 writes 4 bytes
            ...
            11 |     pthread_mutex_lock(&alice);
               |     ------------------ thread 1.2 acquired mutex `alice` here
            12 |     balance += amount;
               |             ^ thread 1.2 writes 4 bytes
               |
               = note: thread 1.1 (entry `worker`) writes 4 bytes of `balance`
                         #0 withdraw at src/bank.c:7:13
                         ... 2 library frames
                         #3 worker at src/bank.c:30:5
                       created by thread 1 at src/bank.c:40:5
               = note: thread 1.2 (entry `worker`) writes 4 bytes of `balance`
                         #0 deposit at src/bank.c:12:13
                       holding mutex `alice`, acquired at src/bank.c:11:5
               = note: observed: it happened in the run that Raddle watched
               = note: not replayed: no time was left
               = note: finding f8363faafed9, found by `predict`
        "#]],
    );
}

#[test]
fn an_unordered_race() {
    check(
        &with_basis(replayed(Shown::Unordered)),
        expect![[r#"
            error[data-race]: data race on `balance` between threads 1.1 (`withdraw`)
                              and 1.2 (`deposit`)
              --> src/bank.c:7:13
               |
             7 |     balance -= amount;
               |             ^ thread 1.1 writes 4 bytes
            ...
            11 |     pthread_mutex_lock(&alice);
               |     ------------------ thread 1.2 acquired mutex `alice` here
            12 |     balance += amount;
               |             ^ thread 1.2 writes 4 bytes
               |
               = note: thread 1.1 (entry `worker`) writes 4 bytes of `balance`
                         #0 withdraw at src/bank.c:7:13
                         ... 2 library frames
                         #3 worker at src/bank.c:30:5
                       created by thread 1 at src/bank.c:40:5
               = note: thread 1.2 (entry `worker`) writes 4 bytes of `balance`
                         #0 deposit at src/bank.c:12:13
                       holding mutex `alice`, acquired at src/bank.c:11:5
               = note: unordered: replayed from the stored schedule 2 times: no
                       synchronisation visible to Raddle orders the two accesses
               = note: finding f8363faafed9, found by `predict`
        "#]],
    );
}

#[test]
fn a_predicted_race_tells_why_the_replays_failed() {
    let attempts = vec![diverged(), standstill(), Attempt::NotAgain { shown: 0, replays: 2 }];
    check(
        &with_basis(Basis::Model { sound: true, fidelity: Fidelity::KeepsOrder, attempts }),
        expect![[r#"
            warning[data-race]: data race on `balance` between threads 1.1 (`withdraw`)
                                and 1.2 (`deposit`)
              --> src/bank.c:7:13
               |
             7 |     balance -= amount;
               |             ^ thread 1.1 writes 4 bytes
            ...
            11 |     pthread_mutex_lock(&alice);
               |     ------------------ thread 1.2 acquired mutex `alice` here
            12 |     balance += amount;
               |             ^ thread 1.2 writes 4 bytes
               |
               = note: thread 1.1 (entry `worker`) writes 4 bytes of `balance`
                         #0 withdraw at src/bank.c:7:13
                         ... 2 library frames
                         #3 worker at src/bank.c:30:5
                       created by thread 1 at src/bank.c:40:5
               = note: thread 1.2 (entry `worker`) writes 4 bytes of `balance`
                         #0 deposit at src/bank.c:12:13
                       holding mutex `alice`, acquired at src/bank.c:11:5
               = note: predicted: analysis of the recorded run found a schedule that
                       brings the two accesses together; the schedule omits some recorded
                       events; some reads return different values than in the recorded run
               = note: the replay left the schedule after 7 steps: expected thread 1.2 at
                       operation 4 (`lock` at src/bank.c:12), found it at operation 4
                       (`unlock` at src/bank.c:14)
               = note: the replay came to a standstill after 12 steps: thread 1.1 waiting
                       at operation 2 (`lock` at src/bank.c:11); thread 1.2 ready at
                       operation 2 (`lock` at src/bank.c:11)
               = note: the error was shown once, but in only 0 of 2 replays of the stored
                       schedule
               = note: finding f8363faafed9, found by `predict`
        "#]],
    );
}

#[test]
fn a_suspected_race_names_the_code_that_raddle_cannot_see() {
    check(
        &with_basis(invisible()),
        expect![[r#"
            suspicion[data-race]: data race on `balance` between threads 1.1 (`withdraw`)
                                  and 1.2 (`deposit`)
              --> src/bank.c:7:13
               |
             7 |     balance -= amount;
               |             ^ thread 1.1 writes 4 bytes
            ...
            11 |     pthread_mutex_lock(&alice);
               |     ------------------ thread 1.2 acquired mutex `alice` here
            12 |     balance += amount;
               |             ^ thread 1.2 writes 4 bytes
               |
               = note: thread 1.1 (entry `worker`) writes 4 bytes of `balance`
                         #0 withdraw at src/bank.c:7:13
                         ... 2 library frames
                         #3 worker at src/bank.c:30:5
                       created by thread 1 at src/bank.c:40:5
               = note: thread 1.2 (entry `worker`) writes 4 bytes of `balance`
                         #0 deposit at src/bank.c:12:13
                       holding mutex `alice`, acquired at src/bank.c:11:5
               = note: suspected: no synchronisation visible to Raddle orders the two
                       accesses
               = note: inline assembly in `spin_lock` of `bank` (src/spin.h:8) could have
                       ordered the accesses
               = note: library `libgomp.so.1`, which was not rebuilt, could have ordered
                       the accesses
               = note: code rebuilt with `raddle cc` is visible to Raddle
               = note: the replay followed the schedule, but the two accesses were ordered
                       in it
               = note: finding f8363faafed9, found by `predict`
        "#]],
    );
}

#[test]
fn verbose_shows_all_frames_and_the_words_of_the_model() {
    let finding = Finding { basis: Basis::model(true, Fidelity::KeepsReads), ..race() };
    expect![[r#"
        warning[data-race]: data race on `balance` between threads 1.1 (`withdraw`) and 1.2 (`deposit`)
          --> src/bank.c:7:13
           |
         7 |     balance -= amount;
           |             ^ thread 1.1 writes 4 bytes
        ...
        11 |     pthread_mutex_lock(&alice);
           |     ------------------ thread 1.2 acquired mutex `alice` here
        12 |     balance += amount;
           |             ^ thread 1.2 writes 4 bytes
           |
           = note: thread 1.1 (entry `worker`) writes 4 bytes of `balance`
                     #0 withdraw at src/bank.c:7:13
                     #1 std::invoke at /usr/include/c++/14/vector:99
                     #2 std::thread::run at /usr/include/c++/14/vector:99
                     #3 worker at src/bank.c:30:5
                   created by thread 1 at src/bank.c:40:5
                     #0 main at src/bank.c:40:5
           = note: thread 1.2 (entry `worker`) writes 4 bytes of `balance`
                     #0 deposit at src/bank.c:12:13
                   holding mutex `alice`, acquired at src/bank.c:11:5
           = note: predicted: analysis of the recorded run found a schedule that brings the two accesses together;
                   every read returns the same value as in the recorded run; the predictor is sound: its witness is
                   a correct reordering of the trace
           = note: in the recorded run thread 1.2 came first, then thread 1.1 (events 12 and 30)
           = note: also found by `eraser`, `shb`
           = help: raddle replay f8363faafed9
           = note: finding f8363faafed9, found by `predict`
    "#]].assert_eq(&rendered(&finding, true, Style { verbose: true, ..Style::default() }));
}

#[test]
fn without_the_source_there_are_places() {
    expect![[r#"
        error[data-race]: data race on `balance` between threads 1.1 (`withdraw`) and 1.2 (`deposit`)
        --> src/bank.c:7:13
        ::: src/bank.c:12:13
        ::: src/bank.c:11:5
         = note: thread 1.1 (entry `worker`) writes 4 bytes of `balance`
                   #0 withdraw at src/bank.c:7:13
                   ... 2 library frames
                   #3 worker at src/bank.c:30:5
                 created by thread 1 at src/bank.c:40:5
         = note: thread 1.2 (entry `worker`) writes 4 bytes of `balance`
                   #0 deposit at src/bank.c:12:13
                 holding mutex `alice`, acquired at src/bank.c:11:5
         = note: confirmed: replayed from the stored schedule 2 times: both threads stood before their accesses at
                 the same moment
         = note: in the recorded run thread 1.2 came first, then thread 1.1
         = note: also found by `eraser`, `shb`
         = help: raddle replay f8363faafed9
         = note: finding f8363faafed9, found by `predict`
    "#]].assert_eq(&rendered(&race(), false, Style::default()));
}

#[test]
fn a_finding_of_a_converted_trace() {
    let mut finding = with_basis(Basis::rule());
    for party in &mut finding.parties {
        party.stack = vec![Frame { raw: Some("L12".into()), ..Frame::default() }];
        party.locks.clear();
        party.created = None;
        party.thread.entry = None;
    }
    check(
        &finding,
        expect![[r#"
        suspicion[data-race]: data race on `balance` between threads 1.1 and 1.2
         |
         = note: thread 1.1 writes 4 bytes of `balance`
                   #0 L12
         = note: thread 1.2 writes 4 bytes of `balance`
                   #0 L12
         = note: suspected: no lock is held at all accesses; other synchronisation
                 may order them
         = note: finding f8363faafed9, found by `predict`
    "#]],
    );
}

#[test]
fn colours_only_when_asked_for() {
    let mut sources = Sources::new(Vec::new());
    let plain = render(&race(), &mut sources, Style { color: false, ..Style::default() });
    let styled = render(&race(), &mut sources, Style { color: true, ..Style::default() });
    assert!(!plain.contains('\x1b'));
    assert!(styled.contains('\x1b'));
}

#[test]
fn summaries() {
    let predicted = [with_basis(Basis::model(true, Fidelity::Unknown)), with_basis(Basis::rule())];
    assert_eq!(Summary::default().line(), "no findings");
    let shown = [race(), race(), with_basis(Basis::unordered())];
    let summary = Summary { shown: &shown, held_back: &predicted, suppressed: 3, known: 1 };
    assert_eq!(
        summary.line(),
        "3 findings: 2 confirmed, 1 unordered; not shown: 1 predicted, 1 suspected (see --all), 3 suppressed, \
         1 known from the baseline"
    );
    assert_eq!(
        Summary { suppressed: 2, ..Summary::default() }.line(),
        "no findings; not shown: 2 suppressed"
    );
}

/// A crash has a party for every thread of the process; a few of them are enough, and `-v` has all.
#[test]
fn of_many_threads_some_are_shown() {
    let mut finding = of(Kind::Crash);
    let other = finding.parties[1].clone();
    finding.parties.extend((0..300).map(|number| {
        let mut party = other.clone();
        party.thread.path = format!("1.{}", number + 3);
        party
    }));
    let text = |verbose| rendered(&finding, true, Style { width: 80, verbose, ..Style::default() });
    let short = text(false);
    assert!(short.len() < 3000, "{short}");
    assert!(short.contains("294 more threads not shown; `-v` shows all"), "{short}");
    assert!(short.contains("thread 1.4 was here when the process ended; and more\n"), "{short}");
    assert!(text(true).matches("thread 1.302").count() >= 1);
}
