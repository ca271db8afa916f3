//! `ostler audit`: whether the log of who was let to do what is as it was written.

use clap::{Args, Subcommand};
use ostler_client::reply::Audit;
use serde::Serialize;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
    words,
};

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Look whether each line follows from the one before it; exit 1 when one does not
    Verify,
}

#[derive(Serialize)]
struct AuditForm<'a> {
    ok: bool,
    path: &'a str,
    lines: u64,
    /// Cut off when a daemon was killed.
    torn: u64,
    broken_line: Option<u64>,
    why: Option<&'a str>,
}

pub(crate) async fn run(app: &App, args: AuditArgs) -> Result<u8, Failure> {
    let Verb::Verify = args.verb;
    let audit = app.client().await?.verify_audit().await?;
    let broken = audit.broken.as_ref();
    if app.ui.is_json() {
        app.ui.json(&AuditForm {
            ok: broken.is_none(),
            path: &audit.path,
            lines: audit.lines,
            torn: audit.torn,
            broken_line: broken.map(|broken| broken.line),
            why: broken.map(|broken| broken.why.as_str()),
        })?;
    } else {
        app.ui.data_lines(&lines(&audit))?;
    }
    Ok(if broken.is_none() { exit_code::OK } else { exit_code::FAILURE })
}

fn lines(audit: &Audit) -> Vec<Line> {
    let count = words::plural(audit.lines, "line", "lines");
    let verdict = match &audit.broken {
        None => Line::toned(Tone::Good, "✓ ").plain(format!("{count}, each follows from the one before it")),
        Some(broken) => Line::toned(Tone::Bad, "✗ ").plain(format!("line {}: {}", broken.line, broken.why)),
    };
    let torn = match audit.torn {
        0 => None,
        n => Some(Line::new().faint(format!(
            "  {} cut off when a daemon was killed",
            words::plural(n, "line was", "lines were")
        ))),
    };
    [Some(verdict), torn, Some(Line::new().faint(format!("  {}", audit.path)))]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use ostler_client::reply::BrokenLine;

    use super::*;
    use crate::output::Look;

    #[test]
    fn says_where_it_breaks() {
        let look = Look::plain(Some(80));
        let shown =
            |audit: &Audit| lines(audit).iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n");
        let whole = Audit { path: "/state/audit.jsonl".to_owned(), lines: 1_204, torn: 1, broken: None };
        insta::assert_snapshot!(shown(&whole), @r"
        ✓ 1,204 lines, each follows from the one before it
          1 line was cut off when a daemon was killed
          /state/audit.jsonl
        ");
        let broken = Some(BrokenLine { line: 7, why: "it does not follow".to_owned() });
        insta::assert_snapshot!(shown(&Audit { broken, torn: 0, ..whole }), @r"
        ✗ line 7: it does not follow
          /state/audit.jsonl
        ");
    }
}
