//! Kinds of findings about how a run ended.

use crate::check;
use crate::findings::of;
use expect_test::expect;
use raddle_findings::Kind;

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
