//! What agent programs did on this machine before, and who of them runs now: counted, then brought in if that is wanted.

use std::{collections::BTreeMap, time::Instant};

use ostler_client::Client;
use ostler_domain::history::{Import, News, Outside, Source, Store, Totals, Verdict};
use serde::Serialize;

use super::Init;
use crate::{
    app::person_home,
    commands::import,
    failure::Failure,
    output::{Line, Tone},
    words,
};

/// What lies in the stores of this machine and is not in the record.
#[derive(Debug, Default)]
pub(super) struct Before {
    stores: Vec<Store>,
    /// Sessions that would come, of each program.
    sessions: BTreeMap<Source, u64>,
    totals: Totals,
    pub(super) running: Vec<Outside>,
}

#[derive(Serialize)]
pub(super) struct HistoryForm {
    /// Sessions that were found and not in the record.
    found: u64,
    imported: u64,
    failed: u64,
}

impl Before {
    /// Looks without changing anything.
    async fn of(client: &Client, stores: Vec<Store>) -> Result<Before, Failure> {
        let mut before = Before { stores, ..Before::default() };
        if before.stores.is_empty() {
            return Ok(before);
        }
        let look = Import { stores: before.stores.clone(), dry_run: true, ..Import::default() };
        let mut news = client.import_history(&look).await?;
        while let Some(news) = news.next().await {
            before.take(news?);
        }
        Ok(before)
    }

    fn take(&mut self, news: News) {
        match news {
            News::Found(found) => self.running.extend(found.running),
            News::File(file) if matches!(file.verdict, Verdict::New | Verdict::Grown) => {
                *self.sessions.entry(file.source).or_default() += 1;
            }
            News::File(_) => {}
            News::Done(totals) => self.totals = totals,
        }
    }

    fn count(&self) -> u64 {
        self.sessions.values().sum()
    }

    /// `1,842 sessions of claude-code and codex in ~/.claude, ~/.codex`
    fn words(&self, home: Option<&str>) -> String {
        let mut names: Vec<&str> = self.sessions.keys().map(|source| source.provider()).collect();
        let last = names.pop().unwrap_or_default();
        let names =
            if names.is_empty() { last.to_owned() } else { format!("{} and {last}", names.join(", ")) };
        let has_some = |store: &&Store| self.sessions.contains_key(&store.source);
        let dirs: Vec<String> =
            self.stores.iter().filter(has_some).map(|store| words::path(&store.dir, home)).collect();
        format!("{} of {names} in {}", words::plural(self.count(), "session", "sessions"), dirs.join(", "))
    }
}

impl Init<'_> {
    /// Brings in what was done before, unless somebody says no. That it cannot be had stops nobody's first command.
    pub(super) async fn history(&self, client: &Client) -> Result<(Before, HistoryForm), Failure> {
        let none = HistoryForm { found: 0, imported: 0, failed: 0 };
        let before = match Before::of(client, import::usual_stores()).await {
            Ok(before) => before,
            Err(failure) => {
                self.say("history", Tone::Warn, &format!("not looked at: {}", failure.to_refusal().message));
                return Ok((Before::default(), none));
            }
        };
        let found = before.count();
        if found == 0 {
            let words = if before.totals.same > 0 { "all of it is here" } else { "none found in your home" };
            self.say("history", Tone::Plain, words);
            return Ok((before, none));
        }
        let words = before.words(person_home().as_deref());
        let size = words::bytes(before.totals.bytes);
        if !self.usually("history", &format!("{words}: import (read only, {size})?")) {
            self.say("", Tone::Accent, "ostler import all   brings it in later");
            return Ok((before, HistoryForm { found, ..none }));
        }
        if !self.asks {
            self.say("history", Tone::Plain, &words);
        }
        let totals = self.bring_in(client, &before).await?;
        let imported = totals.new + totals.grown;
        Ok((before, HistoryForm { found, imported, failed: totals.failed }))
    }

    async fn bring_in(&self, client: &Client, before: &Before) -> Result<Totals, Failure> {
        let began = Instant::now();
        let import = Import { stores: before.stores.clone(), ..Import::default() };
        let mut news = client.import_history(&import).await?;
        let (mut so_far, mut totals) = (0, Totals::default());
        while let Some(news) = news.next().await {
            match news? {
                News::Found(_) => {}
                News::File(_) => {
                    so_far += 1;
                    let (done, all) = (words::number(so_far), words::number(before.totals.files));
                    let line = format!("{:<10}{done} of {all} dialogues …", "");
                    self.app.ui.show_meanwhile(Line::new().faint(line));
                }
                News::Done(all) => totals = all,
            }
        }
        self.app.ui.clear_transient();
        let took = words::took(began.elapsed());
        let came = words::plural(totals.new + totals.grown, "session", "sessions");
        self.say("", Tone::Plain, &format!("{came} imported in {took}; the files stay as they are"));
        if totals.failed > 0 {
            let files = words::plural(totals.failed, "file was", "files were");
            self.say("", Tone::Warn, &format!("{files} not imported: ostler import all   says why"));
        }
        Ok(totals)
    }

    /// Agents that somebody runs already are nobody's to move but theirs.
    pub(super) fn live(&self, running: &[Outside]) {
        if let Some(words) = live(running) {
            self.say("live", Tone::Plain, &words);
            self.say("", Tone::Faint, "ostler import all --watch   lists them in ls while they work");
        }
    }
}

fn live(running: &[Outside]) -> Option<String> {
    let in_tmux = running.iter().filter(|one| one.pane.is_some()).count() as u64;
    let all = running.len() as u64;
    let agents = words::plural(all, "agent runs", "agents run");
    let there = match in_tmux {
        0 => String::new(),
        n if n == all => " in tmux,".to_owned(),
        n => format!(", {} of them in tmux,", words::number(n)),
    };
    (all > 0).then(|| {
        format!("{agents}{there} outside of Ostler. To move one here: quit it there, ostler resume NAME")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_there_is_said_by_program() {
        let store = |source, dir: &str| Store { source, dir: dir.to_owned() };
        let before = Before {
            stores: vec![
                store(Source::Claude, "/home/ann/.claude"),
                store(Source::Codex, "/home/ann/.codex"),
                store(Source::OpenClaw, "/home/ann/.openclaw"),
            ],
            sessions: [(Source::Claude, 1_800), (Source::Codex, 42)].into(),
            ..Before::default()
        };
        assert_eq!(
            before.words(Some("/home/ann")),
            "1,842 sessions of claude-code and codex in ~/.claude, ~/.codex"
        );
        let one = Before { sessions: [(Source::Codex, 1)].into(), ..before };
        assert_eq!(one.words(Some("/home/ann")), "1 session of codex in ~/.codex");
    }

    #[test]
    fn who_runs_outside_is_said_with_where() {
        let one = |pid, pane: Option<&str>| Outside { pid, pane: pane.map(str::to_owned) };
        let move_one = "outside of Ostler. To move one here: quit it there, ostler resume NAME";
        assert_eq!(live(&[]), None);
        assert_eq!(live(&[one(1, None)]), Some(format!("1 agent runs {move_one}")));
        let both = [one(1, Some("%1")), one(2, Some("%2"))];
        assert_eq!(live(&both), Some(format!("2 agents run in tmux, {move_one}")));
        let some = [one(1, Some("%1")), one(2, None), one(3, None)];
        assert_eq!(live(&some), Some(format!("3 agents run, 1 of them in tmux, {move_one}")));
    }
}
