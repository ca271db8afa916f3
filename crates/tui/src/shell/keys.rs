//! What is typed, read on a thread of its own until nobody wants it any more.

use std::{
    io,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use tokio::{process::Command, sync::mpsc::Sender};

use crate::message::{Key, Message};

/// How soon a reader notices that it is to end.
const GLANCE: Duration = Duration::from_millis(50);

/// How long tmux may take to say how it is set up.
const WITHIN: Duration = Duration::from_secs(1);

/// Something of the terminal.
pub(super) enum Typed {
    Message(Message),
    /// Another size: the picture is drawn anew.
    Resized,
    /// The terminal is gone.
    Over,
}

/// A reader of the terminal. Whoever comes after it finds all that was not read.
pub(super) struct Keys {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keys {
    pub(super) fn read(to: Sender<Typed>, knows_focus: bool) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            while !asked.load(Ordering::Relaxed) {
                let typed = match next() {
                    Ok(None) => continue,
                    Ok(Some(event)) => meaning(&event, knows_focus),
                    Err(_) => Some(Typed::Over),
                };
                let is_last = matches!(typed, Some(Typed::Over));
                if typed.is_some_and(|typed| to.blocking_send(typed).is_err()) || is_last {
                    return;
                }
            }
        });
        Self { is_over, thread: Some(thread) }
    }

    /// Ends the reader, and waits until it has.
    pub(super) fn stop(mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The next thing, if there is one soon. What was read together with the last one is there already, and nothing on the
/// terminal says so: it is asked for before anything is waited for.
fn next() -> io::Result<Option<Event>> {
    for within in [Duration::ZERO, GLANCE] {
        wait(within)?;
        // Asked whether or not something was typed: a new size comes by another way.
        if event::poll(Duration::ZERO)? {
            return event::read().map(Some);
        }
    }
    Ok(None)
}

/// Waits until something is typed, or for so long. A terminal that is gone is noticed here: of such a one the library would
/// read nothing, for ever.
fn wait(within: Duration) -> io::Result<()> {
    let stdin = io::stdin();
    let mut terminal = [PollFd::new(&stdin, PollFlags::IN)];
    let soon = Timespec { tv_sec: 0, tv_nsec: i64::from(within.subsec_nanos()) };
    match poll(&mut terminal, Some(&soon)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    match terminal[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        true => Err(io::ErrorKind::UnexpectedEof.into()),
        false => Ok(()),
    }
}

fn meaning(event: &Event, knows_focus: bool) -> Option<Typed> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => {
            pressed(key).map(|key| Typed::Message(Message::Key(key)))
        }
        Event::Paste(text) => Some(Typed::Message(Message::Pasted(text.clone()))),
        Event::Resize(..) => Some(Typed::Resized),
        Event::FocusGained => Some(Typed::Message(Message::Faced(knows_focus.then_some(true)))),
        Event::FocusLost => Some(Typed::Message(Message::Faced(Some(false)))),
        _ => None,
    }
}

/// Whether what says that it is in front knows it. tmux calls the pane that is shown in front, and asks the terminal around
/// it only where `focus-events` is on.
pub(super) async fn knows_focus() -> bool {
    if std::env::var_os("TMUX").is_none() {
        return true;
    }
    let mut asked = Command::new("tmux");
    asked.args(["show-options", "-gv", "focus-events"]).stdin(Stdio::null()).kill_on_drop(true);
    let said = tokio::time::timeout(WITHIN, asked.output()).await;
    matches!(said, Ok(Ok(output)) if output.stdout.starts_with(b"on"))
}

fn pressed(key: &KeyEvent) -> Option<Key> {
    let with = |modifier| key.modifiers.contains(modifier);
    Some(match key.code {
        KeyCode::Char('c') if with(KeyModifiers::CONTROL) => Key::Interrupt,
        KeyCode::Char('w') if with(KeyModifiers::CONTROL) => Key::ClearWord,
        KeyCode::Char('u') if with(KeyModifiers::CONTROL) => Key::Clear,
        KeyCode::Char('a') if with(KeyModifiers::CONTROL) => Key::Home,
        KeyCode::Char('e') if with(KeyModifiers::CONTROL) => Key::End,
        // Enter with a modifier comes like this from many terminals.
        KeyCode::Char('j') if with(KeyModifiers::CONTROL) => Key::NewLine,
        KeyCode::Char(_) if with(KeyModifiers::CONTROL) || with(KeyModifiers::ALT) => return None,
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter if key.modifiers.is_empty() => Key::Enter,
        KeyCode::Enter => Key::NewLine,
        KeyCode::Esc => Key::Esc,
        KeyCode::Tab | KeyCode::BackTab => Key::Tab,
        KeyCode::Backspace => Key::Back,
        KeyCode::Delete => Key::Delete,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_letter_with_a_modifier_is_that_letter() {
        let key = |code, modifiers| pressed(&KeyEvent::new(code, modifiers));
        assert_eq!(key(KeyCode::Char('a'), KeyModifiers::NONE), Some(Key::Char('a')));
        assert_eq!(key(KeyCode::Char('A'), KeyModifiers::SHIFT), Some(Key::Char('A')));
        assert_eq!(key(KeyCode::Char('a'), KeyModifiers::ALT), None);
        assert_eq!(key(KeyCode::Char('d'), KeyModifiers::CONTROL), None);
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Interrupt));
        assert_eq!(key(KeyCode::Enter, KeyModifiers::ALT), Some(Key::NewLine));
        assert_eq!(key(KeyCode::F(1), KeyModifiers::NONE), None);
    }

    #[test]
    fn who_does_not_know_whether_it_is_in_front_is_believed_only_that_it_is_not() {
        let faced = |event: Event, knows| match meaning(&event, knows) {
            Some(Typed::Message(Message::Faced(is_faced))) => is_faced,
            _ => panic!("it is about the focus"),
        };
        assert_eq!(faced(Event::FocusGained, true), Some(true));
        assert_eq!(faced(Event::FocusGained, false), None);
        assert_eq!(faced(Event::FocusLost, false), Some(false));
    }
}
