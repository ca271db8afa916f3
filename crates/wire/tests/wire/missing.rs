//! What is missing or does not fit is named; what a request leaves out has its default.

use ostler_domain::{
    query::Scope,
    session::{Approve, RestartPolicy, WatchdogLimits},
};
use ostler_wire::{from_proto, pb, request::Place, to_proto};
use proptest::{strategy::ValueTree, test_runner::TestRunner};

use crate::dice::dice;

fn session() -> pb::Session {
    let mut runner = TestRunner::deterministic();
    let mut dice = proptest::strategy::Strategy::new_tree(&dice(), &mut runner).unwrap().current();
    to_proto::view(&dice.view())
}

#[track_caller]
fn check(field: &str, change: impl FnOnce(&mut pb::Session)) {
    let mut session = session();
    change(&mut session);
    assert_eq!(from_proto::view(session).unwrap_err().field, field);
}

#[test]
fn a_session_without_a_part_names_it() {
    check("id", |session| session.id.clear());
    check("campaign_id", |session| session.campaign_id = "ses_01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned());
    check("status", |session| session.status = 0);
    check("phase", |session| session.phase = 99);
    check("outcome", |session| session.outcome = Some(0));
    check("usage", |session| session.usage = None);
    check("sandbox", |session| session.sandbox = "moon".to_owned());
    check("created_time", |session| session.created_time = None);
    check("created_time", |session| {
        session.created_time = Some(prost_types::Timestamp { seconds: i64::MAX, nanos: 0 })
    });
    check("updated_time", |session| {
        session.updated_time = Some(prost_types::Timestamp { seconds: 1, nanos: -1 })
    });
    check("budget.on_budget", |session| {
        session.budget = Some(pb::Budget { max_tokens: 1, on_budget: 0, max_micro_usd: None })
    });
    check("restart.plan", |session| session.restart = Some(pb::RestartPlan { plan: None }));
}

#[test]
fn the_smallest_request_is_enough() {
    let smallest = pb::CreateSessionRequest {
        campaign: "shop".to_owned(),
        provider: "script".to_owned(),
        ..pb::CreateSessionRequest::default()
    };
    let request = from_proto::create_session(smallest.clone()).unwrap();
    assert_eq!((request.approve, request.restart), (Approve::Ask, RestartPolicy::Never));
    assert_eq!((request.budget, request.timeout, request.watchdogs), (None, None, WatchdogLimits::default()));
    assert_eq!(from_proto::request_id(&smallest.request_id), Ok(None));

    let without = pb::CreateSessionRequest { provider: String::new(), ..smallest.clone() };
    assert_eq!(from_proto::create_session(without).unwrap().provider, "", "the daemon chooses");
    let without = pb::CreateSessionRequest { campaign: String::new(), ..smallest };
    assert_eq!(from_proto::create_session(without).unwrap_err().to_string(), "campaign is missing");
    assert_eq!(from_proto::session_filter(pb::SessionFilter::default()).unwrap().scope, Scope::All);
    assert_eq!(from_proto::list_events(pb::ListEventsRequest::default()).unwrap().from, Place::After(0));
}

#[test]
fn bad_values_of_requests_are_named() {
    let filter = pb::EventFilter { kinds: vec!["MOON_LANDED".to_owned()], ..pb::EventFilter::default() };
    let error = from_proto::list_events(pb::ListEventsRequest { filter: Some(filter), ..Default::default() })
        .unwrap_err();
    assert_eq!(error.to_string(), "filter.kinds does not fit: no events are called \"MOON_LANDED\"");
    assert_eq!(from_proto::page(0, "next").unwrap_err().field, "cursor");
    assert_eq!(from_proto::request_id("twice").unwrap_err().field, "request_id");
    let scope = pb::SessionFilter { scope: pb::SessionScope::Current.into(), ..Default::default() };
    assert_eq!(from_proto::session_filter(scope).unwrap_err().field, "failed_since");
    let listed = |text: String| {
        from_proto::session_filter(pb::SessionFilter { provider: Some(text), ..Default::default() })
    };
    assert_eq!(listed("codex, script,".to_owned()).unwrap().providers, ["codex", "script"]);
    // What names nothing would find everything.
    assert_eq!(listed(" , ".to_owned()).unwrap_err().to_string(), "provider does not fit: names nothing");
    assert_eq!(listed(vec!["x"; 100].join(",")).unwrap().providers.len(), 100);
    assert_eq!(listed(vec!["x"; 101].join(",")).unwrap_err().field, "provider");
}
