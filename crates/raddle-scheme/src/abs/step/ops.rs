//! What a context is about to do, as far as others can notice, and what that depends on.

use super::{AbsOp, Ops, View};
use crate::abs::space::*;
use crate::abs::trie::Root;
use crate::abs::value::{self, Reference, ValId, bit};
use crate::machine::access::Action;
use crate::machine::plan::Plan;
use crate::syntax::core::{ExprId, VarId};
use crate::syntax::prim::{Prim, Touch};
use smallvec::SmallVec;

impl Space<'_> {
    /// The threads that a context is about to join, if it is.
    pub fn join_targets(&self, ctx: CtxId) -> Option<SmallVec<[TidId; 2]>> {
        let (_, Plan::Join(value), _) = self.plan(self.ctx_of(ctx))? else { return None };
        let value = self.value_of(value);
        Some(
            value
                .refs
                .iter()
                .filter_map(|r| if let Reference::Thread(tid) = r { Some(*tid) } else { None })
                .collect(),
        )
    }

    /// Whether the next step only walks into an expression or evaluates an atomic one that nobody can change: the
    /// paper's machine evaluates atomic expressions in no time.
    pub fn is_administrative(&self, ctx: CtxId) -> bool {
        match self.plan(self.ctx_of(ctx)) {
            Some((
                _,
                Plan::Constant(_) | Plan::Lambda(_) | Plan::Prim(_) | Plan::Push { .. } | Plan::Tail(_),
                _,
            )) => true,
            Some((_, Plan::Read(var), _)) => !self.program.visible_var(var),
            _ => false,
        }
    }

    /// What others could notice of the next step. Empty when the step is local.
    pub fn ops(&mut self, view: View, ctx: CtxId) -> Ops {
        let ctx = self.ctx_of(ctx);
        let Some((site, plan, env)) = self.plan(ctx) else { return Ops::new() };
        let mut ops = Ops::new();
        let mut op = |action, addr, written| {
            ops.push(AbsOp { action, site, addr, written, may_go: true, may_wait: false });
        };
        match plan {
            Plan::Read(var) if self.program.visible_var(var) => {
                op(Action::Read, self.var_addr(var, env), None)
            }
            Plan::Set { var, value } | Plan::Initialise { var, value, .. }
                if self.program.visible_var(var) =>
            {
                op(Action::Write, self.var_addr(var, env), Some(value));
            }
            Plan::CasVar { var, old, new } => {
                let addr = self.var_addr(var, env);
                op(self.cas_action(view.store, addr, old), addr, Some(new));
            }
            Plan::LockVar { var, acquire } => {
                return self.lock_ops(view, site, self.lock_addrs_of_var(view, var, env), acquire);
            }
            Plan::LockValue { lock, acquire } => {
                let locks = self.locks_in(lock);
                return self.lock_ops(view, site, locks, acquire);
            }
            Plan::Join(value) => return self.join_ops(view, site, value),
            Plan::PrimApply { prim, args } => return self.prim_ops(view, site, prim, &args),
            Plan::Apply { f, args } => {
                for &reference in &self.value_of(f).refs {
                    if let Reference::Prim(prim) = reference {
                        ops.extend(self.prim_ops(view, site, prim, &args));
                    }
                }
            }
            _ => {}
        }
        ops
    }

    pub(super) fn cas_action(&mut self, store: Root, addr: AddrId, old: ValId) -> Action {
        let now = self.lookup_value(store, addr).map(|v| self.read_value(v));
        match now.map(|v| self.value_of(v)) {
            Some(now) if now.meets(&self.value_of(old)) => Action::CasSucceeds,
            _ => Action::CasFails,
        }
    }

    pub(super) fn lock_addrs_of_var(&self, view: View, var: VarId, env: EnvId) -> SmallVec<[AddrId; 2]> {
        let addr = self.var_addr(var, env);
        let Some(value) = self.lookup_value(view.store, addr) else { return SmallVec::new() };
        let mut locks = self.locks_in(value);
        if self.value_of(value).bits & bit::LOCK != 0 {
            locks.push(addr);
        }
        locks
    }

    pub(super) fn locks_in(&self, value: ValId) -> SmallVec<[AddrId; 2]> {
        let value = self.value_of(value);
        value
            .refs
            .iter()
            .filter_map(|r| if let Reference::Lock(addr) = r { Some(*addr) } else { None })
            .collect()
    }

    pub(super) fn lock_bits(&self, store: Root, addr: AddrId) -> u16 {
        self.lookup_value(store, addr).map_or(0, |v| self.value_of(v).bits)
    }

    pub(super) fn lock_ops(
        &self,
        view: View,
        site: ExprId,
        locks: SmallVec<[AddrId; 2]>,
        acquire: bool,
    ) -> Ops {
        let action = if acquire { Action::Acquire } else { Action::Release };
        locks
            .into_iter()
            .map(|addr| {
                let bits = self.lock_bits(view.store, addr);
                let may_go = !acquire || bits & bit::UNLOCKED != 0;
                let may_wait = acquire && bits & (bit::LOCKED | bit::TAKEN) != 0;
                AbsOp { action, site, addr, written: None, may_go, may_wait }
            })
            .collect()
    }

    pub(super) fn join_ops(&mut self, view: View, site: ExprId, value: ValId) -> Ops {
        let mut ops = Ops::new();
        for &reference in &self.value_of(value).refs {
            let Reference::Thread(tid) = reference else { continue };
            let addr = self.addr(Addr::Result(tid));
            let may_go = self.lookup(view.store, addr).is_some();
            let may_wait = view.is_live(tid);
            // An ended thread stays ended: joining it is no business of others.
            if may_wait || !may_go {
                ops.push(AbsOp { action: Action::Join, site, addr, written: None, may_go, may_wait: true });
            }
        }
        ops
    }

    pub(super) fn prim_ops(&mut self, view: View, site: ExprId, prim: Prim, args: &[ValId]) -> Ops {
        let touch = prim.touch();
        let cas = matches!(touch, Touch::CasRef | Touch::CasVector);
        if !prim.accepts(args.len()) || !(self.program.visible_touch(touch) || cas) {
            return Ops::new();
        }
        let (addrs, _) = self.touched(view.store, prim, args);
        let written = args.last().copied();
        addrs
            .into_iter()
            .map(|addr| {
                let (action, written) = match touch {
                    Touch::ReadPair | Touch::ReadVector | Touch::ReadRef => (Action::Read, None),
                    _ if cas => (self.cas_action(view.store, addr, args[args.len() - 2]), written),
                    _ => (Action::Write, written),
                };
                AbsOp { action, site, addr, written, may_go: true, may_wait: false }
            })
            .collect()
    }

    /// Whether an index is certainly one of a vector whose length is known, if not from the text.
    fn is_within(&self, store: Root, length: AddrId, at: value::Whole) -> bool {
        let Some(length) = self.lookup_value(store, length) else { return false };
        match (at, self.value_of(length).int) {
            (value::Whole::One(at), value::Whole::One(length)) => (0..length).contains(&at),
            (value::Whole::Below(bound), value::Whole::One(length)) => i64::from(bound) <= length,
            _ => false,
        }
    }

    /// The cells a primitive may touch, and whether it may fail instead.
    pub(super) fn touched(
        &mut self,
        store: Root,
        prim: Prim,
        args: &[ValId],
    ) -> (SmallVec<[AddrId; 4]>, bool) {
        let base = self.value_of(args[0]);
        let mut addrs: SmallVec<[AddrId; 4]> = SmallVec::new();
        let mut may_fail =
            base.bits != 0 || base.int != value::Whole::None || base.string != value::Flat::None;
        for &reference in &base.refs {
            match (prim.touch(), reference) {
                (Touch::ReadPair | Touch::WritePair, Reference::Pair(car)) => {
                    addrs.push(if matches!(prim, Prim::Cdr | Prim::SetCdr) {
                        self.sibling(car, 1)
                    } else {
                        car
                    });
                }
                (Touch::ReadRef | Touch::WriteRef | Touch::CasRef, Reference::Ref(addr)) => addrs.push(addr),
                (Touch::ReadVector | Touch::WriteVector | Touch::CasVector, Reference::Vector(length)) => {
                    let cells = self.vector_cells(length);
                    let at = self.value_of(args[1]);
                    let Addr::Length(site, _) = self.addr_of(length) else {
                        unreachable!("a vector has a length")
                    };
                    match (at.int, self.vector_size(site)) {
                        (value::Whole::One(at), Some(size)) if (0..i64::from(size)).contains(&at) => {
                            addrs.push(cells[at as usize]);
                        }
                        (value::Whole::Below(bound), Some(size)) if bound <= size => {
                            addrs.extend(cells.into_iter().take(bound as usize));
                        }
                        (value::Whole::None, _) | (value::Whole::One(_), Some(_)) => may_fail = true,
                        (at, None) if self.is_within(store, length, at) => addrs.extend(cells),
                        _ => {
                            may_fail = true;
                            addrs.extend(cells);
                        }
                    }
                    may_fail |= at.bits != 0 || !at.refs.is_empty() || at.string != value::Flat::None;
                }
                _ => may_fail = true,
            }
        }
        (addrs, may_fail)
    }
}
