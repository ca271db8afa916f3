//! `ostler transcript show`: what was said, for whoever reads it in a terminal.

use clap::Args;
use ostler_domain::{
    Reason, Refusal, SessionId,
    text::shell_word,
    transcript::{self, Shown},
};

use super::{open, read};
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Format, Line, Tone},
};

/// Lines of a tool's answer that are shown.
const ANSWER_LINES: usize = 40;

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Conversation or session: name, id or part of one; - for the last of this terminal
    who: String,
    /// Only this turn: of the session that is named, else of the last one that has it
    #[arg(long, value_name = "N")]
    turn: Option<u32>,
    /// Also what tools were told and answered, and what the agent thought
    #[arg(long)]
    tools: bool,
}

pub(crate) async fn run(app: &App, args: ShowArgs) -> Result<u8, Failure> {
    if app.ui.format() == Some(Format::Name) {
        return Err(Refusal::invalid("what was said has no names to print")
            .hint(
                format!("ostler transcript show {} -o jsonl", shell_word(&args.who)),
                "prints it for programs",
            )
            .into());
    }
    let client = app.client().await?;
    let mut lines = open(app, &client, &args.who).await?;
    // Whoever names a session means its turns, though its conversation is longer.
    let meant: Option<SessionId> = app.addressee(&client, &args.who).await?.parse().ok();
    app.ui.page();
    let mut chosen = Chosen::default();
    while let Some(text) = lines.next().await {
        let text = text?;
        let line = read(&text)?;
        let Some(turn) = args.turn else {
            print(app, &args, &text, &line)?;
            continue;
        };
        let is_meant = |session: SessionId| meant.is_none_or(|meant| meant == session);
        if let Some(origin) = line.origin().filter(|origin| origin.turn == Some(turn))
            && is_meant(origin.session)
        {
            chosen.add(origin.session, text, line);
        }
    }
    for (text, line) in &chosen.lines {
        print(app, &args, text, line)?;
    }
    match args.turn {
        Some(turn) if chosen.lines.is_empty() => {
            Err(Refusal::new(Reason::InvalidArgument, format!("{} has no turn {turn}", args.who))
                .hint(format!("ostler transcript show {}", args.who), "shows all of it")
                .into())
        }
        _ => Ok(exit_code::OK),
    }
}

/// The lines of a turn of the last session that has it.
#[derive(Default)]
struct Chosen {
    session: Option<SessionId>,
    lines: Vec<(Vec<u8>, transcript::Line)>,
}

impl Chosen {
    fn add(&mut self, session: SessionId, text: Vec<u8>, line: transcript::Line) {
        if self.session.replace(session) != Some(session) {
            self.lines.clear();
        }
        self.lines.push((text, line));
    }
}

fn print(app: &App, args: &ShowArgs, text: &[u8], line: &transcript::Line) -> Result<(), Failure> {
    if app.ui.is_json() {
        app.ui.bytes(text)?;
        return app.ui.bytes(b"\n");
    }
    for thing in transcript::shown(line) {
        app.ui.data_lines(&lines(&thing, args.tools))?;
    }
    Ok(())
}

/// What a thing looks like in a terminal.
fn lines(thing: &Shown, tools: bool) -> Vec<Line> {
    let text_lines = |text: &str| text.lines().map(|line| Line::of(format!("  {line}"))).collect::<Vec<_>>();
    match thing {
        Shown::Title { id, cwd, at, .. } => vec![Line::new().faint(format!("{id} · {cwd} · {at}"))],
        Shown::Told { by, at, text } => {
            let mut all = vec![Line::new(), Line::new().strong(by).faint(format!("  {at}"))];
            all.extend(text_lines(text));
            all.push(Line::new());
            all
        }
        Shown::Said { text } => text.lines().map(Line::of).collect(),
        Shown::Thought { text } if tools => {
            text.lines().map(|line| Line::new().faint(format!("  {line}"))).collect()
        }
        Shown::Thought { .. } => Vec::new(),
        Shown::Called { tool, line, .. } => {
            vec![Line::new().with(Tone::Accent, format!("  {tool}")).plain(format!("  {line}"))]
        }
        Shown::Answered { text, exit, is_error, .. } => {
            let mut all = Vec::new();
            if *is_error {
                let exit = exit.map(|exit| format!(" (exit {exit})")).unwrap_or_default();
                all.push(Line::toned(Tone::Bad, format!("  failed{exit}")));
            }
            if tools {
                let more = text.lines().count().saturating_sub(ANSWER_LINES);
                let shown = text.lines().take(ANSWER_LINES);
                all.extend(shown.map(|line| Line::new().faint(format!("    {line}"))));
                if more > 0 {
                    all.push(Line::new().faint(format!("    … {more} lines more")));
                }
            }
            all
        }
        Shown::Picture(picture) => {
            vec![Line::new().faint(format!("  picture: {}", transcript::picture_line(picture)))]
        }
        Shown::Spent { model, tokens, cost } if tools => {
            vec![Line::new().faint(format!("  {}", transcript::spent_line(model, *tokens, *cost)))]
        }
        Shown::Spent { .. } => Vec::new(),
        Shown::Remark { text, is_bad: true } => vec![Line::toned(Tone::Bad, format!("· {text}"))],
        Shown::Remark { text, is_bad: false } => vec![Line::new().faint(format!("· {text}"))],
    }
}

#[cfg(test)]
mod tests {
    use ostler_domain::price::Dollars;

    use super::*;
    use crate::output::Look;

    #[test]
    fn tools_are_told_of_in_a_line_and_shown_when_asked_for() {
        let things = [
            Shown::Told { by: "ann".to_owned(), at: "then".to_owned(), text: "fix it".to_owned() },
            Shown::Thought { text: "hm".to_owned() },
            Shown::Called {
                tool: "Bash".to_owned(),
                line: "cargo test".to_owned(),
                arguments: "{}".to_owned(),
            },
            Shown::Answered {
                tool: "Bash".to_owned(),
                text: "1 failed\n".repeat(42),
                exit: Some(101),
                is_error: true,
            },
            Shown::Said { text: "done".to_owned() },
            Shown::Spent { model: "m".to_owned(), tokens: 1_234, cost: Dollars(20_000) },
        ];
        let shown = |tools: bool| {
            let all = things.iter().flat_map(|thing| lines(thing, tools));
            all.map(|line| line.show(&Look::plain(None))).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(shown(false), "\nann  then\n  fix it\n\n  Bash  cargo test\n  failed (exit 101)\ndone");
        let all = shown(true);
        assert!(all.contains("\n  hm\n") && all.contains("    … 2 lines more\ndone"), "{all}");
        assert!(all.ends_with("\n  m · 1,234 tokens · $0.02"), "{all}");
    }
}
