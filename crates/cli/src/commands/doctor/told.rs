//! How findings are shown.

use serde::Serialize;

use super::{Finding, Verdict};
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Column, Line, Look, Table, Tone},
    words,
};

#[derive(Serialize)]
struct DoctorForm {
    ok: bool,
    findings: Vec<Finding>,
}

pub(super) fn say(app: &App, findings: Vec<Finding>) -> Result<u8, Failure> {
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count() as u64;
    let (failures, warnings) = (count(Verdict::Fail), count(Verdict::Warn));
    let code = if failures == 0 { exit_code::OK } else { exit_code::FAILURE };
    if app.ui.is_json() {
        app.ui.json(&DoctorForm { ok: failures == 0, findings })?;
        return Ok(code);
    }
    app.ui.data_lines(&lines(&findings, app.ui.out_look()))?;
    let parts = [(failures, "failure", "failures"), (warnings, "warning", "warnings")];
    let parts = parts
        .into_iter()
        .filter(|(n, ..)| *n > 0)
        .map(|(n, one, many)| Line::of(words::plural(n, one, many)));
    let summary = Line::joined(parts);
    app.ui.remark(&if summary.is_empty() { Line::of("all is well") } else { summary });
    Ok(code)
}

/// A cure that stands below begins here.
const FIX_INDENT: usize = 6;

/// Where something that cures does not fit beside what it cures, all of it stands below: a command that is cut cures
/// nothing.
pub(super) fn lines(findings: &[Finding], look: &Look) -> Vec<Line> {
    let whole = table(findings, true).lines(&Look { width: None, ..look.clone() });
    let fits = look.width.is_none_or(|width| whole.iter().all(|line| line.width() <= width));
    if fits || findings.iter().all(|finding| finding.fix.is_none()) {
        return table(findings, true).lines(look);
    }
    let rows = table(findings, false).lines(look).into_iter();
    let below = findings.iter().map(|finding| finding.fix.as_deref().map(fix_words));
    rows.zip(below)
        .flat_map(|(row, fix)| [Some(row), fix.map(|fix| Line::of(" ".repeat(FIX_INDENT)).append(fix))])
        .flatten()
        .collect()
}

fn fix_words(fix: &str) -> Line {
    Line::new().faint("fix: ").with(Tone::Accent, fix)
}

fn table(findings: &[Finding], with_fixes: bool) -> Table {
    let columns = [Column::new(""), Column::new(""), Column::new("").gives_way_to(90), Column::new("")];
    let mut table = Table::new(columns).with_heads(false);
    for finding in findings {
        let (tone, word) = match finding.verdict {
            Verdict::Ok => (Tone::Good, "ok"),
            Verdict::Warn => (Tone::Warn, "warn"),
            Verdict::Fail => (Tone::Bad, "FAIL"),
            Verdict::Absent => (Tone::Faint, "–"),
        };
        let fix = finding.fix.as_deref().filter(|_| with_fixes).map(fix_words).unwrap_or_default();
        table.row(vec![
            Line::toned(tone, word).padded(5),
            Line::of(&*finding.about).padded(9),
            Line::of(&finding.text),
            fix,
        ]);
    }
    table
}
