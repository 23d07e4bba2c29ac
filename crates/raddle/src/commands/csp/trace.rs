//! `raddle csp trace`: a process step by step, from its start or from the end of a counterexample.

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

use raddle_csp::engine::check::components;
use raddle_csp::engine::walk::Walk;
use raddle_csp::engine::{Component, Step, render};
use raddle_csp::lang::session::Script;
use raddle_csp::process::EventId;
use serde_json::json;

use super::{Effort, load, options, refuse};
use crate::commands::{Ctx, Exit};

#[derive(clap::Args)]
pub(super) struct TraceArgs {
    /// The script.
    file: PathBuf,
    /// The process: an expression in the scope of the script.
    #[arg(required_unless_present = "number", conflicts_with = "number")]
    process: Option<String>,
    /// Start at the end of the counterexample of the assertion with this number, counted from 1.
    #[arg(long = "assert", value_name = "N")]
    number: Option<usize>,
    #[command(flatten)]
    effort: Effort,
    /// Print one JSON document a step instead of text.
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
  NUMBER       take the step with this number
  EVENT        take a step that does this event, or a hidden step in which a component does it
  u, undo      take back the last step
  r, restart   go to the start
  a, accept    what may be offered after the events so far, whatever hidden steps come next
  c, state     the state of each component
  p, path      the steps taken, hidden ones with what the components did
  h, help      this list
  q, quit      end
An event that is possible comes before the commands a, c, p and h; write those in full then.
";

pub(super) fn trace(args: TraceArgs, ctx: &Ctx) -> anyhow::Result<Exit> {
    let Some(mut script) = load(&args.file, args.json, ctx) else { return Ok(Exit::Trouble) };
    let options = options(&args.effort, None)?;
    let mut start: Vec<Step> = Vec::new();
    let found = match (&args.process, args.number) {
        (Some(text), _) => script.process(text),
        (None, number) => {
            let count = script.assertions().len();
            let Some(index) = number.and_then(|n| n.checked_sub(1)).filter(|&i| i < count) else {
                anyhow::bail!("{} has {count} assertions", args.file.display());
            };
            let subject = script.subject(index).and_then(|process| {
                let outcome = script.check(index, &options)?;
                Ok((process, outcome.counterexamples.into_iter().next()))
            });
            subject.map_err(|diagnostic| vec![diagnostic]).map(|(process, counterexample)| {
                match counterexample {
                    Some(counterexample) => start = counterexample.path,
                    None if !ctx.quiet => eprintln!("raddle: the assertion has no counterexample"),
                    None => {}
                }
                process
            })
        }
    };
    let process = match found {
        Ok(process) => process,
        Err(diagnostics) => return refuse(&script, &args.file, &diagnostics, args.json, ctx),
    };
    let model = match script.with_checker(&options, |c| c.compile(process)) {
        Ok(model) => model,
        Err(error) => {
            let diagnostic = script.explain(error, script.start());
            return refuse(&script, &args.file, &[diagnostic], args.json, ctx);
        }
    };
    let parts = components(&model);
    let mut walk = Walk::new(&model);
    if !walk.follow(&start) && !ctx.quiet {
        eprintln!("raddle: the counterexample is of another process; starting at the beginning");
    }
    let prompt = std::io::stdin().is_terminal();
    let mut input = std::io::stdin().lock().lines();
    let mut show = true;
    loop {
        let offers = walk.offers();
        if args.json && show {
            let shown: Vec<String> = offers.iter().map(|s| script.event_name(s.event)).collect();
            let done: Vec<String> = walk.trace().iter().map(|&e| script.event_name(e)).collect();
            let hidden: Vec<String> = offers.iter().map(|s| inside(&script, &parts, s)).collect();
            println!(
                "{}",
                json!({ "trace": done, "offers": shown, "parts": hidden, "terminated": walk.is_terminated() })
            );
        } else if show {
            show_offers(&script, &parts, &walk, &offers);
        }
        show = true;
        if prompt {
            print!("step, event, h(elp)> ");
            std::io::stdout().flush()?;
        }
        let Some(line) = input.next() else { break };
        let line = line?;
        // Events may have the names of the short commands; what can happen comes first.
        let event = named(&script, &offers, line.trim()).is_some();
        match line.trim() {
            "q" | "quit" => break,
            "h" | "help" | "?" if !event => {
                print!("{HELP}");
                show = false;
            }
            "u" | "undo" => {
                if !walk.undo() {
                    eprintln!("already at the start");
                }
            }
            "r" | "restart" => while walk.undo() {},
            "a" | "accept" if !event => {
                show_acceptances(&script, &walk);
                show = false;
            }
            "c" | "state" if !event => {
                for (part, state) in parts.iter().zip(walk.component_states()) {
                    println!("  {}: state {state} of {}", part.name, part.states);
                }
                show = false;
            }
            "p" | "path" if !event => {
                for (i, step) in walk.steps().iter().enumerate() {
                    println!(
                        "  {:>3}  {}{}",
                        i + 1,
                        script.event_name(step.event),
                        inside(&script, &parts, step)
                    );
                }
                show = false;
            }
            "" => {}
            choice => {
                let number = choice.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
                if !number.or_else(|| named(&script, &offers, choice)).is_some_and(|n| walk.take(n)) {
                    eprintln!("`{choice}` is not possible here; `h` lists what can be typed");
                }
            }
        }
    }
    Ok(Exit::Clean)
}

/// The step that does an event, or else a hidden one in which a component does it.
fn named(script: &Script, offers: &[Step], name: &str) -> Option<usize> {
    let visible = offers.iter().position(|s| script.event_name(s.event) == name);
    visible.or_else(|| {
        let hidden =
            |s: &Step| s.event == EventId::TAU && s.parts.iter().any(|&(_, e)| script.event_name(e) == name);
        offers.iter().position(hidden)
    })
}

/// Who does what in a step.
fn inside(script: &Script, parts: &[Component], step: &Step) -> String {
    let own: Vec<String> =
        step.parts.iter().map(|&(c, e)| format!("{}: {}", parts[c].name, script.event_name(e))).collect();
    if own.is_empty() || (parts.len() == 1 && step.event.is_visible()) {
        String::new()
    } else {
        format!("  ({})", own.join(", "))
    }
}

fn show_offers(script: &Script, parts: &[Component], walk: &Walk<'_>, offers: &[Step]) {
    println!("{}", render::folded_trace(&script.arena().events, &walk.trace()));
    if offers.is_empty() {
        println!("  {}", if walk.is_terminated() { "terminated" } else { "deadlock: nothing is possible" });
    }
    for (i, step) in offers.iter().enumerate() {
        println!("  {:>3}  {}{}", i + 1, script.event_name(step.event), inside(script, parts, step));
    }
}

fn show_acceptances(script: &Script, walk: &Walk<'_>) {
    let sets = walk.acceptances();
    if sets.is_empty() {
        println!("  no stable state can be reached by hidden steps");
    }
    for set in sets {
        let names: Vec<String> = set.iter().map(|&e| script.event_name(e)).collect();
        println!("  {{{}}}", names.join(", "));
    }
}
