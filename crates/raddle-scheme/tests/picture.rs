//! The pictures of `--graph`: which states are red, and that the text of a program cannot break the format.

use raddle_scheme::abs::space::Config;
use raddle_scheme::limits::Clock;
use raddle_scheme::{Source, parse, tool};

fn pictures(text: &str, config: Config) -> [String; 2] {
    let program = parse(Source::new("picture.scm", text)).expect("well formed");
    [true, false].map(|svg| tool::picture(&program, config, svg, 10_000, &Clock::unlimited()))
}

/// Red states of both pictures, which must agree.
fn red(text: &str, config: Config) -> usize {
    let [svg, dot] = pictures(text, config);
    let (in_svg, in_dot) = (svg.matches("stroke=\"red\"").count(), dot.matches("color=red").count());
    assert_eq!(in_svg, in_dot, "{text}");
    in_svg
}

#[test]
fn error_states_are_red() {
    for config in [Config::better(1), Config::paper(0, false)] {
        let all = [
            (include_str!("../../../corpus/scheme/cas/pcounter.scm"), false, "only harmless conflicts"),
            (include_str!("../../../corpus/scheme/lock/pcounter.scm"), false, "a guarded counter"),
            (include_str!("../../../corpus/scheme/lock/pcounter-race.scm"), true, "a race"),
            (include_str!("../../../corpus/scheme/lock/deadlock1.scm"), true, "a deadlock"),
            (include_str!("../../../corpus/scheme/cas/deadlock1.scm"), true, "a loop without exit"),
            ("(define x 0) (define t (spawn (error \"no\"))) (join t)", true, "an error"),
        ];
        for (text, expected, what) in all {
            assert_eq!(red(text, config) > 0, expected, "{what}, {config:?}");
        }
    }
}

#[test]
fn the_text_of_a_program_is_quoted() {
    let text = "(define s \"<&>\\\\ \\\"quoted\\\" #\\\\a\") (define t (spawn (set! s \"a\\\\\"))) (set! s \"<b>&\") (join t)";
    let [svg, dot] = pictures(text, Config::better(1));
    for line in dot.lines().filter(|line| line.contains("label=")) {
        // Outside of escapes every quotation mark opens or closes a string.
        let mut marks = 0;
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => drop(chars.next()),
                '"' => marks += 1,
                _ => {}
            }
        }
        assert_eq!(marks % 2, 0, "{line}");
    }
    for body in svg.split("<text").skip(1).filter_map(|part| part.split_once('>')).map(|part| part.1) {
        let body = body.split("</text>").next().unwrap_or_default();
        assert!(!body.contains('<') && !body.contains('>'), "{body}");
        assert!(
            body.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "").find('&').is_none(),
            "{body}"
        );
    }
}
