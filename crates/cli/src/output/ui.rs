//! The one place that writes: data on standard output, everything else on standard error.

use std::{
    cell::{Cell, RefCell},
    io::{self, BufWriter, Stdout, Write},
};

use clap::ValueEnum;
use ostler_domain::text::visible;
use serde::Serialize;

use super::{
    FIELD, Line, Look, Terminals,
    pager::{Pager, Room},
    to_json,
};
use crate::failure::{self, Failure};

/// The form of what a command says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// For people with a wide screen
    Wide,
    /// One JSON object
    Json,
    /// One JSON object a line
    Jsonl,
    /// Only ids
    Name,
    /// Comma-separated values, of `ostler sql`
    #[value(hide = true)]
    Csv,
}

/// Where the texts of questions begin.
const QUESTION: usize = 10;

/// How the person wants it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UiOptions {
    pub(crate) format: Option<Format>,
    pub(crate) quiet: bool,
    /// Nobody is to be asked anything.
    pub(crate) no_input: bool,
    /// Whoever wants to know more is told more, beside the data.
    pub(crate) verbose: bool,
}

/// Where data goes.
#[derive(Debug)]
enum Out {
    Straight(BufWriter<Stdout>),
    Paged(Pager),
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Out::Straight(out) => out.write(bytes),
            Out::Paged(pager) => pager.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Out::Straight(out) => out.flush(),
            Out::Paged(pager) => pager.flush(),
        }
    }
}

fn straight() -> Out {
    Out::Straight(BufWriter::with_capacity(64 * 1024, io::stdout()))
}

/// The terminal, or what stands in for it.
#[derive(Debug)]
pub(crate) struct Ui {
    terminals: Terminals,
    options: UiOptions,
    out: RefCell<Out>,
    /// A line on the terminal that the next one replaces.
    transient: Cell<bool>,
    /// The line at the bottom that a person types into.
    input: RefCell<Option<Input>>,
}

#[derive(Debug, Default)]
struct Input {
    label: String,
    text: String,
    /// What is seen where nothing is typed yet.
    hint: Line,
}

impl Ui {
    pub(crate) fn new(terminals: Terminals, options: UiOptions) -> Self {
        Self {
            terminals,
            options,
            out: RefCell::new(straight()),
            transient: Cell::new(false),
            input: RefCell::default(),
        }
    }

    pub(crate) fn format(&self) -> Option<Format> {
        self.options.format
    }

    pub(crate) fn is_json(&self) -> bool {
        matches!(self.options.format, Some(Format::Json | Format::Jsonl))
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.options.quiet
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.options.verbose
    }

    /// Says something that only who wants to know more is told.
    pub(crate) fn detail(&self, line: &Line) {
        if self.options.verbose && !self.is_json() {
            self.say(line);
        }
    }

    /// Says whether a person is there who can be asked.
    pub(crate) fn has_person(&self) -> bool {
        self.terminals.stdin_is_terminal && self.terminals.stderr_is_terminal && !self.options.no_input
    }

    pub(crate) fn terminals(&self) -> &Terminals {
        &self.terminals
    }

    pub(crate) fn out_look(&self) -> &Look {
        &self.terminals.out
    }

    pub(crate) fn err_look(&self) -> &Look {
        &self.terminals.err
    }

    /// Writes a line of data.
    pub(crate) fn data(&self, line: &Line) -> Result<(), Failure> {
        self.clear_transient();
        Ok(writeln!(self.out.borrow_mut(), "{}", line.show(self.out_look()))?)
    }

    pub(crate) fn data_lines(&self, lines: &[Line]) -> Result<(), Failure> {
        lines.iter().try_for_each(|line| self.data(line))
    }

    /// Writes a page of fields: what is wider than the screen goes on below its label's text.
    pub(crate) fn fields(&self, lines: &[Line]) -> Result<(), Failure> {
        let width = self.out_look().width;
        self.page();
        lines.iter().try_for_each(|line| self.data_lines(&line.folded(width, FIELD)))
    }

    /// Writes what is for another program as it is.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.out.borrow_mut().write_all(bytes)?)
    }

    /// Writes a text of someone else's as data, whole, with its line breaks.
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        self.clear_transient();
        let look = self.out_look();
        // A program that reads this has no trouble with letters; a terminal may.
        let text = visible(text.trim_end());
        let text = if self.terminals.stdout_is_terminal {
            text.chars().map(|c| look.letter(c)).collect()
        } else {
            text
        };
        writeln!(self.out.borrow_mut(), "{text}")?;
        self.flush()
    }

    /// Writes one value as JSON, on a line.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.clear_transient();
        Ok(writeln!(self.out.borrow_mut(), "{}", to_json(value))?)
    }

    /// Brings what was written so far to the reader.
    pub(crate) fn flush(&self) -> Result<(), Failure> {
        Ok(self.out.borrow_mut().flush()?)
    }

    /// From here on, what is longer than the screen is read in a pager: where a person reads, and may type.
    pub(crate) fn page(&self) {
        let Terminals { stdin_is_terminal, stdout_is_terminal, rows, .. } = self.terminals;
        let may = stdin_is_terminal && stdout_is_terminal && self.out_look().in_place;
        if !may || self.options.no_input || self.is_json() || self.is_paged() {
            return;
        }
        let room = Room { rows: rows.unwrap_or(24), columns: self.out_look().width.unwrap_or(80) };
        if let Some(pager) = Pager::find(room)
            && self.flush().is_ok()
        {
            self.clear_transient();
            *self.out.borrow_mut() = Out::Paged(pager);
        }
    }

    fn is_paged(&self) -> bool {
        matches!(*self.out.borrow(), Out::Paged(_))
    }

    /// Lets the pager show the rest, and waits for it.
    fn end_paging(&self) -> Result<(), Failure> {
        let out = std::mem::replace(&mut *self.out.borrow_mut(), straight());
        match out {
            Out::Paged(pager) => Ok(pager.end()?),
            Out::Straight(mut out) => Ok(out.flush()?),
        }
    }

    /// Says something beside the data. Nobody to hear it is no failure.
    pub(crate) fn say(&self, line: &Line) {
        if self.is_paged() && self.terminals.stderr_is_terminal {
            // Both are the same screen, and the pager has it.
            let _ = self.data(line);
            return;
        }
        let _ = self.flush();
        self.clear_transient();
        write_err(&format!("{}\n", line.show(self.err_look())));
        self.draw_input();
    }

    /// Says lines whose text begins below a label, folded where they are wider than the screen.
    pub(crate) fn say_folded(&self, lines: &[Line]) {
        let width = self.err_look().width;
        lines.iter().flat_map(|line| line.folded(width, QUESTION)).for_each(|line| self.say(&line));
    }

    /// Says something that is not worth saying with `-q` or to a program.
    pub(crate) fn remark(&self, line: &Line) {
        if !self.options.quiet && !self.is_json() {
            self.say(line);
        }
    }

    /// Says something that whoever waits must know, a program too; nobody with `-q`.
    pub(crate) fn insist(&self, line: &Line) {
        if !self.options.quiet {
            self.say(line);
        }
    }

    /// A remark that can be made later and from elsewhere, while the command waits.
    pub(crate) fn remark_later(&self, line: &Line) -> impl FnOnce() + Send + 'static {
        let is_wanted = !self.options.quiet && !self.is_json();
        let text = format!("{}\n", line.show(self.err_look()));
        move || {
            if is_wanted {
                write_err(&text);
            }
        }
    }

    /// Shows a line until something else is said. Only for terminals.
    pub(crate) fn show_meanwhile(&self, line: Line) {
        let look = self.err_look();
        if !look.in_place || self.options.quiet || self.is_json() {
            return;
        }
        let _ = self.flush();
        if let Some(input) = &mut *self.input.borrow_mut() {
            input.hint = line;
        } else {
            self.write_meanwhile(line);
            return;
        }
        self.draw_input();
    }

    fn write_meanwhile(&self, line: Line) {
        let look = self.err_look();
        let line = line.cut(look.width.unwrap_or(80).saturating_sub(1));
        write_err(&format!("\r{}\u{1b}[K", line.show(look)));
        self.transient.set(true);
    }

    /// Shows the line that a person types into, below everything that is said from now on. Only for terminals.
    pub(crate) fn show_input(&self, label: &str, text: &str) {
        {
            let mut input = self.input.borrow_mut();
            let input = input.get_or_insert_default();
            label.clone_into(&mut input.label);
            text.clone_into(&mut input.text);
        }
        self.draw_input();
    }

    pub(crate) fn hide_input(&self) {
        if self.input.borrow_mut().take().is_some() {
            self.clear_transient();
        }
    }

    fn draw_input(&self) {
        let input = self.input.borrow();
        let Some(Input { label, text, hint }) = &*input else { return };
        let look = self.err_look();
        let most = look.width.unwrap_or(80).saturating_sub(1);
        let label = Line::new().strong(label).plain(" ");
        let typed = Line::of(text).cut_front(most.saturating_sub(label.width()));
        let cursor = label.width() + typed.width();
        let line = label.append(typed);
        let line = if text.is_empty() { line.append(hint.clone()).cut(most) } else { line };
        write_err(&format!("\r{}\u{1b}[K\r\u{1b}[{cursor}C", line.show(look)));
        self.transient.set(true);
    }

    /// Takes away what was shown meanwhile.
    pub(crate) fn clear_transient(&self) {
        if self.transient.replace(false) {
            write_err("\r\u{1b}[K");
        }
    }

    /// Has the terminal tell whoever does not look at it, beside all that is shown.
    pub(crate) fn notify(&self, text: &str) {
        if self.terminals.stderr_is_terminal {
            write_err(&ostler_screen::osc9(text, std::env::var_os("TMUX").is_some()));
        }
    }

    /// Shows a question; the answer is read elsewhere.
    pub(crate) fn prompt(&self, line: &Line) {
        let _ = self.flush();
        self.clear_transient();
        write_err(&format!("{} ", line.show(self.err_look())));
    }

    /// Draws a screen over the one before, line by line so that nothing flickers.
    pub(crate) fn draw(&self, lines: &[Line], look: &Look, is_first: bool) -> Result<(), Failure> {
        let mut text = String::from(if is_first { "\u{1b}[2J\u{1b}[H" } else { "\u{1b}[H" });
        for line in lines {
            text.push_str(&format!("{}\u{1b}[K\n", line.show(look)));
        }
        text.push_str("\u{1b}[J");
        self.out.borrow_mut().write_all(text.as_bytes())?;
        self.flush()
    }

    /// Shows a page of help: asked for, it is data.
    pub(crate) fn help(&self, page: &clap::builder::StyledStr, asked: bool) -> Result<(), Failure> {
        if asked {
            self.page();
        }
        let look = if asked { self.out_look() } else { self.err_look() };
        let text = if look.colour { page.ansi().to_string() } else { page.to_string() };
        if asked {
            Ok(self.out.borrow_mut().write_all(text.as_bytes())?)
        } else {
            write_err(&text);
            Ok(())
        }
    }

    /// Ends the command: says why it failed, if it did, and gives the exit code.
    pub(crate) fn finish(&self, outcome: Result<u8, Failure>) -> u8 {
        let outcome = match (outcome, self.end_paging()) {
            (Ok(_), Err(failure)) => Err(failure),
            (outcome, _) => outcome,
        };
        self.clear_transient();
        match outcome {
            Ok(code) => code,
            Err(failure) => {
                if let Failure::Refused(refusal) = &failure {
                    self.say_refusal(refusal);
                }
                failure.exit_code()
            }
        }
    }

    /// Says why something was not done.
    pub(crate) fn say_refusal(&self, refusal: &ostler_domain::Refusal) {
        self.say_refusal_of(refusal, failure::of_reason(refusal.reason));
    }

    /// The same, where this program ends with another code than that alone would mean.
    pub(crate) fn say_refusal_of(&self, refusal: &ostler_domain::Refusal, code: u8) {
        let _ = self.flush();
        if self.is_json() {
            let mut refusal = refusal.clone();
            for hint in &mut refusal.hints {
                hint.command = self.err_look().command(&hint.command).into_owned();
            }
            write_err(&format!("{}\n", failure::json(&refusal, code)));
        } else {
            let lines = failure::lines(refusal, code, self.err_look().width);
            lines.iter().for_each(|line| self.say(line));
            if let Some(id) = &refusal.request_id {
                self.detail(&Line::new().faint(format!("  request {id}")));
            }
        }
    }
}

/// Standard error may be closed; then nobody is there to be told that either.
fn write_err(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
