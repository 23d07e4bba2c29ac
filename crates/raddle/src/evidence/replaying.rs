//! From a schedule's head to the program that is run.

use crate::compiler::{Refusal, single};
use crate::launch::identity::Identity;
use crate::launch::input::StandardInput;
use crate::launch::probes::Probes;
use crate::launch::{Compiled, Launch, inspect};
use raddle_findings::Store;
use raddle_trace::schedule::{Head, Schedule};
use std::path::{Path, PathBuf};

/// A program that a schedule names.
pub struct Replayed {
    pub launch: Launch,
    /// Is it the program that the schedule was made with?
    pub same_program: bool,
}

/// What to do about source files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebuild {
    /// Compile them anew, so that a change is noticed.
    IfSourcesAreThere,
    /// Run what was built.
    No,
}

/// The folder that relative paths of a schedule start from.
pub fn root_of(schedule: &Path) -> PathBuf {
    match Store::of_file(schedule) {
        Some(store) => store.root(),
        None => std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
    }
}

/// The program of a schedule, ready to be run as the schedule wants it.
pub fn launch(schedule: &Schedule, root: &Path, rebuild: Rebuild) -> anyhow::Result<Replayed> {
    let head = &schedule.head;
    if head.program.is_empty() {
        return Err(Refusal(
            "the schedule does not say which program it belongs to; name it behind `--`, or its source files"
                .into(),
        )
        .into());
    }
    let sources: Vec<PathBuf> = head.sources.iter().map(|source| root.join(source)).collect();
    let sources_are_there = !sources.is_empty() && sources.iter().all(|source| source.exists());
    let program = match rebuild {
        Rebuild::IfSourcesAreThere if sources_are_there => {
            single::build(&sources, &head.flags, Some(&head.compiler))?
        }
        _ => root.join(&head.program),
    };
    if !program.exists() {
        return Err(Refusal(match sources.first() {
            Some(source) => format!(
                "neither the program {} nor its source {} is there any more",
                program.display(),
                source.display()
            ),
            None => format!(
                "the program {} is not there any more; name it behind `--` if it has moved",
                program.display()
            ),
        })
        .into());
    }
    inspect::inspect(&program)?;
    let same_program = Identity::of(&program).fits(head);
    let compiled = (!sources.is_empty()).then(|| Compiled {
        sources,
        flags: head.flags.clone(),
        compiler: head.compiler.clone(),
    });
    let launch = Launch { program, preload: head.options.preload, compiled, ..Launch::default() };
    Ok(Replayed { launch: surround(launch, head, root)?, same_program })
}

/// Gives a program what the schedule's head says about its surroundings.
pub fn surround(launch: Launch, head: &Head, root: &Path) -> anyhow::Result<Launch> {
    let folder = root.join(&head.folder);
    if !head.folder.is_empty() && !folder.is_dir() {
        return Err(Refusal(format!(
            "the program ran in the folder {}, which is not there any more",
            folder.display()
        ))
        .into());
    }
    let probes = match head.aspects.is_empty() {
        true => launch.probes,
        false => Some(Probes::of_text(&head.aspects, &launch.program)?),
    };
    Ok(Launch {
        probes,
        arguments: head.arguments.iter().map(Into::into).collect(),
        folder: (!head.folder.is_empty()).then_some(folder),
        environment: head.environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        input: StandardInput::from_schedule(&head.input)?,
        fixed_addresses: launch.fixed_addresses || head.options.fixed_addresses || head.options.stable_memory,
        ..launch
    })
}
