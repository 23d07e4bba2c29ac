//! Macros: what `syntax-rules` writes out, that it keeps names apart, and what it refuses.

use raddle_scheme::analyze::{Options, analyze};
use raddle_scheme::concrete::run::{Ending, Scheduler, run};
use raddle_scheme::concrete::state::Machine;
use raddle_scheme::finding::{Kind, Verdict};
use raddle_scheme::limits::Clock;
use raddle_scheme::{Source, parse};

fn value(text: &str) -> String {
    let program = parse(Source::new("macros.scm", text)).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    match run(&Machine::new(&program), Scheduler::RoundRobin, 0, 10_000, &Clock::unlimited(), |_| {}).ending {
        Ending::Finished(value) => value,
        other => format!("{other:?}"),
    }
}

fn refusal(text: &str) -> String {
    let errors = parse(Source::new("macros.scm", text)).expect_err(text);
    errors.iter().map(|error| error.message.clone()).collect::<Vec<_>>().join("; ")
}

/// Each macro with a use, and what the use amounts to.
#[test]
fn patterns_and_templates() {
    for (definition, used, expected) in [
        ("(define-syntax m (syntax-rules () ((_) 1) ((_ a) (+ a 1)) ((_ a b) (* a b))))", "(list (m) (m 2) (m 3 4))", "(1 3 12)"),
        ("(define-syntax m (syntax-rules () ((_ (n v) ...) '((v n) ...))))", "(m (a 1) (b 2))", "((1 a) (2 b))"),
        ("(define-syntax m (syntax-rules () ((_ (a b ...) ...) '((b ... a) ...))))", "(m (1 2 3) (4))", "((2 3 1) (4))"),
        ("(define-syntax m (syntax-rules () ((_ (a ...) ...) '(a ... ...))))", "(m (1 2) () (3))", "(1 2 3)"),
        ("(define-syntax m (syntax-rules () ((_ a ... z) '(z a ...))))", "(m 1 2 3)", "(3 1 2)"),
        ("(define-syntax m (syntax-rules () ((_ a . rest) 'rest)))", "(list (m 1) (m 1 2) (m 1 2 3))", "(() (2) (2 3))"),
        ("(define-syntax m (syntax-rules () ((_ (a . rest)) 'rest)))", "(list (m (1)) (m (1 2)) (m (1 . 2)) (m (1 2 . 3)))", "(() (2) 2 (2 . 3))"),
        ("(define-syntax m (syntax-rules () ((_ (a . b) ...) '((b ...) a ...))))", "(m (1 . 2) (3 4))", "((2 (4)) 1 3)"),
        ("(define-syntax m (syntax-rules () ((_ #(a b ...)) '(a #(b ...)))))", "(m #(1 2 3))", "(1 #(2 3))"),
        ("(define-syntax m (syntax-rules () ((_ 1 x) 'one) ((_ \"s\" x) 'text) ((_ _ x) 'other)))", "(list (m 1 2) (m \"s\" 2) (m 3 4))", "(one text other)"),
        ("(define-syntax m (syntax-rules (=>) ((_ a => b) '(b a)) ((_ a b c) 'plain)))", "(list (m 1 => 2) (m 1 2 3))", "((2 1) plain)"),
        ("(define-syntax m (syntax-rules ::: () ((_ a :::) '(a ::: ...))))", "(m 1 2)", "(1 2 ...)"),
        ("(define-syntax m (syntax-rules () ((_ a) '(a (... ...)))))", "(m 1)", "(1 ...)"),
        (
            "(define-syntax make (syntax-rules () ((_ n) (define-syntax n (syntax-rules () ((_ e (... ...)) (list 'n e (... ...))))))))
             (make m)",
            "(m 1 2)",
            "(m 1 2)",
        ),
        ("(define-syntax m (syntax-rules () ((_ a b v) (begin (define a v) (define b (+ a 1))))))\n(m p q 5)", "(list p q)", "(5 6)"),
        ("(define (f x) (define-syntax m (syntax-rules () ((_ e) (+ e x)))) (define y 3) (m y))", "(f 10)", "13"),
        ("", "(let-syntax ((m (syntax-rules () ((_ x) (* x x))))) (m 4))", "16"),
        (
            "",
            "(letrec-syntax ((even (syntax-rules () ((_) #t) ((_ x . r) (odd . r))))
                             (odd (syntax-rules () ((_) #f) ((_ x . r) (even . r))))) (list (even 1 2) (even 1)))",
            "(#t #f)",
        ),
    ] {
        assert_eq!(value(&format!("{definition}\n{used}")), expected, "{definition} {used}");
    }
}

/// The examples by which renaming is usually judged.
#[test]
fn names_of_macro_and_program_are_kept_apart() {
    let or = "(define-syntax my-or (syntax-rules () ((_) #f) ((_ e) e)
              ((_ e r ...) (let ((t e)) (if t t (my-or r ...))))))";
    let swap = "(define-syntax swap! (syntax-rules () ((_ a b) (let ((tmp a)) (set! a b) (set! b tmp)))))";
    for (text, expected) in [
        (format!("{or} (let ((t 5)) (my-or #f t))"), "5"),
        (format!("{or} (let ((if list)) (my-or #f 2))"), "2"),
        (format!("{or} (define (f let) (my-or #f let)) (f 3)"), "3"),
        (format!("{swap} (let ((tmp 1) (other 2)) (swap! tmp other) (list tmp other))"), "(2 1)"),
        // What a template mentions is what its macro saw.
        (
            "(let ((x 'outer)) (let-syntax ((m (syntax-rules () ((_) x)))) (let ((x 'inner)) (m))))"
                .to_owned(),
            "outer",
        ),
        (
            "(define x 'top) (define-syntax m (syntax-rules () ((_) x))) (let ((x 'inner)) (list x (m)))"
                .to_owned(),
            "(inner top)",
        ),
        // A definition that a template brings along is nobody else's, and each use has its own.
        (
            "(define hidden 1)
             (define-syntax def (syntax-rules () ((_ a v) (begin (define hidden v) (define (a) hidden)))))
             (def f 2) (def g 3) (list hidden (f) (g))"
                .to_owned(),
            "(1 2 3)",
        ),
        // A literal that is bound is not that literal.
        (
            "(define-syntax m (syntax-rules (else) ((_ else) 'literal) ((_ x) 'other)))
             (list (m else) (let ((else 1)) (m else)))"
                .to_owned(),
            "(literal other)",
        ),
        // Macros write macros uses, symbols and loops with names of their own.
        (
            "(define-syntax while (syntax-rules () ((_ c b ...) (let loop () (when c b ... (loop))))))
             (define (loop) 'mine) (define i 0) (while (< i 3) (set! i (+ i 1))) (list i (loop))"
                .to_owned(),
            "(3 mine)",
        ),
        ("(define-syntax m (syntax-rules () ((_ a) '(x a)))) (m b)".to_owned(), "(x b)"),
        // A variable takes the name of a macro away, and the other way round.
        ("(define-syntax m (syntax-rules () ((_ a) 1))) (let ((m (lambda (a) 2))) (m 0))".to_owned(), "2"),
        ("(define (f m) (let-syntax ((m (syntax-rules () ((_) 'macro)))) (m))) (f 1)".to_owned(), "macro"),
    ] {
        assert_eq!(value(&text), expected, "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_macro_is_said() {
    for (text, message) in [
        ("(define-syntax m (syntax-rules () ((_ a) a))) (m)", "no rule of m fits"),
        ("(define-syntax m (syntax-rules () ((_ a) a))) m", "m is a macro"),
        ("(define-syntax m (syntax-rules () ((_ a) a))) (set! m 1)", "m is not bound"),
        ("(define-syntax m (lambda (x) x))", "made of syntax-rules"),
        ("(define-syntax m)", "malformed define-syntax"),
        ("(define-syntax m (syntax-rules () ((_ a ...) a))) (m 1)", "a stands for several forms"),
        ("(define-syntax m (syntax-rules () ((_ a) (a ...)))) (m 1)", "nothing before this ellipsis"),
        (
            "(define-syntax m (syntax-rules () ((_ (a ...) (b ...)) '((a b) ...)))) (m (1) (2 3))",
            "different numbers",
        ),
        ("(define-syntax m (syntax-rules () ((_) (undefined-name)))) (m)", "undefined-name is not bound"),
        ("(syntax-rules () ((_) 1))", "is no expression"),
        ("(define-syntax m (syntax-rules () ((_) (m)))) (m)", "write more than"),
        ("(define-syntax m (syntax-rules () ((_) (m)))) (define (f) (+ 1 (m)))", "nested deeper"),
        ("(define-syntax m (syntax-rules () ((_ a ...) (m a ... a ...)))) (+ 1 (m 1))", "write more than"),
        // What is written once may stand in many places.
        (
            "(define-syntax m (syntax-rules () ((_ () x) (list . x)) ((_ (n . more) x) (m more (x x))))) (m (0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0) (1 1))",
            "too many",
        ),
        (
            "(define-syntax m (syntax-rules () ((_ () x) 'x) ((_ (n . more) x) (m more (x x))))) (m (0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0) (1 1))",
            "too many",
        ),
    ] {
        let said = refusal(text);
        assert!(said.contains(message), "{text}: {said}");
        assert!(!said.contains('\u{1}'), "{text}: {said:?}");
    }
}

/// A lock taken by a macro is seen as one that is taken by hand, and races are told with the names that were written.
#[test]
fn macros_are_analysed_as_what_they_write() {
    let text = |body: &str| {
        format!(
            "(define-syntax with-lock (syntax-rules ()
               ((_ l body ...) (begin (acquire l) (let ((result (begin body ...))) (release l) result)))))
             (define a (new-lock)) (define b (new-lock)) (define n 0)
             (define (one) (with-lock a (with-lock b (set! n (+ n 1)))))
             (define (two) {body})
             (define t (fork (one))) (define u (fork (two))) (join t) (join u) (assert (= n 2))"
        )
    };
    let report = |text: &str| {
        let program = parse(Source::new("macros.scm", text)).expect("well formed");
        analyze(&program, &Options::default(), &Clock::unlimited(), &mut |_| {})
    };
    let right = report(&text("(with-lock a (with-lock b (set! n (+ n 1))))"));
    assert!(matches!(right.verdict, Verdict::Clean(_)), "{right:?}");
    let crossed = report(&text("(with-lock b (with-lock a (set! n (+ n 1))))"));
    assert_eq!((crossed.count(Kind::Deadlock), crossed.serious()), (1, 1), "{crossed:?}");
    let apart = report(&text("(with-lock (new-lock) (set! n (+ n 1)))"));
    assert!(apart.findings.iter().any(|f| f.kind == Kind::Race && f.message.contains(" of n ")), "{apart:?}");
}

#[test]
fn records_and_several_values() {
    let point = "(define-record-type point (make-point x y) point? (x px set-px!) (y py) (z pz))";
    for (text, expected) in [
        (
            format!("{point} (define p (make-point 1 2)) (set-px! p 5) (list (px p) (py p) (pz p))"),
            "(5 2 #f)",
        ),
        (
            format!(
                "{point} (list (point? (make-point 1 2)) (point? (vector 1 2)) (point? 3) (point? (vector)))"
            ),
            "(#t #f #f #f)",
        ),
        (format!("{point} (define-record-type other (make-other) other?) (point? (make-other))"), "#f"),
        ("(define (f) (define-record-type t (make a) t? (a get)) (get (make 7))) (f)".to_owned(), "7"),
        ("(let-values (((a b) (values 1 2)) ((c) (values 3))) (list a b c))".to_owned(), "(1 2 3)"),
        (
            "(let ((a 1) (b 2)) (let-values (((a b) (values b a)) ((c) (values a))) (list a b c)))"
                .to_owned(),
            "(2 1 1)",
        ),
        (
            "(let*-values (((a b) (values 1 2)) ((c . d) (values a b 3))) (list a b c d))".to_owned(),
            "(1 2 1 (2 3))",
        ),
        ("(let-values ((all (values 1 2))) all)".to_owned(), "(1 2)"),
        ("(receive (a . rest) (values 1 2 3) (list a rest))".to_owned(), "(1 (2 3))"),
        ("(define-values (q r) (values 3 1)) (list q r)".to_owned(), "(3 1)"),
        ("(define (f) (define-values (a b) (values 1 2)) (+ a b)) (f)".to_owned(), "3"),
        (
            "(list (reduce max 0 '(1 5 2)) (fold cons '() '(1 2)) (any odd? '(2 3)) (every odd? '(1 2)))"
                .to_owned(),
            "(5 (2 1) #t #f)",
        ),
        (
            "(list (vector-map 1+ #(1 2)) (list-copy '(1 2)) (delete 1 '(1 2 1)) (last-pair '(1 2)))"
                .to_owned(),
            "(#(2 3) (1 2) (2) (2))",
        ),
        // Forms with one part, as values.
        ("(map join (map (lambda (n) (fork (* n n))) '(1 2 3)))".to_owned(), "(1 4 9)"),
        ("(map deref (map (lambda (n) (future (* n n))) '(1 2 3)))".to_owned(), "(1 4 9)"),
        (
            "(define ls (list (new-lock) (new-lock))) (for-each acquire ls) (for-each release ls) 'free"
                .to_owned(),
            "free",
        ),
        ("(sleep 1) (yield) (thread-yield!) 1".to_owned(), "1"),
    ] {
        assert_eq!(value(&text), expected, "{text}");
    }
    for (text, message) in [
        ("(define-record-type point (make-point q) point? (x px))", "no such field"),
        ("(define-record-type point)", "malformed define-record-type"),
        ("(define-values 1 2)", "malformed define-values"),
        ("(let-values ((a)) 1)", "malformed clause"),
    ] {
        assert!(refusal(text).contains(message), "{text}: {}", refusal(text));
    }
    let wrong = value(&format!("{point} (px 5)"));
    assert!(wrong.contains("px needs a record of type point"), "{wrong}");
}
