//! Records of one thread, made small.
//!
//! Three observations about what a thread writes, and what the encoding makes of them:
//!
//! 1. *Few places do most of the work.* The first word of a record (tag, flags, program counter) takes few different
//!    values in a chunk. Each different value is a *site*; a chunk lists its sites once and stores an index a record.
//!    An `Ext` record has no program counter, so its site also depends on the site before it: the "value read" of one
//!    atomic and the size of one allocation are kept apart.
//! 2. *A place walks through memory in steps.* The second word is stored as its difference to a prediction: the site's
//!    last value plus the site's last step, or the second word of the record just before (fields of one object, the
//!    value written next to the value read), whichever is nearer. Sequence numbers, which come right after a `Sync` or
//!    `Atomic` record, are predicted from the last sequence number instead.
//! 3. *The same loop looks the same each time round.* Site indices, control bytes (which prediction, how many bytes of
//!    difference follow) and the differences are stored one after the other, not interleaved, so that repetitions
//!    are long and zstd finds them.
//!
//! ```text
//! varint                number of sites S
//! S bytes               tags
//! S bytes               aux
//! S zigzag varints      low 48 bits, each as difference to the one before
//! N bytes               low bytes of the site indices
//! N bytes               high bytes of the site indices, only if S > 256
//! N bytes               control bytes: bits 0..=3 bytes of difference (0..=8), bits 4..=5 the prediction
//! rest                  differences, zigzag, little-endian, as many bytes as the control byte says
//! ```
//!
//! N is the number of records, which the chunk's header holds. Sites are in order of first use. All predictions start
//! at zero in each chunk: a chunk can be decoded without any other.

use super::chunk::{CHUNK_BYTES_MAX, CHUNK_RECORDS_MAX, NO_SEQUENCE};
use super::varint::{put, take, unzigzag, zigzag};
use raddle_wire::record::{LOW48, Record, SyncOp, Tag};
use rustc_hash::FxHashMap;

/// Level of zstd: the sites have taken most of the redundancy out, higher levels gain a few percent for much time.
const ZSTD_LEVEL: i32 = 1;

const PREDICT_STEP: u8 = 0;
const PREDICT_NEIGHBOUR: u8 = 1;
const PREDICT_SEQUENCE: u8 = 2;
const _: () = assert!(PREDICT_STEP == 0 && PREDICT_NEIGHBOUR == 1, "the decoder makes a mask of these two");
const PREDICTION_SHIFT: u8 = 4;
const LENGTH_MASK: u8 = 0b1111;

/// What the encoder saw in passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub events: u32,
    pub first_sequence: u64,
    pub last_sequence: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Seen { events: 0, first_sequence: NO_SEQUENCE, last_sequence: NO_SEQUENCE }
    }
}

/// Does this record begin an event? Marks in the global order do not.
pub const fn begins_event(record: Record) -> bool {
    let mark = record.tag_byte() == Tag::Sync as u8 && record.aux() == SyncOp::Other as u8;
    matches!(record.tag_byte(), 1..=6 | 11) && !mark
}

/// Is the word after a record with this tag a sequence number?
const fn sequence_follows(tag: u8) -> bool {
    tag == Tag::Sync as u8 || tag == Tag::Atomic as u8
}

#[derive(Clone, Copy, Default)]
struct Site {
    word0: u64,
    last: u64,
    step: u64,
    /// Which site it belongs to, for records that extend another: one more than its number.
    before: u32,
    /// The site that came after it the last time; programs repeat themselves.
    successor: u32,
}

/// Encodes chunks; keeps its buffers from one to the next.
#[derive(Default)]
pub struct Encoder {
    index: FxHashMap<(u64, u32), u32>,
    sites: Vec<Site>,
    low: Vec<u8>,
    high: Vec<u8>,
    control: Vec<u8>,
    differences: Vec<u8>,
    plain: Vec<u8>,
    zstd: Option<zstd::bulk::Compressor<'static>>,
}

impl Encoder {
    /// Encodes records; the plain (not yet compressed) payload is valid until the next call.
    pub fn encode(&mut self, records: &[Record]) -> (&[u8], Seen) {
        assert!(records.len() <= CHUNK_RECORDS_MAX as usize);
        self.clear();
        let mut seen = Seen::default();
        let (mut previous_site, mut previous_word1, mut previous_tag) = (0u32, 0u64, 0u8);
        let mut last_sequence = 0u64;
        // Bytes are written past the end of what is used, eight at a time: cheaper than as many as there are.
        self.low.resize(records.len(), 0);
        self.high.resize(records.len(), 0);
        self.control.resize(records.len(), 0);
        if self.differences.len() < records.len() * 8 + 8 {
            self.differences.resize(records.len() * 8 + 8, 0);
        }
        let mut used = 0;
        for (at, record) in records.iter().enumerate() {
            let tag = record.tag_byte();
            seen.events += u32::from(begins_event(*record));
            let before = if tag == Tag::Ext as u8 { previous_site + 1 } else { 0 };
            let ix = self.site(record.word0, before, previous_site);
            let site = &mut self.sites[ix as usize];
            let (prediction, difference) = if tag == Tag::Ext as u8 && sequence_follows(previous_tag) {
                if seen.first_sequence == NO_SEQUENCE {
                    seen.first_sequence = record.word1;
                }
                seen.last_sequence = record.word1;
                let difference = zigzag(record.word1.wrapping_sub(last_sequence));
                last_sequence = record.word1;
                (PREDICT_SEQUENCE, difference)
            } else {
                let by_step = zigzag(record.word1.wrapping_sub(site.last.wrapping_add(site.step)));
                let by_neighbour = zigzag(record.word1.wrapping_sub(previous_word1));
                site.step = record.word1.wrapping_sub(site.last);
                site.last = record.word1;
                if byte_length(by_step) <= byte_length(by_neighbour) {
                    (PREDICT_STEP, by_step)
                } else {
                    (PREDICT_NEIGHBOUR, by_neighbour)
                }
            };
            let length = byte_length(difference);
            self.low[at] = ix as u8;
            self.high[at] = (ix >> 8) as u8;
            self.control[at] = prediction << PREDICTION_SHIFT | length;
            self.differences[used..used + 8].copy_from_slice(&difference.to_le_bytes());
            used += length as usize;
            (previous_site, previous_word1, previous_tag) = (ix, record.word1, tag);
        }
        self.assemble(used);
        (&self.plain, seen)
    }

    /// Compresses a payload, unless that gains less than two fifths: then reading would cost more than the bytes are worth. (Addresses
    /// without any pattern lose a third; undoing that is a fifth of the time that reading them takes.)
    pub fn compress(&mut self, plain: &[u8]) -> Option<Vec<u8>> {
        if self.zstd.is_none() {
            self.zstd = zstd::bulk::Compressor::new(ZSTD_LEVEL).ok();
        }
        let compressed = self.zstd.as_mut()?.compress(plain).ok()?;
        (compressed.len() <= plain.len() / 5 * 3).then_some(compressed)
    }

    /// [`Encoder::encode`] and [`Encoder::compress`]: the payload, whether it is compressed, its plain size.
    pub fn encode_compressed(&mut self, records: &[Record]) -> (Vec<u8>, bool, u32, Seen) {
        let (_, seen) = self.encode(records);
        let plain = std::mem::take(&mut self.plain);
        let plain_bytes = plain.len() as u32;
        let result = match self.compress(&plain) {
            Some(compressed) => (compressed, true, plain_bytes, seen),
            None => (plain.clone(), false, plain_bytes, seen),
        };
        self.plain = plain;
        result
    }

    fn clear(&mut self) {
        self.index.clear();
        self.sites.clear();
        self.plain.clear();
    }

    #[inline(always)]
    fn site(&mut self, word0: u64, before: u32, previous: u32) -> u32 {
        let guess = self.sites.get(previous as usize).map_or(0, |site| site.successor);
        match self.sites.get(guess as usize) {
            Some(site) if site.word0 == word0 && site.before == before => guess,
            _ => self.look_up(word0, before, previous),
        }
    }

    fn look_up(&mut self, word0: u64, before: u32, previous: u32) -> u32 {
        let next = self.sites.len() as u32;
        let ix = *self.index.entry((word0, before)).or_insert(next);
        if ix == next {
            self.sites.push(Site { word0, before, ..Site::default() });
        }
        if let Some(site) = self.sites.get_mut(previous as usize) {
            site.successor = ix;
        }
        ix
    }

    fn assemble(&mut self, difference_bytes: usize) {
        put(&mut self.plain, self.sites.len() as u64);
        self.plain.extend(self.sites.iter().map(|site| (site.word0 >> 48) as u8));
        self.plain.extend(self.sites.iter().map(|site| (site.word0 >> 56) as u8));
        let mut previous = 0u64;
        for site in &self.sites {
            let low48 = site.word0 & LOW48;
            put(&mut self.plain, zigzag(low48.wrapping_sub(previous)));
            previous = low48;
        }
        self.plain.extend_from_slice(&self.low);
        if self.sites.len() > 256 {
            self.plain.extend_from_slice(&self.high);
        }
        self.plain.extend_from_slice(&self.control);
        self.plain.extend_from_slice(&self.differences[..difference_bytes]);
    }
}

#[inline(always)]
fn byte_length(value: u64) -> u8 {
    ((64 - value.leading_zeros()).div_ceil(8)) as u8
}

/// Takes the records of a chunk as they are decoded.
pub trait RecordSink {
    /// A chunk begins; `records` records follow, unless it is damaged.
    fn begin(&mut self, records: usize);

    /// The next site of the chunk. The result is the first word of its records, as the sink wants to have it: what is
    /// the same for all records of a site can be looked up here, once.
    fn site(&mut self, word0: u64) -> u64;

    /// The next record.
    fn record(&mut self, record: Record);
}

impl RecordSink for Vec<Record> {
    fn begin(&mut self, records: usize) {
        self.clear();
        self.reserve(records);
    }

    fn site(&mut self, word0: u64) -> u64 {
        word0
    }

    fn record(&mut self, record: Record) {
        self.push(record);
    }
}

/// What decoding needs to know about a site: as small as possible, every record looks at one.
#[derive(Clone, Copy)]
struct SiteState {
    word0: u64,
    last: u64,
    step: u64,
}

/// Decodes chunks; keeps its buffers from one to the next.
#[derive(Default)]
pub struct Decoder {
    sites: Vec<SiteState>,
    plain: Vec<u8>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl Decoder {
    /// Decompresses a payload whose plain size is known.
    pub fn decompress(&mut self, stored: &[u8], plain_bytes: u32) -> Result<Vec<u8>, &'static str> {
        if plain_bytes > CHUNK_BYTES_MAX {
            return Err("the chunk claims to be larger than chunks may be");
        }
        let mut plain = Vec::with_capacity(plain_bytes as usize);
        self.decompress_into(stored, plain_bytes, &mut plain)?;
        Ok(plain)
    }

    fn decompress_into(
        &mut self,
        stored: &[u8],
        plain_bytes: u32,
        plain: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        plain.clear();
        plain.reserve(plain_bytes as usize);
        if self.zstd.is_none() {
            self.zstd = zstd::bulk::Decompressor::new().ok();
        }
        let zstd = self.zstd.as_mut().ok_or("zstd could not be set up")?;
        match zstd.decompress_to_buffer(stored, plain) {
            Ok(length) if length == plain_bytes as usize => Ok(()),
            _ => Err("the chunk's payload cannot be decompressed"),
        }
    }

    /// Decodes the payload of a records chunk into `sink`. After an error the sink may have got a part of it.
    pub fn decode(
        &mut self,
        stored: &[u8],
        compressed: bool,
        plain_bytes: u32,
        records: u32,
        sink: &mut impl RecordSink,
    ) -> Result<(), &'static str> {
        if plain_bytes > CHUNK_BYTES_MAX || records > CHUNK_RECORDS_MAX {
            return Err("the chunk claims to be larger than chunks may be");
        }
        if !compressed {
            return self.decode_plain(stored, records, sink);
        }
        let mut plain = std::mem::take(&mut self.plain);
        let result = match self.decompress_into(stored, plain_bytes, &mut plain) {
            Ok(()) => self.decode_plain(&plain, records, sink),
            Err(problem) => Err(problem),
        };
        self.plain = plain;
        result
    }

    fn decode_plain(
        &mut self,
        plain: &[u8],
        records: u32,
        sink: &mut impl RecordSink,
    ) -> Result<(), &'static str> {
        let records = records as usize;
        let mut rest = plain;
        let sites = take(&mut rest).ok_or(SHORT)?;
        if sites > records as u64 {
            return Err("the chunk has more sites than records");
        }
        let sites = sites as usize;
        sink.begin(records);
        let rest = self.read_sites(rest, sites, sink)?;
        let (low, rest) = rest.split_at_checked(records).ok_or(SHORT)?;
        if sites > 256 {
            let (high, rest) = rest.split_at_checked(records).ok_or(SHORT)?;
            let wide = |(&low, &high): (&u8, &u8)| u16::from(low) | u16::from(high) << 8;
            self.decode_records(low.iter().zip(high).map(wide), records, rest, sink)
        } else {
            self.decode_records(low.iter().map(|&low| u16::from(low)), records, rest, sink)
        }
    }

    /// Reads the table of sites; returns what comes after it.
    fn read_sites<'p>(
        &mut self,
        rest: &'p [u8],
        sites: usize,
        sink: &mut impl RecordSink,
    ) -> Result<&'p [u8], &'static str> {
        let (tags, rest) = rest.split_at_checked(sites).ok_or(SHORT)?;
        let (auxes, mut rest) = rest.split_at_checked(sites).ok_or(SHORT)?;
        self.sites.clear();
        let mut low48 = 0u64;
        for (&tag, &aux) in tags.iter().zip(auxes) {
            low48 = low48.wrapping_add(unzigzag(take(&mut rest).ok_or(SHORT)?)) & LOW48;
            let word0 = low48 | u64::from(tag) << 48 | u64::from(aux) << 56;
            self.sites.push(SiteState { word0: sink.site(word0), last: 0, step: 0 });
        }
        Ok(rest)
    }

    fn decode_records(
        &mut self,
        site_of: impl Iterator<Item = u16>,
        records: usize,
        rest: &[u8],
        sink: &mut impl RecordSink,
    ) -> Result<(), &'static str> {
        let (control, mut rest) = rest.split_at_checked(records).ok_or(SHORT)?;
        let (mut previous_word1, mut last_sequence) = (0u64, 0u64);
        for (ix, &control) in site_of.zip(control) {
            let site =
                self.sites.get_mut(usize::from(ix)).ok_or("a record refers to a site that is not there")?;
            let length = usize::from(control & LENGTH_MASK);
            let difference = unzigzag(take_difference(&mut rest, length).ok_or(SHORT)?);
            let word1 = match control >> PREDICTION_SHIFT {
                PREDICT_SEQUENCE => {
                    last_sequence = last_sequence.wrapping_add(difference);
                    last_sequence
                }
                prediction @ (PREDICT_STEP | PREDICT_NEIGHBOUR) => {
                    // Which of the two it is cannot be foreseen, so there is no branch.
                    let neighbour = u64::from(prediction).wrapping_neg();
                    let by_step = site.last.wrapping_add(site.step);
                    let base = (by_step & !neighbour) | (previous_word1 & neighbour);
                    let word1 = base.wrapping_add(difference);
                    site.step = word1.wrapping_sub(site.last);
                    site.last = word1;
                    word1
                }
                _ => return Err("a record uses a prediction that this version does not know"),
            };
            sink.record(Record { word0: site.word0, word1 });
            previous_word1 = word1;
        }
        if !rest.is_empty() {
            return Err("the chunk's payload is longer than its records");
        }
        Ok(())
    }
}

const SHORT: &str = "the chunk's payload ends too early";

#[inline(always)]
fn take_difference(rest: &mut &[u8], length: usize) -> Option<u64> {
    if let Some((eight, _)) = rest.split_first_chunk::<8>()
        && length <= 8
    {
        // Take eight bytes and forget those that belong to the next record: no loop over bytes.
        let word = u64::from_le_bytes(*eight);
        *rest = &rest[length..];
        return Some(if length == 8 { word } else { word & ((1 << (8 * length)) - 1) });
    }
    if length > 8 {
        return None;
    }
    let (bytes, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    let mut word = [0; 8];
    word[..length].copy_from_slice(bytes);
    Some(u64::from_le_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The encoding as `docs/trace-format.md` words it: everything is looked up by walking back through the records.
    fn naive(records: &[Record]) -> Vec<u8> {
        let is_ext = |ix: usize| records[ix].tag_byte() == Tag::Ext as u8;
        let mut sites: Vec<(u64, Option<usize>)> = Vec::new();
        let mut site_of: Vec<usize> = Vec::new();
        for (ix, record) in records.iter().enumerate() {
            let before = is_ext(ix).then(|| if ix == 0 { 0 } else { site_of[ix - 1] });
            let site = (record.word0, before);
            site_of.push(sites.iter().position(|known| *known == site).unwrap_or(sites.len()));
            if site_of[ix] == sites.len() {
                sites.push(site);
            }
        }
        let sequenced = |ix: usize| ix > 0 && is_ext(ix) && matches!(records[ix - 1].tag_byte(), 3 | 4);
        let mut bytes = Vec::new();
        put(&mut bytes, sites.len() as u64);
        bytes.extend(sites.iter().map(|site| (site.0 >> 48) as u8));
        bytes.extend(sites.iter().map(|site| (site.0 >> 56) as u8));
        let lows: Vec<u64> = std::iter::once(0).chain(sites.iter().map(|site| site.0 & LOW48)).collect();
        lows.windows(2).for_each(|pair| put(&mut bytes, zigzag(pair[1].wrapping_sub(pair[0]))));
        bytes.extend(site_of.iter().map(|site| *site as u8));
        if sites.len() > 256 {
            bytes.extend(site_of.iter().map(|site| (*site >> 8) as u8));
        }
        let mut differences = Vec::new();
        for (ix, record) in records.iter().enumerate() {
            let earlier = |wanted: &dyn Fn(usize) -> bool| -> Vec<u64> {
                (0..ix).rev().filter(|&at| wanted(at)).map(|at| records[at].word1).take(2).collect()
            };
            let (code, difference) = if sequenced(ix) {
                let last = earlier(&sequenced).first().copied().unwrap_or(0);
                (2, zigzag(record.word1.wrapping_sub(last)))
            } else {
                let same = earlier(&|at| site_of[at] == site_of[ix] && !sequenced(at));
                let last = same.first().copied().unwrap_or(0);
                let step = last.wrapping_sub(same.get(1).copied().unwrap_or(0));
                let by_step = zigzag(record.word1.wrapping_sub(last.wrapping_add(step)));
                let neighbour = if ix == 0 { 0 } else { records[ix - 1].word1 };
                let by_neighbour = zigzag(record.word1.wrapping_sub(neighbour));
                let bytes = |value: u64| {
                    value.to_le_bytes().iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1)
                };
                if bytes(by_step) <= bytes(by_neighbour) { (0, by_step) } else { (1, by_neighbour) }
            };
            let used = difference.to_le_bytes().iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
            bytes.push(code << 4 | used as u8);
            differences.extend_from_slice(&difference.to_le_bytes()[..used]);
        }
        bytes.extend(differences);
        bytes
    }

    fn record() -> impl Strategy<Value = Record> {
        let word1 = prop_oneof![any::<u64>(), (0u64..64).prop_map(|n| 0x7f00_0000_1000 + 8 * n), 0u64..4];
        let low48 = prop_oneof![0u64..4, (0u64..16).prop_map(|n| 0x5555_0000_1000 + 5 * n), any::<u64>()];
        (0u8..13, any::<u8>(), low48, word1).prop_map(|(tag, aux, low48, word1)| {
            let tag = Tag::from_u8(tag).unwrap_or(Tag::Access);
            Record::new(tag, aux & 0x0b, low48, word1)
        })
    }

    proptest! {
        #[test]
        fn encoding_follows_the_specification(records in proptest::collection::vec(record(), 0..400)) {
            let mut encoder = Encoder::default();
            let (plain, seen) = encoder.encode(&records);
            prop_assert_eq!(plain, naive(&records));
            let events = records.iter().filter(|record| begins_event(**record)).count();
            prop_assert_eq!(seen.events as usize, events);
        }

        #[test]
        fn records_survive(records in proptest::collection::vec(record(), 0..2000)) {
            let (payload, compressed, plain_bytes, _) = Encoder::default().encode_compressed(&records);
            let (mut decoder, mut decoded) = (Decoder::default(), Vec::new());
            decoder.decode(&payload, compressed, plain_bytes, records.len() as u32, &mut decoded).unwrap();
            prop_assert_eq!(&decoded, &records);
        }

        #[test]
        fn hostile_payloads_are_refused_or_decoded(
            bytes in proptest::collection::vec(any::<u8>(), 0..300), records in 0u32..60, compressed: bool,
        ) {
            let mut decoded: Vec<Record> = Vec::new();
            if Decoder::default().decode(&bytes, compressed, 4096, records, &mut decoded).is_ok() {
                prop_assert_eq!(decoded.len(), records as usize);
            }
        }
    }
}
