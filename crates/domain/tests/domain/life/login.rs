//! Sessions that live longer than the login that they were lent.

use ostler_domain::limits::{LOGIN_RENEWED_BEFORE, RESTARTS_IN_A_ROW};

use super::*;

/// One whose login is refused in its first turn; it was lent until so long after that.
fn refused(mut created: Created, left: Option<std::time::Duration>, short_lives: u32) -> Life {
    created.short_lives = short_lives;
    let mut life = Life::of(created);
    if let Some(left) = left {
        life.input(Input::Lent { until: time(0).plus(left) });
    }
    life.working().report(Report::AuthFailed("401 token expired".into()));
    life.exit(How::Signaled { signal: 9 });
    life
}

fn never(ends_with_turn: bool) -> Created {
    created(RestartPolicy::Never, Approve::Ask, ends_with_turn, None)
}

#[test]
fn a_session_whose_lent_login_has_ended_goes_on_with_a_renewed_one() {
    for ends_with_turn in [false, true] {
        let life = refused(never(ends_with_turn), Some(LOGIN_RENEWED_BEFORE), 0);
        assert!(matches!(life.state.view().restart, Some(Restart::At(_))), "{:?}", life.state.view().restart);
        assert!(life.effects.iter().any(|effect| matches!(effect, Effect::Continue { .. })));
        assert!(life.state.goes_on_with_a_renewed_login());
        let obituary = &life.state.ended().unwrap().obituary;
        assert_eq!(obituary.sentence, "Ended by Ostler: the login that it was lent has ended.");
        let told = life.state.interruption().unwrap();
        assert!(told.contains("interrupted in the middle of your work"), "{told}");
    }
}

#[test]
fn after_a_good_life_it_goes_on_at_once() {
    let mut life = Life::plain();
    life.input(Input::Lent { until: time(3_600_000_000) }).working();
    life.step = 3_600_000;
    life.report(Report::AuthFailed("401".into()))
        .report(Report::TurnEnded { stop_reason: StopReason::Error })
        .exit(How::Signaled { signal: 9 });
    let after = life.effects.iter().find_map(|effect| match effect {
        Effect::Continue { after } => Some(*after),
        _ => None,
    });
    assert_eq!(after, Some(std::time::Duration::ZERO));
    let words = life.state.failed_turn_words().unwrap();
    assert!(words.contains("go on where you were stopped"), "the failed turn is tried again: {words}");
}

#[test]
fn a_login_that_is_refused_long_before_its_end_is_not_tried_again() {
    let long = LOGIN_RENEWED_BEFORE * 3;
    for left in [None, Some(long)] {
        let life = refused(never(false), left, 0);
        assert_eq!(life.state.view().restart, None, "{left:?}");
        assert!(life.state.ended().unwrap().obituary.sentence.contains("401 token expired"));
    }
}

#[test]
fn a_login_that_is_refused_again_and_again_ends_in_quarantine() {
    let life = refused(never(false), Some(LOGIN_RENEWED_BEFORE), RESTARTS_IN_A_ROW - 1);
    assert!(matches!(life.state.view().restart, Some(Restart::Quarantined { .. })));
    assert!(!life.state.goes_on_with_a_renewed_login());
}
