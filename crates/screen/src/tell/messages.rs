//! Messages in words: what was said, and what became of it.

use ostler_domain::{Event, event::MovedTo, text::one_line};

use super::SHORT;
use crate::{Tone, activity::Told};

pub(super) fn tell(event: &Event) -> Told {
    match event {
        Event::MessageAccepted(accepted) => {
            let moved =
                if accepted.moved_from.is_some() { " (moved here from the session before)" } else { "" };
            // Whether it is heard is told by what follows, under the same id.
            Told::new("accepted", format!("{}{moved}", one_line(&accepted.message.text, SHORT)))
                .tone(Tone::Accent)
                .right(format!("msg {}", accepted.message.id.short()))
        }
        Event::MessageSent(sent) => Told::new("message", format!("{} goes out", sent.id.short())).faint(),
        Event::MessageDelivered(mark) => {
            Told::new("message", format!("{} delivered", mark.id.short())).faint()
        }
        Event::MessageSeen(mark) => Told::new("message", format!("{} seen", mark.id.short())).faint(),
        Event::MessageAnswered(mark) => Told::new("message", format!("{} answered", mark.id.short())).faint(),
        Event::MessageUnknown(unknown) => {
            let text = format!(
                "{}: nobody can know whether it arrived; not sent again ({})",
                unknown.id.short(),
                unknown.why
            );
            Told::new("message", text).tone(Tone::Warn)
        }
        Event::MessageReturned(returned) => {
            let text = format!("{} waits again: {}", returned.id.short(), returned.why);
            Told::new("message", text).tone(Tone::Warn)
        }
        Event::MessageDropped(dropped) => {
            Told::new("message", format!("{} dropped: {}", dropped.id.short(), dropped.why)).tone(Tone::Warn)
        }
        Event::MessageUnheard(unheard) => {
            let text = one_line(&unheard.message.text, SHORT);
            let (id, by) = (unheard.message.id.short(), &unheard.by.0);
            Told::new("message", format!("{id} dropped: {}; {by} said: {text}", unheard.why)).tone(Tone::Warn)
        }
        Event::MessageCancelled(cancelled) => {
            Told::new("message", format!("{} cancelled: {}", cancelled.id.short(), cancelled.why))
        }
        Event::MessageEdited(edited) => {
            let text = one_line(&edited.text, SHORT);
            Told::new("message", format!("{} says now, by {}: {text}", edited.id.short(), edited.by.0))
        }
        Event::MessageMoved(moved) => {
            let to = match moved.to {
                MovedTo::Before { message } => format!("before {}", message.short()),
                MovedTo::Conversation { conversation, message } => {
                    format!("to the conversation {} as {}", conversation.short(), message.short())
                }
            };
            Told::new("message", format!("{} moved {to} by {}", moved.id.short(), moved.by.0))
        }
        _ => Told::new("message", "changed"),
    }
}
