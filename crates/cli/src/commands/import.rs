//! `ostler import`: brings in what agent programs did outside of Ostler, from their own stores.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use clap::{Args, ValueEnum};
use ostler_domain::{
    Reason, Refusal, SessionId, Time,
    history::{FileNews, Found, Import, News, Source, Store, Totals, Verdict},
};
use serde::Serialize;

use crate::{
    app::{App, absolute},
    exit_code,
    failure::Failure,
    output::{Format, Line, Rows, Tone},
    parse, words,
};

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Whose store
    #[arg(value_enum)]
    what: What,
    /// Only say what would come
    #[arg(long)]
    dry_run: bool,
    /// Go on looking every two seconds: agents outside are then listed while they work
    #[arg(long, conflicts_with = "dry_run")]
    watch: bool,
    /// The store's directory; else where the program keeps it: ~/.claude, ~/.codex, ~/.openclaw
    #[arg(long, value_name = "DIR")]
    from: Option<String>,
    /// Also from a store of OpenClaw's in which a program is writing: its last words may come in half
    #[arg(long)]
    live: bool,
    /// Only what was written to from then on: 30d (ago), today, 2026-01-31
    #[arg(long, value_parser = parse::moment, value_name = "WHEN")]
    since: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Claude,
    Codex,
    Openclaw,
    All,
}

impl What {
    fn sources(self) -> &'static [Source] {
        match self {
            What::Claude => &[Source::Claude],
            What::Codex => &[Source::Codex],
            What::Openclaw => &[Source::OpenClaw],
            What::All => Source::ALL,
        }
    }
}

/// Files that are named one by one when something is wrong with them.
const NAMED: usize = 10;

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum NewsForm<'a> {
    Found(&'a Found),
    File {
        #[serde(flatten)]
        file: &'a FileNews,
        /// As all times are written for programs.
        last_time: Option<String>,
    },
    Done(DoneForm<'a>),
}

#[derive(Serialize)]
struct DoneForm<'a> {
    dry_run: bool,
    duration_ms: u64,
    #[serde(flatten)]
    totals: &'a Totals,
}

pub(crate) async fn run(app: &App, args: ImportArgs) -> Result<u8, Failure> {
    if args.watch && app.ui.format() == Some(Format::Json) {
        return Err(Refusal::invalid("what is watched has no end, so it is no single object")
            .hint("ostler import --watch -o jsonl", "prints an object a line")
            .into());
    }
    let stores = stores(&args)?;
    let (since, dry_run, watch, live) = (args.since, args.dry_run, args.watch, args.live);
    let import = Import { stores, since, dry_run, watch, live };
    let client = app.client().await?;
    let mut telling = Telling::new(app, args.dry_run, args.watch);
    let mut news = client.import_history(&import).await?;
    while let Some(news) = news.next().await {
        telling.tell(&news?)?;
        // What is followed has no end at which it would be written.
        if watch {
            app.ui.flush()?;
        }
    }
    if app.ui.is_json() {
        telling.rows.end()?;
    }
    Ok(if telling.failed == 0 { exit_code::OK } else { exit_code::PARTLY })
}

/// The stores of whoever asks. Of all programs only those that have one.
fn stores(args: &ImportArgs) -> Result<Vec<Store>, Failure> {
    if let Some(from) = &args.from {
        let [source] = args.what.sources() else {
            return Err(Refusal::invalid("--from names one store, so say whose it is")
                .hint("ostler import claude --from DIR", "reads it as Claude Code's")
                .into());
        };
        return Ok(vec![Store { source: *source, dir: absolute(from)? }]);
    }
    let stores = match args.what {
        What::All => usual_stores(),
        one => one.sources().iter().filter_map(|source| usual_store(*source)).collect(),
    };
    if stores.is_empty() {
        return Err(Refusal::new(Reason::InvalidArgument, "there is nothing to import")
            .because("neither ~/.claude nor ~/.codex nor ~/.openclaw is there")
            .hint("ostler import claude --from DIR", "imports from where you keep it")
            .into());
    }
    Ok(stores)
}

/// The stores that are there, of all programs.
pub(super) fn usual_stores() -> Vec<Store> {
    let is_there = |store: &Store| Path::new(&store.dir).is_dir();
    Source::ALL.iter().filter_map(|source| usual_store(*source)).filter(is_there).collect()
}

fn usual_store(source: Source) -> Option<Store> {
    usual_dir(source).map(|dir| Store { source, dir: dir.to_string_lossy().into_owned() })
}

/// Where a program keeps its dialogues: as its own variable says, else in the home directory.
fn usual_dir(source: Source) -> Option<PathBuf> {
    let home = crate::app::person_home();
    source.usual_dir(|name| std::env::var_os(name).map(PathBuf::from), home.as_deref().map(Path::new))
}

/// Tells a person, or a program, how it goes.
struct Telling<'a> {
    app: &'a App,
    rows: Rows<'a>,
    dry_run: bool,
    watch: bool,
    began: Instant,
    expected: u64,
    so_far: Totals,
    wrong: Vec<Line>,
    is_first: bool,
    failed: u64,
}

impl<'a> Telling<'a> {
    fn new(app: &'a App, dry_run: bool, watch: bool) -> Self {
        Self {
            app,
            rows: Rows::new(&app.ui, "news"),
            dry_run,
            watch,
            began: Instant::now(),
            expected: 0,
            so_far: Totals::default(),
            wrong: Vec::new(),
            is_first: true,
            failed: 0,
        }
    }

    fn tell(&mut self, news: &News) -> Result<(), Failure> {
        // A store that was asked for and not read.
        if matches!(news, News::Found(found) if found.why_not.is_some()) {
            self.failed += 1;
        }
        if self.app.ui.is_json() {
            return self.tell_program(news);
        }
        match news {
            News::Found(found) => self.found(found),
            News::File(file) => self.file(file)?,
            News::Done(totals) => self.done(totals)?,
        }
        Ok(())
    }

    fn tell_program(&mut self, news: &News) -> Result<(), Failure> {
        let form = match news {
            News::Found(found) => NewsForm::Found(found),
            News::File(file) => NewsForm::File { file, last_time: file.last.map(words::rfc3339) },
            News::Done(totals) => {
                self.failed += totals.failed;
                let duration_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
                NewsForm::Done(DoneForm { dry_run: self.dry_run, duration_ms, totals })
            }
        };
        self.rows.row(&form)
    }

    fn found(&mut self, found: &Found) {
        self.expected += found.files;
        let home = crate::app::person_home();
        let dir = words::path(&found.dir, home.as_deref());
        let line = Line::of(found.source.as_str()).padded(10);
        let there = || {
            let count = words::plural(found.files, "dialogue", "dialogues");
            format!("{count}, {}", words::bytes(found.bytes))
        };
        let line = match &found.why_not {
            Some(why) if found.files == 0 => line.plain(format!("nothing: {why}")),
            Some(why) => line.plain(format!("{}; not all: {why}", there())),
            None => line.plain(there()),
        };
        self.app.ui.say(&line.faint(format!("   {dir}")));
    }

    fn file(&mut self, file: &FileNews) -> Result<(), Failure> {
        self.so_far.add(file);
        let is_news = matches!(file.verdict, Verdict::New | Verdict::Grown);
        if is_news && (self.dry_run || !self.is_first) {
            self.app.ui.data(&file_line(file, words::now()))?;
        }
        let is_odd = is_news && file.why.is_some();
        if is_odd || matches!(file.verdict, Verdict::Cut | Verdict::Rewritten | Verdict::Failed) {
            self.wrong.push(wrong_line(file));
        }
        if self.is_first {
            let (done, all) = (words::number(self.so_far.files), words::number(self.expected));
            let bytes = words::bytes(self.so_far.bytes);
            self.app.ui.show_meanwhile(Line::new().faint(format!("{done} of {all} dialogues, {bytes} …")));
        }
        Ok(())
    }

    fn done(&mut self, totals: &Totals) -> Result<(), Failure> {
        self.app.ui.clear_transient();
        self.failed += totals.failed;
        let wrong = std::mem::take(&mut self.wrong);
        for line in wrong.iter().take(NAMED) {
            self.app.ui.insist(line);
        }
        if wrong.len() > NAMED {
            let more = words::plural((wrong.len() - NAMED) as u64, "more file", "more files");
            self.app.ui.insist(&Line::of(format!("  … and {more}; --json names all")));
        }
        if !std::mem::take(&mut self.is_first) {
            return Ok(());
        }
        let took = words::took(self.began.elapsed());
        for line in summary(totals, self.dry_run, &took) {
            self.app.ui.data(&line)?;
        }
        if self.watch {
            let words = "looking for more every two seconds; Ctrl-C ends that, and nothing else";
            self.app.ui.remark(&Line::new().faint(words));
        } else if !self.dry_run && totals.new > 0 {
            let search = Line::of("  ").with(Tone::Accent, "ostler search \"…\"");
            self.app.ui.remark(&search.faint("   looks through all of it"));
            let list = Line::of("  ").with(Tone::Accent, "ostler ls -a");
            self.app.ui.remark(&list.faint("          lists it"));
        }
        Ok(())
    }
}

fn file_line(file: &FileNews, now: Time) -> Line {
    let age = file.last.map(|last| words::age(now.since(last))).unwrap_or_default();
    let short = file.session.as_ref().map(SessionId::short).unwrap_or_default();
    let title = if file.title.is_empty() { "–" } else { &file.title };
    Line::of(file.verdict.as_str())
        .padded(7)
        .plain(file.source.as_str())
        .padded(17)
        .plain(short)
        .padded(24)
        .plain(age)
        .padded(30)
        .plain(words::bytes(file.read.bytes))
        .padded(40)
        .plain(title)
}

fn wrong_line(file: &FileNews) -> Line {
    let words = match file.verdict {
        Verdict::Cut => "is shorter than what was imported of it",
        Verdict::Rewritten => "no longer begins with what was imported of it",
        Verdict::New | Verdict::Grown => "was imported",
        _ => "was not imported",
    };
    let why = file.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    let tone = if file.verdict == Verdict::Failed { Tone::Bad } else { Tone::Warn };
    Line::toned(tone, "! ").plain(format!("{} {words}{why}", file.file))
}

fn summary(totals: &Totals, dry_run: bool, took: &str) -> Vec<Line> {
    let new = words::plural(totals.new, "new session", "new sessions");
    let grown = match totals.grown {
        0 => String::new(),
        grown => format!(", {} that went on", words::number(grown)),
    };
    let bytes = words::bytes(totals.bytes);
    let mut lines = Vec::new();
    let first = if dry_run {
        format!("{new}{grown} would come, {bytes}; nothing was changed")
    } else if totals.new + totals.grown == 0 {
        format!("nothing new in {}", words::plural(totals.files, "dialogue", "dialogues"))
    } else {
        format!("{new}{grown}: {bytes} in {took}, {} events", words::number(totals.events))
    };
    lines.push(Line::toned(Tone::Good, "✓ ").plain(first));
    if totals.calls > 0 {
        let calls = words::plural(totals.calls, "model call", "model calls");
        let repeated = match totals.repeated {
            0 => String::new(),
            repeated => format!("; {} more were told twice and count once", words::number(repeated)),
        };
        let tokens = words::count(totals.usage.total());
        lines.push(Line::of(format!("  {calls}, {tokens} tokens{repeated}")));
    }
    let mut beside = |n: u64, one: &str, many: &str| {
        if n > 0 {
            lines.push(Line::new().faint(format!("  {}", words::plural(n, one, many))));
        }
    };
    beside(
        totals.unreadable,
        "line could not be understood, and is kept as it is",
        "lines could not be understood, and are kept as they are",
    );
    beside(
        totals.changed,
        "file was cut or rewritten since it was imported",
        "files were cut or rewritten since they were imported",
    );
    beside(totals.empty, "file in which nobody says anything", "files in which nobody says anything");
    lines
}

#[cfg(test)]
mod tests {
    use ostler_domain::Usage;

    use super::*;
    use crate::output::Look;

    fn shown(lines: &[Line]) -> String {
        lines.iter().map(|line| line.show(&Look::plain(Some(100)))).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn says_what_came_and_what_is_odd_about_it() {
        let totals = Totals {
            files: 1_845,
            new: 1_842,
            grown: 2,
            changed: 1,
            bytes: 1_200_000_000,
            lines: 900_000,
            unreadable: 3,
            events: 1_104_000,
            calls: 12_000,
            usage: Usage { input: 48_200_000, ..Usage::default() },
            repeated: 7,
            ..Totals::default()
        };
        insta::assert_snapshot!(shown(&summary(&totals, false, "12 s")));
        insta::assert_snapshot!(shown(&summary(&totals, true, "1 s")));
        insta::assert_snapshot!(shown(&summary(
            &Totals { files: 3, same: 3, ..Totals::default() },
            false,
            "0 s"
        )));
        let file = FileNews {
            source: Source::Claude,
            file: "/home/ann/.claude/projects/-srv-shop/s1.jsonl".to_owned(),
            dialogue: "s1".to_owned(),
            title: "fix the login".to_owned(),
            verdict: Verdict::New,
            why: None,
            session: None,
            last: Some(Time::from_micros(0)),
            read: Totals { bytes: 27_000, ..Totals::default() },
        };
        let cut = FileNews {
            verdict: Verdict::Cut,
            why: Some("what was imported stays".to_owned()),
            ..file.clone()
        };
        let now = Time::from_micros(3_600_000_000);
        insta::assert_snapshot!(shown(&[file_line(&file, now), wrong_line(&cut)]));
        let clash =
            FileNews { why: Some("another conversation has its key agent:main:main".to_owned()), ..file };
        let line = shown(&[wrong_line(&clash)]);
        assert!(line.contains("s1.jsonl was imported: another conversation has its key"), "{line}");
    }
}
