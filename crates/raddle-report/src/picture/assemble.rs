//! From evidence to pictures.

use super::choose::{Reasons, choose};
use super::order::{Interval, Link, edges, lost_signals, spans};
use super::run::{Run, RunStep, Spot};
use super::{
    Act, Edge, LANES_MAX, Lane, Line, Mark, Picture, ROWS_MAX, Row, Span, difference, ending, words,
};
use crate::text::name;
use crate::wording::held as held_words;
use raddle_findings::{Finding, Kind, Party, Thread};
use std::collections::{BTreeSet, HashMap};

/// The erroneous run, and the recorded one where it was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pictures {
    pub erroneous: Picture,
    pub observed: Option<Picture>,
}

/// Draws a finding along its schedule. Without one, the picture shows what the finding itself knows.
pub fn draw(finding: &Finding, run: Option<&Run<'_>>, observed: Option<&Run<'_>>) -> Pictures {
    let Some(run) = run else {
        return Pictures { erroneous: without_schedule(finding), observed: None };
    };
    let marks = observed.map_or_else(|| vec![Mark::Plain; run.steps.len()], |it| difference::marks(run, it));
    let (spans, links) = (spans(run), edges(run));
    let parties: Vec<usize> = distinct(
        finding.parties.iter().take(ending::PARTIES_MAX).filter_map(|party| run.thread(&party.thread.path)),
    );
    let objects: Vec<String> = finding.objects.iter().filter_map(|object| object.name.clone()).collect();
    let reasons =
        Reasons { parties: &parties, objects: &objects, spans: &spans, links: &links, marks: &marks };
    let chosen = choose(run, &reasons);
    let mut sheet = Sheet::new(&finding.parties, run, &chosen);
    sheet.steps(&chosen, &marks);
    for moment in ending::moments(finding) {
        let is_shown = matches!(*moment, [party] if sheet.is_a_step(finding, party));
        if !is_shown {
            sheet.moment(finding, &moment);
        }
    }
    sheet.stretches(&spans);
    sheet.links(&links);
    if finding.kind == Kind::MissedSignal {
        sheet.lost(&lost_signals(run));
    }
    ending::decorate(finding, &sheet.picture.rows, &mut sheet.picture.spans, &mut sheet.picture.edges);
    let erroneous = sheet.picture;
    let observed = observed.map(|observed| recorded(finding, run, &chosen, &marks, observed));
    Pictures { erroneous, observed: observed.filter(|picture| !picture.is_empty()) }
}

/// A run that nothing is said about: its first steps, up to this number.
pub fn whole(run: &Run<'_>, steps_max: usize) -> Picture {
    let shown: BTreeSet<usize> = (0..run.steps.len().min(steps_max)).collect();
    let mut sheet = Sheet::new(&[], run, &shown);
    sheet.steps(&shown, &vec![Mark::Plain; run.steps.len()]);
    sheet.stretches(&spans(run));
    sheet.links(&edges(run));
    sheet.picture
}

fn distinct(numbers: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut list: Vec<usize> = Vec::new();
    for number in numbers {
        if !list.contains(&number) {
            list.push(number);
        }
    }
    list
}

/// The recorded run beside the erroneous one: the same steps, in the order in which they were recorded, and what the erroneous
/// run never completes.
fn recorded(
    finding: &Finding,
    run: &Run<'_>,
    chosen: &BTreeSet<usize>,
    marks: &[Mark],
    observed: &Run<'_>,
) -> Picture {
    let mut wanted: HashMap<(&str, u32), Mark> = HashMap::new();
    for &at in chosen {
        let step = &run.steps[at];
        wanted.insert((run.threads[step.thread], step.ordinal), marks[at]);
    }
    for block in &run.blocks {
        wanted.insert((run.threads[block.thread], block.ordinal), Mark::Error);
    }
    let mut same: Vec<Mark> = Vec::with_capacity(observed.steps.len());
    let mut shown = BTreeSet::new();
    for (at, step) in observed.steps.iter().enumerate() {
        let found = wanted.get(&(observed.threads[step.thread], step.ordinal)).copied();
        same.push(found.unwrap_or_default());
        if found.is_some() && shown.len() < ROWS_MAX + run.blocks.len() {
            shown.insert(at);
        }
    }
    let mut sheet = Sheet::new(&finding.parties, observed, &shown);
    let mut stops: HashMap<(&str, u32), usize> = HashMap::new();
    for stop in &run.schedule.stops {
        let thread = run.schedule.name(stop.thread);
        if let Some(party) = finding.parties.iter().position(|party| party.thread.path == thread) {
            stops.insert((thread, stop.after), party);
        }
    }
    sheet.accesses =
        stops.into_iter().map(|((path, after), party)| (path.to_owned(), after, party)).collect();
    sheet.finding = Some(finding);
    sheet.steps(&shown, &same);
    sheet.stretches(&spans(observed));
    sheet.links(&edges(observed));
    sheet.picture
}

/// A picture that is being drawn.
struct Sheet<'a> {
    run: &'a Run<'a>,
    picture: Picture,
    /// Lane of each thread of the run.
    lane: Vec<Option<usize>>,
    /// Row of each step that is shown, by step, and the rows of folds by their first step.
    row: Vec<(usize, usize)>,
    /// The party's access comes after this step of the thread (recorded run only).
    accesses: Vec<(String, u32, usize)>,
    finding: Option<&'a Finding>,
}

impl<'a> Sheet<'a> {
    fn new(parties: &[Party], run: &'a Run<'a>, chosen: &BTreeSet<usize>) -> Sheet<'a> {
        let parties: Vec<&Thread> = parties.iter().map(|party| &party.thread).collect();
        let mut wanted: Vec<&str> = parties.iter().map(|thread| thread.path.as_str()).collect();
        wanted.extend(chosen.iter().map(|&at| run.threads[run.steps[at].thread]));
        let mut paths: Vec<&str> = Vec::new();
        for path in wanted {
            if paths.len() < LANES_MAX && !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths.sort_by_key(|path| natural(path));
        let lanes: Vec<Lane> = paths.iter().map(|path| lane(path, &parties)).collect();
        let lane = run.threads.iter().map(|thread| paths.iter().position(|path| path == thread)).collect();
        let unnamed = parties.iter().filter(|thread| run.thread(&thread.path).is_none()).count();
        let lanes_left_out = (run.threads.len() + unnamed).saturating_sub(lanes.len());
        let picture = Picture { lanes, lanes_left_out, steps: run.steps.len(), ..Picture::default() };
        Sheet { run, picture, lane, row: Vec::new(), accesses: Vec::new(), finding: None }
    }

    /// The chosen steps that have a lane, and folds between them.
    fn steps(&mut self, chosen: &BTreeSet<usize>, marks: &[Mark]) {
        let mut next = 0;
        for &at in chosen {
            let step = self.run.steps[at];
            let Some(lane) = self.lane[step.thread] else { continue };
            self.fold(next, at);
            self.row.push((at, self.picture.rows.len()));
            let act = self.act(&step, at, lane, marks[at]);
            self.picture.rows.push(Row::Acts(vec![act]));
            next = at + 1;
            self.access(&step);
        }
        self.fold(next, self.run.steps.len());
    }

    /// The access of a party that comes after this step.
    fn access(&mut self, step: &RunStep) {
        let path = self.run.threads[step.thread];
        let found = self.accesses.iter().find(|(thread, after, _)| thread == path && *after == step.ordinal);
        if let (Some(&(_, _, party)), Some(finding)) = (found, self.finding) {
            self.moment(finding, &[party]);
        }
    }

    fn fold(&mut self, from: usize, to: usize) {
        if from < to {
            self.row.push((from, self.picture.rows.len()));
            self.picture.rows.push(Row::Fold(to - from));
        }
    }

    fn act(&self, step: &RunStep, at: usize, lane: usize, mark: Mark) -> Act {
        let words = words::step(step.kind, self.run.object(step.object), step.failed);
        Act { lane, number: Some(at + 1), words, spot: self.run.spot(step), mark, ..Act::default() }
    }

    /// Marks the step that is this party's part in the error, if the run has it: a signal that nobody waits for is where it was
    /// sent, and not at the end.
    fn is_a_step(&mut self, finding: &Finding, number: usize) -> bool {
        if finding.kind != Kind::MissedSignal {
            return false;
        }
        let party = &finding.parties[number];
        let lane = self.picture.lanes.iter().position(|lane| lane.path == party.thread.path);
        let is_it = |act: &Act| {
            let step = act.number.map(|number| self.run.steps[number - 1].kind);
            Some(act.lane) == lane
                && act.party.is_none()
                && act.spot.short() == Spot::of_stack(&party.stack).short()
                && step.is_some_and(|kind| ending::is_step(party, kind))
        };
        let acts = self.picture.rows.iter_mut().rev().filter_map(|row| match row {
            Row::Acts(acts) => Some(acts),
            Row::Fold(_) => None,
        });
        let Some(act) = acts.flatten().find(|act| is_it(act)) else { return false };
        let said = ending::act(party, number, act.lane);
        *act = Act { number: act.number, spot: act.spot.clone(), ..said };
        true
    }

    /// Parties at one moment. Those without a lane are left out.
    fn moment(&mut self, finding: &Finding, parties: &[usize]) {
        let acts: Vec<Act> = parties
            .iter()
            .filter_map(|&number| {
                let party = &finding.parties[number];
                let lane = self.picture.lanes.iter().position(|lane| lane.path == party.thread.path)?;
                Some(ending::act(party, number, lane))
            })
            .collect();
        if !acts.is_empty() {
            self.picture.rows.push(Row::Acts(acts));
        }
    }

    /// The row in which a step is, shown or folded.
    fn row_of(&self, step: usize) -> usize {
        let after = self.row.partition_point(|&(first, _)| first <= step);
        after.checked_sub(1).map_or(0, |at| self.row[at].1)
    }

    /// The row of a step that is shown.
    fn shown(&self, step: usize) -> Option<usize> {
        let row = self.row_of(step);
        let number = self.picture.rows.get(row)?.acts().first()?.number?;
        (number == step + 1).then_some(row)
    }

    fn stretches(&mut self, intervals: &[Interval]) {
        let last = self.picture.rows.len().saturating_sub(1);
        for interval in intervals {
            let Some(lane) = self.lane[interval.thread] else { continue };
            let from = interval.from.map_or(0, |step| self.row_of(step));
            let to = interval.to.map_or(last, |step| self.row_of(step));
            let open = interval.to.is_none();
            // What begins and ends inside a fold is folded too.
            if from == to && !open {
                continue;
            }
            let what = name(self.run.object(interval.what));
            self.picture.spans.push(Span { lane, stretch: interval.stretch, what, from, to, open });
        }
    }

    fn links(&mut self, links: &[Link]) {
        for link in links {
            let (Some(from), Some(to)) = (self.shown(link.from), self.shown(link.to)) else { continue };
            let lanes =
                (self.lane[self.run.steps[link.from].thread], self.lane[self.run.steps[link.to].thread]);
            if let (Some(one), Some(other)) = lanes {
                let why = link.why.words(self.run.object(self.run.steps[link.to].object));
                self.picture.edges.push(Edge {
                    from: (from, one),
                    to: (to, other),
                    line: Line::Ordered,
                    why,
                });
            }
        }
    }

    fn lost(&mut self, signals: &[usize]) {
        for &signal in signals {
            let (Some(row), Some(lane)) = (self.shown(signal), self.lane[self.run.steps[signal].thread])
            else {
                continue;
            };
            let why = "nobody waits: the signal is lost".to_owned();
            self.picture.edges.push(Edge { from: (row, lane), to: (row, lane), line: Line::Lost, why });
        }
    }
}

/// `1.10` comes after `1.9`.
fn natural(path: &str) -> Vec<(u64, String)> {
    path.split('.').map(|part| (part.parse().unwrap_or(u64::MAX), part.to_owned())).collect()
}

fn lane(path: &str, parties: &[&Thread]) -> Lane {
    let known = parties.iter().find(|thread| thread.path == path && !path.is_empty());
    let about = known.and_then(|thread| thread.name.clone().or_else(|| thread.entry.clone()));
    let about = about.unwrap_or_else(|| if path == "1" { "main".to_owned() } else { String::new() });
    Lane { path: name(path), about: name(&about) }
}

/// What the finding alone knows: who created the threads, where locks were acquired, and the parties.
fn without_schedule(finding: &Finding) -> Picture {
    let parties: Vec<&Thread> = finding.parties.iter().map(|party| &party.thread).collect();
    let mut paths: Vec<&str> = Vec::new();
    let creators = finding.parties.iter().filter_map(|party| Some(party.created.as_ref()?.by.path.as_str()));
    for path in parties.iter().map(|thread| thread.path.as_str()).chain(creators) {
        if paths.len() < LANES_MAX && !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths.sort_by_key(|path| natural(path));
    let at = |path: &str| paths.iter().position(|known| *known == path);
    let mut picture =
        Picture { lanes: paths.iter().map(|path| lane(path, &parties)).collect(), ..Picture::default() };
    let threads: BTreeSet<&str> = parties.iter().map(|thread| thread.path.as_str()).collect();
    picture.lanes_left_out = threads.iter().filter(|path| at(path).is_none()).count();
    let act = |lane, words, spot, mark| Act { lane, words, spot, mark, ..Act::default() };
    let mut created: BTreeSet<&str> = BTreeSet::new();
    for party in finding.parties.iter().take(ending::PARTIES_MAX) {
        let Some(creation) = &party.created else { continue };
        if let Some(lane) = at(&creation.by.path).filter(|_| created.insert(&party.thread.path)) {
            let words = format!("creates thread {}", name(&party.thread.path));
            let spot = Spot::of_stack(&creation.stack);
            picture.rows.push(Row::Acts(vec![act(lane, words, spot, Mark::Plain)]));
        }
    }
    for moment in ending::moments(finding) {
        for &number in &moment {
            let party = &finding.parties[number];
            let Some(lane) = at(&party.thread.path) else { continue };
            for held in &party.locks {
                let what = held.lock.name.clone().unwrap_or_else(|| held_words(held));
                let known = |span: &Span| span.lane == lane && span.what == name(&what);
                if picture.spans.iter().any(known) {
                    continue;
                }
                let read = held.read;
                let kind = if read { super::Stretch::HoldsForReading } else { super::Stretch::Holds };
                let from = picture.rows.len();
                picture.spans.push(Span {
                    lane,
                    stretch: kind,
                    what: name(&what),
                    from,
                    to: from,
                    open: true,
                });
                let words = format!("locks {}{}", name(&what), if read { " for reading" } else { "" });
                let spot = Spot::of_stack(&held.acquired);
                picture.rows.push(Row::Acts(vec![act(lane, words, spot, Mark::Plain)]));
            }
        }
        let acts: Vec<Act> = moment
            .iter()
            .filter_map(|&number| {
                let party = &finding.parties[number];
                Some(ending::act(party, number, at(&party.thread.path)?))
            })
            .collect();
        if !acts.is_empty() {
            picture.rows.push(Row::Acts(acts));
        }
    }
    let last = picture.rows.len().saturating_sub(1);
    for span in &mut picture.spans {
        span.to = last;
    }
    ending::decorate(finding, &picture.rows, &mut picture.spans, &mut picture.edges);
    picture
}
