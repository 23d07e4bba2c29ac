//! What a branch knows about a variable: the test that led into it.
//!
//! `(if (null? l) 0 (car l))` takes the `car` of what `l` holds beside the empty list. A variable that is never assigned may
//! be copied at any time without anybody noticing, so the branch gets a copy of its own in which the values that the test
//! excludes are left out. This is done where one store describes all moments; elsewhere states tell the branches apart.

use crate::abs::space::*;
use crate::abs::trie::Root;
use crate::abs::value::{AbsVal, Flat, Reference, Whole, bit};
use crate::concrete::state::Origin;
use crate::syntax::core::{Expr, ExprId, VarId};
use crate::syntax::prim::Prim;

/// What was asked of a variable.
#[derive(Clone, Copy)]
enum Asked {
    Truth,
    Null,
    Pair,
}

impl Space<'_> {
    /// The environment and the store of the branch of an `if` whose test holds, or does not.
    pub(super) fn refine(&mut self, site: ExprId, holds: bool, env: EnvId, store: Root) -> (EnvId, Root) {
        let unchanged = (env, store);
        if !self.config.weak {
            return unchanged;
        }
        let Expr::If(test, ..) = self.program.expr(site) else { return unchanged };
        let Some((var, asked, holds)) = self.asked(*test, holds) else { return unchanged };
        let info = self.program.var(var);
        if info.global || info.assigned || !info.quiet {
            return unchanged;
        }
        let addr = self.var_addr(var, env);
        let (Some(value), Addr::Cell(_, _, time)) = (self.lookup_value(store, addr), self.addr_of(addr))
        else {
            return unchanged;
        };
        let known = self.value_of(value);
        let rest = left(&known, asked, holds);
        if rest.is_none() {
            return unchanged;
        }
        // The branch gets its copy even if the test excludes nothing yet: the store grows, and a branch that reads the variable
        // itself would find there what the test excludes. Copies are told from the variable itself by their cell.
        let cell = 1 + 2 * asked as u32 + holds as u32;
        let copy = self.addr(Addr::Cell(Origin::Var(var), cell, time));
        let rest = self.value(rest);
        let store = self.alloc(store, copy, rest, false);
        let mut bound = self.env_of(env).to_vec();
        if let Ok(at) = bound.binary_search_by_key(&var, |entry| entry.0) {
            bound[at].1 = copy;
        }
        (self.env(&bound), store)
    }

    /// The variable that a test asks about, and what its outcome says.
    fn asked(&self, test: ExprId, holds: bool) -> Option<(VarId, Asked, bool)> {
        match self.program.expr(test) {
            Expr::Var(var) => Some((*var, Asked::Truth, holds)),
            Expr::PrimCall(Prim::Not, args) => self.asked(args[0], !holds),
            Expr::PrimCall(prim @ (Prim::IsNull | Prim::IsPair), args) => match self.program.expr(args[0]) {
                Expr::Var(var) => {
                    Some((*var, if *prim == Prim::IsNull { Asked::Null } else { Asked::Pair }, holds))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// The values for which the answer comes out so.
fn left(value: &AbsVal, asked: Asked, holds: bool) -> AbsVal {
    let nothing = AbsVal { int: Whole::None, string: Flat::None, ..AbsVal::default() };
    let mut rest = value.clone();
    match (asked, holds) {
        (Asked::Truth, true) => rest.bits &= !bit::FALSE,
        (Asked::Truth, false) => rest = AbsVal { bits: value.bits & bit::FALSE, ..nothing },
        (Asked::Null, true) => rest = AbsVal { bits: value.bits & bit::NIL, ..nothing },
        (Asked::Null, false) => rest.bits &= !bit::NIL,
        (Asked::Pair, true) => {
            rest = AbsVal { refs: value.refs.clone(), ..nothing };
            rest.refs.retain(|r| matches!(r, Reference::Pair(_)));
        }
        (Asked::Pair, false) => rest.refs.retain(|r| !matches!(r, Reference::Pair(_))),
    }
    rest
}
