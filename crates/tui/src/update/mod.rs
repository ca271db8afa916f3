//! What becomes of the state when something happens, and what is to be done about it. Pure.

mod dialog;
mod keys;

use std::time::Duration;

use ostler_domain::Time;
use ostler_screen::{Line, Tone, words};

use crate::{
    message::{Effect, Message},
    state::{Focus, Link, Notice, Overview, State, View},
    story::Story,
};

/// How long it is said that something was done.
const DONE: Duration = Duration::from_secs(8);
/// The same of what was refused: it is longer to read.
const REFUSED: Duration = Duration::from_secs(20);

pub(crate) fn update(state: &mut State, now: Time, message: Message) -> Vec<Effect> {
    state.now = now;
    let mut effects = match message {
        Message::Faced(is_faced) => {
            state.is_faced = is_faced;
            Vec::new()
        }
        Message::Notice(_) if state.is_looked_at() => Vec::new(),
        Message::Notice(text) => vec![Effect::Ring(text)],
        Message::Key(key) => {
            state.pressed = Some(now);
            // Whoever presses a key has read it.
            state.notice = None;
            match state.dialog.take() {
                Some(dialog) => dialog::press(state, dialog, key),
                None => keys::press(state, key),
            }
        }
        Message::Pasted(text) => {
            dialog::paste(state, &text);
            Vec::new()
        }
        Message::Tick => {
            if state.notice.as_ref().is_some_and(|notice| notice.until <= now) {
                state.notice = None;
            }
            Vec::new()
        }
        Message::Overview(overview) => look(state, *overview),
        Message::Told(session, received) => {
            if state.story.session == Some(session) {
                state.story.tell(&received);
            }
            Vec::new()
        }
        Message::Lost(since) => {
            // Whoever asked before it was back has nothing to say of it since.
            let is_news = state.back_at.is_none_or(|back| since > back);
            if is_news && !matches!(state.link, Link::Down { .. }) {
                state.link = Link::Down { since };
            }
            Vec::new()
        }
        Message::Back => {
            back(state);
            vec![Effect::Refresh]
        }
        Message::Cost(by, sums) => {
            if let View::Cost { by: wanted, sums: shown } = &mut state.view
                && *wanted == by
            {
                *shown = Some(sums);
            }
            Vec::new()
        }
        Message::Missions(listed) => keys::missions_listed(state, listed),
        Message::Mission(drawn) => {
            if let View::Missions(missions) = &mut state.view
                && missions.chosen == Some(drawn.state.id())
            {
                missions.drawn = Some(drawn);
            }
            Vec::new()
        }
        Message::Done(lines) => {
            say(state, lines, DONE);
            vec![Effect::Refresh]
        }
        Message::Went(session, lines) => {
            say(state, lines, DONE);
            state.cursor = Some(session);
            vec![Effect::Refresh]
        }
        Message::Refused(refusal, unsaid) => {
            let tries = refusal.hints.iter().take(2).map(|hint| {
                Line::of("try ").with(Tone::Accent, &hint.command).faint(format!("   {}", hint.effect))
            });
            let why = refusal.why.iter().map(|why| Line::new().faint(format!(" ({why})")));
            let said = why.fold(Line::toned(Tone::Bad, &refusal.message), Line::append);
            let kept = unsaid.map(|unsaid| {
                let key = unsaid.key();
                state.keep(unsaid);
                Line::of("what you wrote is kept: ").with(Tone::Accent, key).plain(" has it")
            });
            say(state, std::iter::once(said).chain(tries).chain(kept).collect(), REFUSED);
            Vec::new()
        }
    };
    effects.extend(settle(state));
    effects
}

/// Takes in how things stand.
fn look(state: &mut State, overview: Overview) -> Vec<Effect> {
    if matches!(state.link, Link::Down { .. }) {
        back(state);
    }
    state.link = Link::Up;
    if let Some(today) = &overview.today {
        state.rate.count(state.now, today);
    }
    let place = state.cursor.and_then(|id| state.rows().iter().position(|session| session.id == id));
    state.overview = overview;
    // The cursor stays on its session; where that is gone, on its place.
    let rows = state.rows();
    if !rows.iter().any(|session| Some(session.id) == state.cursor) {
        let near = place.unwrap_or(0).min(rows.len().saturating_sub(1));
        state.cursor = rows.get(near).map(|session| session.id);
    }
    match &state.view {
        View::Cost { by, .. } => vec![Effect::AskCost(*by)],
        View::Missions(missions) => missions.chosen.map(Effect::AskMission).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// It is said once, by whoever finds it first, and for how long it was away: what is a moment later is said of the same.
fn back(state: &mut State) {
    if state.back_at.is_some_and(|at| state.now.since(at) < DONE) {
        state.link = Link::Up;
        return;
    }
    let away = match state.link {
        Link::Down { since } => format!(" for {}", words::span(state.now.since(since))),
        _ => String::new(),
    };
    (state.link, state.back_at) = (Link::Up, Some(state.now));
    let line = Line::toned(Tone::Good, format!("the daemon was away{away} and is back"));
    say(state, vec![line.plain("; nothing was missed")], DONE);
}

fn say(state: &mut State, lines: Vec<Line>, long: Duration) {
    state.notice = Some(Notice { lines, until: state.now.plus(long) });
}

/// What follows from wherever the cursor is now.
fn settle(state: &mut State) -> Option<Effect> {
    let seen = state.question().map(|approval| approval.id);
    if seen != state.card.map(|(id, _)| id) {
        state.card = seen.map(|id| (id, state.now));
    }
    if seen.is_none() {
        state.focus = Focus::List;
    }
    if state.story.session == state.cursor {
        return None;
    }
    state.story = state.cursor.map(Story::of).unwrap_or_default();
    (state.scrolled, state.focus) = (0, Focus::List);
    state.cursor.map(Effect::Follow)
}

#[cfg(test)]
mod tests;
