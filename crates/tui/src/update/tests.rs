use std::time::Duration;

use ostler_client::{AnswerApproval, SendMessage};
use ostler_domain::{ApprovalId, Refusal, SessionId};
use ostler_screen::testing::NOW;

use super::*;
use crate::{
    message::Key,
    state::{Addressee, Deed, Dialog},
    testing::{ASKED, overview, press, seen, tell, type_in, wait},
};

fn answer(allow: bool, always: bool, message: &str) -> Effect {
    let approval = ApprovalId::new(NOW, ASKED).to_string();
    let answer = AnswerApproval { approval, allow, always, message: message.to_owned() };
    Effect::Answer { answer, campaign: "shop".to_owned() }
}

fn named(state: &State, name: &str) -> SessionId {
    state.overview.sessions.iter().find(|session| session.name.as_str() == name).unwrap().id
}

#[test]
fn an_answer_is_given_only_where_the_question_has_the_focus_and_was_seen() {
    let mut state = seen();
    wait(&mut state);
    for key in ['a', 'a', 'd', 'd', 'A'].map(Key::Char) {
        assert_eq!(press(&mut state, &[key]), [], "the list has the focus, however often");
        assert_eq!((state.focus, state.notice.is_some()), (Focus::List, true), "it is said what goes there");
    }
    press(&mut state, &[Key::Tab]);
    assert_eq!(press(&mut state, &[Key::Char('a')]), [answer(true, false, "")]);
    assert_eq!(press(&mut state, &[Key::Char('d')]), [answer(false, false, "")]);
    press(&mut state, &[Key::Tab]);
    assert_eq!(press(&mut state, &[Key::Char('A')]), [], "not from the list");
}

#[test]
fn a_key_on_its_way_when_a_question_appears_is_not_meant_for_it() {
    let mut state = seen();
    wait(&mut state);
    press(&mut state, &[Key::Tab]);
    let mut next = overview();
    next.approvals[0].id = ApprovalId::new(NOW, 99);
    tell(&mut state, Message::Overview(Box::new(next)));
    assert_eq!(press(&mut state, &[Key::Char('a'), Key::Char('d'), Key::Char('A')]), []);
    wait(&mut state);
    assert_eq!(press(&mut state, &[Key::Char('a')]).len(), 1);
}

#[test]
fn always_and_a_reason_need_more_than_a_key() {
    let mut state = seen();
    wait(&mut state);
    assert_eq!(press(&mut state, &[Key::Tab, Key::Char('A'), Key::Enter]), [], "no is what is not yes");
    assert_eq!(press(&mut state, &[Key::Char('A'), Key::Char('y')]), [answer(true, true, "")]);
    press(&mut state, &[Key::Char('m')]);
    type_in(&mut state, "a branch, please");
    assert_eq!(press(&mut state, &[Key::Enter]), [answer(false, false, "a branch, please")]);
}

#[test]
fn a_question_in_words_is_answered_in_words() {
    let mut state = seen();
    state.cursor = Some(named(&state, "dash-tests"));
    wait(&mut state);
    wait(&mut state);
    press(&mut state, &[Key::Tab, Key::Char('a')]);
    assert!(matches!(state.dialog, Some(Dialog::Write { to: Addressee::Answer(_), .. })));
    type_in(&mut state, "ad");
    let effects = press(&mut state, &[Key::Enter]);
    let [Effect::Answer { answer, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((answer.allow, answer.message.as_str()), (true, "ad"));
}

/// Every letter, on every row, with and without the focus: what ends something is only ever asked about.
#[test]
fn no_single_key_stops_or_deletes() {
    let names: Vec<String> = overview().sessions.iter().map(|session| session.name.to_string()).collect();
    for name in names {
        for key in ('!'..='~').map(Key::Char).chain([Key::Enter, Key::Delete, Key::Back, Key::Tab]) {
            for focus in [Focus::List, Focus::Card] {
                let mut state = seen();
                state.cursor = Some(named(&state, &name));
                wait(&mut state);
                wait(&mut state);
                state.focus = focus;
                let effects = press(&mut state, &[key]);
                let ends = |effect: &Effect| {
                    matches!(effect, Effect::Stop(_) | Effect::HandOff { .. } | Effect::Create(_))
                };
                assert!(!effects.iter().any(ends), "{name} {key:?}: {effects:?}");
            }
        }
    }
}

#[test]
fn stopping_is_asked_about() {
    let mut state = seen();
    let id = state.cursor.unwrap();
    for key in [Key::Enter, Key::Char('x'), Key::Char('n'), Key::Esc] {
        assert_eq!(press(&mut state, &[Key::Char('x'), key]), []);
        assert_eq!(state.dialog, None);
    }
    assert_eq!(press(&mut state, &[Key::Char('x'), Key::Char('y')]), [Effect::Stop(id)]);
}

#[test]
fn what_has_ended_is_begun_anew_only_when_asked() {
    let mut state = seen();
    let id = named(&state, "flaky-hunt");
    state.cursor = Some(id);
    assert_eq!(press(&mut state, &[Key::Enter]), [Effect::Follow(id)]);
    assert_eq!(state.dialog, Some(Dialog::Ask(Deed::AttachAnew(id))));
    assert_eq!(press(&mut state, &[Key::Char('y')]), [Effect::Attach(id)]);
    assert_eq!(press(&mut state, &[Key::Char('x'), Key::Char('y'), Key::Char('p')]), [], "it has ended");
}

#[test]
fn a_reply_is_sent_whole_and_pasted_letters_are_no_keys() {
    let mut state = seen();
    assert_eq!(tell(&mut state, Message::Pasted("xyqaAd".to_owned())), []);
    let who = state.cursor.unwrap().to_string();
    press(&mut state, &[Key::Char('r'), Key::Enter]);
    assert!(state.dialog.is_some(), "nothing is not sent");
    tell(&mut state, Message::Pasted("one\ntwo".to_owned()));
    press(&mut state, &[Key::NewLine]);
    type_in(&mut state, "q?");
    let sent = SendMessage { who, text: "one\ntwo\nq?".to_owned(), ..SendMessage::default() };
    assert_eq!(press(&mut state, &[Key::Enter]), [Effect::Send(sent)]);
}

#[test]
fn what_was_written_in_vain_is_there_again() {
    let mut state = seen();
    let refuse = |state: &mut State, effects: &[Effect]| {
        let refusal = Box::new(Refusal::invalid("no agent is ready to work"));
        tell(state, Message::Refused(refusal, effects[0].written()));
        let said = &state.notice.as_ref().unwrap().lines;
        assert!(said.iter().any(|line| line.text().contains("is kept")), "{said:?}");
    };
    let text = |state: &State| match &state.dialog {
        Some(Dialog::New { draft, .. } | Dialog::Write { draft, .. }) => draft.text().to_owned(),
        other => panic!("{other:?}"),
    };
    for (key, words) in [('n', "fix it"), ('r', "and the tests"), ('h', "mind the gap")] {
        press(&mut state, &[Key::Char(key)]);
        type_in(&mut state, words);
        let effects = press(&mut state, &[Key::Enter]);
        refuse(&mut state, &effects);
        press(&mut state, &[Key::Char(key)]);
        assert_eq!(text(&state), words, "{key}");
        press(&mut state, &[Key::Esc, Key::Char(key)]);
        assert_eq!(text(&state), "", "it was let go of");
        press(&mut state, &[Key::Esc]);
    }
    wait(&mut state);
    press(&mut state, &[Key::Tab, Key::Char('m')]);
    type_in(&mut state, "a branch, please");
    let effects = press(&mut state, &[Key::Enter]);
    refuse(&mut state, &effects);
    press(&mut state, &[Key::Char('m')]);
    assert_eq!(text(&state), "a branch, please");
    assert_eq!(Effect::Stop(SessionId::new(NOW, 1)).written(), None);
}

#[test]
fn a_new_session_is_in_the_campaign_of_who_is_under_the_cursor() {
    let mut state = seen();
    press(&mut state, &[Key::Char('n'), Key::Enter]);
    type_in(&mut state, "fix it");
    let campaign = state.current().unwrap().campaign.to_string();
    let effects = press(&mut state, &[Key::Tab, Key::Enter]);
    let [Effect::Create(wanted)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((&wanted.campaign, wanted.initial_message.as_deref()), (&campaign, Some("fix it")));
    let made = SessionId::new(NOW, 77);
    tell(&mut state, Message::Went(made, Vec::new()));
    assert_eq!(state.cursor, Some(made), "the cursor goes to it");
}

#[test]
fn the_cursor_stays_on_its_session_when_rows_move() {
    let mut state = seen();
    let id = named(&state, "triage");
    state.cursor = Some(id);
    let mut moved = overview();
    moved.sessions.reverse();
    tell(&mut state, Message::Overview(Box::new(moved)));
    assert_eq!(state.cursor, Some(id));
    let mut gone = overview();
    gone.sessions.retain(|session| session.id != id);
    assert_eq!(tell(&mut state, Message::Overview(Box::new(gone))).len(), 1);
    assert!(state.cursor.is_some_and(|cursor| cursor != id), "near where it was");
}

#[test]
fn another_row_has_another_story_and_the_focus_stays_behind() {
    let mut state = seen();
    press(&mut state, &[Key::PageUp, Key::Tab, Key::Tab]);
    let before = state.cursor.unwrap();
    let effects = press(&mut state, &[Key::Char('j')]);
    assert_eq!(effects, [Effect::Follow(state.cursor.unwrap())]);
    assert_eq!((state.scrolled, state.focus), (0, Focus::List));
    tell(&mut state, Message::Told(before, Vec::new()));
    assert!(!state.story.is_known, "what comes late is of nobody who is seen");
}

#[test]
fn a_filter_holds_while_it_is_typed_and_esc_drops_it() {
    let mut state = seen();
    press(&mut state, &[Key::Char('/')]);
    type_in(&mut state, "NEEDS-ME shop");
    let names: Vec<&str> = state.rows().iter().map(|session| session.name.as_str()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    press(&mut state, &[Key::Enter]);
    assert_eq!(state.rows().len(), 2);
    press(&mut state, &[Key::Esc]);
    assert_eq!(state.rows().len(), state.overview.sessions.len());
    press(&mut state, &[Key::Char('/'), Key::Char('z'), Key::Esc]);
    assert_eq!(state.filter, "");
    // The cursor comes back to its session with it, also where nothing fitted.
    press(&mut state, &[Key::Char('j'), Key::Char('j')]);
    let before = state.cursor;
    press(&mut state, &[Key::Char('/')]);
    type_in(&mut state, "zzz");
    assert_eq!((state.rows().len(), state.cursor), (0, None));
    press(&mut state, &[Key::Esc]);
    assert!(before.is_some() && state.cursor == before, "{:?}", state.cursor);
    press(&mut state, &[Key::Char('/')]);
    type_in(&mut state, "zzz");
    press(&mut state, &[Key::Enter, Key::Esc]);
    assert!(state.cursor.is_some(), "it is on a row again");
}

#[test]
fn what_is_said_goes_away_by_itself() {
    let mut state = seen();
    tell(&mut state, Message::Done(vec![Line::of("done")]));
    update(&mut state, NOW.plus(Duration::from_secs(3)), Message::Tick);
    assert!(state.notice.is_some());
    update(&mut state, NOW.plus(Duration::from_secs(60)), Message::Tick);
    assert!(state.notice.is_none());
}

#[test]
fn what_was_asked_before_the_daemon_was_back_says_nothing_of_it() {
    let mut state = seen();
    let at = |seconds| NOW.plus(Duration::from_secs(seconds));
    let said = |state: &State| state.notice.as_ref().map(|notice| notice.lines[0].text()).unwrap_or_default();
    update(&mut state, at(1), Message::Lost(NOW));
    update(&mut state, at(12), Message::Back);
    assert_eq!(state.link, Link::Up);
    assert!(said(&state).contains("away for 12s"), "{}", said(&state));
    // A look that began in vain, and ends so now.
    update(&mut state, at(12), Message::Lost(at(11)));
    assert_eq!(state.link, Link::Up);
    // One that began behind it, while the daemon has much to do.
    update(&mut state, at(14), Message::Lost(at(13)));
    assert_eq!(state.link, Link::Down { since: at(13) });
    update(&mut state, at(15), Message::Overview(Box::new(overview())));
    assert_eq!(state.link, Link::Up);
    assert!(said(&state).contains("away for 12s"), "{}", said(&state));
    // And one that went a while later was away again.
    update(&mut state, at(60), Message::Lost(at(59)));
    update(&mut state, at(62), Message::Overview(Box::new(overview())));
    assert!(said(&state).contains("away for 3s"), "{}", said(&state));
}

#[test]
fn leaving_is_all_that_quitting_does() {
    for key in [Key::Char('q'), Key::Interrupt] {
        assert_eq!(press(&mut seen(), &[key]), [Effect::Quit]);
    }
    let mut state = seen();
    press(&mut state, &[Key::Tab, Key::Char('?')]);
    assert!(matches!(state.view, View::Help), "also while a question has the focus");
    press(&mut state, &[Key::Char(' ')]);
    assert_eq!((state.focus, press(&mut state, &[Key::Char('q')])), (Focus::Card, vec![Effect::Quit]));
    let mut state = seen();
    press(&mut state, &[Key::Char('r'), Key::Char('q')]);
    assert_eq!(press(&mut state, &[Key::Interrupt]), [], "Ctrl-C leaves the box first");
}

#[test]
fn the_terminal_rings_for_whoever_does_not_look_at_it() {
    let mut state = seen();
    let notice = || Message::Notice("api-auth asks to use Bash".to_owned());
    let rings = [Effect::Ring("api-auth asks to use Bash".to_owned())];
    assert_eq!(tell(&mut state, notice()), rings, "nobody has pressed a key");
    tell(&mut state, Message::Faced(Some(true)));
    assert_eq!(tell(&mut state, notice()), [], "it is in front");
    tell(&mut state, Message::Faced(Some(false)));
    assert_eq!(tell(&mut state, notice()), rings);
    tell(&mut state, Message::Faced(None));
    assert_eq!(tell(&mut state, notice()), rings, "it says so without knowing, and no key was pressed");
    // A terminal that does not say whether it is in front: whoever pressed a key a moment ago looks.
    let mut state = seen();
    press(&mut state, &[Key::Down]);
    assert_eq!(tell(&mut state, notice()), []);
    let later = state.now.plus(Duration::from_secs(11));
    assert_eq!(update(&mut state, later, notice()), rings);
}
