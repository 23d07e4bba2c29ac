//! Aspects of a program that is about to be started: the plan of its probes, made once and kept.
//!
//! A plan depends on the code of the program and of its libraries, and on the text of the aspects. It lies in the cache folder under a name
//! made of both, so that the many runs of a hunt, and every later one of the same build, find it there.

use crate::compiler::Refusal;
use crate::runtime_files::RuntimeFiles;
use anyhow::Context;
use object::{Object, ObjectSection};
use raddle_probe::aspect::{Diagnostic, File, parse};
use raddle_probe::locate::{Locator, Module};
use raddle_probe::plan::plan;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The events of one program.
#[derive(Clone, Debug)]
pub struct Probes {
    /// What the user wrote.
    pub aspects: String,
    /// The file that the runtime reads.
    pub plan: PathBuf,
    /// Names of events that may be missing at times, or carry other values than the program passes: nothing is confirmed by them.
    pub doubtful: Vec<String>,
}

/// Part of the name of a plan: grows when the planner changes.
const PLANNER_VERSION: u32 = 3;

/// Before each line of a model, in texts that hold both.
const MODEL: &str = "model ";

/// What the user wrote, apart.
struct Source {
    name: String,
    text: String,
}

impl Source {
    fn read(path: Option<&Path>) -> Result<Source, Refusal> {
        let Some(path) = path else { return Ok(Source { name: String::new(), text: String::new() }) };
        let bytes = std::fs::read(path)
            .map_err(|error| Refusal(format!("cannot read {}: {error}", path.display())))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Refusal(format!("{} is not UTF-8 from byte {at} on", path.display()))
        })?;
        Ok(Source { name: path.display().to_string(), text })
    }

    fn show(&self, diagnostic: &Diagnostic) {
        eprintln!("{}\n", diagnostic.render(&self.name, &self.text, std::io::stderr().is_terminal()));
    }

    /// The aspects, if there are no mistakes.
    fn parsed(&self) -> Result<File, Refusal> {
        let parsed = parse(&self.text);
        parsed.diagnostics.iter().for_each(|diagnostic| self.show(diagnostic));
        match parsed.has_errors() {
            true => Err(Refusal(format!("{} has errors; nothing was run", self.name))),
            false => Ok(parsed.file),
        }
    }
}

impl Probes {
    /// Aspects and models in files, if there are any, and the ready models that the program needs. Mistakes in files are shown, and what
    /// applies nowhere.
    pub fn of_files(
        aspects: Option<&Path>,
        models: Option<&Path>,
        ready: &str,
        program: &Path,
    ) -> anyhow::Result<Option<Probes>> {
        let named = aspects.is_some() || models.is_some();
        if !named && ready.is_empty() {
            return Ok(None);
        }
        let planned = Probes::planned(&Source::read(aspects)?, &Source::read(models)?, ready, program, named);
        match planned {
            // Nobody asked for them.
            Err(error) if !named => {
                eprintln!("raddle: warning: models of libraries are not used: {error:#}");
                Ok(None)
            }
            planned => planned.map(Some),
        }
    }

    /// Aspects and models that a schedule holds.
    pub fn of_text(text: &str, program: &Path) -> anyhow::Result<Probes> {
        let name = "the schedule".to_owned();
        let lines = |models: bool| {
            let wanted = text.lines().filter(|line| line.starts_with(MODEL) == models);
            let lines: Vec<&str> = wanted.map(|line| line.strip_prefix(MODEL).unwrap_or(line)).collect();
            Source { name: name.clone(), text: lines.join("\n") }
        };
        Probes::planned(&lines(false), &lines(true), "", program, false)
    }

    fn planned(
        aspects: &Source,
        models: &Source,
        ready: &str,
        program: &Path,
        tells: bool,
    ) -> anyhow::Result<Probes> {
        let (own, mut modelled) = (aspects.parsed()?, models.parsed()?);
        let told = modelled.aspects().count();
        modelled.lines.extend(parse(ready).file.lines);
        let mut text = aspects.text.clone();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.extend(models.text.lines().chain(ready.lines()).map(|line| format!("{MODEL}{line}\n")));
        let modules = modules_of(program)?;
        let folder = RuntimeFiles::unpack()?.folder().join("probes");
        let path = folder.join(format!("{:016x}.plan", key(&text, &modules)));
        let doubts = path.with_extension("doubts");
        if !path.exists() || !doubts.exists() || tells {
            let locator = Locator::new(&modules);
            let made = plan(&own, &modelled, &modules, &locator);
            let first = own.aspects().count();
            for (number, note) in made.notes.iter().filter(|_| tells) {
                let (source, aspect) = match number.checked_sub(first) {
                    None => (aspects, own.aspects().nth(*number)),
                    Some(number) => (models, modelled.aspects().take(told).nth(number)),
                };
                if let Some(aspect) = aspect {
                    source.show(&Diagnostic::warning(&aspect.target.span, &note.message, &note.help));
                }
            }
            let doubtful = made.notes.iter().filter(|(_, note)| note.is_doubt);
            let mut names: Vec<&str> = doubtful
                .filter_map(|(number, _)| Some(own.aspects().nth(*number)?.event.name.as_str()))
                .collect();
            names.sort_unstable();
            names.dedup();
            keep(&folder, &doubts, names.join("\n").as_bytes())?;
            let bytes: Vec<u8> = made.words.iter().flat_map(|word| word.to_le_bytes()).collect();
            keep(&folder, &path, &bytes)?;
        }
        let doubtful =
            std::fs::read_to_string(&doubts).with_context(|| format!("cannot read {}", doubts.display()))?;
        let doubtful = doubtful.lines().map(str::to_owned).collect();
        Ok(Probes { aspects: text, plan: path, doubtful })
    }
}

/// Written under another name first: somebody may be reading it.
fn keep(folder: &Path, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let told = || format!("cannot keep the plan of the probes in {}", folder.display());
    std::fs::create_dir_all(folder).with_context(told)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).with_context(told)?;
    file.write_all(bytes).with_context(told)?;
    file.persist(path).with_context(told)?;
    Ok(())
}

/// What the plan depends on.
fn key(text: &str, modules: &[Module]) -> u64 {
    use raddle_wire::step::{HASH_START, hash};
    let mut state = hash(HASH_START, &PLANNER_VERSION.to_le_bytes());
    state = hash(state, text.as_bytes());
    for module in modules {
        state = hash(state, module.path.as_os_str().as_encoded_bytes());
        // A build without an identity of its own may change under one name.
        let build = module.build_id().unwrap_or_else(|| {
            let changed = std::fs::metadata(&module.path).and_then(|about| about.modified()).ok();
            format!("{changed:?}").into_bytes()
        });
        state = hash(state, &build);
    }
    state
}

/// The program and the libraries that it loads when it starts.
pub fn modules_of(program: &Path) -> anyhow::Result<Vec<Module>> {
    let open = |path: &Path| {
        let module = Module::open(path)
            .map_err(|error| Refusal(format!("cannot read {}: {error}", path.display())))?;
        if let Err(reason) = module.image() {
            return Err(Refusal(format!(
                "{}: {reason}; aspects are for programs of 64-bit x86",
                path.display()
            )));
        }
        Ok(module)
    };
    let mut modules = vec![open(program)?];
    for library in libraries(program)? {
        modules.push(open(&library)?);
    }
    Ok(modules)
}

/// Asks the program's own loader, which runs nothing of the program for that.
fn libraries(program: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let bytes = std::fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let file =
        object::File::parse(&bytes[..]).with_context(|| format!("{} is no ELF file", program.display()))?;
    let loader = file.section_by_name(".interp").and_then(|section| section.data().ok().map(<[u8]>::to_vec));
    let Some(loader) = loader.and_then(|name| String::from_utf8(name).ok()) else { return Ok(Vec::new()) };
    let loader = loader.trim_end_matches('\0');
    let output = Command::new(loader).arg("--list").arg(program).output();
    let output = output.with_context(|| format!("cannot start the loader {loader}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let path_of = |line: &str| {
        let path = line.split("=>").nth(1)?.split(" (0x").next()?.trim();
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    Ok(text.lines().filter_map(path_of).collect())
}
