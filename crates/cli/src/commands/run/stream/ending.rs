//! The end of a run: the answer, how it ended, what it used, and what to do next.

use ostler_client::Session;
use ostler_domain::{
    Hint,
    text::one_line,
    usage_audit::{Agreement, Verdict},
};

use super::{
    super::{super::usage, changes, check::Checks, story::Beside},
    Stream,
};
use crate::{
    exit_code,
    failure::Failure,
    output::{Format, Line, Tone},
    screen::{full_context, money, row, session::Grant, tree},
    words,
};

impl Stream<'_> {
    /// Prints the answer and how it ended.
    pub(super) async fn finish(&mut self, keep: bool) -> Result<u8, Failure> {
        let ui = &self.app.ui;
        self.typed.rest(ui);
        let session = self.client.session(&self.session.id.to_string()).await?;
        let lives = session.outcome.is_none().then(words::now);
        self.teller.rest(lives).iter().for_each(|told| self.show(told));
        let code = self.story.exit_code(session.outcome, self.asked);
        let passed = self.checks.as_ref().map(Checks::passed);
        let code = self.story.judged(code, passed, self.fail_on_denied);
        if code != exit_code::OK {
            self.teller.last_errors().iter().for_each(|told| self.show(told));
        }
        match ui.format() {
            Some(format @ (Format::Json | Format::Jsonl)) => {
                let (changes, worktree) = match (&session.worktree, &self.before) {
                    (Some(_), _) => changes::in_worktree(self.client, &session).await,
                    (None, Some(before)) => {
                        (changes::since(self.app, self.client, self.campaign, before).await, None)
                    }
                    (None, None) => (None, None),
                };
                let check = self.checks.as_ref().map(Checks::form);
                let counted = usage::counted(self.client, &session).await;
                let unknown = counted.filter(|counted| counted.verdict == Verdict::CutUnknown);
                let cut_answers = unknown.map_or(0, |counted| counted.cut_calls);
                let is_line = format == Format::Jsonl;
                let beside = Beside { is_line, changes, check, worktree, cut_answers };
                ui.json(&self.story.form(&session, code, beside))?;
            }
            _ => {
                if let Some(answer) = self.story.answer() {
                    ui.text(answer)?;
                }
                ui.remark(&Line::new());
                // A session's record says how it went; what became of its files is told where it is known.
                let work = self.client.tree(&session.id.to_string()).await.unwrap_or_default();
                let made = tree::made(&work);
                let counted = usage::counted(self.client, &session).await;
                let last = self.last_line(&session, keep, code, counted.as_ref());
                let kept = work.worktree.as_ref().map(tree::worktree).unwrap_or_default();
                let last = Line::joined([last, Line::of(&made), kept]);
                last.folded(ui.err_look().width, 2).iter().for_each(|line| ui.remark(line));
                cures(&session).iter().for_each(|cure| ui.remark(cure));
                self.story.grants().iter().take(Grant::SHOWN).for_each(|grant| ui.remark(&allows(grant)));
                ui.remark(&next(&session, code, !made.is_empty()));
            }
        }
        Ok(code)
    }

    fn last_line(&self, session: &Session, keep: bool, code: u8, counted: Option<&Agreement>) -> Line {
        let span = words::took(session.ended_at.unwrap_or_else(words::now).since(session.created_at));
        // What ended the session, where it did not end as it should, says more than that its turn ended too.
        let turn_failed = self.story.ended_by_turn_failed(session.outcome);
        let outcome = match (session.outcome, keep) {
            _ if turn_failed && self.asked.is_none() => "turn failed",
            _ if code == exit_code::CHECK_FAILED => "check failed",
            (Some(outcome), _) => outcome.as_str(),
            (None, true) => "turn ended, still live",
            (None, false) => "not ended",
        };
        let (tone, sign) = if code == exit_code::OK { (Tone::Good, "✓") } else { (Tone::Bad, "✗") };
        let tokens = match session.usage.total() {
            0 => Line::new(),
            total => {
                let cost = money::short(&session.cost);
                let space = if cost.is_empty() { "" } else { " " };
                let source = counted.map(money::source).unwrap_or_default();
                Line::of(format!("{} tokens{space}{cost}{source}", words::count(total)))
            }
        };
        let denied = match self.story.denied() {
            0 => Line::new(),
            n => Line::toned(Tone::Warn, format!("{n} denied")),
        };
        let why = match &session.obituary {
            Some(obituary) if code != exit_code::OK && !turn_failed => Line::of(&obituary.sentence),
            _ => Line::new(),
        };
        Line::joined([Line::toned(tone, format!("{sign} {outcome} in {span}")), why, tokens, denied])
    }
}

/// What would let the next one work.
fn cures(session: &Session) -> Vec<Line> {
    let cures = session.obituary.iter().flat_map(|obituary| &obituary.cures);
    let line = |cure: &Hint| {
        Line::new().plain("  ").with(Tone::Accent, &cure.command).faint(format!("   {}", cure.effect))
    };
    cures.map(line).collect()
}

fn allows(grant: &Grant) -> Line {
    let effect = format!("   would allow {}", one_line(&grant.target, 80));
    Line::of("  ").with(Tone::Accent, &grant.command).faint(effect)
}

fn next(session: &Session, code: u8, changed: bool) -> Line {
    let id = session.id.short();
    let commands = match code {
        exit_code::OK if changed => [format!("ostler diff {id}"), format!("ostler send {id} \"…\"")],
        exit_code::OK => [format!("ostler logs {id}"), format!("ostler send {id} \"…\"")],
        exit_code::SESSION_BUDGET if session.budget.is_some() => {
            [format!("ostler show {id}"), row::raise(session)]
        }
        // Without one of its own it was the campaign's, which a session cannot raise: `show` says what does.
        exit_code::SESSION_BUDGET => {
            [format!("ostler show {id}"), row::shared_budget_cure(session, &session.campaign.short())]
        }
        _ => {
            let cure = full_context::steps(session).and_then(|steps| steps.into_iter().next());
            let again = || format!("ostler resume {id}");
            [format!("ostler show {id}"), cure.map_or_else(again, |(command, _)| command)]
        }
    };
    let rewind = changed.then(|| format!("ostler rewind {id} 0 --files"));
    commands
        .iter()
        .chain(&rewind)
        .fold(Line::new(), |line, command| line.plain("  ").with(Tone::Accent, command).plain("      "))
}
