//! The attempts to leave the sandbox: how many of each area were stopped, and each one that was not, in full.

use std::time::Duration;

use ostler_domain::attack::{Finding, Verdict};

use super::field;
use crate::{
    output::{Column, Line, Look, Table, Tone},
    words,
};

/// How the findings add up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) stopped: usize,
    pub(crate) works: usize,
    pub(crate) got_through: usize,
    pub(crate) untried: usize,
    pub(crate) failed: usize,
}

impl Tally {
    pub(crate) fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Tally {
        findings.into_iter().fold(Tally::default(), |mut tally, finding| {
            *match finding.verdict {
                Verdict::Stopped => &mut tally.stopped,
                Verdict::Works => &mut tally.works,
                Verdict::GotThrough => &mut tally.got_through,
                Verdict::Untried => &mut tally.untried,
                Verdict::Failed => &mut tally.failed,
            } += 1;
            tally
        })
    }

    pub(crate) fn held(&self) -> bool {
        self.got_through == 0 && self.failed == 0
    }
}

/// Shown while they are made.
pub(crate) fn progress(findings: &[Finding]) -> Line {
    let Some(last) = findings.last() else { return Line::of("making a campaign to attack from") };
    let tally = Tally::of(findings);
    let wrong = if tally.held() {
        Line::new()
    } else {
        Line::toned(Tone::Bad, format!("{} not stopped", tally.got_through + tally.failed))
    };
    Line::joined([
        Line::of(format!("{} of {}", findings.len(), findings.len() + last.left)),
        wrong,
        Line::new().faint(&last.name),
    ])
}

/// The areas, what could not be tried, and what did not hold.
pub(crate) fn report(findings: &[Finding], look: &Look) -> Vec<Line> {
    let mut lines = areas(findings).lines(look);
    let of = |verdict: Verdict| findings.iter().filter(move |finding| finding.verdict == verdict);
    for finding in of(Verdict::Untried) {
        lines.push(field("untried", Line::of(&finding.name).faint(format!("   {}", finding.detail))));
    }
    for finding in of(Verdict::GotThrough).chain(of(Verdict::Failed)) {
        lines.push(Line::new());
        lines.extend(trouble(finding));
    }
    lines
}

fn areas(findings: &[Finding]) -> Table {
    let number = |head| Column::new(head).right();
    let mut table = Table::new([
        Column::new("AREA"),
        number("TRIED"),
        number("HELD"),
        number("GOT THROUGH"),
        number("FAILED"),
        number("UNTRIED"),
    ]);
    let mut seen: Vec<&str> = Vec::new();
    for area in findings.iter().map(Finding::area) {
        if seen.contains(&area) {
            continue;
        }
        seen.push(area);
        let tally = Tally::of(findings.iter().filter(|finding| finding.area() == area));
        let held = tally.stopped + tally.works;
        let bad = |count: usize| match count {
            0 => Line::new().faint("0"),
            count => Line::toned(Tone::Bad, count.to_string()),
        };
        table.row(vec![
            Line::of(area),
            Line::of((held + tally.got_through + tally.failed).to_string()),
            Line::of(held.to_string()),
            bad(tally.got_through),
            bad(tally.failed),
            Line::new().faint(tally.untried.to_string()),
        ]);
    }
    table
}

fn trouble(finding: &Finding) -> Vec<Line> {
    let word = match finding.verdict {
        Verdict::GotThrough => "got through",
        _ => "cannot be said",
    };
    let head = Line::toned(Tone::Bad, "✗ ").strong(&finding.name).plain(format!("   {word}"));
    let mut lines =
        vec![head, field("tries to", Line::of(&finding.tries)), field("inside", Line::of(&finding.detail))];
    lines.extend(finding.evidence.iter().map(|seen| field("outside", Line::of(seen))));
    lines
}

/// `✓ 214 attempts to leave the sandbox, as root: all stopped · 9 controls work · 2 untried · 12s`
pub(crate) fn verdict(findings: &[Finding], by: &str, took: Duration) -> Line {
    let tally = Tally::of(findings);
    let is_attack = |finding: &&Finding| finding.area() != "control" && finding.verdict != Verdict::Untried;
    let tried = words::plural(findings.iter().filter(is_attack).count() as u64, "attempt", "attempts");
    let (tone, sign) = if tally.held() { (Tone::Good, "✓ ") } else { (Tone::Bad, "✗ ") };
    let stopped = if tally.held() { "all stopped".to_owned() } else { format!("{} stopped", tally.stopped) };
    let some = |count: usize, word: &str| match count {
        0 => Line::new(),
        count => Line::of(format!("{count} {word}")),
    };
    let head = Line::toned(tone, sign).plain(format!("{tried} to leave the sandbox, {by}: {stopped}"));
    Line::joined([
        head,
        some(tally.got_through, "GOT THROUGH"),
        some(tally.failed, "could not be judged"),
        some(tally.works, if tally.works == 1 { "control works" } else { "controls work" }),
        some(tally.untried, "untried"),
        Line::of(words::took(took)),
    ])
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn finding(name: &str, verdict: Verdict, detail: &str, evidence: &[&str], left: usize) -> Finding {
        Finding {
            name: name.to_owned(),
            tries: "read a file beside the campaign".to_owned(),
            verdict,
            detail: detail.to_owned(),
            evidence: evidence.iter().map(|&text| text.to_owned()).collect(),
            left,
        }
    }

    fn shown(findings: &[Finding]) -> String {
        let look = Look::plain(Some(80));
        let mut lines = vec![progress(findings)];
        lines.extend(report(findings, &look));
        lines.push(verdict(findings, "as root", Duration::from_millis(12_300)));
        lines.iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn all_is_well_or_said_in_full() {
        let mut findings = vec![
            finding("files/read-outside", Verdict::Stopped, "No such file", &[], 3),
            finding("files/devices", Verdict::Untried, "there is no disk", &[], 2),
            finding("control/git", Verdict::Works, "ok", &[], 1),
        ];
        assert_snapshot!(shown(&findings));
        let evidence = ["/tmp/x/secret.txt is gone", "it has read a secret\u{1b}[2J"];
        findings.push(finding("links/to-file", Verdict::GotThrough, "it was allowed", &evidence, 0));
        findings.push(finding("control/make", Verdict::Failed, "did not end in time", &[], 0));
        assert_snapshot!(shown(&findings));
    }
}
