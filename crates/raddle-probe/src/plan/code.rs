//! What has to change in the code of one module.
//!
//! Beside the module lies a *blob*: three words with the addresses of the runtime's trampolines, then stubs and islands. A *stub* builds a
//! frame and goes to a trampoline with the number of its probe. An *island* is what a jump at the beginning of a function or line displaced,
//! encoded anew for its place, and a jump back.
//!
//! * A *call* of five bytes (or a tail jump) gets the stub as its target; a call through a slot of the dynamic linker becomes a call of the
//!   stub; where a register is loaded from a slot to be called, it is loaded with the stub's address instead.
//! * A *body* gets one jump of five bytes at its beginning, behind `endbr64`. Events after it come from calling the island, so there is no need
//!   to find the function's ends. Jumps of the function to its own beginning lead to the island: they are no new calls.
//! * A *line* gets a jump at its first instruction.
//!
//! Nothing may jump into the five bytes: direct branches are looked at, and in functions with jump tables the first instruction of every line.
//! A call that is displaced returns into the original code, so that nobody ever unwinds through the blob. Regions never overlap.

use crate::image::{Function, Image};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, Decoder, DecoderOptions, FlowControl, Instruction,
    InstructionBlock, MemoryOperand, OpKind, Register,
};
use raddle_wire::probe::{PATCH_BYTES_MAX, SLOT_AROUND, SLOT_BEFORE, SLOT_BYTES, SLOT_LINE, target};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Where a probe is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Anchor {
    /// An instruction that calls, jumps, or loads a register for a call.
    Call(u64),
    /// The first byte of a function.
    Body(u64),
    /// The first instruction of a line.
    Line(u64),
}

impl Anchor {
    pub fn address(self) -> u64 {
        match self {
            Anchor::Call(at) | Anchor::Body(at) | Anchor::Line(at) => at,
        }
    }
}

/// How a probe was placed.
pub(super) struct Placed {
    /// Kind and position of where the thread goes on; that of an island is known in the end.
    pub target: (u64, u64),
    /// Where its events are said to be; 0: where the call returns to.
    pub address: u64,
}

pub(super) struct Patch {
    pub address: u64,
    pub old: Vec<u8>,
    pub new: Vec<u8>,
}

/// A jump that displaces instructions.
struct Jump {
    at: u64,
    /// Of the probe of a body, and that of a line.
    body: Option<(u32, u64)>,
    line: Option<(u32, u64)>,
    function: Range<u64>,
    region: Range<u64>,
}

/// What became of the jumps of a module.
#[derive(Default)]
pub(super) struct Finished {
    /// For each probe of a body, where its island is, in the blob.
    pub islands: Vec<(u32, u64)>,
    /// Places whose code could not be moved.
    pub lost: Vec<u64>,
}

/// Bytes of a jump or call with a distance of 32 bits.
const JUMP_BYTES: u64 = 5;
/// Addresses are moved up for computing, so that a blob below a module that begins at 0 has one.
const SHIFT: u64 = 1 << 40;
/// From a module to its blob: near enough for distances of 32 bits, far enough for large modules. Each module of a program has another
/// distance, because libraries lie close to each other.
const BELOW_BYTES: u64 = 64 << 20;
const ABOVE_BYTES: u64 = 256 << 20;
const APART_BYTES: u64 = 16 << 20;
/// Instructions that five bytes may displace.
const DISPLACED_MAX: usize = 5;

pub(super) struct ModuleCode<'image, 'data> {
    image: &'image Image<'data>,
    distance: u64,
    pub blob: Vec<u8>,
    pub patches: Vec<Patch>,
    /// Words of the blob to which the module's bias is added.
    pub slots: Vec<u64>,
    jumps: Vec<Jump>,
    /// Call sites that lead to stubs, with the address of the stub.
    redirected: FxHashMap<u64, u64>,
    known: FxHashMap<u64, Shape>,
}

/// What matters about a function's code.
#[derive(Clone, Default)]
struct Shape {
    /// Targets of its own branches, without those to its beginning.
    targets: Vec<u64>,
    /// Branches to its beginning: address, bytes.
    restarts: Vec<(u64, usize)>,
    has_table: bool,
}

impl<'image, 'data> ModuleCode<'image, 'data> {
    pub fn new(image: &'image Image<'data>, number: usize) -> ModuleCode<'image, 'data> {
        let apart = number as u64 * APART_BYTES;
        let distance = match image.is_fixed {
            true => ABOVE_BYTES + apart,
            false => (BELOW_BYTES + apart).wrapping_neg(),
        };
        ModuleCode {
            image,
            distance,
            blob: vec![0; SLOT_BYTES],
            patches: Vec::new(),
            slots: Vec::new(),
            jumps: Vec::new(),
            redirected: FxHashMap::default(),
            known: FxHashMap::default(),
        }
    }

    pub fn distance(&self) -> u64 {
        self.distance
    }

    /// The (moved) address of a position in the blob.
    fn blob_address(&self, at: usize) -> u64 {
        SHIFT.wrapping_add(self.distance).wrapping_add(at as u64)
    }

    fn bytes(&self, at: u64, count: usize) -> Option<&'data [u8]> {
        let code = self.image.code_at(at)?;
        code.bytes.get((at - code.start) as usize..)?.get(..count)
    }

    fn decode(&self, at: u64) -> Option<Instruction> {
        let code = self.image.code_at(at)?;
        let bytes = code.bytes.get((at - code.start) as usize..)?;
        let mut decoder = Decoder::with_ip(64, bytes, at + SHIFT, DecoderOptions::NONE);
        let instruction = decoder.decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    /// Puts a probe at a place, or says why it cannot be there.
    pub fn add(
        &mut self,
        anchor: Anchor,
        probe: u32,
        around: bool,
        rows: impl Fn(Range<u64>) -> Vec<u64>,
    ) -> Result<Placed, String> {
        match anchor {
            Anchor::Call(at) => self.call(at, probe, around),
            Anchor::Body(_) => {
                let entry = self.entry_of(anchor);
                let stub = self.stub(probe, around);
                self.jump(entry, Some((probe, stub)), None, rows)?;
                Ok(Placed { target: (target::BLOB, 0), address: entry })
            }
            Anchor::Line(_) => {
                let at = self.entry_of(anchor);
                self.jump(at, None, Some((probe, at)), rows)?;
                Ok(Placed { target: (target::NONE, 0), address: at })
            }
        }
    }

    /// Where the jump of a body or line stands: behind `endbr64`.
    pub fn entry_of(&self, anchor: Anchor) -> u64 {
        let at = anchor.address();
        match self.decode(at) {
            Some(first) if first.code() == Code::Endbr64 => at + first.len() as u64,
            _ => at,
        }
    }

    /// `push rbp; mov rbp, rsp; push PROBE; jmp *slot`
    fn stub(&mut self, probe: u32, around: bool) -> u64 {
        let start = self.blob.len();
        self.blob.extend([0x55, 0x48, 0x89, 0xe5, 0x68]);
        self.blob.extend(probe.to_le_bytes());
        self.through_slot(0x25, if around { SLOT_AROUND } else { SLOT_BEFORE });
        self.blob_address(start)
    }

    /// `jmp` (25) or `call` (15) through a slot of the blob.
    fn through_slot(&mut self, form: u8, slot: usize) {
        self.blob.extend([0xff, form]);
        let after = self.blob.len() as i64 + 4;
        self.blob.extend(((slot as i64 - after) as i32).to_le_bytes());
    }

    fn patch(&mut self, address: u64, new: Vec<u8>) -> Result<(), String> {
        debug_assert!(new.len() <= PATCH_BYTES_MAX, "patches are short");
        let old = self.bytes(address, new.len()).ok_or("its bytes are not in the file")?.to_vec();
        self.patches.push(Patch { address, old, new });
        Ok(())
    }

    fn call(&mut self, at: u64, probe: u32, around: bool) -> Result<Placed, String> {
        let instruction = self.decode(at).ok_or("it cannot be decoded")?;
        let is_slot = instruction.is_ip_rel_memory_operand();
        let slot = || instruction.ip_rel_memory_address().wrapping_sub(SHIFT);
        let direct = || instruction.near_branch_target().wrapping_sub(SHIFT);
        let end = at + instruction.len() as u64;
        let is_call = instruction.is_call_near() || instruction.is_call_near_indirect();
        // Where the events of a jump are said to be: it does not come back here.
        let address = if is_call { 0 } else { at };
        let stub = self.stub(probe, around);
        let relative = |from: u64| (stub.wrapping_sub(from + SHIFT) as i32).to_le_bytes();
        let kind = match instruction.flow_control() {
            FlowControl::Call | FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
                if instruction.op0_kind() == OpKind::NearBranch64 =>
            {
                if instruction.len() < JUMP_BYTES as usize {
                    return Err("it is a short jump".to_owned());
                }
                let mut new =
                    self.bytes(at, instruction.len()).ok_or("its bytes are not in the file")?.to_vec();
                let distance = new.len() - 4;
                new[distance..].copy_from_slice(&relative(end));
                self.patch(at, new)?;
                (target::CODE, direct())
            }
            FlowControl::IndirectCall if is_slot && instruction.len() >= 6 => {
                // `addr32 call`, as the linker writes it: the return address stays.
                let mut new = vec![0x67; instruction.len() - 5];
                new.push(0xe8);
                new.extend(relative(end));
                self.patch(at, new)?;
                (target::SLOT, slot())
            }
            FlowControl::IndirectBranch if is_slot && instruction.len() >= 5 => {
                let mut new = vec![0xe9];
                new.extend(relative(at + JUMP_BYTES));
                new.resize(instruction.len(), 0x90);
                self.patch(at, new)?;
                (target::SLOT, slot())
            }
            FlowControl::Next
                if is_slot && instruction.code() == Code::Mov_r64_rm64 && instruction.len() == 7 =>
            {
                let mut new = self.bytes(at, 7).ok_or("its bytes are not in the file")?.to_vec();
                // `lea` instead of `mov`.
                new[1] = 0x8d;
                new[3..].copy_from_slice(&relative(end));
                self.patch(at, new)?;
                self.redirected.insert(at, stub);
                return Ok(Placed { target: (target::SLOT, slot()), address: 0 });
            }
            _ => return Err("it is a call of a form that is not known".to_owned()),
        };
        self.redirected.insert(at, stub);
        Ok(Placed { target: kind, address })
    }

    fn shape(&mut self, function: &Function<'data>) -> &Shape {
        let image = self.image;
        self.known.entry(function.start).or_insert_with(|| {
            let mut shape = Shape::default();
            let entries = [function.start, function.start + 4];
            let mut decoder =
                Decoder::with_ip(64, image.bytes_of(function), function.start, DecoderOptions::NONE);
            let mut instruction = Instruction::default();
            while decoder.can_decode() {
                decoder.decode_out(&mut instruction);
                let near = instruction.op0_kind() == OpKind::NearBranch64;
                if near && !instruction.is_call_near() {
                    let to = instruction.near_branch_target();
                    // Behind `endbr64` the second one is the beginning, too; otherwise it is an ordinary target.
                    if entries.contains(&to) {
                        shape.restarts.push((instruction.ip(), instruction.len()))
                    }
                    if (function.start..function.end).contains(&to) && to != function.start {
                        shape.targets.push(to);
                    }
                }
                shape.has_table |=
                    instruction.is_jmp_near_indirect() && !instruction.is_ip_rel_memory_operand();
            }
            shape
        })
    }

    fn jump(
        &mut self,
        at: u64,
        body: Option<(u32, u64)>,
        line: Option<(u32, u64)>,
        rows: impl Fn(Range<u64>) -> Vec<u64>,
    ) -> Result<(), String> {
        if let Some(known) = self.jumps.iter_mut().find(|jump| jump.at == at) {
            // A function and its first line.
            known.body = known.body.or(body);
            known.line = known.line.or(line);
            return Ok(());
        }
        let function = self.image.function_at(at).ok_or("it is in no function")?;
        let function = *self.image.function(function);
        let region = self.region(at, &function)?;
        if let Some(other) =
            self.jumps.iter().find(|other| other.region.start < region.end && region.start < other.region.end)
        {
            return Err(format!("there is one at {:#x} already, too near", other.at));
        }
        let inside = |address: &u64| *address > at && *address < region.end;
        let shape = self.shape(&function).clone();
        if shape.targets.iter().any(inside) || shape.has_table && rows(region.clone()).iter().any(inside) {
            return Err("code jumps into the bytes that a probe takes".to_owned());
        }
        let own_entry = at == function.start || at == function.start + 4;
        if body.is_some() && own_entry {
            let to_entry = |(from, bytes): &&(u64, usize)| {
                self.decode(*from).is_some_and(|jump| {
                    let to = jump.near_branch_target().wrapping_sub(SHIFT);
                    *bytes < JUMP_BYTES as usize && (to == at || to == function.start)
                })
            };
            if shape.restarts.iter().any(|restart| to_entry(&restart)) {
                return Err("a short jump leads back to its beginning".to_owned());
            }
        }
        self.jumps.push(Jump { at, body, line, function: function.start..function.end, region });
        Ok(())
    }

    /// The instructions that a jump displaces.
    fn region(&self, at: u64, function: &Function<'data>) -> Result<Range<u64>, String> {
        let mut end = at;
        while end < at + JUMP_BYTES {
            if end >= function.end {
                return Err("the function ends before a jump of five bytes".to_owned());
            }
            let instruction = self.decode(end).ok_or("it cannot be decoded")?;
            end += instruction.len() as u64;
            let indirect = matches!(instruction.flow_control(), FlowControl::IndirectCall);
            if indirect && !instruction.is_ip_rel_memory_operand() {
                return Err("a call through a pointer is too near".to_owned());
            }
            let is_last = end >= at + JUMP_BYTES;
            let ends =
                !matches!(instruction.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch);
            if ends && !is_last {
                return Err("there is less code than a jump of five bytes".to_owned());
            }
        }
        if end > function.end {
            return Err("the function ends before a jump of five bytes".to_owned());
        }
        Ok(at..end)
    }

    /// Makes islands and the jumps to them.
    pub fn finish(&mut self) -> Finished {
        let mut finished = Finished::default();
        for jump in std::mem::take(&mut self.jumps) {
            let (start, slots) = (self.blob.len(), self.slots.len());
            if let Some((probe, pc)) = jump.line {
                self.line_stub(probe, pc);
            }
            if !self.island(&jump) {
                // Cannot be encoded; the place stays as it is, and its probe never happens.
                self.blob.truncate(start);
                self.slots.truncate(slots);
                finished.lost.push(jump.at);
                continue;
            }
            let to = match jump.body {
                Some((probe, stub)) => {
                    finished.islands.push((probe, start as u64));
                    self.restart_at(&jump, start);
                    stub
                }
                None => self.blob_address(start),
            };
            let mut new = vec![0xe9];
            let distance = to.wrapping_sub(jump.at + SHIFT + JUMP_BYTES) as i32;
            new.extend(distance.to_le_bytes());
            // What was redirected inside has moved to the island.
            self.patches.retain(|patch| !jump.region.contains(&patch.address));
            let _ = self.patch(jump.at, new);
        }
        finished
    }

    /// `lea rsp, [rsp-128]; push *pc; push PROBE; call *slot; lea rsp, [rsp+144]`
    fn line_stub(&mut self, probe: u32, pc: u64) {
        // The word of the program counter lies before the code; whoever comes from above jumps over it.
        const SHORT_JUMP_BYTES: usize = 2;
        let after_jump = self.blob.len() + SHORT_JUMP_BYTES;
        let slot = after_jump.next_multiple_of(8);
        self.blob.extend([0xeb, (slot + 8 - after_jump) as u8]);
        self.blob.resize(slot, 0x90);
        self.blob.extend((pc + 1).to_le_bytes());
        self.slots.push(slot as u64);
        self.blob.extend([0x48, 0x8d, 0x64, 0x24, 0x80]);
        self.through_slot(0x35, slot);
        self.blob.push(0x68);
        self.blob.extend(probe.to_le_bytes());
        self.through_slot(0x15, SLOT_LINE);
        self.blob.extend([0x48, 0x8d, 0xa4, 0x24, 0x90, 0, 0, 0]);
    }

    fn island(&mut self, jump: &Jump) -> bool {
        let mut instructions = Vec::with_capacity(DISPLACED_MAX + 1);
        let mut at = jump.region.start;
        let mut ends = false;
        let mut call = None;
        while at < jump.region.end {
            let Some(mut instruction) = self.decode(at) else { return false };
            let stub = self.redirected.get(&at).copied();
            let next = at + instruction.len() as u64;
            match instruction.flow_control() {
                FlowControl::Call | FlowControl::IndirectCall => {
                    let through =
                        instruction.is_ip_rel_memory_operand().then(|| instruction.ip_rel_memory_address());
                    let direct = stub.or((through.is_none()).then(|| instruction.near_branch_target()));
                    call = Some((direct, through, next));
                    ends = true;
                    break;
                }
                FlowControl::Next => {
                    if let Some(stub) = stub {
                        let to = MemoryOperand::with_base_displ(Register::RIP, stub as i64);
                        match Instruction::with2(Code::Lea_r64_m, instruction.op0_register(), to) {
                            Ok(lea) => instruction = lea,
                            Err(_) => return false,
                        }
                    }
                    instructions.push(instruction);
                }
                FlowControl::UnconditionalBranch | FlowControl::IndirectBranch if stub.is_some() => {
                    let Ok(branch) = Instruction::with_branch(Code::Jmp_rel32_64, stub.unwrap_or(0)) else {
                        return false;
                    };
                    instructions.push(branch);
                    ends = true;
                }
                FlowControl::ConditionalBranch => {
                    if let Some(stub) = stub {
                        instruction.set_near_branch64(stub);
                    }
                    instructions.push(instruction);
                }
                _ => {
                    instructions.push(instruction);
                    ends = true;
                }
            }
            at = next;
        }
        if !ends {
            let Ok(back) = Instruction::with_branch(Code::Jmp_rel32_64, jump.region.end + SHIFT) else {
                return false;
            };
            instructions.push(back);
        }
        if !instructions.is_empty() {
            let block = InstructionBlock::new(&instructions, self.blob_address(self.blob.len()));
            match BlockEncoder::encode(64, block, BlockEncoderOptions::NONE) {
                Ok(encoded) => self.blob.extend(encoded.code_buffer),
                Err(_) => return false,
            }
        }
        if let Some((direct, through, next)) = call {
            self.call_from_island(direct, through, next);
        }
        true
    }

    /// A call that returns into the original code: its return address is put where a call would have put it, without changing a register.
    fn call_from_island(&mut self, direct: Option<u64>, through: Option<u64>, next: u64) {
        // lea rsp, [rsp-8]; push rax; lea rax, [next]; mov [rsp+8], rax; pop rax
        self.blob.extend([0x48, 0x8d, 0x64, 0x24, 0xf8, 0x50, 0x48, 0x8d, 0x05]);
        self.distance_to(next + SHIFT);
        self.blob.extend([0x48, 0x89, 0x44, 0x24, 0x08, 0x58]);
        match (direct, through) {
            (Some(to), _) => {
                self.blob.push(0xe9);
                self.distance_to(to);
            }
            (None, slot) => {
                self.blob.extend([0xff, 0x25]);
                self.distance_to(slot.unwrap_or_default());
            }
        }
    }

    /// Four bytes: how far it is from behind them.
    fn distance_to(&mut self, to: u64) {
        let after = self.blob_address(self.blob.len() + 4);
        self.blob.extend((to.wrapping_sub(after) as i32).to_le_bytes());
    }

    /// Jumps of a function to its own beginning go to the island: the function is not called anew.
    fn restart_at(&mut self, jump: &Jump, island: usize) {
        let Some(function) = self.image.function_at(jump.function.start) else { return };
        let function = *self.image.function(function);
        let restarts = self.shape(&function).restarts.clone();
        for (from, bytes) in restarts {
            let Some(branch) = self.decode(from) else { continue };
            let to = branch.near_branch_target().wrapping_sub(SHIFT);
            let leads_here = to == jump.at || to == jump.function.start;
            if !leads_here || jump.region.contains(&from) || self.redirected.contains_key(&from) {
                continue;
            }
            let Some(mut new) = self.bytes(from, bytes).map(<[u8]>::to_vec) else { continue };
            if bytes < JUMP_BYTES as usize {
                continue;
            }
            let distance = self.blob_address(island).wrapping_sub(from + bytes as u64 + SHIFT) as i32;
            new[bytes - 4..].copy_from_slice(&distance.to_le_bytes());
            let _ = self.patch(from, new);
        }
    }
}
