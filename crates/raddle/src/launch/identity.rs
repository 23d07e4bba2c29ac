//! Which program it is that a schedule was made with, and what of its surroundings matters.

use super::{Compiled, Launch};
use memchr::memmem;
use object::{Object, ObjectSection, SectionFlags, elf};
use raddle_trace::schedule::{Head, RunOptions};
use siphasher::sip::SipHasher13;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

/// Two hashes of a program, in hexadecimal; empty where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub build_id: String,
    /// Of its code and constants, which do not depend on the folder that it was built in.
    pub code_id: String,
}

impl Identity {
    pub fn of(program: &Path) -> Identity {
        let Some(map) = map(program) else { return Identity::default() };
        let Ok(object) = object::File::parse(&*map) else { return Identity::default() };
        let build_id = object.build_id().ok().flatten().unwrap_or_default();
        let mut hasher = SipHasher13::new();
        for section in object.sections() {
            let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
            let loaded = sh_flags & u64::from(elf::SHF_ALLOC) != 0;
            let fixed = sh_flags & u64::from(elf::SHF_WRITE) == 0;
            let note = section.name().is_ok_and(|name| name.starts_with(".note"));
            if loaded && fixed && !note {
                hasher.write(section.data().unwrap_or_default());
            }
        }
        Identity {
            build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
            code_id: format!("{:016x}", hasher.finish()),
        }
    }

    /// Is this the program of the schedule? True also if nothing is known.
    pub fn fits(&self, head: &Head) -> bool {
        let same = |mine: &str, theirs: &str| !mine.is_empty() && mine == theirs;
        let nothing = head.build_id.is_empty() && head.code_id.is_empty();
        nothing || same(&self.build_id, &head.build_id) || same(&self.code_id, &head.code_id)
    }
}

fn map(path: &Path) -> Option<memmap2::Mmap> {
    let file = std::fs::File::open(path).ok()?;
    // SAFETY: the map is only read; a file that changes under us changes bytes that `object` checks as it goes.
    unsafe { memmap2::Mmap::map(&file) }.ok()
}

/// Variables that may matter to any program.
const VARIABLES: [&str; 6] = ["LD_LIBRARY_PATH", "LANG", "LANGUAGE", "TZ", "GLIBC_TUNABLES", "TMPDIR"];
/// Beginnings of names of such variables.
const VARIABLE_PREFIXES: [&str; 8] = ["LC_", "MALLOC_", "OMP_", "GOMP_", "KMP_", "TOKIO_", "RAYON_", "RUST_"];
/// Names that point to something that does not belong into a file that is mailed around.
const SECRETS: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE"];
/// Variables that describe the terminal, the shell or us.
const OURS: [&str; 8] = ["PWD", "OLDPWD", "SHLVL", "_", "TERM", "PATH", "HOME", "USER"];

/// The variables of the program's environment that may matter to it: some are known to matter, the others are
/// those whose names occur in it (whoever calls `getenv` names the variable).
fn environment(launch: &Launch) -> Vec<(String, String)> {
    let map = map(&launch.program);
    let named_in_program = |name: &str| {
        let text = format!("{name}\0");
        map.as_ref().is_some_and(|map| memmem::find(map, text.as_bytes()).is_some())
    };
    let matters = |name: &str| {
        let secret = SECRETS.iter().any(|word| name.to_ascii_uppercase().contains(word));
        let known =
            VARIABLES.contains(&name) || VARIABLE_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        let ours = OURS.contains(&name) || name.starts_with("RADDLE_") || name == "LD_PRELOAD";
        !secret && !ours && (known || named_in_program(name))
    };
    let all: BTreeMap<OsString, OsString> =
        std::env::vars_os().chain(launch.environment.iter().cloned()).collect();
    all.into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| matters(name))
        .collect()
}

/// A path as a schedule has it: relative if it lies below the root.
fn written(path: &Path, root: &Path) -> String {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match whole.strip_prefix(root) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.display().to_string(),
        Err(_) => whole.display().to_string(),
    }
}

/// The head of every schedule of this program. `root` is the folder that relative paths start from.
pub fn head(launch: &Launch, options: RunOptions, seed: u64, root: &Path) -> Head {
    let Identity { build_id, code_id } = Identity::of(&launch.program);
    let folder = match &launch.folder {
        Some(folder) => folder.clone(),
        None => std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
    };
    let none = Compiled::default();
    let compiled = launch.compiled.as_ref().unwrap_or(&none);
    Head {
        program: written(&launch.program, root),
        arguments: launch.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        folder: written(&folder, root),
        environment: environment(launch),
        build_id,
        code_id,
        sources: compiled.sources.iter().map(|source| written(source, root)).collect(),
        flags: compiled.flags.clone(),
        compiler: compiled.compiler.clone(),
        options: RunOptions {
            preload: launch.preload,
            fixed_addresses: options.fixed_addresses || launch.fixed_addresses,
            ..options
        },
        seed,
        took_ms: 0,
        input: launch.input.for_schedule(),
        aspects: launch.probes.as_ref().map(|probes| probes.aspects.clone()).unwrap_or_default(),
        property: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_their_code() {
        let mine = Identity::of(&std::env::current_exe().unwrap());
        assert_eq!(mine.code_id.len(), 16);
        let head = |build_id: &str, code_id: &str| Head {
            build_id: build_id.into(),
            code_id: code_id.into(),
            ..Head::default()
        };
        assert!(mine.fits(&head("other", &mine.code_id)) && mine.fits(&head("", "")));
        assert!(!mine.fits(&head("other", "other")));
        assert_eq!(Identity::of(Path::new("/nonexistent")), Identity::default());
        assert!(!Identity::default().fits(&head("a", "b")));
    }

    #[test]
    fn paths_below_the_root_are_relative() {
        let root = Path::new("/home/me/project");
        assert_eq!(written(Path::new("/home/me/project/build/x"), root), "build/x");
        assert_eq!(written(root, root), ".");
        assert_eq!(written(Path::new("/usr/bin/x"), root), "/usr/bin/x");
    }
}
