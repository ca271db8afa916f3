//! Who works in the made-up campaigns, and on what: registered agents, and tickets that outlive their sessions.

use std::{collections::HashMap, time::Duration};

use ostler_domain::{
    AgentId, Event, Name, SessionId, TicketId, Time,
    agent::{Agent, Profile},
    campaign::Campaign,
    event::{By, TicketAdded, TicketMoved},
    session::{AgentRef, Outcome},
    ticket::{About, AfterSession, Links, Status, USUAL_TYPE, Verb},
};
use ostler_testkit::Seed;

use super::words::{entropy, text};

/// The agents of every campaign, by their roles.
const ROLES: [&str; 3] = ["planner", "builder", "reviewer"];
/// Tickets that a campaign's tracker has at most.
const TICKETS: u64 = 20_000;

/// The agents of one campaign, added with it.
pub(super) fn agents(campaign: &Campaign, seed: &mut Seed) -> Vec<Agent> {
    let agent = |(n, role): (usize, &str)| {
        let role: Name = role.parse().unwrap_or_else(|_| unreachable!("a role is a name"));
        let added = campaign.added.plus(Duration::from_millis(1 + n as u64));
        let profile = Profile { role: role.clone(), ..Profile::default() };
        Agent { id: AgentId::new(added, entropy(seed)), campaign: campaign.id, name: role, added, profile }
    };
    ROLES.into_iter().enumerate().map(agent).collect()
}

pub(super) fn reference(agent: &Agent) -> AgentRef {
    AgentRef { id: agent.id, name: agent.name.clone(), role: agent.profile.role.clone() }
}

/// What the trackers of all campaigns hold.
#[derive(Default)]
pub(super) struct Tickets {
    known: HashMap<(usize, u64), (TicketId, Status)>,
}

/// A ticket that a session works on.
pub(super) struct Work {
    pub(super) id: TicketId,
    pub(super) external: String,
    place: (usize, u64),
}

impl Tickets {
    /// A ticket of this campaign that is worked on from now on, with what happens to it for that. None where the one that
    /// was picked is over.
    pub(super) fn begin(
        &mut self,
        place: usize,
        campaign: &Campaign,
        session: SessionId,
        at: Time,
        seed: &mut Seed,
        by: &By,
    ) -> Option<(Work, Vec<Event>)> {
        let number = seed.below(TICKETS);
        let external = format!("gh:{}#{number}", campaign.name);
        let mut events = Vec::new();
        let (id, status) = *self.known.entry((place, number)).or_insert_with(|| {
            let id = TicketId::new(at, entropy(seed));
            let about = About { intent: text(seed, 120), kind: USUAL_TYPE.to_owned() };
            let links = Links { external: external.parse().ok(), ..Links::default() };
            let (campaign, status) = (campaign.id, Status::default());
            let by = by.clone();
            events.push(Event::TicketAdded(Box::new(TicketAdded { id, campaign, about, links, status, by })));
            (id, status)
        });
        let to = status.after(Verb::Start).ok()??;
        let work = Work { id, external, place: (place, number) };
        events.push(self.moved(&work, status, to, by, session));
        Some((work, events))
    }

    /// What the end of the last session that worked on it means for a ticket.
    pub(super) fn end(
        &mut self,
        work: &Work,
        session: SessionId,
        outcome: Outcome,
        seed: &mut Seed,
    ) -> Option<Event> {
        let (_, status) = *self.known.get(&work.place)?;
        let after = AfterSession { outcome, said_done: seed.chance(70), goes_on: false };
        let to = status.after(after.verb(status)?).ok()??;
        Some(self.moved(work, status, to, &By::ostler(), session))
    }

    fn moved(&mut self, work: &Work, from: Status, to: Status, by: &By, session: SessionId) -> Event {
        self.known.insert(work.place, (work.id, to));
        let (id, by) = (work.id, by.clone());
        let (why, session) = (String::new(), Some(session));
        Event::TicketMoved(TicketMoved { id, from, to, by, why, session })
    }
}
