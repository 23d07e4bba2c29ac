//! One HTML file that shows findings to somebody who has no Raddle.
//!
//! Everything is inside: style, script and data; the page asks nobody for anything, and its Content-Security-Policy forbids it to.
//! Only the script whose hash the policy names runs, so that even a name that slipped through the escaping could not.
//! Text is HTML (askama escapes it) and needs no script: each picture is there as text lanes. The script draws the same model
//! ([`crate::picture`]) as SVG when its finding is opened, so that a page of a thousand findings opens at once. Porcupine's
//! visualisation (one file, data as JSON inside, no library) is the example.
//!
//! Pages are bounded: [`DRAWN_MAX`] findings have pictures, excerpts are a few lines, stacks are cut.

mod data;
mod details;
mod excerpt;

use crate::picture::{Names, Pictures, Run, draw, lanes};
use crate::sources::Sources;
use crate::text::{count, name, printable, words};
use crate::wording::English;
use askama::Template;
use base64::Engine as _;
use details::Details;
use excerpt::Excerpt;
use raddle_findings::file::Exploration;
use raddle_findings::{Finding, Grade, Kind, Wording};
use raddle_trace::schedule::Schedule;
use sha2::Digest as _;

/// Findings with a picture; the others are sentences with their commands.
pub const DRAWN_MAX: usize = 200;
/// Columns of the text lanes.
const COLUMNS: usize = 80;
/// Outcomes of an exploration that are listed.
const OUTCOMES_MAX: usize = 50;

/// A finding and what shows it.
pub struct Shown<'a> {
    pub finding: &'a Finding,
    pub schedule: Option<Schedule>,
    /// The recorded run that the finding was predicted from.
    pub observed: Option<Schedule>,
}

/// What a page is made of.
pub struct Page<'a> {
    /// The command that found them.
    pub command: &'a str,
    /// The program and its arguments.
    pub program: &'a [String],
    pub findings: Vec<Shown<'a>>,
    pub exploration: Option<&'a Exploration>,
    /// What the findings do not speak of: one sentence each.
    pub not_shown: Vec<String>,
}

#[derive(Template)]
#[template(path = "page.html")]
struct Html {
    title: String,
    style: &'static str,
    script: &'static str,
    policy: String,
    facts: Vec<(&'static str, String)>,
    counts: Vec<(String, usize)>,
    kinds: Vec<(&'static str, usize)>,
    not_shown: Vec<String>,
    findings: Vec<Section>,
    exploration: Option<Explored>,
    data: String,
    version: &'static str,
}

struct Section {
    id: String,
    /// Id of the element: findings of a file may share an id.
    anchor: String,
    kind: &'static str,
    kind_title: String,
    grade: &'static str,
    headline: String,
    basis: String,
    notes: Vec<String>,
    commands: Vec<(&'static str, String)>,
    text: String,
    observed_text: String,
    steps: String,
    details: Details,
    excerpts: Vec<Excerpt>,
    help: String,
    open: bool,
}

struct Explored {
    claim: String,
    outcomes: Vec<(String, String, u64, u64, u64)>,
}

const STYLE: &str = include_str!("../../templates/page.css");
const SCRIPT: &str = include_str!("../../templates/page.js");

impl Page<'_> {
    /// The file's text.
    pub fn html(&self, sources: &mut Sources) -> String {
        let mut drawings = Vec::new();
        let mut sections = Vec::new();
        for (number, shown) in self.findings.iter().enumerate() {
            let (section, drawing) = section(shown, number, self.findings.len(), sources);
            sections.push(section);
            drawings.push(drawing);
        }
        let page = Html {
            title: self.title(),
            style: STYLE,
            script: SCRIPT,
            policy: policy(),
            facts: self.facts(),
            counts: counts(&self.findings),
            kinds: kinds(&self.findings),
            not_shown: self.not_shown.iter().map(|text| words(text)).collect(),
            findings: sections,
            exploration: self.exploration.map(explored),
            data: embedded(&drawings),
            version: env!("CARGO_PKG_VERSION"),
        };
        page.render().expect("a template over plain data renders into a string")
    }

    fn title(&self) -> String {
        let program = self.program.first().map_or("", String::as_str);
        let program = program.rsplit('/').next().unwrap_or(program);
        let number = u64::try_from(self.findings.len()).unwrap_or(u64::MAX);
        match (self.findings.as_slice(), program) {
            ([one], _) => English::default().headline(one.finding),
            (_, "") => count(number, "finding"),
            (_, program) => format!("{} in {}", count(number, "finding"), name(program)),
        }
    }

    /// What was looked at: from the command and from the heads of the schedules, where they agree.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        let mut fact = |what, mut values: Vec<String>| {
            values.retain(|value| !value.is_empty());
            values.dedup();
            let more = values.len().saturating_sub(3);
            values.truncate(3);
            if more > 0 {
                values.push(format!("and {more} more"));
            }
            if !values.is_empty() {
                facts.push((what, printable(&values.join(", "))));
            }
        };
        let heads = || self.findings.iter().filter_map(|shown| Some(&shown.schedule.as_ref()?.head));
        let program = match self.program {
            [] => heads().map(|head| head.program.clone()).collect(),
            program => vec![program.iter().map(|word| name(word)).collect::<Vec<_>>().join(" ")],
        };
        fact("program", program);
        fact("found by", vec![format!("raddle {}", self.command)]);
        fact("sources", heads().map(|head| head.sources.join(" ")).collect());
        fact("build-id", heads().map(|head| head.build_id.clone()).collect());
        fact(
            "compiler",
            heads()
                .map(|head| format!("{} {}", head.compiler, head.flags.join(" ")).trim().to_owned())
                .collect(),
        );
        let seeds = heads().filter(|head| head.seed != 0).map(|head| head.seed.to_string());
        fact("seed", seeds.collect());
        facts
    }
}

/// Only our own script runs, and nothing is fetched.
fn policy() -> String {
    let hash = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(SCRIPT.as_bytes()));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
}

/// JSON inside a script element: nothing in it may end the element or begin a comment.
fn embedded(drawings: &[data::Drawing]) -> String {
    let text = serde_json::to_string(drawings).expect("plain data");
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn counts(findings: &[Shown<'_>]) -> Vec<(String, usize)> {
    let of = |grade| findings.iter().filter(|shown| shown.finding.grade() == grade).count();
    Grade::ALL.into_iter().map(|grade| (grade.name().to_owned(), of(grade))).filter(|(_, n)| *n > 0).collect()
}

fn kinds(findings: &[Shown<'_>]) -> Vec<(&'static str, usize)> {
    let of = |kind| findings.iter().filter(|shown| shown.finding.kind == kind).count();
    Kind::ALL.into_iter().map(|kind| (kind.name(), of(kind))).filter(|(_, n)| *n > 0).collect()
}

fn section(
    shown: &Shown<'_>,
    number: usize,
    findings: usize,
    sources: &mut Sources,
) -> (Section, data::Drawing) {
    let finding = shown.finding;
    let english = English::default();
    let run = |schedule: &'_ Option<Schedule>| schedule.is_some();
    let drawn = number < DRAWN_MAX;
    let pictures = match drawn {
        true => {
            let erroneous = shown.schedule.as_ref().map(|schedule| Run::new(schedule, Names::of(finding)));
            let observed = shown.observed.as_ref().map(|schedule| Run::new(schedule, Names::of(finding)));
            draw(finding, erroneous.as_ref(), observed.as_ref())
        }
        false => Pictures::default(),
    };
    let mut notes = english.notes(finding);
    let basis = if notes.is_empty() { String::new() } else { notes.remove(0) };
    let known: Vec<String> =
        shown.schedule.iter().flat_map(|schedule| schedule.head.sources.clone()).collect();
    let (excerpts, places) = match drawn {
        true => excerpt::excerpts(finding, &pictures, &known, sources, number),
        false => Default::default(),
    };
    let drawing = data::drawing(finding, &pictures, &places);
    let steps = match (pictures.erroneous.steps, run(&shown.schedule)) {
        (_, true) => format!("the schedule has {}", count(pictures.erroneous.steps as u64, "step")),
        (_, false) => "no schedule is stored: the picture shows what the finding itself knows".to_owned(),
    };
    let section = Section {
        id: printable(&finding.id),
        anchor: format!("f{number}"),
        kind: finding.kind.name(),
        kind_title: english.kind(finding.kind).title,
        grade: finding.grade().name(),
        headline: english.headline(finding),
        basis,
        notes,
        commands: commands(finding),
        text: lanes(&pictures.erroneous, COLUMNS),
        observed_text: pictures.observed.as_ref().map(|picture| lanes(picture, COLUMNS)).unwrap_or_default(),
        steps,
        details: if drawn { details::of(finding, shown.schedule.as_ref()) } else { Details::default() },
        excerpts,
        help: english.kind(finding.kind).help,
        open: findings <= 3,
    };
    (section, drawing)
}

/// What a reader may want to do about it.
fn commands(finding: &Finding) -> Vec<(&'static str, String)> {
    let id = printable(&finding.id);
    let mut commands = Vec::new();
    if finding.schedule.is_some() {
        commands.push(("make it happen again", format!("raddle replay {id}")));
        commands.push(("look at it in gdb", format!("raddle replay --gdb {id}")));
    }
    commands.push(("what this kind is", format!("raddle explain {}", finding.kind.name())));
    let function = finding
        .parties
        .iter()
        .filter_map(|party| raddle_findings::headline_frame(&party.stack)?.function.as_deref())
        .find(|function| function.chars().all(|c| c.is_ascii_graphic() && !"'\"*$^".contains(c)));
    if let Some(function) = function {
        let line = format!("echo '{}:{function}' >> raddle.supp", finding.kind.name());
        commands.push(("suppress it (then use --suppressions raddle.supp)", line));
    }
    commands
}

fn explored(exploration: &Exploration) -> Explored {
    let mut claim = format!("{} were made", count(exploration.runs, "run"));
    if let Some(schedules) = exploration.schedules {
        claim.push_str(&format!(" with {}", count(schedules, "distinct schedule")));
    }
    let failing: u64 = exploration
        .outcomes
        .iter()
        .filter(|outcome| outcome.finding.is_some())
        .map(|outcome| outcome.count)
        .sum();
    match failing {
        0 => claim.push_str("; none of them failed, which says nothing about schedules that were not run"),
        _ => claim.push_str(&format!("; {failing} of them failed")),
    }
    let outcomes = exploration.outcomes.iter().take(OUTCOMES_MAX).map(|outcome| {
        let mut ending = words(&outcome.ending.to_string());
        if !outcome.stdout.is_empty() {
            ending.push_str(&format!(", printed {}", name(outcome.stdout.trim_end())));
        }
        let finding = outcome.finding.clone().map(|id| name(&id)).unwrap_or_default();
        (ending, finding, outcome.count, outcome.first_run, outcome.seed)
    });
    Explored { claim, outcomes: outcomes.collect() }
}
