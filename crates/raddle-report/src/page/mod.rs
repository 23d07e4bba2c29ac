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
mod explored;

use crate::picture::{Names, Pictures, Run, draw, lanes};
use crate::sources::Sources;
use crate::text::{count, name, printable, words};
use crate::wording::English;
use askama::Template;
use base64::Engine as _;
use details::Details;
use excerpt::Excerpt;
use explored::Explored;
use raddle_findings::file::Exploration;
use raddle_findings::{Finding, Grade, Kind, Wording};
use raddle_trace::schedule::Schedule;
use sha2::Digest as _;

/// Findings with a picture; the others are sentences with their commands.
pub const DRAWN_MAX: usize = 200;
/// Columns of the text lanes.
const COLUMNS: usize = 80;

/// A finding and what shows it.
pub struct Shown<'a> {
    pub finding: &'a Finding,
    pub schedule: Option<Schedule>,
    /// The recorded run that the finding was predicted from.
    pub observed: Option<Schedule>,
    /// Names of objects that the finding itself does not have.
    pub names: Names,
}

impl Shown<'_> {
    /// Names of the objects in the schedules.
    pub fn all_names(&self) -> Names {
        let mut names = Names::of(self.finding);
        names.extend(&self.names);
        names
    }

    /// The runs as pictures.
    pub fn draw(&self) -> Pictures {
        let run = |schedule| Run::new(schedule, self.all_names());
        let (erroneous, observed) = (self.schedule.as_ref().map(run), self.observed.as_ref().map(run));
        draw(self.finding, erroneous.as_ref(), observed.as_ref())
    }
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

/// What templates do with text.
mod filters {
    /// A sentence as HTML, with what stands between backticks as code.
    #[askama::filter_fn]
    pub fn prose(text: &str, _: &dyn askama::Values) -> askama::Result<String> {
        Ok(super::prose(text))
    }
}

fn prose(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    let mut code = false;
    // A last backtick without a partner stays what it is.
    let mut left = text.matches('`').count() / 2 * 2;
    for c in text.chars() {
        match c {
            '`' if left > 0 => {
                html.push_str(if code { "</code>" } else { "<code>" });
                code = !code;
                left -= 1;
            }
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
    }
    html
}

#[derive(Template)]
#[template(path = "page.html")]
struct Html {
    title: String,
    /// Without what marks code.
    plain_title: String,
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
    run_title: &'static str,
    steps: String,
    observed_steps: String,
    details: Details,
    excerpts: Vec<Excerpt>,
    help: String,
    open: bool,
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
            plain_title: self.title().replace('`', ""),
            style: STYLE,
            script: SCRIPT,
            policy: policy(),
            facts: self.facts(),
            counts: counts(&self.findings),
            kinds: kinds(&self.findings),
            not_shown: self.not_shown.iter().map(|text| words(text)).collect(),
            findings: sections,
            exploration: self.exploration.map(|exploration| explored::explored(exploration, &self.findings)),
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
    let drawn = number < DRAWN_MAX;
    let pictures = match drawn {
        true => shown.draw(),
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
    let details = if drawn { details::of(finding, shown.schedule.as_ref()) } else { Details::default() };
    let drawing = data::drawing(finding, &pictures, &places, &details.cycle);
    let (run_title, steps) = match shown.schedule {
        Some(_) => ("The erroneous run", count(pictures.erroneous.steps as u64, "step")),
        None => ("How it happens", "no schedule is stored: only what the finding itself knows".to_owned()),
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
        run_title,
        steps,
        observed_steps: pictures
            .observed
            .as_ref()
            .map_or_else(String::new, |picture| count(picture.steps as u64, "step")),
        details,
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
