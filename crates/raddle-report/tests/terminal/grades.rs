//! Each grade of a race, and how it is known.

use crate::findings::{diverged, invisible, replayed, standstill};
use crate::{check, with_basis};
use expect_test::expect;
use raddle_findings::{Attempt, Basis, Fidelity, Shown};

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
