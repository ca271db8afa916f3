//! How long the record of a session is kept.

use std::time::Duration;

use ostler_domain::{
    ConversationId, Event, Message, Time,
    event::{By, MessageAccepted, Text, ToolCall, ToolResult},
    retention::{
        After, Facts, Hold, Kept, Rules, Spared, Stage, Step, TOMBSTONE, Verdict, decide, erased, tombstone,
    },
    session::{self, State, create},
};
use proptest::{collection::vec, prelude::*};

use crate::any::{any_created, any_input, context, message, time};

const DAY: u64 = 86_400;

fn day(n: u64) -> Time {
    Time::from_micros(0).plus(Duration::from_secs(n * DAY))
}

fn rules(archive: Option<u64>, delete: Option<u64>) -> Rules {
    let after = |days: Option<u64>| days.map(|days| After::Seconds(days * DAY));
    Rules { archive_after: after(archive), delete_after: after(delete), ..Rules::default() }
}

fn ended(at: Time) -> Facts {
    Facts { ended: Some(at), kept: Kept::default(), removed: None, is_needed: false, has_work_tree: false }
}

fn held() -> Option<Hold> {
    Some(Hold { by: By("ann".to_owned()), why: String::new(), since: day(0) })
}

fn step(verdict: &Verdict) -> Option<Step> {
    match verdict {
        Verdict::Do(step, _) => Some(*step),
        Verdict::Nothing | Verdict::Spare(..) => None,
    }
}

#[test]
fn what_somebody_removed_is_announced_and_deleted_unless_they_take_it_back() {
    let none = Rules::default();
    let mut facts = Facts { removed: Some(day(5)), ..ended(day(1)) };
    let due = day(6).plus(TOMBSTONE);
    let rule = || "conversation rm".to_owned();
    assert_eq!(decide(&facts, &none, day(6)), Verdict::Do(Step::Mark { due }, rule()));
    facts.kept.due = Some(due);
    assert_eq!(decide(&facts, &none, day(7)), Verdict::Nothing);
    assert_eq!(decide(&facts, &none, due), Verdict::Do(Step::Delete, rule()));
    // Opened again, brought back, held, or in a campaign that deletes nothing.
    let reopened = Facts { removed: None, ..facts.clone() };
    assert_eq!(step(&decide(&reopened, &none, due)), Some(Step::Unmark));
    let mut restored = facts.clone();
    restored.kept = Kept { restored: Some(day(7)), ..Kept::default() };
    assert_eq!(decide(&restored, &none, day(60)), Verdict::Nothing);
    let again = Facts { removed: Some(day(8)), ..restored };
    assert!(matches!(step(&decide(&again, &none, day(60))), Some(Step::Mark { .. })));
    let mut kept = facts.clone();
    kept.kept.held = held();
    assert_eq!(decide(&kept, &none, due), Verdict::Spare(Step::Delete, Spared::Held));
    let never = Rules { delete_after: Some(After::Never), ..none };
    assert_eq!(step(&decide(&facts, &never, due)), Some(Step::Unmark));
}

#[test]
fn what_is_said_of_a_session_goes_from_hot_to_archived_to_marked_to_deleted() {
    let both = rules(Some(30), Some(180));
    let mut facts = ended(day(1));
    assert_eq!(decide(&facts, &both, day(30)), Verdict::Nothing);
    assert_eq!(
        decide(&facts, &both, day(31)),
        Verdict::Do(Step::Archive, "retention.archive_after=30d".to_owned())
    );
    facts.kept.archived = Some(day(31));
    assert_eq!(facts.kept.stage(), Stage::Archived);
    assert_eq!(decide(&facts, &both, day(180)), Verdict::Nothing);
    let due = day(181).plus(TOMBSTONE);
    assert_eq!(
        decide(&facts, &both, day(181)),
        Verdict::Do(Step::Mark { due }, "retention.delete_after=180d".to_owned())
    );
    facts.kept.due = Some(due);
    assert_eq!(decide(&facts, &both, day(194)), Verdict::Nothing);
    assert_eq!(step(&decide(&facts, &both, day(195))), Some(Step::Delete));
    facts.kept.deleted = Some(day(195));
    assert_eq!(facts.kept.stage(), Stage::Deleted);
    assert_eq!(decide(&facts, &both, day(9_999)), Verdict::Nothing);
}

#[test]
fn without_a_rule_nothing_is_done_and_a_campaign_may_say_never() {
    let old = ended(day(1));
    assert_eq!(decide(&old, &Rules::default(), day(99_999)), Verdict::Nothing);
    let never = Rules { delete_after: Some(After::Never), ..Rules::default() };
    let machine = rules(Some(30), Some(60));
    let here = never.or(machine);
    assert_eq!(here.archive_after, machine.archive_after);
    assert_eq!(step(&decide(&old, &here, day(9_999))), Some(Step::Archive));
    assert!(!never.do_something() && machine.do_something() && machine.least() == here.least());
}

#[test]
fn a_deletion_whose_rule_is_gone_is_announced_anew() {
    let mut facts = ended(day(1));
    facts.kept.due = Some(day(20));
    assert_eq!(step(&decide(&facts, &rules(None, None), day(30))), Some(Step::Unmark));
    // A rule that now wants more time has not come to it yet.
    assert_eq!(step(&decide(&facts, &rules(None, Some(365)), day(30))), Some(Step::Unmark));
    facts.kept.due = None;
    assert!(matches!(step(&decide(&facts, &rules(None, Some(5)), day(30))), Some(Step::Mark { .. })));
}

#[test]
fn what_was_brought_back_is_as_young_as_on_the_day_it_was() {
    let mut facts = ended(day(1));
    facts.kept.restored = Some(day(100));
    assert_eq!(decide(&facts, &rules(Some(30), None), day(129)), Verdict::Nothing);
    assert_eq!(step(&decide(&facts, &rules(Some(30), None), day(130))), Some(Step::Archive));
}

#[test]
fn who_is_spared_and_why() {
    let both = rules(Some(30), Some(60));
    let with = |change: fn(&mut Facts)| {
        let mut facts = ended(day(1));
        change(&mut facts);
        facts
    };
    for (facts, now, expected) in [
        (with(|facts| facts.kept.held = held()), 40, Spared::Held),
        (with(|facts| facts.kept.held = held()), 90, Spared::Held),
        (with(|facts| facts.is_needed = true), 40, Spared::Needed),
        (with(|facts| facts.has_work_tree = true), 90, Spared::WorkTree),
    ] {
        let Verdict::Spare(_, why) = decide(&facts, &both, day(now)) else { panic!("{facts:?}") };
        assert_eq!(why, expected);
    }
    // A tree is in nobody's way when files are only compressed.
    let tree = with(|facts| facts.has_work_tree = true);
    assert_eq!(step(&decide(&tree, &both, day(40))), Some(Step::Archive));
    let marked = with(|facts| {
        facts.kept.due = Some(day(80));
        facts.kept.held = held();
    });
    assert_eq!(decide(&marked, &both, day(90)), Verdict::Spare(Step::Delete, Spared::Held));
    assert_eq!(decide(&with(|facts| facts.ended = None), &both, day(9_999)), Verdict::Nothing);
}

#[test]
fn spans_are_read_as_they_are_typed() {
    for text in ["30d", "12h", "never"] {
        assert_eq!(After::parse(text).map(|after| after.to_string()).as_deref(), Some(text));
    }
    for wrong in ["0d", "soon", "30", "", "-1d"] {
        assert_eq!(After::parse(wrong), None, "{wrong}");
    }
    assert_eq!(tombstone("59m"), None, "nobody would see it");
    assert_eq!(tombstone("2h"), Some(7_200));
}

#[test]
fn what_was_said_is_gone_and_what_happened_stays() {
    let secret = "the cake is in the cellar";
    let told = Message { text: secret.to_owned(), ..message(1) };
    let said = [
        Event::MessageAccepted(MessageAccepted::new(told, ConversationId::new(day(1), 1), By::ostler())),
        Event::AgentThinking(Text::from(secret)),
        Event::AgentCompletion(Text::from(secret)),
        Event::AgentToolCall(ToolCall {
            tool: "Bash".to_owned(),
            tool_id: "t1".to_owned(),
            summary: secret.to_owned(),
            input: secret.to_owned(),
            subagent: None,
        }),
        Event::AgentToolResult(ToolResult {
            tool_id: "t1".to_owned(),
            success: true,
            exit: Some(0),
            output: secret.to_owned(),
            subagent: None,
        }),
    ];
    for event in said {
        let kind = event.kind();
        let gone = erased(event);
        assert_eq!(gone.kind(), kind);
        assert!(!gone.body().contains("cake"), "{}", gone.body());
        assert_eq!(erased(gone.clone()), gone, "erasing twice is erasing once");
        assert_eq!(Event::decode(kind, &gone.body()).unwrap(), gone);
    }
}

prop_compose! {
    fn any_after()(days in 1_u64..400) -> After { After::Seconds(days * DAY) }
}

prop_compose! {
    fn any_rules()(
        archive_after in prop::option::of(prop_oneof![Just(After::Never), any_after()]),
        delete_after in prop::option::of(prop_oneof![Just(After::Never), any_after()]),
        tombstone in prop::option::of(0_u64..30 * DAY),
    ) -> Rules {
        Rules { archive_after, delete_after, tombstone, ..Rules::default() }
    }
}

proptest! {
    /// Follows the rules from day to day, with what may happen in between, and looks whether each deletion had a rule, an
    /// announcement of at least an hour, and nobody against it.
    #[test]
    fn nothing_is_deleted_that_no_rule_announced(
        days in vec((any_rules(), any::<bool>(), any::<bool>(), 0_u64..60), 1..60),
    ) {
        let mut facts = ended(day(1));
        let (mut now, mut marked_at) = (day(1), None);
        for (rules, is_held, is_needed, pause) in days {
            now = now.plus(Duration::from_secs(pause * DAY));
            facts.kept.held = if is_held { held() } else { None };
            facts.is_needed = is_needed;
            match decide(&facts, &rules, now) {
                Verdict::Do(Step::Archive, _) => {
                    prop_assert!(rules.archive_after.is_some_and(|after| after != After::Never));
                    facts.kept.archived = Some(now);
                }
                Verdict::Do(Step::Mark { due }, _) => {
                    prop_assert!(due >= now.plus(Duration::from_secs(3_600)));
                    facts.kept.due = Some(due);
                    marked_at = Some(now);
                }
                Verdict::Do(Step::Unmark, _) => {
                    facts.kept.due = None;
                    marked_at = None;
                }
                Verdict::Do(Step::Delete, _) => {
                    let Some(After::Seconds(least)) = rules.delete_after else { panic!("no rule says so") };
                    prop_assert!(day(1).plus(Duration::from_secs(least)) <= now);
                    prop_assert!(marked_at.is_some_and(|at| at.plus(Duration::from_secs(3_600)) <= now));
                    prop_assert!(!is_held && !is_needed);
                    facts.kept.deleted = Some(now);
                }
                Verdict::Spare(_, Spared::Held) => prop_assert!(is_held),
                Verdict::Spare(_, _) => prop_assert!(is_needed),
                Verdict::Nothing => {}
            }
        }
    }

    /// Whatever a session did, without its words it is the same session.
    #[test]
    fn a_session_without_its_words_ended_as_it_did(created in any_created(), inputs in vec(any_input(), 0..60)) {
        let begun = create(created, vec![(message(0), None)], &By("ann".into()));
        let mut log: Vec<(Time, Event)> = begun.into_iter().map(|event| (time(0), event)).collect();
        let fold = |log: &[(Time, Event)]| State::replay(log.iter().map(|(at, event)| (*at, event))).unwrap();
        let mut live = fold(&log);
        for (step, input) in inputs.into_iter().enumerate() {
            let context = context(step as u64 + 1);
            let Ok(decision) = session::decide(&live, input, &context) else { continue };
            for event in decision.events {
                live.apply(context.now.wall, &event);
                log.push((context.now.wall, event));
            }
        }
        let gone: Vec<_> = log.into_iter().map(|(at, event)| (at, erased(event))).collect();
        let (was, is) = (live.view(), fold(&gone).view());
        prop_assert_eq!(
            (is.outcome, is.usage, is.turns, is.ended_at, is.session_seq, is.status),
            (was.outcome, was.usage, was.turns, was.ended_at, was.session_seq, was.status)
        );
    }
}
