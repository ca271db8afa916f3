use insta::assert_snapshot;
use ostler_client::reply::WholeMission;
use ostler_domain::{
    ApprovalId, Event,
    event::{By, CollisionForecast, MissionEnded, MissionPaused},
    session::{self, Attention, Desired},
};

use super::*;
use crate::testing::{
    NOW, ago,
    mission::{Stage, crowd, in_the_middle, whole},
};

fn shown(stage: &Stage, whole: Option<&WholeMission>, width: usize) -> String {
    let look = Look::plain(Some(width));
    let seen = Seen { state: &stage.state, sessions: &stage.sessions, whole, now: NOW };
    let lines: Vec<String> = seen.lines(&look).iter().map(|line| line.show(&look)).collect();
    assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
    let steps = seen.steps().into_iter().map(|(command, effect)| format!("> {command} | {effect}"));
    lines.into_iter().map(|line| line.trim_end().to_owned()).chain(steps).collect::<Vec<_>>().join("\n")
}

#[test]
fn one_that_runs_says_what_each_does_and_who_waits() {
    let mut stage = in_the_middle();
    let id = |place: usize| stage.state.slots()[place].assignment.id;
    let collision = CollisionForecast {
        mission: stage.state.id(),
        one: id(1),
        other: id(3),
        paths: vec!["Cargo.lock".to_owned()],
        turn: Some(3),
    };
    stage.state.apply(ago(60), &Event::CollisionForecast(collision));
    assert_snapshot!("running_120", shown(&stage, Some(&whole(&stage)), 120));
    assert_snapshot!("running_80", shown(&stage, Some(&whole(&stage)), 80));
}

#[test]
fn what_only_the_daemon_knows_is_said_too() {
    let stage = in_the_middle();
    let mut told = whole(&stage);
    told.wait = "for the end of the halt: ostler halt --release".to_owned();
    told.assignments[3].wait = "to be started: for a slot (2 of 2 run)".to_owned();
    let screen = shown(&stage, Some(&told), 120);
    assert!(screen.contains("waits for the end of the halt"), "{screen}");
    assert!(screen.contains("build-ui  to be started: for a slot"), "{screen}");
}

#[test]
fn a_member_that_asks_is_shown_with_what_answers_it() {
    let mut stage = in_the_middle();
    let asks = stage.sessions.last_mut().unwrap();
    let (id, session) = (ApprovalId::new(ago(3), 9), asks.id.short());
    asks.attention = Some(Attention::WaitingApproval);
    asks.evidence = "run: cargo add governor".to_owned();
    asks.approvals_open = vec![id];
    let allow = format!("ostler allow {}", id.short());
    let answered = |stage: &Stage, answer: &str, what: &str| {
        for width in [80, 120] {
            let screen = shown(stage, None, width).replace("\n  ", " ");
            assert!(screen.contains(&format!("build-ui  for you: {answer}")), "{screen}");
            assert!(screen.contains(&format!("> {answer} | build-ui asks: {what}")), "{screen}");
        }
    };
    answered(&stage, &allow, "run: cargo add governor");
    let asks = stage.sessions.last_mut().unwrap();
    asks.attention = Some(Attention::WaitingInput);
    asks.evidence = "Which port?".to_owned();
    answered(&stage, &format!("ostler send {session} \"…\""), "“Which port?”");
    let asks = stage.sessions.last_mut().unwrap();
    asks.attention = Some(Attention::BudgetHold);
    asks.evidence = "campaign shop: 30000 of 30000 tokens used".to_owned();
    let held = "held at a budget: campaign shop: 30000 of 30000 tokens used";
    answered(&stage, "ostler campaign set shop budget=AMOUNT/PERIOD", held);
}

#[test]
fn a_member_that_a_person_paused_or_that_has_no_place_yet_does_not_run() {
    let mut stage = in_the_middle();
    let drawn = |stage: &Stage, sign: char| {
        let screen = shown(stage, None, 120);
        assert!(screen.lines().any(|line| line.contains(&format!("build-ui  {sign}"))), "{screen}");
        screen
    };
    drawn(&stage, '●');
    let paused = stage.sessions.last_mut().unwrap();
    let resume = format!("ostler resume {}", paused.id.short());
    (paused.desired, paused.attention) = (Desired::Pause, Some(Attention::Paused));
    let screen = drawn(&stage, '‖');
    assert!(screen.contains(&format!("build-ui  for you: {resume} (paused by hand)")), "{screen}");
    assert!(screen.contains(&format!("> {resume} | ")), "{screen}");
    let in_line = stage.sessions.last_mut().unwrap();
    (in_line.desired, in_line.attention, in_line.status) = (Desired::Run, None, session::Status::Created);
    drawn(&stage, '◌');
}

#[test]
fn one_that_is_paused_says_who_did_that_and_why() {
    let mut stage = in_the_middle();
    let (mission, by, why) = (stage.state.id(), By("ann".to_owned()), "lunch".to_owned());
    let paused = MissionPaused { mission, by, why, spared: Vec::new(), time_left_us: None };
    stage.state.apply(ago(20), &Event::MissionPaused(paused));
    assert_snapshot!("paused_120", shown(&stage, None, 120));
    assert_snapshot!("paused_80", shown(&stage, None, 80));
}

#[test]
fn one_that_is_over_says_what_was_not_done() {
    let mut stage = in_the_middle();
    stage.end(3, 30, AssignmentStatus::Failed, 225);
    stage.end(4, 30, AssignmentStatus::Skipped, 0);
    let (mission, why) = (stage.state.id(), "3 of 5 were completed".to_owned());
    let ended = MissionEnded { mission, status: Status::Partial, why, ran_us: 1_060_000_000 };
    stage.state.apply(ago(30), &Event::MissionEnded(ended));
    assert_snapshot!("partial_120", shown(&stage, None, 120));
    assert_snapshot!("partial_80", shown(&stage, None, 80));
}

#[test]
fn a_terminal_without_letters_gets_signs_of_its_own() {
    let look = Look { letters: crate::Letters::Ascii, ..Look::plain(Some(120)) };
    let stage = in_the_middle();
    let seen = Seen { state: &stage.state, sessions: &stage.sessions, whole: None, now: NOW };
    let graph: Vec<String> = seen.graph(Some(120)).iter().map(|line| line.show(&look)).collect();
    assert!(graph.iter().all(|line| line.is_ascii() && !line.contains('?')), "{graph:#?}");
}

#[test]
fn on_a_small_screen_who_needs_you_comes_first_and_what_is_done_is_counted() {
    let mut stage = crowd(40);
    for place in 0..34 {
        stage.start(place, 600);
        stage.end(place, 60, AssignmentStatus::Completed, 10);
    }
    (34..39).for_each(|place| stage.start(place, 50));
    let asks = stage.sessions.last_mut().unwrap();
    let id = ApprovalId::new(ago(3), 9);
    asks.attention = Some(Attention::WaitingApproval);
    asks.evidence = "run: cargo add governor".to_owned();
    asks.approvals_open = vec![id];
    let look = Look::plain(Some(80));
    let seen = Seen { state: &stage.state, sessions: &stage.sessions, whole: None, now: NOW };
    for rows in [8, 12, 22, 30] {
        let lines: Vec<String> = seen.fitting(&look, rows).iter().map(|line| line.show(&look)).collect();
        let screen = lines.join("\n");
        assert!(lines.len() <= rows && lines.iter().all(|line| line.chars().count() <= 80), "{screen}");
        let asks = screen.find(&format!("member-39  for you: ostler allow {}", id.short()));
        let works = screen.find("member-35 ●");
        assert!(asks.is_some(), "{rows}: {screen}");
        assert!(rows < 12 || works > asks, "{rows}: {screen}");
        assert!(rows < 22 || screen.contains("34 completed"), "{rows}: {screen}");
    }
    let whole: Vec<_> = seen.lines(&look);
    assert_eq!(seen.fitting(&look, whole.len()).len(), whole.len(), "where it fits all of it is shown");
}
