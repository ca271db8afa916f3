//! Finding and listing sessions.

use ostler_domain::{
    Event, Kind, SessionId,
    id::Fragment,
    query::{Page, Scope, SessionFilter, TRIAL_TICKET},
    session::{Attention, Outcome, Status, View},
};
use ostler_store::{Store, block_on};

use crate::{
    samples::{at, campaign_id, conversation_id, ended, event, session_id},
    support::{Owner, Place, node_commit},
};

/// Forty sessions in all sorts of states, and their rows, newest first.
fn filled(store: &Store) -> Vec<View> {
    let mut views: Vec<View> = (0..40)
        .map(|n| {
            let mut owner = Owner::create(store, n);
            let mut add = |events: Vec<Event>| {
                let events = events.into_iter().map(|event| (at(n + 1), event)).collect();
                owner.record(store, events).unwrap();
            };
            if n % 8 > 0 {
                add(vec![event(Kind::SessionStarting, n)]);
            }
            if n % 8 > 1 {
                add(vec![event(Kind::SessionStarted, n)]);
            }
            if n % 8 > 2 {
                add(vec![event(Kind::TurnStarted, n)]);
            }
            match n % 8 {
                4 => add(vec![event(Kind::ApprovalRequested, n)]),
                5 => add(vec![Event::SessionFailed(ended(n, Outcome::Crashed))]),
                6 => add(vec![Event::SessionStopped(ended(n, Outcome::Stopped))]),
                7 => add(vec![Event::SessionStopped(ended(n, Outcome::Done))]),
                _ => {}
            }
            owner.state.view()
        })
        .collect();
    views.reverse();
    views
}

fn all_pages(store: &Store, filter: &SessionFilter, limit: u32) -> Vec<View> {
    let mut all = Vec::new();
    let mut cursor = None;
    loop {
        let page = block_on(store.list_sessions(filter, Page { limit, cursor })).unwrap();
        assert!(page.rows.len() <= limit as usize);
        all.extend(page.rows);
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return all,
        }
    }
}

fn fits(filter: &SessionFilter, view: &View, all: &[View]) -> bool {
    let text = |wanted: &Option<String>, found: Option<&str>| {
        wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
    };
    let one_of = |wanted: &[String], found: Option<&str>| {
        wanted.is_empty() || wanted.iter().any(|wanted| found == Some(wanted.as_str()))
    };
    (filter.campaigns.is_empty() || filter.campaigns.contains(&view.campaign))
        && filter.conversation.is_none_or(|id| id == view.conversation)
        && (filter.chains.is_empty() || filter.chains.contains(&view.chain))
        && filter.continues.is_none_or(|id| Some(id) == view.continues)
        && text(&filter.name, Some(view.name.as_str()))
        && one_of(&filter.providers, Some(&view.provider))
        && one_of(&filter.models, view.model.as_deref())
        && one_of(&filter.tickets, view.ticket.as_deref())
        && (filter.asks_for_trials()
            || view.ended_at.is_none()
            || view.ticket.as_deref() != Some(TRIAL_TICKET))
        && (filter.statuses.is_empty() || filter.statuses.contains(&view.status))
        && (filter.attention.is_empty()
            || view.attention.is_some_and(|found| filter.attention.contains(&found)))
        && (filter.outcomes.is_empty() || view.outcome.is_some_and(|found| filter.outcomes.contains(&found)))
        && filter.since.is_none_or(|since| view.created_at >= since)
        && filter.until.is_none_or(|until| view.created_at < until)
        && filter.scope.fits(view, all.iter().any(|child| child.continues == Some(view.id)))
}

fn filters() -> Vec<SessionFilter> {
    let any = SessionFilter::default;
    vec![
        any(),
        SessionFilter { scope: Scope::NotEnded, ..any() },
        SessionFilter { scope: Scope::Current { failed_since: at(20) }, ..any() },
        SessionFilter {
            scope: Scope::Current { failed_since: at(20) },
            campaigns: vec![campaign_id(1)],
            ..any()
        },
        SessionFilter { campaigns: vec![campaign_id(1)], ..any() },
        SessionFilter { conversation: Some(conversation_id(3)), ..any() },
        SessionFilter { chains: vec![session_id(10)], ..any() },
        SessionFilter { continues: Some(session_id(14)), ..any() },
        SessionFilter { name: Some("fix-login-2".to_owned()), scope: Scope::NotEnded, ..any() },
        SessionFilter { providers: vec!["codex".to_owned()], ..any() },
        SessionFilter { models: vec!["model-1".to_owned()], ..any() },
        SessionFilter { providers: ["codex", "script", "none"].map(str::to_owned).to_vec(), ..any() },
        SessionFilter { models: ["model-1", "model-2"].map(str::to_owned).to_vec(), ..any() },
        SessionFilter { campaigns: vec![campaign_id(1), campaign_id(2)], ..any() },
        SessionFilter { chains: vec![session_id(10), session_id(14)], ..any() },
        SessionFilter { tickets: ["gh:4", "gh:5"].map(str::to_owned).to_vec(), ..any() },
        SessionFilter { tickets: vec!["gh:4".to_owned()], ..any() },
        SessionFilter { tickets: vec![TRIAL_TICKET.to_owned()], ..any() },
        SessionFilter { statuses: vec![Status::Working], ..any() },
        SessionFilter { statuses: vec![Status::Stopped, Status::Created], ..any() },
        SessionFilter { statuses: vec![Status::Failed, Status::Stopped], ..any() },
        SessionFilter { statuses: vec![Status::Failed], campaigns: vec![campaign_id(2)], ..any() },
        SessionFilter { attention: vec![Attention::WaitingApproval, Attention::Idle], ..any() },
        SessionFilter { outcomes: vec![Outcome::Crashed, Outcome::Done], ..any() },
        SessionFilter { outcomes: vec![Outcome::Crashed], providers: vec!["script".to_owned()], ..any() },
        SessionFilter { since: Some(at(10)), until: Some(at(30)), ..any() },
    ]
}

#[test]
fn every_filter_lists_what_it_asks_for_newest_first() {
    let place = Place::new();
    let store = place.open();
    let views = filled(&store);
    for filter in filters() {
        let expected: Vec<SessionId> =
            views.iter().filter(|view| fits(&filter, view, &views)).map(|view| view.id).collect();
        assert!(!expected.is_empty(), "{filter:?} fits nothing and proves nothing");
        for limit in [1, 3, 1000] {
            let found: Vec<SessionId> =
                all_pages(&store, &filter, limit).iter().map(|view| view.id).collect();
            assert_eq!(found, expected, "{limit} a page, {filter:?}");
        }
    }
    let of_its_own = |view| View { continued_by: None, ..view };
    let listed: Vec<View> =
        all_pages(&store, &SessionFilter::default(), 7).into_iter().map(of_its_own).collect();
    assert_eq!(listed, views);
}

/// A list never sorts or scans the whole table to give a page.
#[test]
fn every_single_filter_has_its_index() {
    let place = Place::new();
    let store = place.open();
    filled(&store);
    let plan = |condition: &str| -> String {
        let connection = place.sql();
        let sql = format!(
            "EXPLAIN QUERY PLAN SELECT num FROM session WHERE {condition} AND num < 9 ORDER BY num DESC"
        );
        let mut statement = connection.prepare(&sql).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(3)).unwrap();
        rows.collect::<Result<Vec<_>, _>>().unwrap().join("; ")
    };
    for column in [
        "campaign",
        "conversation",
        "chain",
        "continues",
        "name",
        "provider",
        "ticket",
        "outcome",
        "model",
        "cost_class > 0 AND cost_class",
    ] {
        let plan = plan(&format!("{column} = 'x'"));
        let index = format!("session_{} ", column.rsplit(' ').next().unwrap());
        assert!(plan.contains(&index) && !plan.contains("TEMP B-TREE"), "{plan}");
    }
}

#[test]
fn a_branch_finds_also_whoever_made_commits_on_it() {
    let place = Place::new();
    let store = place.open();
    let views = filled(&store);
    // Of those two the first was created on that branch, and the other elsewhere.
    let seen = [1, 3].map(|n| (at(50), event(Kind::CommitsSeen, n)));
    store.commit_blocking(node_commit(seen.to_vec())).unwrap();
    let filter = SessionFilter { branches: vec!["agent/login".to_owned()], ..SessionFilter::default() };
    let began = |view: &&View| view.branch.as_deref() == Some("agent/login");
    let expected: Vec<SessionId> =
        views.iter().filter(|view| began(view) || view.id == session_id(3)).map(|view| view.id).collect();
    for limit in [1, 3, 40] {
        let found: Vec<SessionId> = all_pages(&store, &filter, limit).iter().map(|view| view.id).collect();
        assert_eq!(found, expected, "pages of {limit}");
    }
    let branches = ["none", "agent/login"].map(str::to_owned).to_vec();
    let listed = SessionFilter { branches, ..SessionFilter::default() };
    let found: Vec<SessionId> = all_pages(&store, &listed, 3).iter().map(|view| view.id).collect();
    assert_eq!(found, expected);
    let both = SessionFilter { providers: vec!["claude-code".to_owned()], ..filter };
    let found: Vec<SessionId> = all_pages(&store, &both, 40).iter().map(|view| view.id).collect();
    assert_eq!(found, [session_id(3)]);
}

#[test]
fn pages_stay_put_while_sessions_change() {
    let place = Place::new();
    let store = place.open();
    let mut owners: Vec<Owner> = (0..10).map(|n| Owner::create(&store, n)).collect();
    let first =
        block_on(store.list_sessions(&SessionFilter::default(), Page { limit: 5, cursor: None })).unwrap();
    Owner::create(&store, 10);
    for owner in &mut owners {
        owner.record(&store, vec![(at(20), event(Kind::SessionStarting, 1))]).unwrap();
    }
    let second = block_on(
        store.list_sessions(&SessionFilter::default(), Page { limit: 5, cursor: first.next_cursor }),
    )
    .unwrap();
    let ids: Vec<SessionId> = first.rows.iter().chain(&second.rows).map(|view| view.id).collect();
    assert_eq!(ids, (0..10).rev().map(session_id).collect::<Vec<_>>());
}

#[test]
fn sessions_are_found_by_what_people_type() {
    let place = Place::new();
    let store = place.open();
    let views = filled(&store);
    let find = |text: &str| -> Vec<SessionId> {
        let fragment = Fragment::parse(text, SessionId::PREFIX).unwrap();
        block_on(store.find_sessions(&fragment)).unwrap().iter().map(|view| view.id).collect()
    };
    for view in &views {
        let id = view.id.to_string();
        assert_eq!(find(&id), [view.id]);
        assert_eq!(find(&view.id.short()), [view.id]);
        assert_eq!(find(&id[id.len() - 15..].to_lowercase()), [view.id]);
        assert_eq!(find(&id[..24]), [view.id]);
    }
    // The beginning of an id is a time: it fits many, and a bounded number is said.
    assert_eq!(find(&views[0].id.to_string()[..10]).len(), 16);
    assert!(find("zzzzzz").is_empty());

    let named: Vec<SessionId> =
        block_on(store.sessions_named("fix-login-3", 3)).unwrap().iter().map(|view| view.id).collect();
    assert_eq!(named, [session_id(38), session_id(31), session_id(24)]);
    let known: Vec<SessionId> = block_on(store.sessions_with_provider_id("thread-20", 3))
        .unwrap()
        .iter()
        .map(|view| view.id)
        .collect();
    assert_eq!(known, [session_id(20)]);
    assert_eq!(block_on(store.sessions_of_conversation(conversation_id(3), 1)).unwrap()[0].id, session_id(3));
    assert_eq!(block_on(store.continued_by(session_id(9))).unwrap().unwrap().id, session_id(10));
    assert_eq!(block_on(store.session(session_id(99))).unwrap(), None);
    assert_eq!(block_on(store.session_numbered(7)).unwrap().unwrap().id, session_id(6));
}

#[test]
fn a_restart_is_pending_until_a_session_goes_on() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 4);
    owner.record(&store, vec![(at(5), event(Kind::SessionFailed, 4))]).unwrap();
    let pending = || -> Vec<SessionId> {
        block_on(store.pending_restarts()).unwrap().iter().map(|view| view.id).collect()
    };
    assert_eq!(pending(), [session_id(4)]);
    // The fifth continues the fourth.
    Owner::create(&store, 5);
    assert!(pending().is_empty());
    block_on(store.reindex()).unwrap();
    assert!(pending().is_empty());
}

#[test]
fn what_keeps_a_session_from_going_on_is_shown_until_it_does_or_is_left() {
    let place = Place::new();
    let store = place.open();
    for n in [4, 6] {
        let mut owner = Owner::create(&store, n);
        owner.record(&store, vec![(at(n + 1), event(Kind::SessionFailed, n))]).unwrap();
        store.commit_blocking(node_commit(vec![(at(n + 2), event(Kind::RestartRefused, n))])).unwrap();
    }
    let view = |n| block_on(store.session(session_id(n))).unwrap().unwrap();
    let refused = |n| view(n).restart_refused.map(|refused| (refused.since, refused.reason));
    let is_to_go_on = |n| block_on(store.is_to_go_on(session_id(n))).unwrap();
    let current = || -> Vec<SessionId> {
        let filter =
            SessionFilter { scope: Scope::Current { failed_since: at(90) }, ..SessionFilter::default() };
        let listed = block_on(store.list_sessions(&filter, Page::of(9, None))).unwrap();
        listed.rows.iter().map(|view| view.id).collect()
    };
    assert_eq!(refused(4), Some((at(6), "CAMPAIGN_ROOT".to_owned())));
    assert!(is_to_go_on(4) && is_to_go_on(6));
    assert_eq!(current(), [session_id(6), session_id(4)], "however long ago they failed");
    // The fifth continues the fourth, and the sixth is left.
    Owner::create(&store, 5);
    store.commit_blocking(node_commit(vec![(at(9), event(Kind::LostLeft, 6))])).unwrap();
    for _ in 0..2 {
        assert_eq!((refused(4), view(4).continued_by), (None, Some(session_id(5))));
        assert_eq!((refused(6), view(6).continued_by), (None, None));
        assert!(!is_to_go_on(4) && !is_to_go_on(6));
        assert_eq!(current(), [session_id(5)]);
        block_on(store.reindex()).unwrap();
    }
}

#[test]
fn what_was_lost_with_the_machine_waits_for_a_word() {
    let place = Place::new();
    let store = place.open();
    let call = |n, model: &str| {
        let usage = ostler_domain::Usage { input: n, cache_read: 10 * n, ..Default::default() };
        let model = Some(model.to_owned());
        Event::UsageRecorded(ostler_domain::event::UsageRecorded { usage, model, ..Default::default() })
    };
    for n in [3, 4, 6] {
        let mut owner = Owner::create(&store, n);
        let began = (at(n), event(Kind::SessionStarted, n));
        let calls = [(at(n), call(n, "model-9")), (at(n), call(1, "a-small-one"))];
        let end = (at(n + 1), Event::SessionFailed(ended(n, Outcome::Lost)));
        owner.record(&store, [began].into_iter().chain(calls).chain([end]).collect()).unwrap();
    }
    let mut crashed = Owner::create(&store, 7);
    crashed.record(&store, vec![(at(8), event(Kind::SessionFailed, 7))]).unwrap();
    let lost = || block_on(store.lost()).unwrap();
    let ids = || lost().iter().map(|lost| lost.session.id).collect::<Vec<_>>();
    assert_eq!(ids(), [session_id(3), session_id(4), session_id(6)]);
    assert_eq!(lost()[1].restarted, at(4));
    let last = lost()[1].last_call.unwrap();
    assert_eq!((last.usage.input, last.usage.cache_read), (4, 40), "of its own model, not of the small one");
    // The fifth continues the fourth.
    Owner::create(&store, 5);
    assert_eq!(ids(), [session_id(3), session_id(6)]);
    store.commit_blocking(node_commit(vec![(at(9), event(Kind::LostLeft, 6))])).unwrap();
    assert_eq!(ids(), [session_id(3)]);
    let before = lost();
    block_on(store.reindex()).unwrap();
    assert_eq!(lost(), before);
}
