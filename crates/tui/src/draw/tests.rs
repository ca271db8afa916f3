use insta::assert_snapshot;
use ostler_domain::{Event, Reason, Refusal, Usage, event::Text, price::Dollars, session::Attention};
use ostler_screen::{
    Letters, Line, Look,
    cost::{By, Sum, Sums},
    testing::{ago, mission, session},
};

use crate::{
    message::{Drawn, Key, Message},
    state::{Overview, State, View},
    testing::{opening, picture, press, received, seen, shown, tell, type_in, wait},
};

fn at_both_sizes(name: &str, state: &State) {
    assert_snapshot!(format!("{name}_80x24"), picture(state, 80, 24));
    assert_snapshot!(format!("{name}_120x40"), picture(state, 120, 40));
}

#[test]
fn the_list_with_who_needs_you_first() {
    at_both_sizes("list", &seen());
}

#[test]
fn a_narrow_screen_has_only_the_list() {
    assert_snapshot!("list_50x16", picture(&seen(), 50, 16));
}

#[test]
fn nobody_is_there() {
    let mut state = opening();
    assert_snapshot!("opening_80x24", picture(&state, 80, 24));
    tell(&mut state, Message::Overview(Box::default()));
    at_both_sizes("empty", &state);
    tell(&mut state, Message::Overview(Box::new(Overview { has_any: true, ..Overview::default() })));
    assert_snapshot!("nothing_runs_80x24", picture(&state, 80, 24));
}

#[test]
fn a_question_with_the_keys_that_answer_it() {
    let mut state = seen();
    press(&mut state, &[Key::Tab]);
    at_both_sizes("approval", &state);
    wait(&mut state);
    press(&mut state, &[Key::Char('A')]);
    assert_snapshot!("always_80x24", picture(&state, 80, 24));
    press(&mut state, &[Key::Esc, Key::Char('v')]);
    assert_snapshot!("full_80x24", picture(&state, 80, 24));
}

#[test]
fn whoever_is_held_at_a_budget_says_what_lets_it_go_on() {
    let mut state = opening();
    let mut session = session(11, "api");
    session.attention = Some(Attention::BudgetHold);
    session.evidence = "2.0M of 2.0M tokens used".to_owned();
    let overview = Overview { has_any: true, sessions: vec![session.clone()], ..Overview::default() };
    tell(&mut state, Message::Overview(Box::new(overview)));
    let shown = picture(&state, 120, 40).replace('\n', " ");
    assert!(shown.contains("is held at its budget"), "{shown}");
    assert!(shown.contains(&format!("ostler resume {} --budget", session.id.short())), "{shown}");
}

#[test]
fn each_box_has_a_title_of_its_own() {
    let mut state = seen();
    press(&mut state, &[Key::Char('r')]);
    type_in(&mut state, "go on");
    at_both_sizes("reply", &state);
    press(&mut state, &[Key::Esc, Key::Char('n')]);
    type_in(&mut state, "fix the flaky login test");
    at_both_sizes("new", &state);
    press(&mut state, &[Key::Esc, Key::Char('x')]);
    assert_snapshot!("stop_80x24", picture(&state, 80, 24));
    press(&mut state, &[Key::Esc, Key::Char('h')]);
    assert_snapshot!("handoff_80x24", picture(&state, 80, 24));
}

#[test]
fn a_filter_while_it_is_typed_and_after() {
    let mut state = seen();
    press(&mut state, &[Key::Char('/')]);
    type_in(&mut state, "idle");
    at_both_sizes("filter", &state);
    press(&mut state, &[Key::Enter]);
    assert_snapshot!("filtered_80x24", picture(&state, 80, 24));
    press(&mut state, &[Key::Char('/')]);
    type_in(&mut state, " xyzzy");
    assert_snapshot!("none_fits_80x24", picture(&state, 80, 24));
}

#[test]
fn what_was_used() {
    let mut state = seen();
    press(&mut state, &[Key::Char('$')]);
    let usage =
        Usage { input: 41_000, cache_read: 1_900_000, cache_write: 96_000, output: 22_000, reasoning: 0 };
    let row = Sum {
        name: "api-auth k7q4x".to_owned(),
        calls: 21,
        sessions: 1,
        usage,
        cost: Dollars(3_180_000),
        ..Sum::default()
    };
    let total = Sum { name: "TOTAL".to_owned(), ..row.clone() };
    let rows = vec![row.clone(), Sum { name: "docs".to_owned(), ..row }];
    tell(&mut state, Message::Cost(By::Session, Box::new(Sums { rows, total })));
    at_both_sizes("cost", &state);
    tell(&mut state, Message::Cost(By::Session, Box::default()));
    assert_snapshot!("no_cost_80x24", picture(&state, 80, 24));
}

#[test]
fn a_mission_as_a_graph() {
    let mut state = seen();
    press(&mut state, &[Key::Char('g')]);
    tell(&mut state, Message::Missions(Vec::new()));
    assert_snapshot!("no_mission_80x24", picture(&state, 80, 24));
    let stage = mission::in_the_middle();
    let whole = mission::whole(&stage);
    let mission::Stage { state: drawn, sessions } = stage;
    tell(&mut state, Message::Missions(vec![whole.mission.clone()]));
    tell(&mut state, Message::Mission(Box::new(Drawn { state: drawn, sessions, whole })));
    at_both_sizes("mission", &state);
}

#[test]
fn the_daemon_is_away_and_back() {
    let mut state = seen();
    // Times of day are those of whoever runs the tests.
    let shown = |state: &State, width, height| {
        let at = ostler_screen::words::clock(ago(4), &ostler_screen::words::zone());
        picture(state, width, height).replace(&at, "HH:MM:SS")
    };
    tell(&mut state, Message::Lost(ago(4)));
    assert_snapshot!("lost_80x24", shown(&state, 80, 24));
    assert_snapshot!("lost_120x40", shown(&state, 120, 40));
    tell(&mut state, Message::Overview(Box::new(crate::testing::overview())));
    tell(&mut state, Message::Back);
    let back = picture(&state, 80, 24);
    assert!(back.contains("the daemon was away for 4s and is back; nothing was missed"), "{back}");
}

#[test]
fn what_was_refused_says_what_to_try() {
    let mut state = seen();
    let refusal = Refusal::new(Reason::Halted, "all agents are halted")
        .hint("ostler halt --release", "lets them go on");
    tell(&mut state, Message::Refused(Box::new(refusal), None));
    assert_snapshot!("refused_80x24", picture(&state, 80, 24));
}

#[test]
fn the_help_has_all_keys() {
    let mut state = seen();
    press(&mut state, &[Key::Char('?')]);
    at_both_sizes("help", &state);
}

#[test]
fn one_session_alone() {
    let mut state = seen();
    press(&mut state, &[Key::Char(' ')]);
    assert_snapshot!("peek_80x24", picture(&state, 80, 24));
}

#[test]
fn no_size_is_too_small() {
    let mut state = seen();
    let views =
        [Key::Char('?'), Key::Char('$'), Key::Char('g'), Key::Char('r'), Key::Char('n'), Key::Char('x')];
    for key in views {
        press(&mut state, &[key]);
        for (width, height) in [(1, 1), (2, 2), (3, 5), (7, 3), (20, 4), (61, 3), (101, 2), (300, 100)] {
            picture(&state, width, height);
        }
        (state.view, state.dialog) = (View::List, None);
    }
}

#[test]
fn a_terminal_that_knows_no_letters_gets_none() {
    let mut state = seen();
    state.look = Look { letters: Letters::Ascii, ..Look::plain(None) };
    press(&mut state, &[Key::Char('r')]);
    tell(&mut state, Message::Done(vec![Line::of("grün · ✓")]));
    let shown = picture(&state, 120, 40);
    assert!(shown.is_ascii(), "{shown}");
}

#[test]
fn what_an_agent_says_moves_no_terminal() {
    let shown = picture(&seen(), 120, 40);
    assert!(shown.contains("␛[31mhas none yet"), "{shown}");
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
}

#[test]
fn a_request_that_is_longer_than_the_screen_is_read_to_its_end() {
    let mut state = seen();
    let whole: Vec<String> = (1..=90).map(|n| format!("step {n}!")).collect();
    state.overview.approvals[0].input = whole.join("\n");
    press(&mut state, &[Key::Tab, Key::Char('v')]);
    let mut seen = String::new();
    for _ in 0..30 {
        let shown = picture(&state, 80, 24);
        seen.push_str(&shown);
        press(&mut state, &[Key::PageDown]);
    }
    let missing: Vec<&String> = whole.iter().filter(|step| !seen.contains(step.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(picture(&state, 80, 24).contains("the end; PgUp"));
    for (width, height) in [(1, 1), (20, 4), (61, 3), (300, 200)] {
        picture(&state, width, height);
    }
    press(&mut state, &[Key::Home]);
    assert!(picture(&state, 80, 24).contains("step 1!") && state.dialog.is_some());
    press(&mut state, &[Key::Char('a')]);
    assert!(state.dialog.is_none(), "any other key closes it, and answers nothing");
}

#[test]
fn who_scrolls_beyond_an_end_is_back_with_the_next_key() {
    let mut state = seen();
    let whole: Vec<String> = (1..=90).map(|n| format!("step {n}!")).collect();
    state.overview.approvals[0].input = whole.join("\n");
    press(&mut state, &[Key::Tab, Key::Char('v')]);
    press(&mut state, &[Key::PageDown; 40]);
    let end = shown(&mut state, 80, 24);
    assert!(end.contains("step 90!") && end.contains("the end; PgUp"), "{end}");
    press(&mut state, &[Key::Char('k')]);
    let above = shown(&mut state, 80, 24);
    assert!(above.contains("↓ 1 more, PgDn"), "{above}");
    press(&mut state, &[Key::End]);
    assert_eq!(shown(&mut state, 80, 24), end);
    // The same of a story, upwards.
    press(&mut state, &[Key::Esc, Key::Esc]);
    let session = state.cursor.unwrap();
    let said = |n: u64| {
        received(100 + n, Event::AgentCompletion(Text { text: format!("word {n}!"), subagent: None }))
    };
    tell(&mut state, Message::Told(session, (1..=60).map(said).collect()));
    press(&mut state, &[Key::PageUp; 40]);
    let top = shown(&mut state, 80, 24);
    press(&mut state, &[Key::PageDown]);
    assert_ne!(shown(&mut state, 80, 24), top, "one key moves it");
}
