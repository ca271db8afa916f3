//! The terminal while it is ours: raw, on its other screen. However this ends, it is given back as it was.
//!
//! A picture is written by a thread of its own, and no other is drawn before it was: a terminal that takes nothing keeps
//! nobody from hearing keys and signals, and no picture waits in a line.

use std::{
    fs::File,
    io::{self, Write, stdout},
    os::fd::AsFd,
    panic,
    sync::{
        Arc, Mutex, Once, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    time::Duration,
};

use ostler_screen::osc9;
use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor,
        event::{DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange},
        execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
    },
};
use tokio::sync::Notify;

use crate::{
    draw::draw,
    state::{Reach, State},
};

/// How long a terminal that takes nothing is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Paper>>,
    paper: Paper,
    /// None once the last was written.
    to_writer: Option<Sender<Vec<u8>>>,
    is_busy: Arc<AtomicBool>,
    is_over: Receiver<()>,
}

/// What a picture is drawn on before it is written.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Screen {
    /// Takes the terminal; `rested` hears of each picture that was written.
    pub(super) fn take(rested: Arc<Notify>) -> io::Result<Self> {
        give_back_on_panic();
        let out = File::from(stdout().as_fd().try_clone_to_owned()?);
        let mut paper = Paper::default();
        let terminal = Terminal::new(CrosstermBackend::new(paper.clone()))?;
        enable_raw_mode()?;
        execute!(paper, EnterAlternateScreen, EnableBracketedPaste, EnableFocusChange, cursor::Hide)?;
        let is_busy = Arc::new(AtomicBool::new(false));
        let (to_writer, pictures) = mpsc::channel();
        let (ends, is_over) = mpsc::channel();
        let busy = Arc::clone(&is_busy);
        std::thread::spawn(move || {
            write(out, &pictures, &busy, &rested);
            drop(ends);
        });
        Ok(Self { terminal, paper, to_writer: Some(to_writer), is_busy, is_over })
    }

    /// Whether the last picture is still being written.
    pub(super) fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Acquire)
    }

    /// Draws what has changed since the last picture; at a new size all of it.
    pub(super) fn show(&mut self, state: &mut State) -> io::Result<()> {
        let mut reach = Reach::default();
        self.terminal.draw(|frame| reach = draw(state, frame))?;
        state.reached(reach);
        let picture = self.paper.take();
        if picture.is_empty() {
            return Ok(());
        }
        self.is_busy.store(true, Ordering::Release);
        let sent = self.to_writer.as_ref().map(|writer| writer.send(picture));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::BrokenPipe, "it is gone")),
        }
    }
}

impl Screen {
    /// Has the terminal tell whoever does not look, between two pictures.
    pub(super) fn ring(&self, text: &str) {
        let words = osc9(text, std::env::var_os("TMUX").is_some());
        // A terminal that is gone is noticed by the next picture.
        let _ = self.to_writer.as_ref().map(|writer| writer.send(words.into_bytes()));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = leave(&mut self.paper);
        let last = self.paper.take();
        // What cannot be written to a terminal that is gone is nobody's loss.
        let _ = self.to_writer.take().map(|writer| writer.send(last));
        let _ = self.is_over.recv_timeout(PATIENCE);
        let _ = disable_raw_mode();
    }
}

/// Writes one picture after the other, until there are no more or the terminal is gone.
fn write(mut out: File, pictures: &Receiver<Vec<u8>>, is_busy: &AtomicBool, rested: &Notify) {
    for picture in pictures {
        let written = out.write_all(&picture);
        is_busy.store(false, Ordering::Release);
        rested.notify_one();
        if written.is_err() {
            return;
        }
    }
}

fn leave(to: &mut impl Write) -> io::Result<()> {
    execute!(to, DisableFocusChange, DisableBracketedPaste, LeaveAlternateScreen, cursor::Show)
}

/// What a panic says is to be read on the screen that stays.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let _ = leave(&mut stdout());
            let _ = disable_raw_mode();
            before(info);
        }));
    });
}
