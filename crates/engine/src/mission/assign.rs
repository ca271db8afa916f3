//! Agents that add assignments to the mission they work for, on their session socket.

use ostler_domain::{
    AssignmentId, Event, Kind, Name, Reason, Refusal, SessionId,
    ask::Ask,
    call::Reply,
    event::By,
    mission::{Input, Member, Request, State},
    query::EventFilter,
    session::Created,
};

use super::actor::Actor;
use crate::{Change, Engine};

/// Asks of one session that are looked through for some that nobody has settled.
const ASKS: u32 = 200;

impl Engine {
    /// Adds what a member's agent asks for, within what the mission and the agent's own rights let it.
    pub(crate) async fn assign(
        &self,
        asker: &Created,
        agents: &str,
        change: Change,
    ) -> Result<Reply, Refusal> {
        let Some(member) = asker.config.mission else {
            return Err(Refusal::new(Reason::PermissionDenied, "this session works for no mission"));
        };
        let state = self.current_mission(member.mission).await?;
        let members = self.members_to_add(&state, agents, &change).await?;
        self.check_providers(asker, &members, &state).await?;
        let names: Vec<Name> = members.iter().map(|member| member.name.clone()).collect();
        let from = Some(member.assignment);
        let fingerprint = format!("assign {agents}");
        let state = match change.done_before(&self.shared.store, &fingerprint).await? {
            Some(_) => self.current_mission(member.mission).await?,
            None => {
                let done = change.done(&fingerprint, member.mission.to_string());
                let request = Request::Add { members, from };
                self.ask_mission_of(member.mission, request, &change, done).await?
            }
        };
        Ok(Reply::Assigned { names: added(&state, &names, member.assignment) })
    }

    /// Members have providers that those of the mission's plan have, or that their adder may choose.
    async fn check_providers(
        &self,
        asker: &Created,
        members: &[Member],
        state: &State,
    ) -> Result<(), Refusal> {
        let planned = |provider: &String| {
            let plan = state.plan();
            plan.agents.iter().any(|member| plan.work(member).provider.as_ref() == Some(provider))
        };
        for provider in members.iter().filter_map(|member| member.settings.provider.as_ref()) {
            if !planned(provider) {
                self.check_may_choose(asker, provider).await?;
            }
        }
        Ok(())
    }

    /// What a session has asked to be added, and was not answered.
    async fn unanswered(&self, session: SessionId) -> Result<Vec<String>, Refusal> {
        let kinds = vec![Kind::Asked, Kind::AskSettled];
        let filter = EventFilter { session: Some(session), kinds, ..EventFilter::default() };
        let rows = self.shared.store.events_before(None, &filter, ASKS).await?.rows;
        let mut asked = Vec::new();
        for recorded in rows.into_iter().rev() {
            match recorded.event {
                Event::Asked(ask) => asked.push(*ask),
                Event::AskSettled(settled) => asked.retain(|ask| ask.at != settled.at),
                _ => {}
            }
        }
        let agents = asked.into_iter().filter_map(|asked| match asked.ask {
            Ask::Assign { agents } => Some(agents),
            _ => None,
        });
        Ok(agents.collect())
    }
}

impl Actor {
    /// Takes in what a session that has ended asked to be added before its end: whoever serves the ask may come later.
    pub(super) async fn assign_before_end(
        &mut self,
        session: SessionId,
        from: AssignmentId,
    ) -> Result<(), Refusal> {
        for agents in self.engine.unanswered(session).await? {
            let change = Change::by(By::session(session));
            let added = match self.members_asked_for(session, &agents, &change).await {
                Ok(members) => {
                    let request = Request::Add { members, from: Some(from) };
                    self.decide(Input::Request(request, change.by), None).await
                }
                Err(refusal) => Err(refusal),
            };
            if let Err(refusal) = added {
                tracing::info!(mission = %self.state.id(), %session, %refusal, "what its agent asked for is not added");
            }
        }
        Ok(())
    }

    async fn members_asked_for(
        &self,
        session: SessionId,
        agents: &str,
        change: &Change,
    ) -> Result<Vec<Member>, Refusal> {
        let members = self.engine.members_to_add(&self.state, agents, change).await?;
        let asker = self.engine.state_of(session).await?;
        self.engine.check_providers(asker.created(), &members, &self.state).await?;
        Ok(members)
    }
}

/// The names of the assignments that these members have come to.
fn added(state: &State, members: &[Name], by: AssignmentId) -> Vec<Name> {
    let is = |member: &Member| members.contains(&member.name);
    let of = state.slots().iter().map(|slot| &slot.assignment);
    let of = of.filter(|assignment| assignment.added_by == Some(by));
    of.filter(|assignment| is(&state.plan().agents[assignment.member as usize]))
        .map(|assignment| assignment.name.clone())
        .collect()
}
