//! No string of a finding breaks a sentence or the terminal, and machine formats with real sentences stay well-formed.

#[path = "../../raddle-findings/tests/samples/mod.rs"]
mod samples;

use proptest::prelude::*;
use raddle_findings::formats::{gcc, github, gitlab, junit, sarif};
use raddle_findings::{Finding, Kind, Listing, Wording};
use raddle_report::{English, Sources, Style, render};
use samples::Sampler;

fn unprintable(c: char) -> bool {
    c.is_control() && c != '\n'
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

fn check(finding: &Finding) {
    let mut sources = Sources::new(Vec::new());
    for verbose in [false, true] {
        let english = English { verbose };
        let sentences = std::iter::once(english.headline(finding))
            .chain(english.notes(finding))
            .chain(finding.parties.iter().flat_map(|party| [english.thread(party), english.action(party)]));
        for sentence in sentences {
            assert!(
                !sentence.is_empty() && !sentence.contains('\n') && !sentence.chars().any(unprintable),
                "{sentence:?}"
            );
            assert!(sentence.len() < 20_000, "{} bytes", sentence.len());
        }
        let text = render(finding, &mut sources, Style { verbose, ..Style::default() });
        assert!(!text.chars().any(unprintable), "{text:?}");
    }
    let list = std::slice::from_ref(finding);
    let listing = Listing::new(list, "/src");
    let english = English::default();
    for format in [sarif, junit, gitlab, github, gcc] {
        assert!(!format(&listing, &english).is_empty());
    }
}

#[test]
fn everything_that_can_be_said_is_said() {
    let sampler = Sampler { text: "balance", file: "/src/bank.c" };
    let check = |finding: &Finding| {
        // Some of the objects: all of them are said once, at the end.
        check(&Finding { objects: finding.objects.iter().take(3).cloned().collect(), ..finding.clone() });
    };
    for kind in Kind::ALL {
        for basis in sampler.bases() {
            check(&sampler.full(kind, basis, Default::default()));
        }
        for detail in sampler.details() {
            check(&sampler.full(kind, raddle_findings::Basis::rule(), detail));
        }
        for action in sampler.actions() {
            let parties = vec![sampler.party(action.clone()), sampler.party(action)];
            check(&Finding::new(kind, "x", raddle_findings::Basis::observed(), parties, Default::default()));
        }
    }
    self::check(&sampler.full(Kind::DataRace, raddle_findings::Basis::rule(), Default::default()));
}

/// What the property test meets only by chance.
#[test]
fn empty_and_very_long_names_are_said() {
    for text in [String::new(), " \u{3000}\n".to_owned(), "x".repeat(100_000)] {
        let sampler = Sampler { text: &text, file: &text };
        for kind in Kind::ALL {
            for detail in sampler.details() {
                let finding = sampler.full(kind, raddle_findings::Basis::rule(), detail);
                let english = English::default();
                assert!(!english.headline(&finding).trim().is_empty(), "{}", kind.name());
                assert!(english.headline(&finding).len() < 20_000);
            }
        }
        let detail = raddle_findings::Detail::Words { text: text.clone() };
        let mut finding = sampler.full(Kind::Deadlock, raddle_findings::Basis::rule(), detail);
        finding.objects.truncate(14);
        check(&finding);
    }
}

fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => any::<String>(),
        4 => "[\\x00-\\x7f]{0,40}",
        4 => "[\u{202a}-\u{202e}\u{2066}-\u{2069}\u{2028}\u{feff}a]{0,10}",
        2 => Just("]]>\"'&<!--\r\n`::error file=x::y\x1b[31m%0A".to_owned()),
        1 => Just("x\n".repeat(50_000)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn no_string_breaks_a_sentence(text in hostile(), file in hostile(), at in 0_usize..1000) {
        let sampler = Sampler { text: &text, file: &file };
        let (bases, details) = (sampler.bases(), sampler.details());
        let kind = Kind::ALL[at % Kind::ALL.len()];
        let (basis, detail) = (bases[at % bases.len()].clone(), details[at % details.len()].clone());
        let mut finding = sampler.full(kind, basis, detail);
        finding.objects.truncate(14);
        check(&finding);
    }
}
