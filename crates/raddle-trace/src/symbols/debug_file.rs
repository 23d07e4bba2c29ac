//! Where the debug information of a module is: in the module itself, or in a file beside it or under `/usr/lib/debug`,
//! found by build id or by debug link as GDB does it.

use object::{Object, ObjectSection, ReadCache};
use std::fs::File;
use std::path::{Path, PathBuf};

const DEBUG_ROOT: &str = "/usr/lib/debug";

/// The files to read for one module.
#[derive(Debug, PartialEq, Eq)]
pub struct DebugFiles {
    /// Has the functions and lines.
    pub dwarf: PathBuf,
    /// Shared between several debug files (made by dwz).
    pub supplement: Option<PathBuf>,
    /// Estimate of what opening it costs in memory.
    pub open_cost: u64,
}

/// Finds the debug files of a module; the error is a sentence.
pub fn find(path: &Path, build_id: &[u8]) -> Result<DebugFiles, String> {
    let file = File::open(path).map_err(|error| format!("no symbols of {}: {error}", path.display()))?;
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache)
        .map_err(|error| format!("no symbols of {}: not an object file ({error})", path.display()))?;
    let id_now = object.build_id().ok().flatten().unwrap_or_default();
    if !build_id.is_empty() && !id_now.is_empty() && id_now != build_id {
        return Err(format!(
            "no symbols of {}: the file was rebuilt since the recording; record again",
            path.display()
        ));
    }
    if has_dwarf(&object) {
        return Ok(DebugFiles {
            dwarf: path.to_owned(),
            supplement: supplement(&object, path),
            open_cost: open_cost(&object),
        });
    }
    for candidate in candidates(&object, path, id_now) {
        if let Some(files) = try_debug_file(&candidate, id_now) {
            return Ok(files);
        }
    }
    Ok(DebugFiles { dwarf: path.to_owned(), supplement: None, open_cost: open_cost(&object) })
}

fn try_debug_file(candidate: &Path, build_id: &[u8]) -> Option<DebugFiles> {
    let cache = ReadCache::new(File::open(candidate).ok()?);
    let object = object::File::parse(&cache).ok()?;
    let same = object.build_id().ok().flatten().is_none_or(|id| build_id.is_empty() || id == build_id);
    (same && has_dwarf(&object)).then(|| DebugFiles {
        dwarf: candidate.to_owned(),
        supplement: supplement(&object, candidate),
        open_cost: open_cost(&object),
    })
}

fn has_dwarf<'data>(object: &impl Object<'data>) -> bool {
    object.section_by_name(".debug_info").is_some_and(|section| section.size() > 0)
}

fn open_cost<'data>(object: &impl Object<'data>) -> u64 {
    // Compressed sections are unpacked into memory; of others the headers of all units are read.
    object
        .sections()
        .filter(|section| section.name().is_ok_and(|name| name.starts_with(".debug")))
        .map(|section| match section.compressed_file_range() {
            Ok(range) if range.format != object::CompressionFormat::None => range.uncompressed_size,
            _ => section.size() / 16,
        })
        .fold(1 << 20, u64::saturating_add)
}

fn candidates<'data>(object: &impl Object<'data>, path: &Path, build_id: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some((first, rest)) = build_id.split_first()
        && !rest.is_empty()
    {
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        found.push(PathBuf::from(format!("{DEBUG_ROOT}/.build-id/{first:02x}/{rest}.debug")));
    }
    if let Ok(Some((name, _))) = object.gnu_debuglink()
        && let Ok(name) = std::str::from_utf8(name)
        && let Some(folder) = path.parent()
    {
        found.push(folder.join(name));
        found.push(folder.join(".debug").join(name));
        found.push(Path::new(DEBUG_ROOT).join(folder.strip_prefix("/").unwrap_or(folder)).join(name));
    }
    found
}

fn supplement<'data>(object: &impl Object<'data>, path: &Path) -> Option<PathBuf> {
    let (name, _) = object.gnu_debugaltlink().ok()??;
    let name = Path::new(std::str::from_utf8(name).ok()?);
    let full = if name.is_absolute() { name.to_owned() } else { path.parent()?.join(name) };
    full.exists().then_some(full)
}
