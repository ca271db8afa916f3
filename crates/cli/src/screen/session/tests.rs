use insta::assert_snapshot;
use ostler_domain::{
    history::{Origin, Source},
    session::{Attention, LargestProcess, OutOfMemory, Outcome, Status},
};

use super::*;
use crate::{
    output::Look,
    testing::{self, NOW},
};

fn shown(session: &Session, approvals: &[Approval]) -> String {
    let around = Around { approvals, home: Some("/home/ann"), ..Around::of("shop") };
    let look = Look::plain(None);
    lines(session, &around, NOW).iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_was_imported_is_gone_on_with_and_not_spoken_to() {
    let mut session = testing::fleet().remove(6);
    session.status = Status::Stopped;
    session.outcome = Some(Outcome::Done);
    session.imported = Some(Origin {
        source: Source::Claude,
        dialogue: "d1".to_owned(),
        file: "/x/d1.jsonl".to_owned(),
        from: 0,
    });
    let text = shown(&session, &[]);
    assert!(text.contains("ostler resume") && !text.contains("ostler send"), "{text}");
}

#[test]
fn a_held_session_without_a_budget_of_its_own_is_told_where_an_amount_belongs() {
    let mut session = testing::fleet().remove(2);
    session.attention = Some(Attention::BudgetHold);
    session.budget = None;
    let text = shown(&session, &[]);
    assert!(text.contains("--budget AMOUNT"), "{text}");
}

#[test]
fn whom_a_mission_keeps_frozen_is_let_go_on_by_the_mission() {
    let mut session = testing::fleet().remove(2);
    session.attention = Some(Attention::Stalled);
    session.evidence = "ostler mission resume site: docs does not get on".to_owned();
    assert_eq!(cure(&session, "shop"), "ostler mission resume site");
}

#[test]
fn whoever_handed_its_work_on_is_not_offered_to_be_spoken_to() {
    let mut session = testing::fleet().remove(6);
    session.status = Status::Stopped;
    session.outcome = Some(Outcome::Handoff);
    let text = shown(&session, &[]);
    assert!(text.contains("ostler chain show") && !text.contains("ostler send"), "{text}");
}

#[test]
fn in_all_looks() {
    let mut session = testing::fleet().remove(6);
    session.obituary.as_mut().unwrap().last = Some("run: cargo build --workspace -j 8".to_owned());
    let around = Around {
        campaign: "shop",
        place_in_chain: Some((1, 2)),
        approvals: &[],
        counted: None,
        conversation: None,
        home: Some("/home/ann"),
        work: None,
        record: None,
        grants: &[Grant {
            target: "run: git push".into(),
            command: "ostler campaign set shop 'approve.rule+=allow run git push'".into(),
        }],
    };
    assert_snapshot!(testing::in_all_looks(|look| { testing::folded(&lines(&session, &around, NOW), look) }));
}

#[test]
fn one_that_failed() {
    let mut session = testing::fleet().remove(6);
    let obituary = session.obituary.as_mut().unwrap();
    obituary.signal = Some(9);
    obituary.memory = Some(OutOfMemory {
        limit_bytes: Some(4 << 30),
        used_bytes: Some(4 << 30),
        largest: Some(LargestProcess { name: "rustc".to_owned(), bytes: (2 << 30) + (900 << 20) }),
        oom_kills: 1,
    });
    obituary.last = Some("run: cargo build --workspace -j 8".to_owned());
    session.restart = Some(Restart::Quarantined { short_lives: 5 });
    assert_snapshot!(shown(&session, &[]));
}

#[test]
fn one_that_cannot_go_on_by_itself_says_what_is_in_the_way_until_another_does() {
    let refused = testing::refused(testing::fleet().remove(6));
    let text = shown(&refused, &[]);
    let next = text.split_once("next ").unwrap().1;
    assert!(text.contains("cannot go on: /srv/shop does not exist"), "{text}");
    assert!(next.trim_start().starts_with("ostler campaign relink shop DIR"), "{text}");
    let other = testing::fleet().remove(1).id;
    let text = shown(&Session { continued_by: Some(other), restart_refused: None, ..refused }, &[]);
    assert!(text.contains(&format!("session {} goes on with it", other.short())), "{text}");
    assert!(!text.contains("ostler resume"), "{text}");
}

#[test]
fn one_that_could_not_start_says_what_would_let_it() {
    let mut session = testing::fleet().remove(6);
    let obituary = session.obituary.as_mut().unwrap();
    obituary.sentence = "The agent could not be started (provider): no key.".to_owned();
    obituary.cures =
        vec![ostler_domain::Hint { command: "export KEY=…".to_owned(), effect: "brings it".to_owned() }];
    let shown = shown(&session, &[]);
    let next = shown.split_once("next ").unwrap().1;
    assert!(next.trim_start().starts_with("export KEY=…"), "{shown}");
    assert!(!shown.contains("try:"), "{shown}");
}

#[test]
fn one_that_asks() {
    let session = testing::fleet().remove(0);
    let approval = Approval {
        id: session.approvals_open[0],
        session: session.id,
        tool: "run".to_owned(),
        input: "cargo add governor".to_owned(),
        asks: "run: cargo add governor".to_owned(),
        kind: ostler_domain::event::AskKind::Leave,
        why: "no rule allows cargo add governor".to_owned(),
        asked: testing::ago(180),
        deadline: None,
        answer: None,
    };
    assert_snapshot!(shown(&session, &[approval]));
}

#[test]
fn one_whose_turn_failed() {
    let mut session = testing::fleet().remove(2);
    session.attention = Some(Attention::TurnFailed);
    session.evidence = "503: no model is loaded".to_owned();
    assert_snapshot!(shown(&session, &[]));
}

#[test]
fn one_whose_conversation_no_longer_fits() {
    let mut session = testing::fleet().remove(2);
    session.attention = Some(Attention::TurnFailed);
    session.evidence = format!("{}: prompt is too long", ostler_domain::event::CONTEXT_FULL);
    let shown = shown(&session, &[]);
    assert!(shown.contains("ostler handoff") && shown.contains("ostler conversation reset"), "{shown}");
    assert!(!shown.contains("ostler resume"), "it would only fail again: {shown}");
}

#[test]
fn one_that_works_and_one_that_is_done() {
    let mut fleet = testing::fleet();
    fleet[7].last_completion = Some("Login attempts are limited;\ntwo tests added.".to_owned());
    assert_snapshot!(format!("{}\n\n{}", shown(&fleet[1], &[]), shown(&fleet[7], &[])));
}
