//! Telling the `raddle` process how a steered run ended by decree, and ending it.

use super::scheduler::World;
use super::stations::station;
use super::{debugger, standing, tasks};
use crate::{real, run};
use core::sync::atomic::Ordering;
use raddle_sched::{Conclusion, Phase, Sched, ThreadIx};
use raddle_wire::Header;
use raddle_wire::region::{PARTIES_MAX, outcome};
use raddle_wire::step::{self, StepWord};

fn code(conclusion: &Conclusion) -> u32 {
    match conclusion {
        Conclusion::Deadlock { .. } => outcome::DEADLOCK,
        Conclusion::Parked => outcome::PARKED,
        Conclusion::Diverged { .. } => outcome::DIVERGED,
        Conclusion::Stuck => outcome::STUCK,
        Conclusion::TooManyThreads => outcome::TOO_MANY_THREADS,
    }
}

/// Says how the run ended and ends the program.
pub fn conclude(sched: &Sched<'_>, conclusion: Conclusion) -> ! {
    if let Some(header) = run::header() {
        match conclusion {
            Conclusion::Diverged { thread, expected } => tell_divergence(header, sched, thread, expected),
            Conclusion::Deadlock { .. }
            | Conclusion::Parked
            | Conclusion::Stuck
            | Conclusion::TooManyThreads => tell_parties(header, sched, &conclusion),
        }
        standing::tell_stacks(header, sched, code(&conclusion), |ix| {
            conclusion.concerns(ix, &sched.roster[ix])
        });
        header.outcome.store(code(&conclusion), Ordering::Release);
    }
    end_run()
}

fn tell_parties(header: &Header, sched: &Sched<'_>, conclusion: &Conclusion) {
    let mut count = 0;
    for ix in sched.roster.living() {
        let entry = &sched.roster[ix];
        if count >= PARTIES_MAX || !conclusion.concerns(ix, entry) {
            continue;
        }
        let party = &header.parties[count];
        let parked = entry.phase() == Phase::Parked;
        let thread = station(ix).thread();
        party.path.store(thread.turns.path.get(), Ordering::Relaxed);
        party.thread.store(entry.index, Ordering::Relaxed);
        let kind = if parked { step::NONE } else { entry.request.kind };
        party.kind.store(u32::from(kind), Ordering::Relaxed);
        party.pc.store(if parked { entry.access.pc } else { entry.request.pc }, Ordering::Relaxed);
        let object = if parked { entry.access.address } else { entry.request.object };
        party.object.store(object as u64, Ordering::Relaxed);
        let holder = sched.holder(ix, &World).map_or(u32::MAX, |holder| sched.roster[holder].index);
        party.holder.store(holder, Ordering::Relaxed);
        party.ordinal.store(thread.turns.steps(), Ordering::Relaxed);
        party.phase.store(entry.phase() as u32, Ordering::Relaxed);
        let detail = entry.access.bytes as u64 | u64::from(entry.access.aux) << 32;
        party.detail.store(if parked { detail } else { 0 }, Ordering::Relaxed);
        count += 1;
    }
    header.party_count.store(count as u32, Ordering::Relaxed);
}

fn tell_divergence(header: &Header, sched: &Sched<'_>, ix: ThreadIx, expected: Option<StepWord>) {
    let entry = &sched.roster[ix];
    let party = &header.parties[0];
    let thread = station(ix).thread();
    party.path.store(thread.turns.path.get(), Ordering::Relaxed);
    party.thread.store(entry.index, Ordering::Relaxed);
    party.kind.store(u32::from(entry.request.kind), Ordering::Relaxed);
    party.pc.store(entry.request.pc, Ordering::Relaxed);
    party.object.store(entry.request.object as u64, Ordering::Relaxed);
    party.ordinal.store(thread.turns.steps() + 1, Ordering::Relaxed);
    party.detail.store(expected.map_or(u64::MAX, StepWord::pack), Ordering::Relaxed);
    header.party_count.store(1, Ordering::Relaxed);
}

/// The run makes no progress, or `raddle` asks: where is everybody?
pub fn report(sched: &mut Sched<'_>) {
    sched.pass_over_where(|_, entry| tasks::asleep(entry.os_tid).then_some(entry.is_lost()));
    sched.conclude(Conclusion::Stuck);
}

/// The run has shown what it was to show.
fn end_run() -> ! {
    if debugger::on() {
        debugger::stop();
    }
    super::kept::end_with_exit(raddle_wire::region::OUTCOME_STATUS);
    real::exit_group(raddle_wire::region::OUTCOME_STATUS)
}
