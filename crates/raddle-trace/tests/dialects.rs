//! STD text as other tools write it: what it means, and what is said of lines that cannot be so.

use raddle_trace::std_format::{InputDialect, StdReader};
use raddle_trace::{MemoryTrace, Op};

fn read(text: &str, dialect: InputDialect) -> (MemoryTrace, Vec<String>) {
    let mut reader = StdReader::new(text.as_bytes(), "t.std", None).with_dialect(dialect);
    let trace = MemoryTrace::read(&mut reader).unwrap_or_else(|error| panic!("{error}\n{text}"));
    (trace, reader.remarks())
}

fn ops(text: &str) -> Vec<String> {
    let (trace, _) = read(text, InputDialect::Auto);
    let word = |op: &Op| format!("{op:?}").split([' ', '{']).next().unwrap().to_owned();
    trace.events.iter().map(|event| format!("{} {}", event.thread.0, word(&event.op))).collect()
}

const SUNHANG: &str = "\
T0|fork(9)|1
T9|req(M)|2
T9|acq(M)|3
T9|rel(M)|4
T9|wait(M)|5
T0|req(M)|6
T0|acq(M)|7
T0|notify(M)|8
T0|rel(M)|9
T9|req(M)|10
T9|acq(M)|11
T9|rel(M)|12
T0|join(9)|13
";

#[test]
fn a_wait_of_sunhang_begins_where_it_stands_and_ends_with_the_request() {
    let wait = "1 Request,1 Lock,1 Unlock,1 WaitBegin,0 Request,0 Lock,0 Signal,0 Unlock,1 Wait,1 Request,1 Lock,1 Unlock";
    assert_eq!(ops(SUNHANG).join(","), format!("0 Fork,{wait},0 Join"));
    let (trace, remarks) = read(SUNHANG, InputDialect::Auto);
    assert_eq!(trace.tables.threads.len(), 2, "`9` and `T9` are one thread");
    assert_eq!(remarks, ["STD text as SUnhang writes it (recognised)"]);
    assert!(
        matches!(trace.events[3].op, Op::Unlock { flags, .. } if flags.wait),
        "the release is half of the wait"
    );
    // As told, too; and taken as RAPID's words the names differ, which is said.
    assert_eq!(read(SUNHANG, InputDialect::Sunhang).0.events, trace.events);
    let (_, remarks) = read(SUNHANG, InputDialect::Rapid);
    assert!(remarks[0].contains("as told"), "{remarks:?}");
    assert!(
        remarks[1].starts_with("t.std: line 1: thread 9 is forked and never seen, while thread T9"),
        "{remarks:?}"
    );
}

#[test]
fn a_release_before_which_others_took_the_lock_is_no_half_of_a_wait() {
    let text =
        "T1|acq(M)|1\nT1|rel(M)|2\nT2|acq(M)|3\nT2|rel(M)|4\nT1|wait(M)|5\nT2|notify(M)|6\nT1|acq(M)|7\n";
    let (trace, _) = read(text, InputDialect::Auto);
    assert!(matches!(trace.events[1].op, Op::Unlock { flags, .. } if !flags.wait));
    assert!(matches!(trace.events[4].op, Op::WaitBegin { .. }));
}

/// A reader takes text in pieces; what belongs together stays so.
#[test]
fn a_release_and_its_wait_are_never_apart() {
    for lead in 500..530 {
        let text = format!("{}{SUNHANG}", "T0|r(x)|1\n".repeat(lead));
        let (trace, _) = read(&text, InputDialect::Auto);
        assert!(matches!(trace.events[lead + 3].op, Op::Unlock { flags, .. } if flags.wait), "{lead}");
    }
}

#[test]
fn rff_names_threads_by_kernel_and_posix_numbers() {
    let text = "\
100|fork(140001)|0
pthread(140001) = tid(101)
101|malloc(94000, 64)|0
101|acq(0x55aa)|12345678901234
101|wait_sleep(0x66bb)|0
100|acq(0x55aa)|7
100|signal(0x66bb, 101)|0
100|rel(0x55aa)|8
101|wait_wake(0x66bb,101)|0
101|rel(0x55aa)|9
101|free(94000)|0
100|sigAll(0x66bb)|0
100|join(140001)|0
";
    let found = ops(text).join(",");
    assert_eq!(
        found,
        "0 Fork,1 Alloc,1 Lock,1 Unlock,1 WaitBegin,0 Lock,0 Signal,0 Unlock,1 Wait,1 Lock,1 Unlock,1 Free,0 Broadcast,0 Join"
    );
    let (trace, remarks) = read(text, InputDialect::Auto);
    assert_eq!(trace.tables.threads.len(), 2);
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    assert!(remarks[0].starts_with("STD text as RFF for C writes it (recognised)"), "{remarks:?}");
    // The line may come before the fork.
    let text = "5|r(x)|1\npthread(77) = tid(6)\n6|w(x)|2\n5|fork(77)|3\n5|sig(c)|4\n";
    assert_eq!(read(text, InputDialect::Auto).0.tables.threads.len(), 2);
}

#[test]
fn values_of_accesses_are_read_over() {
    let text = "T1|w(x,5)|1\nT2|r(x=5)|2\nT2|aw(y,7)|3\nT1|ar(y, 7)|4\n";
    let (trace, remarks) = read(text, InputDialect::Auto);
    assert!(matches!(trace.events[2].op, Op::Atomic { written: 7, .. }));
    assert!(matches!(trace.events[3].op, Op::Atomic { read: 7, .. }));
    assert_eq!(
        remarks,
        ["STD text as RV-Predict writes it (recognised); the values of accesses are not used"]
    );
}

#[test]
fn locations_may_be_missing_or_negative() {
    let text = "T1|w(x)|-1\nT1|w(x)|\nT1|w(x)\nT1|w(x)|3\n";
    let (trace, remarks) = read(text, InputDialect::Auto);
    let unknown = raddle_trace::LocationIx::UNKNOWN;
    let known: Vec<bool> = trace.events.iter().map(|event| event.location != unknown).collect();
    assert_eq!(known, [false, false, false, true]);
    assert_eq!(remarks, ["STD text as RAPID writes it (recognised)"]);
}

#[test]
fn lines_that_cannot_be_so_are_told() {
    let faults = |text: &str| -> Vec<String> {
        let (_, mut remarks) = read(text, InputDialect::Auto);
        remarks.remove(0);
        remarks
    };
    assert_eq!(
        faults("T1|acq(l)|1\nT2|acq(l)|2\n"),
        ["t.std: line 2: thread T2 takes lock l while thread T1 has it since line 1"]
    );
    assert_eq!(
        faults("T1|r(x)|1\nT1|rel(l)|1\n"),
        ["t.std: line 2: thread T1 releases lock l, which it does not have"]
    );
    assert_eq!(
        faults("T1|fork(T2)|1\nT2|w(x)|1\nT1|join(T2)|1\nT2|w(x)|2\nT2|w(x)|3\n"),
        ["t.std: line 4: thread T2 goes on after it was joined in line 3"]
    );
    assert_eq!(
        faults("T1|w(x)|1\nT2|w(x)|1\nT1|fork(T2)|2\n"),
        ["t.std: line 3: thread T2 is forked after it began in line 2"]
    );
    // Nested locks and waits that the trace shows by their end alone are well.
    assert_eq!(faults("T1|acq(l)|1\nT1|acq(l)|1\nT1|rel(l)|1\nT1|rel(l)|1\nT2|acq(l)|1\n"), [""; 0]);
    assert_eq!(
        faults("T1|acq(l)|1\nT2|acq(l)|2\nT2|notify(l)|3\nT2|rel(l)|4\nT1|wait(l)|5\nT1|rel(l)|6\n"),
        [""; 0]
    );
    let many = "T1|rel(l)|1\n".repeat(100);
    let told = faults(&many);
    assert_eq!((told.len(), told[20].as_str()), (21, "t.std: 80 further lines do not fit those before them"));
}

#[test]
fn dialects_have_names() {
    assert_eq!("sunhang".parse(), Ok(InputDialect::Sunhang));
    assert!("java".parse::<InputDialect>().unwrap_err().contains("rapid, sunhang, rff-c, rv-predict"));
}
