//! Tickets: found by what people know of them, with what their sessions did.

use ostler_domain::{
    Event, Kind,
    event::{TicketAdded, TicketMoved, TicketOutputAdded},
    id::Fragment,
    query::{Page, TicketFilter},
    session::{Config, Created, State},
    ticket::{Links, Output, OutputKind, Status},
};
use ostler_store::{Commit, CommitError, Store, block_on};

use crate::{
    samples::{self, agent_id, at, campaign_id, conversation_id, event, session_id, ticket_id},
    support::{Owner, Place, node_commit, session_commit},
};

fn record(store: &Store, kind: Kind, n: u64) {
    store.commit_blocking(node_commit(vec![(at(n), event(kind, n))])).unwrap();
}

fn moved(from: Status, to: Status) -> Event {
    let Event::TicketMoved(moved) = event(Kind::TicketMoved, 1) else { unreachable!() };
    Event::TicketMoved(TicketMoved { from, to, ..moved })
}

/// A session that works on a ticket.
fn worker(store: &Store, n: u64, ticket: u64) -> Owner {
    let created = samples::created(n);
    let config = Config { ticket_id: Some(ticket_id(ticket)), ..created.config };
    let created = Created { config, ..created };
    let events = vec![(at(n), Event::SessionCreated(Box::new(created)))];
    let state = State::replay(events.iter().map(|(at, event)| (*at, event))).unwrap();
    let session = session_commit(&state, 0, events);
    let urgency = ostler_store::Urgency::Control;
    store
        .commit_blocking(Commit { urgency, node_events: Vec::new(), session: Some(session), request: None })
        .unwrap();
    Owner { state }
}

#[test]
fn tickets_are_found_by_id_reference_and_filter() {
    let place = Place::new();
    let store = place.open();
    (0..5).for_each(|n| record(&store, Kind::TicketAdded, n));
    let ticket = block_on(store.ticket(ticket_id(1))).unwrap().unwrap();
    assert_eq!(ticket.about.title(), "Fix the login 1");
    assert_eq!(ticket.links.depends_on, [ticket_id(2), ticket_id(3)]);
    let same = block_on(store.ticket_elsewhere(campaign_id(1), "gh:shop#1")).unwrap();
    assert_eq!(same.as_ref(), Some(&ticket));
    assert_eq!(block_on(store.ticket_elsewhere(campaign_id(2), "gh:shop#1")).unwrap(), None);
    let fragment = Fragment::parse(&ticket_id(1).short(), "tkt").unwrap();
    assert_eq!(block_on(store.find_tickets(&fragment)).unwrap(), [ticket]);

    store.commit_blocking(node_commit(vec![(at(9), moved(Status::Initialized, Status::Running))])).unwrap();
    let any = TicketFilter::default();
    let ids = |filter: &TicketFilter| -> Vec<_> {
        block_on(store.tickets(filter, Page::of(10, None))).unwrap().rows.iter().map(|row| row.id).collect()
    };
    let filters = [
        (any.clone(), vec![4, 3, 2, 1, 0]),
        (TicketFilter { campaign: Some(campaign_id(1)), ..any.clone() }, vec![4, 1]),
        (TicketFilter { statuses: vec![Status::Running], ..any.clone() }, vec![1]),
        (TicketFilter { external: Some("gh:shop#3".to_owned()), ..any.clone() }, vec![3]),
        (TicketFilter { kind: Some("task".to_owned()), ..any.clone() }, vec![]),
        (TicketFilter { conversation: Some(conversation_id(2)), ..any.clone() }, vec![2]),
    ];
    for (filter, expected) in filters {
        assert_eq!(ids(&filter), expected.into_iter().map(ticket_id).collect::<Vec<_>>(), "{filter:?}");
    }
    let first = block_on(store.tickets(&any, Page::of(3, None))).unwrap();
    let rest = block_on(store.tickets(&any, Page::of(3, first.next_cursor))).unwrap();
    assert_eq!((first.rows.len(), rest.rows.len(), rest.next_cursor), (3, 2, None));
}

#[test]
fn a_reference_is_one_ticket_s_of_a_campaign() {
    let place = Place::new();
    let store = place.open();
    record(&store, Kind::TicketAdded, 1);
    let again = |campaign| {
        let Event::TicketAdded(added) = event(Kind::TicketAdded, 1) else { unreachable!() };
        let added = TicketAdded { id: ticket_id(50 + campaign), campaign: campaign_id(campaign), ..*added };
        store.commit_blocking(node_commit(vec![(at(9), Event::TicketAdded(Box::new(added)))]))
    };
    assert!(matches!(again(1), Err(CommitError::Taken { .. })));
    again(2).unwrap();
    assert_eq!(block_on(store.tickets_elsewhere("gh:shop#1")).unwrap().len(), 2);
}

#[test]
fn of_two_changes_at_once_the_second_is_refused() {
    let place = Place::new();
    let store = place.open();
    record(&store, Kind::TicketAdded, 1);
    let commit = |event| store.commit_blocking(node_commit(vec![(at(9), event)]));
    commit(moved(Status::Initialized, Status::Running)).unwrap();
    assert!(matches!(commit(moved(Status::Initialized, Status::Cancelled)), Err(CommitError::Taken { .. })));
    assert_eq!(block_on(store.ticket(ticket_id(1))).unwrap().unwrap().status, Status::Running);
}

#[test]
fn what_sessions_do_is_their_ticket_s() {
    let place = Place::new();
    let store = place.open();
    (1..4).for_each(|n| record(&store, Kind::TicketAdded, n));
    let mut first = worker(&store, 21, 1);
    let of_first = [Kind::StepStarted, Kind::UsageRecorded, Kind::StepEnded, Kind::StepStarted];
    first.record(&store, of_first.map(|kind| (at(30), event(kind, 2))).to_vec()).unwrap();
    first.record(&store, vec![(at(31), event(Kind::SessionFailed, 21))]).unwrap();
    let mut second = worker(&store, 22, 1);
    second
        .record(&store, vec![(at(32), event(Kind::StepStarted, 2)), (at(33), event(Kind::UsageRecorded, 4))])
        .unwrap();
    let mut other = worker(&store, 23, 2);
    other.record(&store, vec![(at(34), event(Kind::UsageRecorded, 5))]).unwrap();
    record(&store, Kind::TicketCheckpointMade, 1);
    let large = "x".repeat(200_000);
    let Event::TicketOutputAdded(added) = event(Kind::TicketOutputAdded, 1) else { unreachable!() };
    let output = Output::new("log", OutputKind::Text, &large).unwrap();
    let added = Event::TicketOutputAdded(TicketOutputAdded { output: output.clone(), ..added });
    store.commit_blocking(node_commit(vec![(at(35), added)])).unwrap();

    let whole = block_on(store.whole_ticket(ticket_id(1))).unwrap().unwrap();
    let ends: Vec<_> = whole.iterations.iter().map(|one| (one.session, one.ended.is_some())).collect();
    assert_eq!(ends, [(session_id(21), true), (session_id(22), false)]);
    assert_eq!(whole.iterations.iter().map(|one| one.calls).collect::<Vec<_>>(), [1, 1]);
    let usage = |n| match event(Kind::UsageRecorded, n) {
        Event::UsageRecorded(recorded) => recorded.usage,
        _ => unreachable!(),
    };
    assert_eq!(whole.iterations[0].usage, usage(2));
    assert_eq!(whole.iterations[1].usage, usage(4));
    let steps: Vec<_> = whole.steps.iter().map(|step| (step.session, step.success)).collect();
    let (one, two) = (Some(session_id(21)), Some(session_id(22)));
    assert_eq!(steps, [(one, Some(true)), (one, None), (two, None)]);
    assert_eq!(whole.outputs.iter().map(|dated| &dated.what).collect::<Vec<_>>(), [&output]);
    assert_eq!(whole.checkpoints[0].what.snapshot.as_deref(), Some("deadbeef"));
    let on: Vec<_> = whole.depends_on.iter().map(|blocker| (blocker.id, blocker.status)).collect();
    assert_eq!(on, [(ticket_id(2), Status::Initialized), (ticket_id(3), Status::Initialized)]);

    let below = block_on(store.dependencies_below(&[ticket_id(1)])).unwrap();
    assert_eq!(below.keys().copied().collect::<Vec<_>>(), [ticket_id(1), ticket_id(2), ticket_id(3)]);
}

#[test]
fn the_last_tickets_of_a_campaign_name_their_agents() {
    let place = Place::new();
    let store = place.open();
    record(&store, Kind::ConversationOpened, 1);
    (1..8).for_each(|n| record(&store, Kind::TicketAdded, n));
    let Event::TicketLinked(linked) = event(Kind::TicketLinked, 7) else { unreachable!() };
    let links = Links { conversation: None, ..linked.links };
    let linked = ostler_domain::event::TicketLinked { links, ..linked };
    store.commit_blocking(node_commit(vec![(at(9), Event::TicketLinked(linked))])).unwrap();
    let recent = block_on(store.recent_tickets(campaign_id(1), 2)).unwrap();
    let seen: Vec<_> = recent.iter().map(|row| (row.ticket, row.agent)).collect();
    assert_eq!(seen, [(ticket_id(7), None), (ticket_id(4), None)]);
    let recent = block_on(store.recent_tickets(campaign_id(1), 20)).unwrap();
    assert_eq!(recent.last().map(|row| (row.ticket, row.agent)), Some((ticket_id(1), Some(agent_id(1)))));
    let of_conversation = block_on(store.tickets_of_conversation(conversation_id(1), Page::of(5, None)));
    assert_eq!(of_conversation.unwrap().rows.iter().map(|row| row.id).collect::<Vec<_>>(), [ticket_id(1)]);
}
