//! The store of evidence: the folder `.raddle`.
//!
//! ```text
//! .raddle/
//!   .gitignore               everything in here stays out of version control
//!   lock                     held while something is added
//!   3f9c02d1a7e4/            one folder a finding, named by its id
//!     finding.json           the best evidence
//!     schedule               ... and what shows it
//!     recorded               the recorded run that it was predicted from, as a schedule
//!     trace                  the run along the schedule that showed it again
//!     2.json, 2.schedule     evidence that was superseded, most recent first
//!   traces/                  recorded runs; a cache
//! ```
//!
//! The store only grows. A folder is written beside the others under a name that is not an id, made durable, and renamed to
//! its place (or exchanged with the folder that is there); a process that is killed at any moment loses at most the finding that
//! it was adding, and what it left behind is removed by the next one that adds something. Evidence that tells
//! less than what is there ([`Evidence::supersedes`]) is not added: an unconfirmed witness never stands beside a confirmed
//! one.

use crate::basis::Grade;
use crate::evidence::{EVIDENCE_VERSION, Evidence};
use crate::file::{ReadError, read_limited};
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Name of the store in a project.
pub const FOLDER: &str = ".raddle";

/// Name of the schedule in a finding's folder.
pub const SCHEDULE: &str = "schedule";
/// Name of the recorded run's schedule in a finding's folder.
const RECORDED: &str = "recorded";
/// Name of the trace of the confirming replay.
const TRACE: &str = "trace";
const FINDING: &str = "finding.json";
const UNFINISHED: &str = ".adding-";

/// Superseded evidence that is kept of one finding.
const SUPERSEDED_MAX: usize = 7;

/// Larger files of a store are not read.
const FINDING_BYTES_MAX: u64 = 64 << 20;
const SCHEDULE_BYTES_MAX: u64 = 4 << 30;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// What became of evidence that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// The finding was not in the store.
    New,
    /// It is now the best evidence of its finding.
    Better,
    /// The store has evidence that is at least as good.
    Known,
}

impl Store {
    /// The store in this folder, which need not exist yet.
    pub fn at(folder: impl Into<PathBuf>) -> Store {
        Store { folder: folder.into() }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder that relative paths in its schedules start from.
    pub fn root(&self) -> PathBuf {
        let whole = std::path::absolute(&self.folder).unwrap_or_else(|_| self.folder.clone());
        whole.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned)
    }

    /// The store that a file lies in, if it is a finding's.
    pub fn of_file(path: &Path) -> Option<Store> {
        let whole = std::path::absolute(path).ok()?;
        let finding = whole.parent()?;
        let name = finding.file_name()?.to_str()?;
        let folder = finding.parent()?;
        (is_id(name) && folder.join(".gitignore").exists()).then(|| Store::at(folder))
    }

    /// Makes sure that the folder is there and can be written to.
    pub fn create(&self) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let ignore = self.folder.join(".gitignore");
        if !ignore.exists() {
            std::fs::write(ignore, "*\n")?;
        }
        Ok(())
    }

    /// Where recorded runs are kept.
    pub fn traces(&self) -> PathBuf {
        self.folder.join("traces")
    }

    pub fn schedule_path(&self, id: &str) -> PathBuf {
        self.folder.join(id).join(SCHEDULE)
    }

    /// The schedule of the recorded run, if one was kept.
    pub fn recorded_path(&self, id: &str) -> PathBuf {
        self.folder.join(id).join(RECORDED)
    }

    /// The trace of the replay that confirmed the finding, if one was kept.
    pub fn trace_path(&self, id: &str) -> PathBuf {
        self.folder.join(id).join(TRACE)
    }

    fn finding_path(&self, id: &str) -> PathBuf {
        self.folder.join(id).join(FINDING)
    }

    /// Ids of all findings that begin with these digits.
    pub fn ids(&self, prefix: &str) -> std::io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut ids: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_id(name) && name.starts_with(prefix))
            .collect();
        ids.sort();
        Ok(ids)
    }

    /// The best evidence of a finding, without its schedule.
    pub fn read(&self, id: &str) -> Result<Evidence, ReadError> {
        read(&self.finding_path(id))
    }

    /// The best evidence of every finding, the latest first, and what could not be read.
    pub fn list(&self) -> std::io::Result<(Vec<Evidence>, Vec<ReadError>)> {
        let (mut list, mut problems) = (Vec::new(), Vec::new());
        for id in self.ids("")? {
            match self.read(&id) {
                Ok(evidence) => list.push(evidence),
                Err(problem) => problems.push(problem),
            }
        }
        list.sort_by(|a, b| (b.found_at, &a.finding.id).cmp(&(a.found_at, &b.finding.id)));
        Ok((list, problems))
    }

    /// Adds evidence. It is durable when this returns.
    pub fn add(&self, evidence: &Evidence) -> std::io::Result<Added> {
        let id = &evidence.finding.id;
        assert!(is_id(id), "an id is made of hexadecimal digits");
        self.create()?;
        let lock = File::create(self.folder.join("lock"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        self.remove_unfinished();
        let place = self.folder.join(id);
        let mut before = self.read(id).ok();
        if let Some(before) = &mut before {
            before.schedule = self.schedule_path(id).exists().then(String::new);
            if !evidence.supersedes(before) {
                return Ok(Added::Known);
            }
        }
        let fresh = self.folder.join(format!("{UNFINISHED}{}", std::process::id()));
        std::fs::create_dir(&fresh)?;
        write(&fresh.join(FINDING), json(evidence).as_bytes())?;
        if let Some(schedule) = &evidence.schedule {
            write(&fresh.join(SCHEDULE), schedule.as_bytes())?;
        }
        if let Some(recorded) = &evidence.recorded {
            write(&fresh.join(RECORDED), recorded.as_bytes())?;
        }
        let Some(before) = before.filter(|_| place.is_dir()) else {
            // Something unreadable may be in the way; it is exchanged like superseded evidence.
            match place.exists() {
                true => renameat_with(CWD, &fresh, CWD, &place, RenameFlags::EXCHANGE)?,
                false => std::fs::rename(&fresh, &place)?,
            }
            let _ = std::fs::remove_dir_all(&fresh);
            return self.sync().map(|()| Added::New);
        };
        // What was only predicted is not worth keeping beside what was confirmed.
        if before.finding.grade() == evidence.finding.grade() || before.finding.grade() >= Grade::Unordered {
            keep_superseded(&place, &fresh)?;
        }
        renameat_with(CWD, &fresh, CWD, &place, RenameFlags::EXCHANGE)?;
        self.sync()?;
        let _ = std::fs::remove_dir_all(&fresh);
        Ok(Added::Better)
    }

    /// Puts a trace beside the finding that it shows. It lies in the store's folder, so that it is there whole or not at all.
    pub fn add_trace(&self, id: &str, trace: &Path) -> std::io::Result<()> {
        assert!(is_id(id), "an id is made of hexadecimal digits");
        File::open(trace)?.sync_all()?;
        std::fs::rename(trace, self.trace_path(id))
    }

    /// Removes every finding and every trace. Returns how many findings there were.
    pub fn clean(&self) -> std::io::Result<usize> {
        let ids = self.ids("")?;
        for id in &ids {
            std::fs::remove_dir_all(self.folder.join(id))?;
        }
        if self.folder.exists() {
            self.remove_unfinished();
            let _ = std::fs::remove_dir_all(self.traces());
            let _ = std::fs::remove_file(self.folder.join("lock"));
        }
        Ok(ids.len())
    }

    fn remove_unfinished(&self) {
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(UNFINISHED)) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    fn sync(&self) -> std::io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }
}

/// Puts what is in a finding's folder into the folder that will replace it, numbered from 2.
fn keep_superseded(old: &Path, fresh: &Path) -> std::io::Result<()> {
    let file = |number: usize, what: &str| match (number, what) {
        (1, what) => what.to_owned(),
        (number, FINDING) => format!("{number}.json"),
        (number, what) => format!("{number}.{what}"),
    };
    for number in 1..=SUPERSEDED_MAX {
        for what in [FINDING, SCHEDULE, RECORDED] {
            let from = old.join(file(number, what));
            if from.exists() {
                std::fs::hard_link(&from, fresh.join(file(number + 1, what)))
                    .or_else(|_| std::fs::copy(&from, fresh.join(file(number + 1, what))).map(drop))?;
            }
        }
    }
    Ok(())
}

/// Is this the name of a finding's folder?
pub fn is_id(name: &str) -> bool {
    name.len() >= 8 && name.len() <= 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn json(evidence: &Evidence) -> String {
    let mut text = serde_json::to_string_pretty(evidence).expect("evidence is plain data");
    text.push('\n');
    text
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn read(path: &Path) -> Result<Evidence, ReadError> {
    let fail = |problem: String| ReadError { file: path.display().to_string(), problem };
    let text = read_limited(path, FINDING_BYTES_MAX).map_err(fail)?;
    let evidence: Evidence =
        serde_json::from_str(&text).map_err(|error| fail(format!("not a finding of a store: {error}")))?;
    if evidence.version > EVIDENCE_VERSION {
        return Err(fail(format!(
            "version {} is newer than this raddle, which reads version {EVIDENCE_VERSION}",
            evidence.version
        )));
    }
    Ok(evidence)
}

/// The text of a schedule in a store or elsewhere.
pub fn read_schedule(path: &Path) -> Result<String, ReadError> {
    read_limited(path, SCHEDULE_BYTES_MAX)
        .map_err(|problem| ReadError { file: path.display().to_string(), problem })
}
