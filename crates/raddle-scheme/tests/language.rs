//! The language, expression by expression: what R5RS says, and what concurrent Scheme adds.

use raddle_scheme::analyze::{Options, analyze};
use raddle_scheme::concrete::run::{Ending, Run, Scheduler, run};
use raddle_scheme::concrete::schedule::Schedule;
use raddle_scheme::concrete::state::Machine;
use raddle_scheme::finding::{Kind, Report, Verdict};
use raddle_scheme::limits::Clock;
use raddle_scheme::{Program, Source, parse};

fn program(text: &str) -> Program {
    parse(Source::new("language.scm", text)).unwrap_or_else(|e| panic!("{text}: {e:?}"))
}

fn value(text: &str) -> String {
    let program = program(text);
    match run(&Machine::new(&program), Scheduler::RoundRobin, 0, 10_000, &Clock::unlimited(), |_| {}).ending {
        Ending::Finished(value) => value,
        other => format!("{other:?}"),
    }
}

fn report(text: &str) -> Report {
    analyze(&program(text), &Options::default(), &Clock::unlimited(), &mut |_| {})
}

#[test]
fn values_are_what_r5rs_says() {
    for (text, expected) in [
        // characters and strings
        ("(char->integer #\\A)", "65"),
        ("(integer->char 97)", "#\\a"),
        ("(list (char-upcase #\\a) (char-downcase #\\A))", "(#\\A #\\a)"),
        ("(list (char<? #\\a #\\b) (char>=? #\\a #\\b) (char=? #\\a #\\a) (char-ci=? #\\a #\\A))", "(#t #f #t #t)"),
        ("(list (char-alphabetic? #\\a) (char-numeric? #\\1) (char-whitespace? #\\space))", "(#t #t #t)"),
        ("(list (char-upper-case? #\\a) (char-lower-case? #\\a))", "(#f #t)"),
        ("(string-ref \"abc\" 1)", "#\\b"),
        ("(substring \"hello\" 1 3)", "\"el\""),
        ("(string->list \"abc\")", "(#\\a #\\b #\\c)"),
        ("(list->string (list #\\a #\\b))", "\"ab\""),
        ("(list (string #\\x #\\y) (make-string 3 #\\z) (string-copy \"q\"))", "(\"xy\" \"zzz\" \"q\")"),
        ("(list (string<? \"a\" \"b\") (string>? \"a\" \"b\") (string<=? \"a\" \"a\") (string-ci=? \"Ab\" \"aB\"))", "(#t #f #t #t)"),
        ("(list #\\x41 #\\x #\\x3bb (char->integer #\\delete))", "(#\\A #\\x #\\λ 127)"),
        // symbols between bars, numbers with prefixes, numbers beyond the largest
        ("(symbol->string '|a b|)", "\"a b\""),
        ("(eq? '|ab| 'ab)", "#t"),
        ("(let ((|x y| 1)) (+ |x y| 1))", "2"),
        ("(list (string->number \"#xff\") (string->number \"#b101\") (string->number \"ff\" 16))", "(255 5 255)"),
        ("(list (string->number \"#e1.5\") (string->number \"#q1\") (string->number \"#\"))", "(3/2 #f #f)"),
        ("(> 1e400 1e300)", "#t"),
        ("(< -1e400 (string->number \"1e400\"))", "#t"),
        // multiple values
        ("(call-with-values (lambda () (values 1 2)) +)", "3"),
        ("(call-with-values (lambda () 4) (lambda (x) (* x x)))", "16"),
        ("(call-with-values (lambda () (values)) list)", "()"),
        ("(+ 1 (values 2))", "3"),
        // dynamic-wind
        (
            "(let ((path '())) (dynamic-wind (lambda () (set! path (cons 1 path))) (lambda () (set! path (cons 2 path)))
               (lambda () (set! path (cons 3 path)))) path)",
            "(3 2 1)",
        ),
        ("(dynamic-wind (lambda () 1) (lambda () 2) (lambda () 3))", "2"),
        // promises
        ("(let* ((n 0) (p (delay (begin (set! n (+ n 1)) n)))) (list (force p) (force p) n))", "(1 1 1)"),
        ("(force 5)", "5"),
        ("(letrec ((p (delay (if (> n 2) n (begin (set! n (+ n 1)) (force p))))) (n 0)) (force p))", "3"),
        // quasiquotation
        ("`(1 ,(+ 1 1) ,@(list 3 4) 5)", "(1 2 3 4 5)"),
        ("`(1 . ,(+ 1 1))", "(1 . 2)"),
        ("`#(1 ,(+ 1 1) ,@(list 3))", "#(1 2 3)"),
        ("`(a `(b ,(foo ,(+ 1 3) d) e) f)", "(a (quasiquote (b (unquote (foo 4 d)) e)) f)"),
        ("(let ((x 5)) `(x ,x ,@'()))", "(x 5)"),
        ("`x", "x"),
        // do, for-each with two lists, empty?
        ("(do ((i 0 (+ i 1)) (s 0 (+ s i))) ((= i 5) s))", "10"),
        ("(let ((s 0)) (for-each (lambda (a b) (set! s (+ s (* a b)))) '(1 2) '(3 4)) s)", "11"),
        ("(list (empty? '()) (empty? '(1)))", "(#t #f)"),
        ("(map + '(1 2) '(10 20) '(100 200))", "(111 222)"),
        ("(let ((s 0)) (for-each (lambda (a b c) (set! s (+ s a b c))) '(1 2) '(3 4) '(5)) s)", "9"),
        ("(list (map cdar '(((1 2)))) (cadddr '(1 2 3 4)))", "(((2)) 4)"),
        ("(list (char-ci<? #\\a #\\B) (string-ci>=? \"a\" \"B\"))", "(#t #f)"),
        // escapes
        ("(call/cc procedure?)", "#t"),
        ("(call/cc (lambda (k) (+ 1 (k 42))))", "42"),
        ("(+ 1 (call/cc (lambda (k) 2)))", "3"),
        ("(call-with-current-continuation (lambda (exit) (for-each (lambda (x) (if (negative? x) (exit x))) '(1 -3 4)) #t))", "-3"),
        ("(define (f k) (k 1) 2) (+ 10 (call/cc (lambda (k) (f k) 3)))", "11"),
        ("(call/cc (lambda (a) (+ 1 (call/cc (lambda (b) (a (b 5)))))))", "6"),
        ("(procedure? (call/cc (lambda (k) k)))", "#t"),
        // threads
        ("(join (fork 1 2 3))", "3"),
        ("(join (spawn (define x 4) (+ x 1)))", "5"),
        ("(deref (future (+ 1 2)))", "3"),
        ("(define a (atom 1)) (define f (future (swap! a + 10) 7)) (list (deref f) (deref a))", "(7 11)"),
        ("(define a (atom 1)) (list (swap! a (lambda (x) (* x 5))) (reset! a 9) (read a) (compare-and-set! a 9 2) (deref a))", "(5 9 9 #t 2)"),
        ("(define a (atom 1)) (compare-and-set! a 5 6)", "#f"),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn what_is_not_supported_is_said() {
    for (text, message) in [
        (
            "(define-syntax swap (er-macro-transformer (lambda (form rename compare) form)))",
            "made of syntax-rules",
        ),
        ("(define s \"abc\") (string-set! s 0 #\\x)", "strings cannot be changed"),
        (
            "(call/cc (lambda (k) (dynamic-wind (lambda () 1) (lambda () (k 2)) (lambda () 3))))",
            "together with call/cc",
        ),
        ("(unquote x)", "not bound"),
    ] {
        let errors = parse(Source::new("refused.scm", text)).expect_err(text);
        assert!(errors.iter().any(|e| e.message.contains(message)), "{text}: {errors:?}");
    }
    // So is a call of more arguments than `apply` passes on.
    let found = report("(define t (spawn (apply + '(1 2 3 4 5 6 7 8 9)))) (join t)");
    assert!(found.findings.iter().all(|f| f.schedule.is_none()), "{:?}", found.findings);
    assert!(matches!(found.verdict, Verdict::Unknown(_)), "{:?}", found.verdict);
    // A continuation that is entered again is beyond the machine, and no error of the program.
    let text = "(define k #f) (define n 0) (define t (spawn (set! n 1)))
        (define v (call/cc (lambda (c) (set! k c) 0))) (if (< v 2) (k (+ v 1)) (error \"never\"))";
    let found = report(text);
    assert_eq!(
        found.count(Kind::Error),
        found.findings.iter().filter(|f| f.schedule.is_none() && f.kind == Kind::Error).count()
    );
    assert!(!matches!(found.verdict, Verdict::Clean(_)), "{:?}", found.verdict);
}

#[test]
fn futures_and_atoms_are_analysed() {
    let clean = "(define counter (atom 0))
        (define (work) (swap! counter (lambda (x) (+ x 1))))
        (define a (future (work))) (define b (future (work))) (deref a) (deref b) (assert (= (read counter) 2))";
    assert!(matches!(report(clean).verdict, Verdict::Clean(_)), "{:?}", report(clean).findings);
    let lost = "(define counter (atom 0))
        (define (work) (reset! counter (+ (deref counter) 1)))
        (define a (future (work))) (define b (future (work))) (deref a) (deref b) (assert (= (read counter) 2))";
    assert_eq!(report(lost).count(Kind::Error), 1, "{:?}", report(lost).findings);
    let never = "(define a (future (deref b))) (define b (future 1)) (deref a)";
    assert!(report(never).serious() > 0);
    // A lock that an escape skips the release of.
    let skipped = "(define l (new-lock)) (define x 0)
        (define (work n) (call/cc (lambda (out) (acquire l) (if (= n 1) (out 0) 1) (set! x (+ x n)) (release l))))
        (define t (spawn (work 1))) (define u (spawn (work 2))) (join t) (join u)";
    assert_eq!(report(skipped).verdict, Verdict::Found);
    assert!(report(skipped).count(Kind::Deadlock) > 0);
    let kept = skipped.replace("(acquire l) (if (= n 1) (out 0) 1)", "(if (= n 1) (out 0) 1) (acquire l)");
    assert!(matches!(report(&kept).verdict, Verdict::Clean(_)), "{:?}", report(&kept));
}

/// A replay says what the schedule was kept for.
#[test]
fn replays_name_livelocks_and_swaps() {
    let follow = |text: &str, kind: Kind| -> Run {
        let program = program(text);
        let report = analyze(&program, &Options::default(), &Clock::unlimited(), &mut |_| {});
        let finding =
            report.findings.iter().find(|f| f.kind == kind).unwrap_or_else(|| panic!("{text}: {report:?}"));
        let schedule = finding.schedule.clone().expect("confirmed");
        let schedule = Schedule::parse(&schedule.text("")).expect("what we write we read");
        run(&Machine::new(&program), Scheduler::Replay(schedule), 0, 10_000, &Clock::unlimited(), |_| {})
    };
    let spin = "(define l #f) (define (take) (if (cas l #f #t) 0 (take)))
        (define t (spawn (take))) (define u (spawn (take))) (join t) (join u)";
    let run = follow(spin, Kind::Livelock);
    assert!(run.livelock.is_some_and(|stands| stands.len() == 1), "{:?}", run.ending);
    let swap = "(define x 0) (define l #unlocked)
        (define t (spawn (begin (acquire l) (cas x 0 1) (release l))))
        (define u (spawn (begin (acquire l) (set! x 2) (release l)))) (join t) (join u)";
    let run = follow(swap, Kind::UnretriedCas);
    assert!(run.unretried.is_some() && run.livelock.is_none(), "{:?}", run.ending);
}

/// An operation on a value of a kind that the abstract machine describes apart from the others.
#[test]
fn strings_where_they_have_no_meaning_are_errors() {
    for text in [
        "(define l (new-lock)) (define (f) (acquire l) (vector-length \"abc\") (release l))
         (define t (spawn (f))) (define u (spawn (f)))",
        "(vector-length \"abc\")",
        "(random \"abc\")",
    ] {
        assert!(report(text).count(Kind::Error) > 0, "{text}: {:?}", report(text).verdict);
    }
}

#[test]
fn symbols_are_made_of_strings() {
    for (text, expected) in [
        ("(string->symbol \"mISSISSIppi\")", "mISSISSIppi"),
        ("(eq? 'bitBlt (string->symbol \"bitBlt\"))", "#t"),
        ("(eq? 'JollyWog (string->symbol (symbol->string 'JollyWog)))", "#t"),
        ("(eq? (string->symbol \"never read\") (string->symbol \"never read\"))", "#t"),
        ("(eq? (string->symbol \"never read\") (string->symbol \"nor this\"))", "#f"),
        ("(eq? (string->symbol \"a\") \"a\")", "#f"),
        ("(symbol->string (string->symbol \"never read\"))", "\"never read\""),
        ("(list (symbol? (string->symbol \"never read\")) (string? (string->symbol \"a\")))", "(#t #f)"),
        ("(case (string->symbol \"two\") ((one) 1) ((two) 2))", "2"),
        ("(cdr (assq (string->symbol \"b\") '((a . 1) (b . 2))))", "2"),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
    // To the abstract machine a made symbol may be any.
    let chosen = "(define l (new-lock)) (define kind (string->symbol \"WORD\"))
        (define (work) (acquire l) (if (eq? kind 'quick) (release l) 0))
        (define t (spawn (work))) (define u (spawn (work))) (join t) (join u)";
    assert!(report(&chosen.replace("WORD", "slow")).count(Kind::Deadlock) > 0);
    let quick = report(&chosen.replace("WORD", "quick"));
    assert!(matches!(quick.verdict, Verdict::Clean(_)), "{:?}", quick.findings);
}

/// Every procedure of the report is there, but for those that docs/scheme.md says are not.
#[test]
fn no_procedure_of_the_report_is_missing_silently() {
    let missing: Vec<&str> = PROCEDURES
        .split_whitespace()
        .filter(|name| {
            let text = format!("(define it {name}) (procedure? it)");
            parse(Source::new("table.scm", text.clone())).is_err() || value(&text) != "#t"
        })
        .collect();
    assert_eq!(missing, Vec::<&str>::new(), "procedures of R5RS that are not bound");
    let docs = include_str!("../../../docs/scheme.md");
    for name in EXCLUDED.split_whitespace() {
        let error = parse(Source::new("table.scm", format!("(define it {name})"))).expect_err(name);
        assert!(error[0].message.contains("is not bound"), "{name}: {error:?}");
        assert!(!PROCEDURES.split_whitespace().any(|other| other == name), "{name}");
    }
    for words in ["without ports and mutable strings", "no complex numbers", "no `eval`"] {
        assert!(docs.contains(words), "docs/scheme.md says: {words}");
    }
}

/// The procedures of R5RS, section by section (6.1 to 6.6), without [`EXCLUDED`].
const PROCEDURES: &str = "
    eqv? eq? equal?
    number? complex? real? rational? integer? exact? inexact? = < > <= >= zero? positive? negative? odd? even? max min + * - /
    abs quotient remainder modulo gcd lcm numerator denominator floor ceiling truncate round rationalize
    exp log sin cos tan asin acos atan sqrt expt exact->inexact inexact->exact number->string string->number
    not boolean?
    pair? cons car cdr set-car! set-cdr! caar cadr cdar cddr
    caaar caadr cadar caddr cdaar cdadr cddar cdddr
    caaaar caaadr caadar caaddr cadaar cadadr caddar cadddr cdaaar cdaadr cdadar cdaddr cddaar cddadr cdddar cddddr
    null? list? list length append reverse list-tail list-ref memq memv member assq assv assoc
    symbol? symbol->string string->symbol
    char? char=? char<? char>? char<=? char>=? char-ci=? char-ci<? char-ci>? char-ci<=? char-ci>=?
    char-alphabetic? char-numeric? char-whitespace? char-upper-case? char-lower-case?
    char->integer integer->char char-upcase char-downcase
    string? make-string string string-length string-ref
    string=? string-ci=? string<? string>? string<=? string>=? string-ci<? string-ci>? string-ci<=? string-ci>=?
    substring string-append string->list list->string string-copy
    vector? make-vector vector vector-length vector-ref vector-set! vector->list list->vector vector-fill!
    procedure? apply map for-each force call-with-current-continuation values call-with-values dynamic-wind
    write display newline write-char
    read";

/// What is left out: mutable strings, complex numbers, `eval`, and ports with all that reads from them. (`read` is bound, but
/// reads an atom.)
const EXCLUDED: &str = "
    string-set! string-fill!
    make-rectangular make-polar real-part imag-part magnitude angle
    eval scheme-report-environment null-environment interaction-environment
    call-with-input-file call-with-output-file input-port? output-port? current-input-port current-output-port
    with-input-from-file with-output-to-file open-input-file open-output-file close-input-port close-output-port
    read-char peek-char eof-object? char-ready? load transcript-on transcript-off";
