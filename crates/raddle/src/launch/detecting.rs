//! Running a program under online detection and listening to what its runtime reports.

use super::{Launch, process};
use crate::compiler::Refusal;
use raddle_trace::collector::Collector;
use raddle_trace::file::meta::ProgramInfo;
use raddle_trace::region::{Message, MessageLevel, Region, RegionConfig};
use raddle_trace::report::{RawDependency, RawReport, decode, decode_dependencies};
use raddle_trace::tables::Module;
use raddle_wire::region::state;
use raddle_wire::report::REPORTS_MAX;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How the run ended.
pub struct Ended {
    pub status: ExitStatus,
    pub messages: Vec<Message>,
    /// Reports that found no room in the region.
    pub dropped: usize,
    pub threads: u32,
    /// Which locks were asked for while others were held.
    pub dependencies: Vec<RawDependency>,
    pub modules: Vec<Module>,
}

/// How often the region is looked into while the program runs.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs the program, and keeps a trace of it if there is a path for one; `hear` is told each report with the modules known by then, and says whether it is shown.
pub fn detect(
    launch: &Launch,
    config: &RegionConfig,
    trace: Option<&Path>,
    mut hear: impl FnMut(RawReport, &[Module]) -> bool,
) -> anyhow::Result<Ended> {
    let region = Region::create(config).map_err(|error| {
        Refusal(format!(
            "cannot create the memory shared with the program ({error}); raise or remove `ulimit -v`"
        ))
    })?;
    let region = Arc::new(region);
    let program = ProgramInfo {
        command: launch.words(),
        directory: std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default(),
    };
    let collector = trace.map(|path| Collector::start(Arc::clone(&region), path, program)).transpose()?;
    let running = process::start(launch, &region, false)?;
    let (done, is_done) = mpsc::channel();
    let waiting = std::thread::spawn(move || {
        let status = running.wait(None);
        // Nobody listens any more only if hearing failed.
        let _ = done.send(());
        status
    });
    let mut heard = 0;
    loop {
        let ended = is_done.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout);
        while heard < region.reports().min(REPORTS_MAX) {
            match region.report(heard) {
                Some(words) => {
                    let shown = hear(decode(&words), &modules(&region));
                    region.answer_report(heard, shown);
                }
                // Being written; if its writer is dead it never will be.
                None if !ended => break,
                None => {}
            }
            heard += 1;
        }
        if ended {
            break;
        }
    }
    let status = waiting.join().map_err(|_| anyhow::anyhow!("waiting for the program failed"))??;
    if let Some(collector) = collector {
        collector.finish(status)?;
    }
    check_attached(launch, &region)?;
    let header = region.header();
    Ok(Ended {
        status,
        messages: region.messages().0,
        dropped: region.reports().saturating_sub(REPORTS_MAX),
        threads: header.threads.load(Ordering::Relaxed),
        dependencies: decode_dependencies(&region.dependency_words()),
        modules: modules(&region),
    })
}

fn modules(region: &Region) -> Vec<Module> {
    let entries = (0..region.modules()).map(|ix| region.module(ix));
    entries
        .map(|entry| Module {
            path: String::from_utf8_lossy(&entry.path[..usize::from(entry.path_bytes)]).into_owned(),
            start: entry.start,
            end: entry.end,
            bias: entry.bias,
            build_id: entry.build_id[..usize::from(entry.build_id_bytes)].to_vec(),
        })
        .collect()
}

/// The runtime may have refused, or may never have been there.
fn check_attached(launch: &Launch, region: &Region) -> Result<(), Refusal> {
    match region.header().state.load(Ordering::Acquire) {
        state::REFUSED => {
            let (messages, _) = region.messages();
            let reason = messages
                .iter()
                .rev()
                .find(|message| message.level == MessageLevel::Error)
                .map_or("it does not say why", |message| message.text.as_str());
            Err(Refusal(format!("the runtime in {} gave up: {reason}", launch.program.display())))
        }
        state::NONE => Err(Refusal(format!(
            "no instrumented program was run by {}, so nothing was looked at; build it with `raddle cc`",
            launch.program.display()
        ))),
        _ => Ok(()),
    }
}
