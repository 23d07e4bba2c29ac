//! Kinds of findings about locks, conditions and progress.

use crate::check;
use crate::findings::of;
use expect_test::expect;
use raddle_findings::Kind;

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
