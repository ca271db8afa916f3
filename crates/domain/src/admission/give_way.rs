//! Which idle sessions end because others wait for what they hold.

use std::{cmp::Reverse, time::Duration};

use super::{Candidate, For, Hold, Limits, Room, Running, Taken};
use crate::{SessionId, limits::GIVES_WAY_AFTER};

/// The longest idle first, one for each that waits at most: who needs more than that is helped again when the line is
/// gone through next. What those free that are ending already is given to those who wait before anybody else has to go.
pub(super) fn choose(
    waiting: &[(Candidate, For)],
    running: &[Running],
    taken: Taken,
    limits: &Limits,
    room: Room,
) -> Vec<SessionId> {
    let mut later = Later { taken, room };
    running.iter().filter(|one| one.hold == Hold::Leaves).for_each(|one| later.without(one));
    let mut idle = long_idle(running);
    let mut chosen = Vec::new();
    for (one, what) in waiting {
        // Nobody's end gives these what they wait for, nor anybody behind them.
        if matches!(what, For::Drain { .. } | For::Disk { .. }) {
            break;
        }
        let mut missing = later.missing(one, limits);
        if !missing.is_empty()
            && let Some(at) = holder(&idle, what, &missing)
        {
            let leaves = idle.remove(at);
            later.without(leaves);
            chosen.push(leaves.id);
            missing = later.missing(one, limits);
        }
        if missing.is_empty() {
            later.taken.add(&one.campaign, (&one.provider, one.account.as_ref()), true, one.memory);
        } else if missing.iter().any(|what| matches!(what, For::Memory { .. })) {
            // Whoever comes behind it does not pass it by.
            break;
        }
    }
    chosen
}

/// What is in use once those are gone that end.
struct Later {
    taken: Taken,
    room: Room,
}

impl Later {
    fn without(&mut self, one: &Running) {
        self.taken.remove(one);
        self.room.memory = self.room.memory.map(|free| free.saturating_add(one.frees));
    }

    fn missing(&self, one: &Candidate, limits: &Limits) -> Vec<For> {
        self.taken.missing(one, limits, &self.room).collect()
    }
}

fn long_idle(running: &[Running]) -> Vec<&Running> {
    let span = |one: &Running| match one.hold {
        Hold::Idle(span) if span >= GIVES_WAY_AFTER => Some(span),
        Hold::Idle(_) | Hold::Firm | Hold::Leaves => None,
    };
    let mut idle: Vec<(Duration, &Running)> =
        running.iter().filter_map(|one| Some((span(one)?, one))).collect();
    idle.sort_by_key(|(span, one)| (Reverse(*span), one.id));
    idle.into_iter().map(|(_, one)| one).collect()
}

/// Of those who hold what is waited for, who holds the most of what else is missing, the longest idle of them. None
/// where idle ones do not hold all that is missing: then nobody would be helped.
fn holder(idle: &[&Running], what: &For, missing: &[For]) -> Option<usize> {
    let is_held = |what: &For| idle.iter().any(|one| holds(one, what));
    if !missing.iter().all(is_held) {
        return None;
    }
    let held = |one: &Running| missing.iter().filter(|what| holds(one, what)).count();
    let fit = idle.iter().enumerate().filter(|(_, one)| holds(one, what));
    fit.max_by_key(|(at, one)| (held(one), Reverse(*at))).map(|(at, _)| at)
}

fn holds(one: &Running, what: &For) -> bool {
    match what {
        For::Slot { .. } | For::Memory { .. } => true,
        For::CampaignSlot { campaign, .. } => one.campaign == *campaign,
        For::ProviderSlot { provider, .. } => one.provider == *provider,
        For::AccountSlot { account, .. } => one.account.as_ref() == Some(account),
        For::Drain { .. } | For::Disk { .. } | For::Start { .. } => false,
    }
}
