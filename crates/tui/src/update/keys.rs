//! Keys where no box is open. None of them stops or deletes anything by itself.

use ostler_client::{AnswerApproval, Mission};
use ostler_domain::{approval::goes_by_rules, session::Desired};
use ostler_screen::{Line, Tone, cost::By};

use crate::{
    draft::Draft,
    message::{Effect, Key},
    state::{Addressee, Deed, Dialog, Focus, Missions, State, View, wants_words},
};

/// Lines that a page of the story has.
pub(super) const PAGE: usize = 10;

pub(super) fn press(state: &mut State, key: Key) -> Vec<Effect> {
    if key == Key::Interrupt {
        return vec![Effect::Quit];
    }
    match &mut state.view {
        View::Help => {
            state.view = View::List;
            Vec::new()
        }
        View::Cost { by, .. } => {
            let by = *by;
            cost(state, key, by)
        }
        View::Missions(_) => missions(state, key),
        View::List | View::Peek if state.focus == Focus::Card => card(state, key),
        View::List | View::Peek => list(state, key),
    }
}

fn list(state: &mut State, key: Key) -> Vec<Effect> {
    match key {
        Key::Down | Key::Char('j') => step(state, 1),
        Key::Up | Key::Char('k') => step(state, -1),
        Key::Home => step(state, isize::MIN),
        Key::End => step(state, isize::MAX),
        Key::PageUp => state.scrolled = state.scrolled.saturating_add(PAGE),
        Key::PageDown => state.scrolled = state.scrolled.saturating_sub(PAGE),
        Key::Char('q') => return vec![Effect::Quit],
        Key::Char('?') => state.view = View::Help,
        Key::Char('$') => {
            state.view = View::Cost { by: By::Session, sums: None };
            return vec![Effect::AskCost(By::Session)];
        }
        Key::Char('g') => {
            let chosen =
                state.current().and_then(|session| session.mission.as_ref()).map(|member| member.mission);
            state.view = View::Missions(Missions { chosen, ..Missions::default() });
            return vec![Effect::AskMissions];
        }
        Key::Char('/') => {
            let draft = Draft::of(&state.filter);
            let before = (state.filter.clone(), state.cursor);
            state.dialog = Some(Dialog::Filter { draft, before });
        }
        Key::Char('e') => {
            state.with_ended = !state.with_ended;
            return vec![Effect::Refresh];
        }
        Key::Char('n') => {
            let here = state.current().map(|session| session.campaign).or(state.near);
            let campaign = here.or_else(|| state.campaigns().first().map(|(id, _)| *id));
            let draft = state.draft(None);
            state.dialog = Some(Dialog::New { campaign, draft });
        }
        Key::Char(' ') => {
            state.view = match state.view {
                View::Peek => View::List,
                _ => View::Peek,
            };
        }
        Key::Esc if matches!(state.view, View::Peek) => state.view = View::List,
        Key::Esc => {
            state.filter.clear();
            state.place_cursor(None);
        }
        _ => return on_session(state, key),
    }
    Vec::new()
}

/// Keys that mean the session under the cursor.
fn on_session(state: &mut State, key: Key) -> Vec<Effect> {
    let Some(session) = state.current() else { return Vec::new() };
    let (id, has_ended) = (session.id, session.outcome.is_some());
    let stands = session.desired == Desired::Pause;
    match key {
        Key::Tab if state.card.is_some() => state.focus = Focus::Card,
        // However often they are pressed: an answer is given where the question has the focus.
        Key::Char('a' | 'A' | 'd') if state.card.is_some() => {
            let line = Line::toned(Tone::Accent, "Tab")
                .plain(" goes to what it asks; the keys that answer act only there");
            super::say(state, vec![line], super::DONE);
        }
        Key::Enter if has_ended => state.dialog = Some(Dialog::Ask(Deed::AttachAnew(id))),
        Key::Enter => return vec![Effect::Attach(id)],
        Key::Char('r') => state.write(Addressee::Session(id)),
        Key::Char('x') if !has_ended => state.dialog = Some(Dialog::Ask(Deed::Stop(id))),
        Key::Char('h') if !has_ended => state.write(Addressee::Successor(id)),
        Key::Char('p') if !has_ended && stands => return vec![Effect::Resume(id)],
        Key::Char('p') if !has_ended => return vec![Effect::Pause(id)],
        _ => {}
    }
    Vec::new()
}

/// Keys while a question has the focus.
fn card(state: &mut State, key: Key) -> Vec<Effect> {
    if matches!(key, Key::Tab | Key::Esc) {
        state.focus = Focus::List;
        return Vec::new();
    }
    let may_answer = state.may_answer();
    let Some(approval) = state.question() else { return Vec::new() };
    let (id, ruled, worded) = (approval.id, goes_by_rules(&approval.why), wants_words(approval));
    let campaign = state.campaign_of(approval.session);
    let answer = |allow| {
        let approval = id.to_string();
        let answer = AnswerApproval { approval, allow, always: false, message: String::new() };
        vec![Effect::Answer { answer, campaign: campaign.clone() }]
    };
    match key {
        Key::Char('v') => state.dialog = Some(Dialog::Full { id, scrolled: 0 }),
        Key::Char('?') => state.view = View::Help,
        Key::Char('q') => return vec![Effect::Quit],
        _ if !may_answer => {}
        Key::Char('a' | 'r') | Key::Enter if worded => state.write(Addressee::Answer(id)),
        Key::Char('a') => return answer(true),
        Key::Char('A') if ruled && !worded => state.dialog = Some(Dialog::Ask(Deed::AllowAlways(id))),
        Key::Char('d') => return answer(false),
        Key::Char('m') if !worded => state.write(Addressee::Denial(id)),
        _ => {}
    }
    Vec::new()
}

fn cost(state: &mut State, key: Key, by: By) -> Vec<Effect> {
    match key {
        Key::Tab | Key::Right | Key::Left => {
            let all = By::ALL;
            let place = all.iter().position(|one| *one == by).unwrap_or(0);
            let next = if key == Key::Left { place + all.len() - 1 } else { place + 1 };
            let by = all[next % all.len()];
            state.view = View::Cost { by, sums: None };
            vec![Effect::AskCost(by)]
        }
        Key::Esc | Key::Char('q' | '$') => {
            state.view = View::List;
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn missions(state: &mut State, key: Key) -> Vec<Effect> {
    let View::Missions(missions) = &mut state.view else { return Vec::new() };
    let by = match key {
        Key::Down | Key::Char('j') => 1,
        Key::Up | Key::Char('k') => -1,
        Key::Esc | Key::Char('q' | 'g') => {
            state.view = View::List;
            return Vec::new();
        }
        _ => return Vec::new(),
    };
    let listed = missions.listed.as_deref().unwrap_or_default();
    let place = listed.iter().position(|mission| Some(mission.id) == missions.chosen).unwrap_or(0);
    let next = place.saturating_add_signed(by).min(listed.len().saturating_sub(1));
    missions.chosen = listed.get(next).map(|mission| mission.id);
    missions.chosen.map(Effect::AskMission).into_iter().collect()
}

/// Takes in which missions there are, and asks for the one that is looked at.
pub(super) fn missions_listed(state: &mut State, listed: Vec<Mission>) -> Vec<Effect> {
    let View::Missions(missions) = &mut state.view else { return Vec::new() };
    let is_listed = |id| listed.iter().any(|mission| mission.id == id);
    let first = listed.first().map(|mission| mission.id);
    missions.chosen = missions.chosen.filter(|id| is_listed(*id)).or(first);
    missions.listed = Some(listed);
    missions.chosen.map(Effect::AskMission).into_iter().collect()
}

fn step(state: &mut State, by: isize) {
    let rows = state.rows();
    let place = state.cursor.and_then(|id| rows.iter().position(|session| session.id == id)).unwrap_or(0);
    let next = place.saturating_add_signed(by).min(rows.len().saturating_sub(1));
    state.cursor = rows.get(next).map(|session| session.id);
}
