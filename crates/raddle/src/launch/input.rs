//! The standard input of a program that is run more than once.
//!
//! The first run reads what the user gives it. Every run after it, the confirming replays above all, must read the same,
//! so what the first run was given is kept: a file is read again from where it was, a pipe is passed on through a copy of
//! what went by. A terminal cannot be repeated; runs after the first get nothing then, and schedules say so.

use raddle_trace::schedule::{Input, head::INPUT_BYTES_MAX};
use rustix::fs::{FileType, MemfdFlags, SeekFrom, fstat, memfd_create, seek};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub enum StandardInput {
    /// A terminal, or something of which nothing is known.
    #[default]
    Unknown,
    Nothing,
    /// A file, from this place on.
    File {
        file: Arc<File>,
        start: u64,
    },
    /// A pipe, and what has been read of it so far.
    Pipe(Arc<Mutex<Vec<u8>>>),
}

/// Most of a pipe that is kept for later runs.
const PIPE_BYTES_MAX: usize = 64 << 20;

impl StandardInput {
    /// What this process was given.
    pub fn of_this_process() -> StandardInput {
        let stdin = std::io::stdin();
        let Ok(found) = fstat(stdin.as_fd()) else { return StandardInput::Nothing };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => {
                let start = seek(stdin.as_fd(), SeekFrom::Current(0)).unwrap_or(0);
                match stdin.as_fd().try_clone_to_owned() {
                    Ok(file) => StandardInput::File { file: Arc::new(File::from(file)), start },
                    Err(_) => StandardInput::Unknown,
                }
            }
            FileType::Fifo | FileType::Socket => StandardInput::Pipe(Arc::default()),
            FileType::CharacterDevice if is_null_device(&found) => StandardInput::Nothing,
            _ => StandardInput::Unknown,
        }
    }

    /// What another process was given, by the path of its descriptor in `/proc`. Only a file can be read a second time.
    pub fn of_process(descriptor: &Path) -> StandardInput {
        let Ok(found) = std::fs::metadata(descriptor) else { return StandardInput::Nothing };
        let is_null = std::fs::read_link(descriptor).is_ok_and(|target| target == Path::new("/dev/null"));
        match File::open(descriptor) {
            Ok(file) if found.is_file() => StandardInput::File { file: Arc::new(file), start: 0 },
            _ if is_null => StandardInput::Nothing,
            _ => StandardInput::Unknown,
        }
    }

    /// What a schedule holds.
    pub fn from_schedule(input: &Input) -> std::io::Result<StandardInput> {
        Ok(match input {
            Input::Nothing => StandardInput::Nothing,
            Input::Unknown => StandardInput::Unknown,
            Input::Bytes(bytes) => StandardInput::File { file: Arc::new(in_memory(bytes)?), start: 0 },
        })
    }

    /// What a schedule is to hold of it.
    pub fn for_schedule(&self) -> Input {
        match self {
            StandardInput::Unknown => Input::Unknown,
            StandardInput::Nothing => Input::Nothing,
            StandardInput::File { file, start } => {
                let mut bytes = vec![0; INPUT_BYTES_MAX + 1];
                let mut filled = 0;
                while filled < bytes.len() {
                    match file.read_at(&mut bytes[filled..], start + filled as u64) {
                        Ok(0) => break,
                        Ok(count) => filled += count,
                        Err(_) => return Input::Unknown,
                    }
                }
                bytes.truncate(filled);
                of_bytes(bytes)
            }
            StandardInput::Pipe(seen) => of_bytes(seen.lock().expect("no holder panics").clone()),
        }
    }

    /// For the run that the user watches. `None`: it inherits this process's.
    pub fn for_first_run(&self) -> std::io::Result<Option<Stdio>> {
        match self {
            StandardInput::Unknown => Ok(None),
            StandardInput::Nothing | StandardInput::File { .. } => self.stored().map(Some),
            StandardInput::Pipe(seen) => {
                let (reader, writer) = std::io::pipe()?;
                let seen = Arc::clone(seen);
                std::thread::spawn(move || pass_on(writer, &seen));
                Ok(Some(reader.into()))
            }
        }
    }

    /// For a run that nobody watches.
    pub fn stored(&self) -> std::io::Result<Stdio> {
        Ok(match self {
            StandardInput::Unknown | StandardInput::Nothing => Stdio::null(),
            StandardInput::File { file, start } => again(file, *start)?.into(),
            StandardInput::Pipe(seen) => in_memory(&seen.lock().expect("no holder panics"))?.into(),
        })
    }
}

fn of_bytes(bytes: Vec<u8>) -> Input {
    match bytes.len() {
        0 => Input::Nothing,
        count if count > INPUT_BYTES_MAX => Input::Unknown,
        _ => Input::Bytes(bytes),
    }
}

fn is_null_device(found: &rustix::fs::Stat) -> bool {
    std::fs::metadata("/dev/null")
        .is_ok_and(|null| std::os::unix::fs::MetadataExt::rdev(&null) == found.st_rdev)
}

/// The file opened anew, so that runs do not share a position.
fn again(file: &File, start: u64) -> std::io::Result<File> {
    use std::io::Seek;
    use std::os::fd::AsRawFd;
    let mut opened = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    opened.seek(std::io::SeekFrom::Start(start))?;
    Ok(opened)
}

fn in_memory(bytes: &[u8]) -> std::io::Result<File> {
    use std::io::Seek;
    let mut file = File::from(memfd_create("raddle-input", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// Passes this process's standard input on until either side has had enough.
fn pass_on(mut writer: std::io::PipeWriter, seen: &Mutex<Vec<u8>>) {
    let mut stdin = std::io::stdin().lock();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = match stdin.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => count,
        };
        {
            let mut seen = seen.lock().expect("no holder panics");
            let room = PIPE_BYTES_MAX.saturating_sub(seen.len());
            seen.extend_from_slice(&buffer[..count.min(room)]);
        }
        // The program may have closed its input; what it has not read stays unread, as in a shell's pipe.
        if write_to(&mut writer, &buffer[..count]).is_err() {
            return;
        }
    }
}

/// `SIGPIPE` ends this process by default, as it should when its own output is closed; here it is an error like others.
fn write_to(writer: &mut std::io::PipeWriter, bytes: &[u8]) -> std::io::Result<()> {
    // SAFETY: the set is initialised by `sigemptyset` before it is used, and only this thread's mask changes.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
    }
    writer.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_reads_the_same() {
        let input = StandardInput::from_schedule(&Input::Bytes(b"two\nlines\n".to_vec())).unwrap();
        assert_eq!(input.for_schedule(), Input::Bytes(b"two\nlines\n".to_vec()));
        for _ in 0..2 {
            let output = std::process::Command::new("cat").stdin(input.stored().unwrap()).output().unwrap();
            assert_eq!(output.stdout, b"two\nlines\n");
        }
        let long = StandardInput::from_schedule(&Input::Bytes(vec![b'x'; INPUT_BYTES_MAX + 1])).unwrap();
        assert_eq!(long.for_schedule(), Input::Unknown);
    }
}
