//! Call sites: where the code of an image calls or jumps to a function, and whose function it is.
//!
//! Seen are direct calls, jumps to the beginning of another function (tail calls, conditional ones too), calls and jumps through a slot of
//! the dynamic linker, and the form of rustc and `-fno-plt`: the slot is loaded into a register that is used for nothing but calls.
//! Calls through other pointers are not seen; `body` sees those.

use crate::image::{Function, Image, Slot};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};
use rustc_hash::FxHashMap;

/// Who is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee<'data> {
    /// The function of this image that begins here.
    Own(u64),
    /// Whoever defines this name.
    Import(&'data str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite<'data> {
    /// The instruction that calls or jumps.
    pub address: u64,
    pub callee: Callee<'data>,
    /// Where the register that is called was loaded from a slot of the dynamic linker.
    pub loaded_at: Option<u64>,
    /// The function does not come back here.
    pub is_tail: bool,
}

pub fn sites<'data>(image: &Image<'data>, function: &Function<'data>) -> Vec<CallSite<'data>> {
    let mut sites = Vec::new();
    // Registers that hold the address of a function.
    let mut held: FxHashMap<Register, (Slot, u64)> = FxHashMap::default();
    let mut info = InstructionInfoFactory::new();
    let mut decoder = Decoder::with_ip(64, image.bytes_of(function), function.start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            continue;
        }
        let is_tail = !matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
        let transfers = instruction.is_call_near()
            || instruction.is_call_near_indirect()
            || instruction.is_jmp_short_or_near()
            || instruction.is_jmp_near_indirect()
            || instruction.is_jcc_short_or_near();
        if transfers && let Some(callee) = callee(image, function, &instruction, &held) {
            let loaded_at = (instruction.op0_kind() == OpKind::Register)
                .then(|| held.get(&instruction.op0_register()).map(|(_, at)| *at))
                .flatten();
            sites.push(CallSite { address: instruction.ip(), callee, loaded_at, is_tail });
        }
        for used in info.info(&instruction).used_registers() {
            if !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess) {
                held.remove(&used.register().full_register());
            }
        }
        if instruction.is_call_near() || instruction.is_call_near_indirect() {
            use Register::{R8, R9, R10, R11, RAX, RCX, RDI, RDX, RSI};
            for register in [RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11] {
                held.remove(&register);
            }
        }
        if instruction.mnemonic() == Mnemonic::Mov
            && instruction.op0_kind() == OpKind::Register
            && instruction.is_ip_rel_memory_operand()
            && let Some(slot) = image.slot(instruction.ip_rel_memory_address())
        {
            held.insert(instruction.op0_register(), (slot, instruction.ip()));
        }
    }
    sites
}

fn callee<'data>(
    image: &Image<'data>,
    function: &Function<'data>,
    instruction: &Instruction,
    held: &FxHashMap<Register, (Slot, u64)>,
) -> Option<Callee<'data>> {
    let of_slot = |slot: Slot| match slot {
        Slot::Name(ix) => Callee::Import(image.import(ix)),
        Slot::Own(ix) => Callee::Own(image.function(ix).start),
    };
    match instruction.op0_kind() {
        OpKind::NearBranch64 => {
            let target = instruction.near_branch_target();
            let inside = (function.start..function.end).contains(&target);
            if inside && !instruction.is_call_near() {
                return None;
            }
            direct(image, target, &of_slot)
        }
        OpKind::Memory if instruction.is_ip_rel_memory_operand() => {
            image.slot(instruction.ip_rel_memory_address()).map(of_slot)
        }
        OpKind::Register => held.get(&instruction.op0_register()).map(|(slot, _)| of_slot(*slot)),
        _ => None,
    }
}

/// Instructions of a stub of the procedure linkage table before it is given up: `endbr64`, `bnd jmp *slot(%rip)`.
const STUB_INSTRUCTIONS_MAX: usize = 3;

fn direct<'data>(
    image: &Image<'data>,
    target: u64,
    of_slot: &dyn Fn(Slot) -> Callee<'data>,
) -> Option<Callee<'data>> {
    let code = image.code_at(target)?;
    if !code.is_linkage {
        return image.function_from(target).map(|_| Callee::Own(target));
    }
    let bytes = &code.bytes[(target - code.start) as usize..];
    let decoder = Decoder::with_ip(64, bytes, target, DecoderOptions::NONE);
    let jump = decoder.into_iter().take(STUB_INSTRUCTIONS_MAX).find(Instruction::is_jmp_near_indirect)?;
    image.slot(jump.ip_rel_memory_address()).map(of_slot)
}
