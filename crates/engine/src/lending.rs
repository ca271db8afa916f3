//! Budgets that several sessions have a part of: a session's helpers, theirs, and whoever goes on with one of them. What is
//! given is set aside first, so that it is never given twice; what a helper leaves of it is its asker's again.

use std::time::Duration;

use ostler_domain::{
    Reason, Refusal, SessionId,
    ask::HELPERS,
    budget::{Amount, Budget, Family, Lent, Member, Used},
    campaign::Campaign,
    gateway::Spent,
    limits::FAMILY_SESSIONS,
    session::Config,
};
use tokio::{sync::oneshot, time::timeout};

use crate::{
    Engine, NewSession,
    place::Place,
    session::{Command, Handle},
    shared::Shared,
};

/// A gateway answers in milliseconds; one that does not is not there.
const HEEDED_WITHIN: Duration = Duration::from_secs(5);

/// Whose budget a new session has a part of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lender {
    /// That of whoever asked for it: as much as it wants, or an equal part.
    Asker(SessionId),
    /// That of the one that it goes on with: all that is left.
    Before(SessionId),
}

impl Lender {
    /// None for one that a person starts, and gives a budget of its own.
    pub(crate) fn of(place: &Place, wanted: &NewSession) -> Option<Lender> {
        match (place.continues, place.spawned_by) {
            (Some(before), _) => wanted.handed.is_some().then_some(Lender::Before(before)),
            (None, asker) => asker.map(Lender::Asker),
        }
    }

    fn id(self) -> SessionId {
        match self {
            Lender::Asker(id) | Lender::Before(id) => id,
        }
    }
}

impl Engine {
    /// Gives a new session its part of another one's budget, set aside from that until [`Shared::charge`] hears that it was
    /// created, or was not. Nobody else is created meanwhile.
    pub(crate) async fn lend(
        &self,
        from: Lender,
        config: &mut Config,
        campaign: &Campaign,
    ) -> Result<(), Refusal> {
        let amount = config.budget.map(|budget| budget.amount()).unwrap_or_default();
        let lent = self.set_aside(from, amount, campaign).await;
        let given = lent.and_then(|given| {
            let budget = Budget::new(given, config.when_used_up);
            config.budget = (given != Amount::default()).then_some(budget);
            self.check_price(campaign, config)
        });
        if given.is_err() {
            self.shared.charge(from).await;
        }
        given
    }

    async fn set_aside(&self, from: Lender, amount: Amount, campaign: &Campaign) -> Result<Amount, Refusal> {
        let (root, holder) = self.shared.holder(from.id()).await?;
        let family = self.shared.family(root, None).await?;
        let room = family.room(from.id())?;
        let given = match from {
            Lender::Before(_) => room.least(amount),
            Lender::Asker(asker) => {
                let most = campaign.policy.limits.helpers.unwrap_or(HELPERS);
                let free = most.saturating_sub(family.helpers_at_work(asker)).max(1);
                room.grant(amount, free)
            }
        };
        match holder.filter(|_| given != Amount::default()) {
            None => Ok(given),
            Some((id, handle)) => {
                let counted = heeded(&handle, given).await?;
                // What its gateway had let pass by then is not left, whether the record has it yet or not.
                let family = self.shared.family(root, counted.map(|counted| (id, counted))).await?;
                Ok(family.room(from.id())?.least(given))
            }
        }
    }

    /// A helper has no more time than whoever asked for it.
    pub(crate) async fn time_of_asker(&self, asker: SessionId) -> Result<Option<Duration>, Refusal> {
        let Some(loaded) = self.shared.store.load_session(asker).await? else { return Ok(None) };
        match loaded.state.time_left(&self.shared.clock.now()) {
            Some(left) if left.is_zero() => Err(Refusal::new(
                Reason::WrongState,
                format!("session {} has no time left for helpers", asker.short()),
            )),
            left => Ok(left),
        }
    }
}

/// Has a session's calls end where they leave so much, and says what they had taken by then by its gateway's count.
async fn heeded(handle: &Handle, amount: Amount) -> Result<Option<Spent>, Refusal> {
    let (heeded, is_heeded) = oneshot::channel();
    let told = handle.commands.send(Command::Lend { amount, heeded }).await;
    match (told, timeout(HEEDED_WITHIN, is_heeded).await) {
        (Ok(()), Ok(Ok(counted))) => Ok(counted),
        // It has ended since: then nothing of it is used any more.
        (Err(_), _) => Ok(None),
        (Ok(()), _) => Err(Refusal::new(
            Reason::WrongState,
            "nobody can say how much of the budget is left: the session's gateway does not answer",
        )),
    }
}

impl Shared {
    /// The sessions that one budget was divided among. `counted` is how far one of them has come by its gateway's count.
    async fn family(&self, root: SessionId, counted: Option<(SessionId, Spent)>) -> Result<Family, Refusal> {
        let Some(views) = self.store.family_of(root).await? else {
            return Err(Refusal::new(
                Reason::WrongState,
                format!("session {} has had more than {FAMILY_SESSIONS} helpers", root.short()),
            ));
        };
        let prices = self.prices.current();
        let mut members: Vec<Member> = views.iter().map(|view| Member::of(view, &prices)).collect();
        if let Some((id, counted)) = counted
            && let Some(member) = members.iter_mut().find(|member| member.id == id)
        {
            let used = &member.used;
            member.used = Used {
                tokens: used.tokens.max(counted.tokens),
                dollars: used.dollars.max(counted.dollars),
                unpriced: used.unpriced.clone(),
            };
        }
        Ok(Family::of(members))
    }

    /// The session at whose budget it ends how much there is below another one, and the one that has to heed what is given:
    /// itself, or the first above it that has not ended.
    async fn holder(&self, id: SessionId) -> Result<(SessionId, Option<(SessionId, Handle)>), Refusal> {
        let mut at = id;
        loop {
            let Some(view) = self.store.session(at).await? else { return Ok((at, None)) };
            let above = view.continues.or(view.spawned_by).filter(|_| view.budget.is_some());
            match (view.outcome, above) {
                (Some(_), Some(above)) => at = above,
                (Some(_), None) => return Ok((at, None)),
                (None, _) => {
                    let handle = self.sessions.get(&at).ok_or_else(|| {
                        Refusal::new(
                            Reason::WrongState,
                            format!("session {} is still being looked for", at.short()),
                        )
                    })?;
                    return Ok((at, Some((at, handle))));
                }
            }
        }
    }

    /// What a session's helpers took of its budget may have changed: one of them was created, or not, or has ended.
    pub(crate) async fn charge(&self, from: Lender) {
        match self.holder(from.id()).await {
            // Nobody listens where it has just ended.
            Ok((_, Some((_, handle)))) => drop(handle.commands.send(Command::Helpers).await),
            Ok((_, None)) => {}
            Err(refusal) => tracing::warn!(session = %from.id(), %refusal, "its helpers' use is not known"),
        }
    }

    /// What helpers took of a session's budget.
    pub(crate) async fn lent_by(&self, id: SessionId) -> Result<Lent, Refusal> {
        Ok(self.family(id, None).await?.lent(id))
    }
}
