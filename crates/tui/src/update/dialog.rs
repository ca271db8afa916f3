//! Keys where a box is open: all of them are its own.

use ostler_client::{AnswerApproval, CreateSession, SendMessage};
use ostler_domain::{ApprovalId, SessionId};

use super::keys::PAGE;
use crate::{
    draft::Draft,
    message::{Effect, Key},
    state::{Addressee, Deed, Dialog, State},
};

pub(super) fn press(state: &mut State, dialog: Dialog, key: Key) -> Vec<Effect> {
    // Both only close the box: nothing that was typed is done.
    if matches!(key, Key::Esc | Key::Interrupt) {
        if let Dialog::Filter { before, .. } = dialog {
            state.filter = before.0;
            state.place_cursor(before.1);
        }
        return Vec::new();
    }
    match dialog {
        Dialog::Write { to, draft } => write(state, to, draft, key),
        Dialog::New { campaign, mut draft } => {
            let mut campaign = campaign;
            match key {
                Key::Enter if !draft.is_blank() => {
                    let Some(campaign) = campaign else { return Vec::new() };
                    // Without a provider it is the campaign's.
                    let mut wanted = CreateSession::new(campaign.to_string(), "");
                    wanted.initial_message = Some(draft.text().trim().to_owned());
                    return vec![Effect::Create(Box::new(wanted))];
                }
                Key::Tab => {
                    let all = state.campaigns();
                    let place = all.iter().position(|(id, _)| Some(*id) == campaign).map_or(0, |at| at + 1);
                    campaign = all.get(place).or(all.first()).map(|(id, _)| *id);
                }
                _ => _ = draft.press(key),
            }
            state.dialog = Some(Dialog::New { campaign, draft });
            Vec::new()
        }
        Dialog::Filter { mut draft, before } => {
            if key == Key::Enter {
                return Vec::new();
            }
            draft.press(key);
            filter(state, draft, before);
            Vec::new()
        }
        Dialog::Ask(deed) => match key {
            Key::Char('y' | 'Y') => done(state, deed),
            _ => Vec::new(),
        },
        Dialog::Full { id, scrolled } => {
            let scrolled = match key {
                Key::Down | Key::Char('j') => scrolled.saturating_add(1),
                Key::Up | Key::Char('k') => scrolled.saturating_sub(1),
                Key::PageDown | Key::Char(' ') => scrolled.saturating_add(PAGE),
                Key::PageUp => scrolled.saturating_sub(PAGE),
                Key::Home => 0,
                Key::End => usize::MAX,
                // Any other key closes it.
                _ => return Vec::new(),
            };
            state.dialog = Some(Dialog::Full { id, scrolled });
            Vec::new()
        }
    }
}

/// A text that was pasted goes where one is typed, and nowhere else: no letter of it is a key.
pub(super) fn paste(state: &mut State, text: &str) {
    match state.dialog.take() {
        Some(Dialog::Write { to, mut draft }) => {
            draft.insert(text);
            state.dialog = Some(Dialog::Write { to, draft });
        }
        Some(Dialog::New { campaign, mut draft }) => {
            draft.insert(text);
            state.dialog = Some(Dialog::New { campaign, draft });
        }
        Some(Dialog::Filter { mut draft, before }) => {
            draft.insert(&text.replace(['\n', '\r'], " "));
            filter(state, draft, before);
        }
        other => state.dialog = other,
    }
}

fn write(state: &mut State, to: Addressee, mut draft: Draft, key: Key) -> Vec<Effect> {
    // Who hands work on, or says no, need not say more.
    let may_be_blank = matches!(to, Addressee::Successor(_) | Addressee::Denial(_));
    if key != Key::Enter || (draft.is_blank() && !may_be_blank) {
        draft.press(key);
        state.dialog = Some(Dialog::Write { to, draft });
        return Vec::new();
    }
    let text = draft.text().trim().to_owned();
    match to {
        Addressee::Session(id) => {
            vec![Effect::Send(SendMessage { who: id.to_string(), text, ..SendMessage::default() })]
        }
        Addressee::Answer(id) => answer(state, id, true, false, text),
        Addressee::Denial(id) => answer(state, id, false, false, text),
        Addressee::Successor(id) => vec![Effect::HandOff { who: id, note: text }],
    }
}

fn filter(state: &mut State, draft: Draft, before: (String, Option<SessionId>)) {
    draft.text().clone_into(&mut state.filter);
    state.place_cursor(before.1);
    state.dialog = Some(Dialog::Filter { draft, before });
}

fn done(state: &State, deed: Deed) -> Vec<Effect> {
    match deed {
        Deed::Stop(id) => vec![Effect::Stop(id)],
        Deed::AttachAnew(id) => vec![Effect::Attach(id)],
        Deed::AllowAlways(id) => answer(state, id, true, true, String::new()),
    }
}

fn answer(state: &State, id: ApprovalId, allow: bool, always: bool, message: String) -> Vec<Effect> {
    let campaign = state.approval(id).map(|approval| state.campaign_of(approval.session));
    let answer = AnswerApproval { approval: id.to_string(), allow, always, message };
    vec![Effect::Answer { answer, campaign: campaign.unwrap_or_default() }]
}
