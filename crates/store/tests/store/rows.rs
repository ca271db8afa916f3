//! Campaigns, conversations, messages, approvals, usage, halts.

use std::sync::{Arc, Mutex};

use ostler_domain::{
    ApprovalId, Event, Kind, MessageId, Receipt, Usage,
    budget::{CampaignBudget, Period},
    campaign::Campaign,
    event::{Answer, MessageAccepted, UsageRecorded},
    id::Fragment,
    mission::Filter,
    price::{Dollars, Price, PriceBook},
    query::{Page, SessionFilter, UsageBy, UsageFilter},
};
use ostler_store::{ApprovalState, CampaignSpent, CommitError, Store, block_on};

use crate::{
    samples::{
        approval_id, at, campaign, campaign_id, conversation_id, event, message_id, session_id, usage,
    },
    support::{Owner, Place, node_commit},
};

fn record(store: &Store, kind: Kind, n: u64) {
    store.commit_blocking(node_commit(vec![(at(n), event(kind, n))])).unwrap();
}

#[test]
fn campaigns_are_found_by_id_name_and_place() {
    let place = Place::new();
    let store = place.open();
    (0..3).for_each(|n| record(&store, Kind::CampaignAdded, n));
    let mut inner = campaign(7);
    inner.root.path = "/home/ann/shop-1/vendor".to_owned();
    store.commit_blocking(node_commit(vec![(at(7), Event::CampaignAdded(Box::new(inner.clone())))])).unwrap();
    assert_eq!(block_on(store.campaigns()).unwrap(), [campaign(0), campaign(1), campaign(2), inner.clone()]);
    assert_eq!(block_on(store.campaign_named("shop-2")).unwrap(), Some(campaign(2)));
    let containing =
        |dir: &str| block_on(store.campaign_containing(dir)).unwrap().map(|campaign| campaign.id);
    assert_eq!(containing("/home/ann/shop-1"), Some(campaign_id(1)));
    assert_eq!(containing("/home/ann/shop-1/src/deep"), Some(campaign_id(1)));
    assert_eq!(containing("/home/ann/shop-1/vendor/x"), Some(inner.id));
    assert_eq!(containing("/home/ann/shop-10"), None);
    assert_eq!(containing("/home/ann"), None);

    record(&store, Kind::CampaignRemoved, 2);
    assert_eq!(block_on(store.campaign_named("shop-2")).unwrap(), None);
    let removed = block_on(store.campaign(campaign_id(2))).unwrap().unwrap();
    assert_eq!((removed.campaign, removed.removed), (campaign(2), Some(at(2))));
}

#[test]
fn names_and_budgets_of_campaigns_are_read_without_the_rest() {
    let place = Place::new();
    let store = place.open();
    let budget = CampaignBudget { tokens: None, dollars: Some(Dollars(25_000_000)), period: Period::Day };
    (0..3).for_each(|n| record(&store, Kind::CampaignAdded, n));
    let mut rich = campaign(7);
    rich.policy.budget = Some(budget);
    rich.policy.net_allow = vec!["build.example".to_owned()];
    store.commit_blocking(node_commit(vec![(at(7), Event::CampaignAdded(Box::new(rich.clone())))])).unwrap();
    record(&store, Kind::CampaignRemoved, 1);
    let named = |campaign: Campaign| (campaign.id, campaign.name);
    let expected = [campaign(0), campaign(2), rich.clone()].map(named);
    assert_eq!(block_on(store.campaign_names()).unwrap(), expected);
    assert_eq!(block_on(store.campaign_budgets()).unwrap(), [(rich.id, budget)]);
}

#[test]
fn a_name_or_directory_in_use_is_refused_and_free_again_after_removal() {
    let place = Place::new();
    let store = place.open();
    record(&store, Kind::CampaignAdded, 0);
    let mut same_name = campaign(1);
    same_name.name = campaign(0).name;
    let mut same_path = campaign(2);
    same_path.root.path = campaign(0).root.path;
    let add = |campaign| {
        store.commit_blocking(node_commit(vec![(at(1), Event::CampaignAdded(Box::new(campaign)))]))
    };
    assert!(matches!(add(same_name.clone()), Err(CommitError::Taken { .. })));
    assert!(matches!(add(same_path), Err(CommitError::Taken { .. })));
    record(&store, Kind::CampaignRemoved, 0);
    add(same_name.clone()).unwrap();
    assert_eq!(block_on(store.campaigns()).unwrap(), [same_name]);
    record(&store, Kind::ConversationOpened, 0);
    assert!(matches!(
        store.commit_blocking(node_commit(vec![(at(1), event(Kind::ConversationOpened, 0))])),
        Err(CommitError::Taken { .. })
    ));
}

#[test]
fn conversations_are_found_by_id_name_and_key() {
    let place = Place::new();
    let store = place.open();
    (0..4).for_each(|n| record(&store, Kind::ConversationOpened, n));
    let by_id = block_on(store.conversation(conversation_id(2))).unwrap().unwrap();
    assert_eq!(block_on(store.conversations_named("fix-login-2")).unwrap(), std::slice::from_ref(&by_id));
    assert_eq!(
        block_on(store.conversation_keyed(
            campaign_id(2),
            Some(crate::samples::agent_id(2)),
            &"MAIN".parse().unwrap()
        ))
        .unwrap(),
        Some(by_id)
    );
    assert_eq!(
        block_on(store.conversation_keyed(
            campaign_id(1),
            Some(crate::samples::agent_id(2)),
            &ostler_domain::conversation::Key::main()
        ))
        .unwrap(),
        None
    );
}

#[test]
fn receipts_follow_a_message_to_its_answer() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    let stages = [
        (Kind::MessageAccepted, Receipt::Accepted),
        (Kind::MessageSent, Receipt::Accepted),
        (Kind::MessageDelivered, Receipt::Delivered),
        (Kind::MessageSeen, Receipt::Seen),
        (Kind::MessageAnswered, Receipt::Answered),
    ];
    for (n, (kind, receipt)) in stages.into_iter().enumerate() {
        owner.record(&store, vec![(at(10 + n as u64), event(kind, 1))]).unwrap();
        assert_eq!(block_on(store.message(message_id(1))).unwrap().unwrap().receipt, receipt);
    }
    let row = block_on(store.message(message_id(1))).unwrap().unwrap();
    assert_eq!((row.session, row.conversation, row.turn), (session_id(1), conversation_id(1), Some(3)));
    assert_eq!(row.head, "Please fix the login of shop 1.");
    assert_eq!(
        [Some(row.accepted), row.sent, row.delivered, row.seen, row.answered],
        [10, 11, 12, 13, 14].map(|n| Some(at(n)))
    );
}

#[test]
fn why_a_message_waits_again_is_said_until_it_is_told_again() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    let why = |store: &ostler_store::Store| block_on(store.message(message_id(1))).unwrap().unwrap().why;
    let record = |owner: &mut Owner, from: u64, kinds: &[Kind]| {
        let events = kinds.iter().zip(from..).map(|(kind, n)| (at(n), event(*kind, 1))).collect();
        owner.record(&store, events).unwrap();
    };
    use Kind::{
        MessageAccepted, MessageAnswered, MessageDelivered, MessageReturned, MessageSeen, MessageSent,
    };
    record(&mut owner, 10, &[MessageAccepted, MessageSent, MessageDelivered, MessageReturned]);
    assert_eq!(why(&store).as_deref(), Some("its model has not read it"));
    record(&mut owner, 20, &[MessageSent, MessageDelivered, MessageSeen, MessageAnswered]);
    assert_eq!(why(&store), None);
}

#[test]
fn what_was_dropped_taken_back_or_changed_stays_readable() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    let row = |n| block_on(store.message(message_id(n))).unwrap().unwrap();
    owner.record(&store, (1..=5).map(|n| (at(n), event(Kind::MessageAccepted, n))).collect()).unwrap();
    let kinds = [
        Kind::MessageDropped,
        Kind::MessageCancelled,
        Kind::MessageEdited,
        Kind::MessageMoved,
        Kind::MessageMoved,
    ];
    let changes = kinds.into_iter().zip(1..).map(|(kind, n)| (at(10 + n), event(kind, n))).collect();
    owner.record(&store, changes).unwrap();
    let (dropped, cancelled, edited) = (row(1), row(2), row(3));
    assert_eq!((dropped.receipt, dropped.ended), (Receipt::Dropped, Some(at(11))));
    assert_eq!(dropped.head, "Please fix the login of shop 1.");
    assert!(dropped.why.unwrap().contains("queue_cap=20"));
    let made_room: Vec<_> = block_on(store.dropped_for(message_id(2))).unwrap();
    assert_eq!(made_room.iter().map(|row| row.id).collect::<Vec<_>>(), [message_id(1)]);
    assert_eq!(
        (cancelled.receipt, cancelled.why.as_deref()),
        (Receipt::Cancelled, Some("taken back by ann"))
    );
    assert_eq!(
        (edited.receipt, edited.head.as_str()),
        (Receipt::Accepted, "Please fix the logout of shop 3.")
    );
    assert!(edited.text_seq > edited.seq);
    assert_eq!(edited.key.as_deref(), Some("ticket-3"));
    assert_eq!(block_on(store.message_keyed("ticket-3")).unwrap().unwrap().id, message_id(3));
    assert_eq!(row(4).receipt, Receipt::Accepted, "it waits in another place");
    let moved = row(5);
    assert_eq!(moved.receipt, Receipt::Cancelled);
    assert!(moved.why.unwrap().starts_with("moved to the conversation "));
}

#[test]
fn a_closed_conversation_leaves_nothing_waiting() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    let accepted = vec![(at(2), event(Kind::MessageAccepted, 1)), (at(3), event(Kind::MessageAccepted, 8))];
    owner.record(&store, accepted).unwrap();
    owner.record(&store, vec![(at(4), event(Kind::MessageDelivered, 8))]).unwrap();
    assert_eq!(block_on(store.messages_waiting(conversation_id(1))).unwrap().len(), 1);
    record(&store, Kind::ConversationClosed, 1);
    let receipt = |n| block_on(store.message(message_id(n))).unwrap().unwrap().receipt;
    assert_eq!((receipt(1), receipt(8)), (Receipt::Cancelled, Receipt::Delivered));
    assert!(block_on(store.messages_waiting(conversation_id(1))).unwrap().is_empty());
}

#[test]
fn a_message_moves_on_to_the_next_session() {
    let place = Place::new();
    let store = place.open();
    let mut first = Owner::create(&store, 1);
    let mut second = Owner::create(&store, 8);
    first
        .record(
            &store,
            vec![(at(10), event(Kind::MessageAccepted, 1)), (at(11), event(Kind::MessageSent, 1))],
        )
        .unwrap();
    let Event::MessageAccepted(accepted) = event(Kind::MessageAccepted, 1) else { unreachable!() };
    let moved = MessageAccepted { moved_from: Some(session_id(1)), ..accepted };
    second.record(&store, vec![(at(12), Event::MessageAccepted(moved))]).unwrap();
    let row = block_on(store.message(message_id(1))).unwrap().unwrap();
    assert_eq!(
        (row.session, row.receipt, row.accepted, row.sent),
        (session_id(8), Receipt::Accepted, at(10), None)
    );
    assert!(block_on(store.messages_of_session(session_id(1), Page::of(10, None))).unwrap().rows.is_empty());
    assert_eq!(block_on(store.messages_of_session(session_id(8), Page::of(10, None))).unwrap().rows, [row]);
}

#[test]
fn a_conversation_s_messages_come_newest_first_in_pages() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 3);
    let messages = (0..5).map(|n| (at(n), event(Kind::MessageAccepted, 3 + 7 * n))).collect();
    owner.record(&store, messages).unwrap();
    let mut page = Page { limit: 2, cursor: None };
    let mut seen = Vec::new();
    loop {
        let listed = block_on(store.messages_of_conversation(conversation_id(3), page)).unwrap();
        seen.extend(listed.rows.into_iter().map(|row| row.id));
        page.cursor = match listed.next_cursor {
            Some(next) => Some(next),
            None => break,
        };
    }
    assert_eq!(seen, [31, 24, 17, 10, 3].map(message_id));
    let found = |typed: &str| {
        let fragment = Fragment::parse(typed, MessageId::PREFIX).unwrap();
        block_on(store.find_messages(&fragment)).unwrap().iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(found(&message_id(17).short()), [message_id(17)]);
    let text = message_id(17).to_string();
    assert!(found(&text[..12]).contains(&message_id(17)));
    assert_eq!(found("zzzzz"), []);
}

#[test]
fn approvals_are_open_until_answered_or_until_the_end() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    owner.record(&store, (1..4).map(|n| (at(n), event(Kind::ApprovalRequested, n))).collect()).unwrap();
    let open = || block_on(store.open_approvals()).unwrap().iter().map(|row| row.id).collect::<Vec<_>>();
    assert_eq!(open(), [1, 2, 3].map(approval_id));
    let deadlines = || {
        let open = block_on(store.open_approvals()).unwrap();
        open.iter().map(|row| row.deadline).collect::<Vec<_>>()
    };
    let due = |n: u64| Some(at(n + 60));
    assert_eq!(deadlines(), [due(1), due(2), due(3)]);
    owner.record(&store, vec![(at(5), event(Kind::SessionPaused, 1))]).unwrap();
    assert_eq!(deadlines(), [None, None, None]);
    owner.record(&store, vec![(at(6), event(Kind::SessionResumed, 2))]).unwrap();
    assert_eq!(deadlines(), [None, due(2), None]);
    owner.record(&store, vec![(at(9), event(Kind::ApprovalAnswered, 2))]).unwrap();
    assert_eq!(open(), [1, 3].map(approval_id));
    let fragment = Fragment::parse(&approval_id(2).short(), ApprovalId::PREFIX).unwrap();
    let found = block_on(store.find_approvals(&fragment)).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].id, found[0].session, found[0].state),
        (approval_id(2), session_id(1), ApprovalState::Answered(Answer::Denied))
    );
    assert_eq!(
        (found[0].by.as_ref().unwrap().0.as_str(), found[0].message.as_deref()),
        ("ann", Some("not now"))
    );
    let rules: Vec<_> = found[0].rules.iter().map(|rule| (rule.number, rule.text.as_str())).collect();
    assert_eq!(rules, [(Some(2), "deny run rm *")]);
    assert_eq!((found[0].asks.as_str(), found[0].deadline), ("run: rm -rf target", None));
    owner.record(&store, vec![(at(10), event(Kind::SessionStopped, 1))]).unwrap();
    assert!(open().is_empty());
}

#[test]
fn usage_adds_up_by_whatever_is_asked() {
    let place = Place::new();
    let store = place.open();
    for n in 0..6 {
        let mut owner = Owner::create(&store, n);
        owner
            .record(
                &store,
                vec![(at(n), event(Kind::UsageRecorded, n)), (at(n), event(Kind::UsageRecorded, n))],
            )
            .unwrap();
    }
    let sum = |filter: UsageFilter, by| block_on(store.usage(&filter, by)).unwrap();
    let total = sum(UsageFilter::default(), UsageBy::Total);
    assert_eq!(
        (total.len(), total[0].calls, total[0].usage),
        (1, 12, (0..6).fold(Default::default(), |sum, n| sum + usage(n) + usage(n)))
    );
    let by_campaign = sum(UsageFilter::default(), UsageBy::Campaign);
    assert_eq!(
        by_campaign.iter().map(|row| (row.key.clone(), row.calls)).collect::<Vec<_>>(),
        [2, 1, 0].map(|n| (campaign_id(n).to_string(), 4))
    );
    // Calls that name no model count for the session's.
    let by_model = sum(UsageFilter::default(), UsageBy::Model);
    assert_eq!(
        by_model.iter().map(|row| (row.key.as_str(), row.calls)).collect::<Vec<_>>(),
        [("model-9", 6), ("model-0", 6)]
    );
    assert_eq!(
        sum(UsageFilter { session: Some(session_id(2)), ..Default::default() }, UsageBy::Provider)[0].key,
        "script"
    );
    assert_eq!(
        sum(UsageFilter { since: Some(at(2)), until: Some(at(4)), ..Default::default() }, UsageBy::Total)[0]
            .calls,
        4
    );
    assert!(
        sum(UsageFilter { session: Some(session_id(99)), ..Default::default() }, UsageBy::Total).is_empty()
    );
    let of =
        |sessions: SessionFilter| UsageFilter { sessions: Some(Box::new(sessions)), ..Default::default() };
    let of_campaign = of(SessionFilter { campaigns: vec![campaign_id(1)], ..Default::default() });
    assert_eq!(sum(of_campaign, UsageBy::Total)[0].calls, 4);
    let by_session = sum(UsageFilter::default(), UsageBy::Session);
    let named = by_session.iter().find(|row| row.key == session_id(2).to_string()).unwrap();
    assert_eq!(named.name, block_on(store.session(session_id(2))).unwrap().unwrap().name.as_str());
}

#[test]
fn sessions_are_listed_by_what_they_cost() {
    let place = Place::new();
    let store = place.open();
    for (n, micros, plan) in
        [(1, Some(700), false), (2, Some(300), false), (3, Some(900), true), (4, None, false)]
    {
        let mut owner = Owner::create(&store, n);
        let half = UsageRecorded {
            usage: usage(1),
            cost: micros.map(|micros| Dollars(micros / 2)),
            plan,
            ..UsageRecorded::default()
        };
        let calls = [half.clone(), half].map(|call| (at(n), Event::UsageRecorded(call)));
        owner.record(&store, calls.into()).unwrap();
    }
    let listed = |min: u64| {
        let filter = SessionFilter { min_cost: Some(Dollars(min)), ..SessionFilter::default() };
        let rows = block_on(store.list_sessions(&filter, Page::of(10, None))).unwrap().rows;
        rows.into_iter().map(|view| view.id).collect::<Vec<_>>()
    };
    assert_eq!(listed(0).len(), 4);
    assert_eq!(listed(300), [2, 1].map(session_id));
    assert_eq!(listed(301), [session_id(1)]);
    assert_eq!(listed(701), [], "what a plan covers is not paid for");
}

#[test]
fn what_had_no_price_is_listed_by_what_it_costs_now() {
    let place = Place::new();
    let store = place.open();
    let prices = Arc::new(Mutex::new(Arc::new(PriceBook::default())));
    let current = prices.clone();
    store.take_prices_from(move || current.lock().unwrap().clone());
    let million = Usage { input: 1_000_000, ..Usage::default() };
    for (n, micros) in [(1, None), (2, Some(500)), (3, Some(2_900_000))] {
        let call = |cost| UsageRecorded {
            usage: million,
            model: Some("new-model".to_owned()),
            cost,
            ..UsageRecorded::default()
        };
        let mut calls = vec![call(micros.map(Dollars))];
        if n == 3 {
            calls.push(call(None));
        }
        let calls = calls.into_iter().map(|call| (at(n), Event::UsageRecorded(call))).collect();
        Owner::create(&store, n).record(&store, calls).unwrap();
    }
    let listed = |min: u64| {
        let filter = SessionFilter { min_cost: Some(Dollars(min)), ..SessionFilter::default() };
        let rows = block_on(store.list_sessions(&filter, Page::of(10, None))).unwrap().rows;
        let fitting: Vec<_> = rows.iter().map(|view| view.id).collect();
        for n in 1..=3 {
            let fits = block_on(store.session_fits(session_id(n), &filter)).unwrap();
            assert_eq!(fits, fitting.contains(&session_id(n)));
        }
        fitting
    };
    assert_eq!((listed(400), listed(1_000_000)), ([3, 2].map(session_id).into(), vec![session_id(3)]));
    let dear = Price { input: Dollars(3_000_000), ..Price::default() };
    let own = [("new-model".to_owned(), dear)].into();
    *prices.lock().unwrap() = Arc::new(PriceBook { own, ..PriceBook::default() });
    assert_eq!(listed(1_000_000), [3, 1].map(session_id));
    assert_eq!(listed(3_000_001), [session_id(3)]);
    assert_eq!(listed(5_900_001), []);
}

#[test]
fn costs_add_up_apart_from_what_a_plan_covers_and_from_what_has_no_price() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    let call = |model: &str, micros: Option<u64>, plan: bool| {
        let used = UsageRecorded {
            usage: usage(1),
            model: Some(model.to_owned()),
            cost: micros.map(Dollars),
            plan,
            ..UsageRecorded::default()
        };
        Event::UsageRecorded(used)
    };
    let calls = [
        (at(1), call("old", Some(1), false)),
        (at(5), call("priced", Some(100), false)),
        (at(6), call("priced", Some(20), true)),
        (at(7), call("unknown", None, false)),
        (at(8), call("unknown", None, true)),
    ];
    owner.record(&store, calls.to_vec()).unwrap();
    let sum = &block_on(store.usage(&UsageFilter::default(), UsageBy::Total)).unwrap()[0];
    assert_eq!((sum.cost, sum.plan), (Dollars(101), Dollars(20)));
    assert_eq!((sum.unpriced, sum.plan_unpriced), (usage(1), usage(1)));

    let spent = |before| block_on(store.campaign_spent(campaign_id(1), at(2), before)).unwrap();
    let first = spent(CampaignSpent::default());
    assert_eq!((first.paid, first.tokens), (Dollars(100), usage(1).budgeted() * 4), "since the time");
    assert_eq!(first.unpriced, [("unknown".to_owned(), usage(1))].into());
    assert_eq!(spent(first.clone()), first, "nothing counts twice");
    owner.record(&store, vec![(at(9), call("priced", Some(5), false))]).unwrap();
    assert_eq!(spent(first).paid, Dollars(105), "only what is new is added");
    let other = block_on(store.campaign_spent(campaign_id(2), at(0), CampaignSpent::default())).unwrap();
    assert_eq!(other, CampaignSpent::default());
}

#[test]
fn nonsense_numbers_from_an_agent_break_no_sum() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    let absurd = ostler_domain::Usage { input: u64::MAX, output: u64::MAX, ..Default::default() };
    let absurd =
        Event::UsageRecorded(ostler_domain::event::UsageRecorded { usage: absurd, ..Default::default() });
    owner.record(&store, vec![(at(1), absurd.clone()), (at(2), absurd)]).unwrap();
    assert!(block_on(store.usage(&UsageFilter::default(), UsageBy::Total)).unwrap()[0].usage.input > 1 << 62);
}

#[test]
fn a_halt_lasts_until_it_is_released() {
    let place = Place::new();
    let store = place.open();
    assert_eq!(block_on(store.halt()).unwrap(), None);
    record(&store, Kind::Halted, 1);
    record(&store, Kind::Halted, 2);
    let halt = block_on(store.halt()).unwrap().unwrap();
    assert_eq!((halt.freeze, halt.by.0.as_str(), halt.since), (true, "ann", at(2)));
    record(&store, Kind::HaltReleased, 3);
    assert_eq!(block_on(store.halt()).unwrap(), None);
}

#[test]
fn what_a_mission_no_longer_wants_is_not_counted() {
    let place = Place::new();
    let store = place.open();
    record(&store, Kind::MissionCreated, 1);
    let counted = || block_on(store.missions(&Filter::default(), Page::of(9, None))).unwrap().rows[0].counts;
    let before = counted();
    record(&store, Kind::AssignmentsRemoved, 1);
    let after = counted();
    assert!(after.total < before.total, "{before:?} {after:?}");
    assert_eq!(after.cancelled, 0);
}
