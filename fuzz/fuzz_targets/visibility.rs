//! Feeds damaged ELF files to the reader of images: no panic, and every question has an answer. Beside the damaged file there is a sound one, so
//! that names are resolved from one to the other.

#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_probe::visibility::{CodeAddress, Observer, Party, Visibility};
use std::path::PathBuf;
use std::sync::LazyLock;

static OWN: LazyLock<Vec<u8>> =
    LazyLock::new(|| std::fs::read("/lib64/ld-linux-x86-64.so.2").unwrap_or_default());

fuzz_target!(|data: &[u8]| {
    // Most inputs are no ELF file: what they hold then replaces the beginning of a sound one.
    let mut patched = OWN.clone();
    for (at, piece) in data.chunks(10).enumerate().filter(|(_, piece)| piece.len() == 10) {
        let offset = u64::from_le_bytes(piece[..8].try_into().expect("eight bytes")) as usize;
        let offset = if at % 2 == 0 { offset % 4096 } else { offset } % patched.len().max(1);
        if let Some(byte) = patched.get_mut(offset) {
            *byte = piece[8];
        }
    }
    for bytes in [data, &patched[..]] {
        let path = PathBuf::from("damaged");
        let files = [(path.clone(), bytes), (PathBuf::from("libother.so"), &OWN[..])];
        let visibility = Visibility::of_bytes(&files);
        let code = CodeAddress::new(&path, u64::from(data.first().copied().unwrap_or(0)) << 8);
        let _ = visibility.could_reach(&code);
        let party = Party { entry: Some(code.clone()), frames: vec![code] };
        let _ = visibility.cause([&party, &party], Observer::Recorder);
    }
});
