//! What an agent adds has no more rights than the agent itself: it is narrowed to them, and refused where it asks for
//! others.

use crate::{
    Reason, Refusal,
    mission::{Member, Plan, Work, lease::lies_within, plan::Worktree},
};

/// The member, as far as one that does this work may add it.
pub(super) fn narrowed(plan: &Plan, mut member: Member, adder: &Work) -> Result<Member, Refusal> {
    let denied = |message: String| Err(Refusal::new(Reason::PermissionDenied, message));
    let said = &member.settings;
    // Who it is, whose key it uses and who answers for it are a person's to say.
    if member.agent.is_some() || said.approve.is_some() || said.account.is_some() {
        return denied(format!("an agent says neither agent, account nor approve of {}", member.name));
    }
    if let Some(Worktree::Branch(branch)) = &said.worktree {
        return denied(format!("an agent does not say that {} works on {branch}", member.name));
    }
    if adder.worktree != Worktree::None && said.worktree == Some(Worktree::None) {
        return denied(format!("{} would work where its adder may not: in the campaign itself", member.name));
    }
    let outside = |path: &&String| !adder.paths.iter().any(|leased| lies_within(path, leased));
    if let Some(path) = member.paths.iter().find(outside).filter(|_| !adder.paths.is_empty()) {
        return denied(format!("{} would write {path}, which its adder may not", member.name));
    }
    if member.paths.is_empty() {
        member.paths.clone_from(&adder.paths);
    }
    let wanted = plan.work(&member);
    let settings = &mut member.settings;
    settings.budget = match (wanted.budget, adder.budget) {
        (Some(wanted), Some(own)) => Some(wanted.at_most(own)),
        (wanted, own) => wanted.or(own),
    };
    let timeout = wanted.timeout.into_iter().chain(adder.timeout).min();
    settings.timeout_us = timeout.map(crate::mission::words::micros);
    settings.priority = Some(wanted.priority.min(adder.priority));
    settings.approve = adder.approve;
    if wanted.provider == adder.provider {
        settings.account.clone_from(&adder.account);
    }
    if adder.worktree != Worktree::None {
        settings.worktree = Some(Worktree::Own);
    }
    Ok(member)
}
