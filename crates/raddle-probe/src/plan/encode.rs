//! A plan as words.

use super::code::ModuleCode;
use raddle_wire::probe::{HEAD_WORDS, MAGIC, MODULE_WORDS, PROBE_WORDS, RANGE_WORDS, text};
use rustc_hash::FxHashMap;

/// A plan that grows.
pub(super) struct Words {
    /// Everything whose place is known at once: events, texts, blobs, patches.
    body: Vec<u64>,
    texts: FxHashMap<String, u64>,
    modules: Vec<[u64; MODULE_WORDS]>,
    pub probes: Vec<[u64; PROBE_WORDS]>,
    pub ranges: Vec<[u64; RANGE_WORDS]>,
}

impl Words {
    pub fn new() -> Words {
        Words {
            body: vec![0; HEAD_WORDS],
            texts: FxHashMap::default(),
            modules: Vec::new(),
            probes: Vec::new(),
            ranges: Vec::new(),
        }
    }

    pub fn position(&self) -> u64 {
        self.body.len() as u64
    }

    pub fn push(&mut self, words: &[u64]) {
        self.body.extend_from_slice(words);
    }

    fn bytes(&mut self, bytes: &[u8]) -> u64 {
        let at = self.position();
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.body.push(u64::from_le_bytes(word));
        }
        at
    }

    /// The word that stands for a text.
    pub fn text(&mut self, content: &str) -> u64 {
        if let Some(&known) = self.texts.get(content) {
            return known;
        }
        let at = self.bytes(content.as_bytes());
        let word = text(at as usize * 8, content.len());
        self.texts.insert(content.to_owned(), word);
        word
    }

    pub fn module(&mut self, identity: u64, code: &ModuleCode) {
        let blob = self.bytes(&code.blob);
        let patches = self.position();
        for patch in &code.patches {
            let padded = |bytes: &[u8]| {
                let mut words = [0u8; 16];
                words[..bytes.len()].copy_from_slice(bytes);
                let word = |at: usize| u64::from_le_bytes(words[at..at + 8].try_into().expect("eight bytes"));
                [word(0), word(8)]
            };
            self.push(&[patch.address, patch.new.len() as u64]);
            self.push(&padded(&patch.old));
            self.push(&padded(&patch.new));
        }
        let slots = self.position();
        self.push(&code.slots);
        self.modules.push([
            identity,
            code.distance(),
            blob,
            code.blob.len() as u64,
            code.patches.len() as u64,
            patches,
            code.slots.len() as u64,
            slots,
        ]);
    }

    pub fn finish(mut self) -> Vec<u64> {
        let modules = (self.modules.len() as u64, self.position());
        self.body.extend(self.modules.iter().flatten());
        let probes = (self.probes.len() as u64, self.position());
        self.body.extend(self.probes.iter().flatten());
        let ranges = (self.ranges.len() as u64, self.position());
        self.body.extend(self.ranges.iter().flatten());
        let head = [MAGIC, self.position(), modules.0, modules.1, probes.0, probes.1, ranges.0, ranges.1];
        self.body[..HEAD_WORDS].copy_from_slice(&head);
        self.body
    }
}
