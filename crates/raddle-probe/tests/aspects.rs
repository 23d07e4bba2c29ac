//! The aspect language: what is understood, what is refused and how, and that printing loses nothing.

use proptest::prelude::*;
use raddle_probe::aspect::{
    Aspect, Comparison, Content, Event, Field, File, JoinPoint, Line, Moment, Operand, Relation, Source,
    Span, Target, TargetName, Value, Width, parse,
};

/// The files of the paper's use cases, as they are in the corpus, are understood and are printed as they stand, but for columns.
#[test]
fn the_use_cases_are_understood() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/usecases");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "aspects") {
            let text = std::fs::read_to_string(&path).unwrap();
            let parsed = parse(&text);
            assert_eq!(parsed.diagnostics, [], "{}", path.display());
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&parsed.file.to_string()), words(&text), "{}", path.display());
            seen += parsed.file.aspects().count();
        }
    }
    assert!(seen >= 25, "{seen}");
}

/// The one form of a line.
#[track_caller]
fn becomes(text: &str, expected: &str) {
    let parsed = parse(text);
    assert_eq!(parsed.diagnostics, [], "{text}");
    assert_eq!(parsed.file.to_string().trim_end(), expected);
}

/// Place, message and help of the only diagnostic.
#[track_caller]
fn refused(text: &str, place: &str, message: &str, help: &str) {
    let parsed = parse(text);
    assert_eq!(parsed.file.aspects().count(), 0, "{text}");
    let [diagnostic] = &parsed.diagnostics[..] else { panic!("{text}: {:?}", parsed.diagnostics) };
    assert_eq!(&text[diagnostic.span.0.clone()], place, "{text}");
    assert_eq!(diagnostic.message, message);
    let told = diagnostic.help.as_deref().unwrap_or_default();
    assert!(told.contains(help), "{told}");
}

#[test]
fn everything_that_can_be_written() {
    becomes("open( #return )   after call open_file", "open(#return) after call open_file");
    becomes("tick() before line src/worker.c : 12", "tick before line src/worker.c:12");
    becomes("a(**#3, x, -5, 0x10) before body f", "a(**#3, x, -5, 16) before body f");
    becomes(
        "a(#arg(size):u32,#self,#caller) before call f",
        "a(#arg(size):u32, #self, #caller) before call f",
    );
    becomes(
        "w(#size,#address,#value) after write-global pool.head",
        "w(#size, #address, #value) after write-global pool.head",
    );
    becomes(
        "a before call f when #1>0 and *#0!=#1 --  why ",
        "a before call f when #1 > 0 and *#0 != #1 -- why",
    );
    becomes("a before body libz.so* ! deflate", "a before body libz.so*!deflate");
    becomes("a before body Queue<int, 4>::push(int&&)", "a before body Queue<int, 4>::push(int&&)");
    becomes("a before body It::operator--", "a before body It::operator--");
    becomes("a before body It::operator!=", "a before body It::operator!=");
    becomes("a before body \"f when 1\"", "a before body \"f when 1\"");
    becomes("--\n\n-- all\na before body whenever", "--\n\n-- all\na before body whenever");
    becomes(
        "a(#0) before call f\nlonger(#0, #1) after call g",
        "a(#0)          before call f\nlonger(#0, #1) after call g",
    );
}

#[test]
fn what_is_refused_and_where() {
    refused("open(#return) before call f", "#return", "`#return` has no value before the call", "`after`");
    refused(
        "a(#0) before read-global x",
        "#0",
        "`read-global` has no arguments, return value or caller",
        "#address",
    );
    refused(
        "a(#0) before line a.c:1",
        "#0",
        "`line` has no arguments, return value or caller",
        "`call` or `body`",
    );
    refused("a(#size) before call f", "#size", "`call` is no access to memory", "read-global");
    refused("a(#value) before write-global x", "#value", "`#value` is not written yet", "after write-global");
    refused(
        "a(*#size) before read-global x",
        "*#size",
        "this is a number and not an address: nothing to dereference",
        "`*`",
    );
    refused(
        "a after line a.c:1",
        "a after line a.c:1",
        "code does not run line by line: a line has no one end",
        "before line",
    );
    refused("a before line a.c", "a.c", "`a.c` is no file and line", "worker.c:12");
    refused("a before line a.c:0", "a.c:0", "`a.c:0` is no file and line", "worker.c:12");
    refused("a befor call f", "befor", "expected `before` or `after`, found `befor`", "EVENT(FIELDS)");
    refused("a before cal f", "cal", "expected a join point, found `cal`", "did you mean `call`?");
    refused("a before call", "", "`call` has no target", "open_file");
    refused("a(#retrun) after call f", "#retrun", "there is no value `#retrun`", "did you mean `#return`?");
    refused("a(#99) after call f", "99", "there is no argument 99", "63");
    refused("a(#0 #1) after call f", "#", "expected `,` or `)`, found `#`", "commas");
    refused("a(#0", "", "expected `,` or `)`, found the end of the line", "commas");
    refused("1a before call f", "1a", "`1a` cannot be the name of an event", "letter");
    refused("(x) before call f", "(", "expected the name of an event, found `(`", "letter");
    refused("a before call f when #0 = 1", "=", "expected a comparison, found `=`", "==");
    refused(
        "a before call f when #0 == 1 or #1 == 2",
        "or",
        "expected `and` or the end of the line, found `or`",
        "two aspects",
    );
    refused(
        "a before call f when #return == 1",
        "#return == 1",
        "`#return` has no value before the call",
        "`after`",
    );
    refused("a before call \"f", "\"f", "the quotes are not closed", "`\"`");
    refused("a before call \"f\" g", "g", "unexpected `g` after the aspect", "one aspect a line");
    refused("a before call !f", "!f", "nothing stands on one side of `!`", "libz.so");
    refused(
        "a(99999999999999999999) before call f",
        "99999999999999999999",
        "the number does not fit in 64 bits",
        "0x7f",
    );
    refused("a(#arg()) before call f", ")", "expected the name of an argument, found `)`", "#arg(size)");
    refused("a(#0:i7) before call f", "i7", "expected a width, found `i7`", "i32");
    refused("a(*********#0) before call f", "*********", "more than 8 dereferences", "leave some out");
    refused("a(ä) before call f", "ä", "expected a field, found `ä`", "#arg(name)");
}

/// One bad line does not hide the others.
#[test]
fn lines_are_independent() {
    let parsed = parse("a before call f\nb befor call f\nc(#return) before body g\nd after body h\n");
    let names: Vec<&str> = parsed.file.aspects().map(|aspect| &aspect.event.name[..]).collect();
    assert_eq!((names, parsed.diagnostics.len()), (vec!["a", "d"], 2));
}

#[test]
fn diagnostics_show_the_line() {
    let text = "open(#return) after call open_file\nclose(#return) before call close_file\n";
    let shown = parse(text).diagnostics[0].render("file.aspects", text, false);
    assert!(shown.contains("file.aspects:2:7"), "{shown}");
    assert!(shown.contains("^^^^^^^"), "{shown}");
    assert!(shown.contains("help: write `after`"), "{shown}");
}

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z][a-zA-Z0-9_']{0,6}"
}

fn value(point: JoinPoint, moment: Moment) -> BoxedStrategy<Value> {
    let after = moment == Moment::After;
    let mut sources = vec![Just(Source::Thread).boxed()];
    if point.is_of_functions() {
        sources.push((0..64u16).prop_map(Source::Argument).boxed());
        sources.push("[a-z_][a-z0-9_]{0,5}".prop_map(Source::Named).boxed());
        sources.push(Just(Source::Caller).boxed());
        if after {
            sources.push(Just(Source::Return).boxed());
        }
    } else if point.is_of_globals() {
        sources.extend([Just(Source::Size).boxed(), Just(Source::Address).boxed()]);
        if after || point == JoinPoint::ReadGlobal {
            sources.push(Just(Source::Accessed).boxed());
        }
    }
    let widths: Vec<Option<Width>> =
        std::iter::once(None).chain(Width::ALL.map(|(width, _)| Some(width))).collect();
    (proptest::strategy::Union::new(sources), 0..=8u8, proptest::sample::select(widths))
        .prop_map(|(source, dereferences, width)| {
            let fixed = matches!(source, Source::Size | Source::Thread);
            Value { dereferences: if fixed { 0 } else { dereferences }, source, width }
        })
        .boxed()
}

fn target(point: JoinPoint) -> BoxedStrategy<Target> {
    // With every word that could end a target early, and spaces between.
    let part = prop_oneof![
        3 => "[a-zA-Z_*~<>&:,.()\\[\\]]{1,8}", 1 => Just("when".to_owned()), 1 => Just("--".to_owned()),
        1 => Just("operator--".to_owned()), 1 => Just("when#0".to_owned()), 1 => Just("--x".to_owned()),
    ];
    let written = prop::collection::vec(part, 1..4).prop_map(|parts| parts.join(" "));
    let name: BoxedStrategy<TargetName> = match point {
        JoinPoint::Line => {
            ("[a-z/.*_]{1,9}", 1..u32::MAX).prop_map(|(file, line)| TargetName::Line { file, line }).boxed()
        }
        _ if point.is_of_globals() => written.prop_map(TargetName::Global).boxed(),
        _ => written.prop_map(TargetName::Function).boxed(),
    };
    (prop::option::of("lib[a-z]{1,4}\\.so\\*?"), name)
        .prop_map(|(module, name)| Target { module, name, span: Span::default() })
        .boxed()
}

fn aspect() -> impl Strategy<Value = Aspect> {
    let points = prop::sample::select(JoinPoint::ALL.to_vec());
    let moments = prop::sample::select(Moment::ALL.to_vec());
    (points, moments).prop_flat_map(|(point, moment)| {
        let moment = if point == JoinPoint::Line { Moment::Before } else { moment };
        let content = prop_oneof![
            name().prop_map(Content::Word),
            any::<i64>().prop_map(Content::Number),
            value(point, moment).prop_map(Content::Value),
        ];
        let field = content.prop_map(|content| Field { content, span: Span::default() });
        let event = (name(), prop::collection::vec(field, 0..=8)).prop_map(|(name, fields)| Event {
            name,
            fields,
            span: Span::default(),
        });
        let operand = prop_oneof![
            any::<i64>().prop_map(Operand::Number),
            value(point, moment).prop_map(Operand::Value)
        ];
        let relation = prop::sample::select(Relation::ALL.to_vec());
        let comparison = (value(point, moment), relation, operand)
            .prop_map(|(left, relation, right)| Comparison { left, relation, right, span: Span::default() });
        (event, target(point), prop::collection::vec(comparison, 0..=4)).prop_map(
            move |(event, target, condition)| Aspect {
                event,
                moment,
                join_point: point,
                target,
                condition,
                span: Span::default(),
            },
        )
    })
}

fn file() -> impl Strategy<Value = File> {
    let comment = "[a-zA-Z#\"!-]{0,8}( [a-z-]{1,4})?".prop_map(|text| text.trim().to_owned());
    let line = (prop::option::weighted(0.8, aspect()), prop::option::of(comment))
        .prop_map(|(aspect, comment)| Line { aspect, comment });
    prop::collection::vec(line, 0..6).prop_map(|lines| File { lines })
}

proptest! {
    #[test]
    fn printing_loses_nothing(file in file()) {
        let text = file.to_string();
        let parsed = parse(&text);
        prop_assert_eq!(&parsed.diagnostics, &[], "{}", text);
        prop_assert_eq!(&parsed.file, &file, "{}", text);
        prop_assert_eq!(parsed.file.to_string(), text);
    }

    /// Whatever the text, there is an answer; what was left out has an error; and every diagnostic can be shown.
    #[test]
    fn every_text_has_an_answer(text in "([a-z#*(),:!\"-]|before|after|call|line|when| |\n|ä|==|#0){0,60}") {
        let parsed = parse(&text);
        let lines = text.split_inclusive('\n').count();
        prop_assert!(parsed.file.lines.len() <= lines);
        prop_assert!(parsed.file.lines.len() == lines || parsed.has_errors());
        for diagnostic in &parsed.diagnostics {
            prop_assert!(diagnostic.help.is_some());
            diagnostic.render("x.aspects", &text, false);
        }
        let again = parse(&parsed.file.to_string());
        prop_assert_eq!(again.file, parsed.file);
    }
}
