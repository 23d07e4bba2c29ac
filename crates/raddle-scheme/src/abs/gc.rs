//! Abstract garbage collection (§3.2 of the paper; Might and Shivers, *Improving Flow Analyses via ΓCFA*, 2006).
//!
//! An address that no thread can reach is dropped from the store. A context reaches the variables that its remaining
//! code mentions (not all of its environment), the values it holds, and its continuation; the walk then follows the
//! store. With several threads an address goes only when none of them reaches it.

use super::space::*;
use super::trie::Root;
use super::value::{AbsVal, Reference};
use crate::syntax::core::{ExprId, VarId};
use rustc_hash::FxHashSet;
use std::rc::Rc;

impl Space<'_> {
    /// Restricts a store to what the given contexts reach.
    pub fn collect(&mut self, ctxs: &[CtxId], store: Root) -> Root {
        let mut walk = Walk { seen: FxHashSet::default(), work: Vec::new() };
        for &ctx in ctxs {
            self.roots(ctx, &mut walk);
        }
        // Top-level variables are named by code, which is never garbage.
        self.globals.iter().filter(|&&addr| addr != HALT).for_each(|&addr| walk.meet(addr));
        while let Some(addr) = walk.work.pop() {
            match self.lookup(store, addr).map(|entry| entry.content) {
                Some(Content::Value(value)) => {
                    let value = self.value_of(value);
                    self.reach_value(&value, &mut walk);
                }
                Some(Content::Konts(konts)) => {
                    for &(frame, next) in self.konts_of(konts).iter() {
                        walk.meet(next);
                        self.reach_frame(frame, &mut walk);
                    }
                }
                None => {}
            }
        }
        let mut tries = std::mem::take(&mut self.tries);
        let kept = tries.filter(store, &mut |key| walk.seen.contains(&AddrId(key)));
        self.tries = tries;
        kept
    }

    fn roots(&mut self, ctx: CtxId, walk: &mut Walk) {
        let ctx = self.ctx_of(ctx);
        walk.meet(ctx.kont);
        match ctx.control {
            Control::Eval(expr, env) => {
                let program = self.program;
                self.reach_env(env, program.free(expr), walk);
            }
            Control::Resume(frame, value) => {
                let value = self.value_of(value);
                self.reach_value(&value, walk);
                self.reach_frame(frame, walk);
            }
            Control::Done(value) => {
                let value = self.value_of(value);
                self.reach_value(&value, walk);
            }
        }
    }

    fn reach_env(&self, env: EnvId, live: &[VarId], walk: &mut Walk) {
        for &(var, addr) in self.env_of(env).iter() {
            if live.binary_search(&var).is_ok() {
                walk.meet(addr);
            }
        }
    }

    fn reach_frame(&mut self, frame: FrameId, walk: &mut Walk) {
        let frame = self.frame_of(frame);
        for &value in &frame.values {
            let value = self.value_of(value);
            self.reach_value(&value, walk);
        }
        let live = self.live(frame.expr, frame.index);
        self.reach_env(frame.env, &live, walk);
    }

    fn reach_value(&mut self, value: &AbsVal, walk: &mut Walk) {
        for &reference in &value.refs {
            match reference {
                Reference::Symbol(_) | Reference::Prim(_) => {}
                Reference::Closure(_, env) => self.env_of(env).iter().for_each(|entry| walk.meet(entry.1)),
                Reference::Pair(car) => {
                    walk.meet(car);
                    let cdr = self.sibling(car, 1);
                    walk.meet(cdr);
                }
                Reference::Vector(length) => {
                    walk.meet(length);
                    for cell in self.vector_cells(length) {
                        walk.meet(cell);
                    }
                }
                Reference::Ref(addr) | Reference::Lock(addr) | Reference::Kont(addr) => walk.meet(addr),
                Reference::Thread(tid) => {
                    let addr = self.addr(Addr::Result(tid));
                    walk.meet(addr);
                }
            }
        }
    }

    /// Variables that a frame of the expression still needs after part `index`.
    pub fn live(&mut self, expr: ExprId, index: u32) -> Rc<[VarId]> {
        if let Some(live) = self.live.get(&(expr, index)) {
            return live.clone();
        }
        let (parts, written) = self.program.remaining(expr, index);
        let mut vars: Vec<VarId> = written.into_iter().collect();
        parts.iter().for_each(|&part| vars.extend_from_slice(self.program.free(part)));
        vars.sort_unstable();
        vars.dedup();
        let live: Rc<[VarId]> = vars.into();
        self.live.insert((expr, index), live.clone());
        live
    }
}

struct Walk {
    seen: FxHashSet<AddrId>,
    work: Vec<AddrId>,
}

impl Walk {
    fn meet(&mut self, addr: AddrId) {
        if self.seen.insert(addr) {
            self.work.push(addr);
        }
    }
}
