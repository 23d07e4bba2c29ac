//! Kinds of findings about memory and the order of accesses.

use crate::check;
use crate::findings::of;
use expect_test::expect;
use raddle_findings::Kind;

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
