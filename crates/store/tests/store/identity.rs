//! Agents, the keys of conversations, and the one session that each has at a time.

use ostler_domain::{
    Event, Kind,
    agent::Agent,
    conversation::{CloseReason, Key},
    event::ConversationOpened,
    query::Page,
    session::{Created, State},
};
use ostler_store::{Commit, CommitError, Store, block_on};

use crate::{
    samples::{self, at, campaign_id, conversation_id, event},
    support::{Owner, Place, node_commit, session_commit},
};

fn record(store: &Store, kind: Kind, n: u64) {
    store.commit_blocking(node_commit(vec![(at(n), event(kind, n))])).unwrap();
}

#[test]
fn a_conversation_has_one_session_at_a_time() {
    let place = Place::new();
    let store = place.open();
    let mut first = Owner::create(&store, 1);
    let second = |n: u64| {
        let created = Created { conversation: conversation_id(1), ..samples::created(n) };
        let events = vec![(at(n), Event::SessionCreated(Box::new(created)))];
        let state = State::replay(events.iter().map(|(at, event)| (*at, event))).unwrap();
        let session = session_commit(&state, 0, events);
        let urgency = ostler_store::Urgency::Control;
        let commit = Commit { urgency, node_events: Vec::new(), session: Some(session), request: None };
        store.commit_blocking(commit)
    };
    assert!(matches!(second(2), Err(CommitError::Taken { .. })));
    first.record(&store, vec![(at(3), event(Kind::SessionStopped, 1))]).unwrap();
    second(2).unwrap();
    assert!(matches!(second(4), Err(CommitError::Taken { .. })));
}

#[test]
fn agents_are_found_by_id_and_name_until_they_are_removed() {
    let place = Place::new();
    let store = place.open();
    (0..4).for_each(|n| record(&store, Kind::AgentAdded, n));
    let agent = block_on(store.agent(samples::agent_id(1))).unwrap().unwrap();
    assert_eq!(block_on(store.agent_named(campaign_id(1), "api-1")).unwrap(), Some(agent.clone()));
    assert_eq!(block_on(store.agent_named(campaign_id(2), "api-1")).unwrap(), None);
    let listed = block_on(store.agents(None, Page::of(3, None))).unwrap();
    let rest = block_on(store.agents(None, Page::of(3, listed.next_cursor))).unwrap();
    assert_eq!((listed.rows.len(), rest.rows.len(), rest.next_cursor), (3, 1, None));
    record(&store, Kind::AgentRemoved, 1);
    assert_eq!(block_on(store.agent_named(campaign_id(1), "api-1")).unwrap(), None);
    assert_eq!(block_on(store.agent(samples::agent_id(1))).unwrap(), Some(agent));
}

#[test]
fn an_agent_of_a_removed_campaign_is_found_by_its_id_alone() {
    let place = Place::new();
    let store = place.open();
    (0..2).for_each(|n| record(&store, Kind::CampaignAdded, n));
    (0..2).for_each(|n| record(&store, Kind::AgentAdded, n));
    record(&store, Kind::CampaignRemoved, 1);
    let listed = |campaign| block_on(store.agents(campaign, Page::of(9, None))).unwrap().rows;
    let ids = |agents: Vec<Agent>| agents.into_iter().map(|agent| agent.id).collect::<Vec<_>>();
    assert_eq!(ids(listed(None)), [samples::agent_id(0)]);
    assert_eq!(ids(block_on(store.agents_named("api-1")).unwrap()), []);
    assert_eq!(ids(listed(Some(campaign_id(1)))), [samples::agent_id(1)]);
    assert!(block_on(store.agent(samples::agent_id(1))).unwrap().is_some());
}

#[test]
fn a_closed_conversation_gives_its_key_away() {
    let place = Place::new();
    let store = place.open();
    record(&store, Kind::ConversationOpened, 0);
    let again = |n: u64| {
        let Event::ConversationOpened(opened) = event(Kind::ConversationOpened, 0) else { unreachable!() };
        let opened = ConversationOpened { id: conversation_id(n), ..*opened };
        store.commit_blocking(node_commit(vec![(at(n), Event::ConversationOpened(Box::new(opened)))]))
    };
    assert!(matches!(again(10), Err(CommitError::Taken { .. })));
    record(&store, Kind::ConversationClosed, 0);
    again(11).unwrap();
    let main = Key::main();
    let keyed = store.conversation_keyed(campaign_id(0), Some(samples::agent_id(0)), &main);
    assert_eq!(block_on(keyed).unwrap().unwrap().id, conversation_id(11));
    let reopened = node_commit(vec![(at(12), event(Kind::ConversationReopened, 0))]);
    assert!(matches!(store.commit_blocking(reopened), Err(CommitError::Taken { .. })));
    let old = block_on(store.conversation(conversation_id(0))).unwrap().unwrap();
    assert_eq!(old.closed.map(|closed| closed.why), Some(CloseReason::Archived));
}
