//! `ostler transcript verify`: whether the files say what the log says.

use clap::Args;
use ostler_domain::{
    text::one_line,
    transcript::{Difference, Verified},
};
use serde::Serialize;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
    words,
};

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Conversation or session: name, id or part of one; - for the last of this terminal
    #[arg(required_unless_present = "all")]
    who: Option<String>,
    /// All that are written
    #[arg(long, conflicts_with = "who")]
    all: bool,
    /// Make those anew that differ
    #[arg(long)]
    rebuild: bool,
}

#[derive(Serialize)]
struct VerifiedForm<'a> {
    ok: bool,
    conversation: String,
    name: &'a str,
    file: &'a str,
    lines: u64,
    difference: Option<&'static str>,
    line: Option<u64>,
    expected: Option<&'a str>,
    found: Option<&'a str>,
    rebuilt: bool,
}

impl<'a> VerifiedForm<'a> {
    fn new(verified: &'a Verified) -> Self {
        let (difference, line, expected, found) = match &verified.difference {
            None => (None, None, None, None),
            Some(Difference::NotWritten) => (Some("not_written"), None, None, None),
            Some(Difference::Missing) => (Some("missing"), None, None, None),
            Some(Difference::Line { number, expected, found }) => {
                (Some("line"), Some(*number), Some(expected.as_str()), Some(found.as_str()))
            }
        };
        Self {
            ok: is_well(verified),
            conversation: verified.conversation.to_string(),
            name: verified.name.as_str(),
            file: &verified.file,
            lines: verified.lines,
            difference,
            line,
            expected,
            found,
            rebuilt: verified.rebuilt,
        }
    }
}

/// It is now as it should be.
fn is_well(verified: &Verified) -> bool {
    verified.difference.is_none() || verified.rebuilt
}

pub(crate) async fn run(app: &App, args: VerifyArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let who = match &args.who {
        Some(who) => Some(app.addressee(&client, who).await?),
        None => None,
    };
    let mut found = client.verify_transcripts(who.as_deref(), args.rebuild).await?;
    let (mut looked, mut wrong) = (0, 0);
    while let Some(verified) = found.next().await {
        let verified = verified?;
        looked += 1;
        wrong += u64::from(!is_well(&verified));
        if app.ui.is_json() {
            app.ui.json(&VerifiedForm::new(&verified))?;
        } else if !args.all || verified.difference.is_some() {
            app.ui.data_lines(&lines(&verified))?;
        }
    }
    if args.all && !app.ui.is_json() && wrong == 0 {
        let count = words::plural(looked, "transcript", "transcripts");
        app.ui.data(&Line::toned(Tone::Good, "✓ ").plain(format!("{count}, as the log says")))?;
    }
    if wrong > 0 {
        let which = args.who.as_deref().unwrap_or("--all");
        let cure = Line::of("  ").with(Tone::Accent, format!("ostler transcript verify {which} --rebuild"));
        app.ui.remark(&cure.faint("   makes it anew from the log"));
    }
    Ok(if wrong == 0 { exit_code::OK } else { exit_code::FAILURE })
}

fn lines(verified: &Verified) -> Vec<Line> {
    let name = verified.name.as_str();
    let wrong = |text: String| Line::toned(Tone::Bad, "✗ ").strong(name).plain(format!("  {text}"));
    let mut all = match &verified.difference {
        None => {
            let count = words::plural(verified.lines, "line", "lines");
            vec![Line::toned(Tone::Good, "✓ ").strong(name).plain(format!("  {count}, as the log says"))]
        }
        Some(Difference::NotWritten) => vec![wrong("nobody has written it yet".to_owned())],
        Some(Difference::Missing) => vec![wrong("its file is gone".to_owned())],
        Some(Difference::Line { number, expected, found }) => {
            let or_nothing =
                |text: &str| if text.is_empty() { "nothing".to_owned() } else { one_line(text, 160) };
            vec![
                wrong(format!("line {number} is not what the log says")),
                Line::of("  log   ").plain(or_nothing(expected)),
                Line::of("  file  ").plain(or_nothing(found)),
            ]
        }
    };
    if verified.rebuilt {
        all.push(Line::of("  it was made anew"));
    }
    all.push(Line::new().faint(format!("  {}", verified.file)));
    all
}

#[cfg(test)]
mod tests {
    use ostler_domain::{ConversationId, Time};

    use super::*;
    use crate::output::Look;

    #[test]
    fn says_where_they_part() {
        let shown = |verified: &Verified| {
            lines(verified)
                .iter()
                .map(|line| line.show(&Look::plain(Some(80))))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let verified = Verified {
            conversation: ConversationId::new(Time::from_micros(1), 1),
            name: "api".parse().unwrap(),
            file: "/state/t.jsonl".to_owned(),
            lines: 1_204,
            difference: None,
            rebuilt: false,
        };
        insta::assert_snapshot!(shown(&verified), @r"
        ✓ api  1,204 lines, as the log says
          /state/t.jsonl
        ");
        let difference =
            Some(Difference::Line { number: 7, expected: "{\"a\":1}".to_owned(), found: String::new() });
        insta::assert_snapshot!(shown(&Verified { difference, rebuilt: true, ..verified }), @r#"
        ✗ api  line 7 is not what the log says
          log   {"a":1}
          file  nothing
          it was made anew
          /state/t.jsonl
        "#);
    }
}
