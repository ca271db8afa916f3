//! Campaigns: the list, and one of them.

use ostler_client::{Campaign, Session};
use ostler_domain::{Policy, Time, campaign::is_below, policy::Origin, text::one_line};

use super::{field, next_steps, sessions};
use crate::{
    output::{Column, Line, Look, Table, Tone},
    words,
};

pub(crate) fn table(campaigns: &[Campaign], home: Option<&str>, now: Time) -> Table {
    let columns = [
        Column::new("NAME"),
        Column::new("PATH").gives_way_to(60).path(),
        Column::new("ADDED").right(),
        Column::new("ID").goes(1),
    ];
    let mut table = Table::new(columns);
    for campaign in campaigns {
        table.row(vec![
            Line::new().strong(campaign.name.as_str()),
            Line::of(words::path(&campaign.root.path, home)),
            Line::of(format!("{} ago", words::age(now.since(campaign.added)))),
            Line::new().faint(campaign.id.to_string()),
        ]);
    }
    table
}

pub(crate) fn empty() -> Vec<Line> {
    vec![
        Line::of("No campaigns yet. A campaign is a directory that agents may work in."),
        Line::of("  ")
            .with(Tone::Accent, "ostler campaign add .")
            .plain("   ")
            .faint("makes this directory one"),
    ]
}

/// Says so if hidden files are tracked by git: what is in its history is no secret.
pub(crate) fn tracked(campaign: &Campaign) -> Option<String> {
    let names = &campaign.tracked_hidden;
    let is =
        if names.len() == 1 { "is hidden, but git tracks it" } else { "are hidden, but git tracks them" };
    let shown: Vec<String> = names.iter().map(|name| one_line(name, 80)).collect();
    (!names.is_empty()).then(|| format!("{} {is}: agents can read the history", shown.join(", ")))
}

/// Says so of campaigns within each other, which were registered when that was let pass: to the outer one's agents the
/// inner one's files are their own.
pub(crate) fn nested(campaign: &Campaign, all: &[Campaign]) -> Vec<String> {
    let root = &campaign.root.path;
    let said = |other: &Campaign| {
        let name = &other.name;
        if is_below(root, &other.root.path) {
            Some(format!(
                "it lies in the campaign {name}, whose agents read and write it: ostler campaign rm one of them"
            ))
        } else if is_below(&other.root.path, root) {
            Some(format!(
                "the campaign {name} lies in it, and its agents read and write that: ostler campaign rm one of them"
            ))
        } else {
            None
        }
    };
    all.iter().filter_map(said).collect()
}

/// One campaign, and what runs in it.
pub(crate) fn lines(
    campaign: &Campaign,
    live: &[Session],
    home: Option<&str>,
    now: Time,
    look: &Look,
) -> Vec<Line> {
    let summary = if live.is_empty() {
        Line::of("none live")
    } else {
        sessions::summary(&live.iter().collect::<Vec<_>>(), &sessions::Beside::default())
    };
    let mut lines = vec![
        Line::new().strong(campaign.name.as_str()).plain("   ").append(Line::joined([
            Line::of(campaign.id.to_string()),
            Line::of(format!("added {} ago", words::age(now.since(campaign.added)))),
        ])),
        field("path", Line::of(words::path(&campaign.root.path, home))),
        field("sessions", summary),
    ];
    if let Some(warning) = tracked(campaign) {
        lines.push(field("warning", Line::new().with(Tone::Warn, warning)));
    }
    lines.push(Line::new());
    lines.extend(policy(&campaign.policy, look));
    let name = &campaign.name;
    lines.extend(next_steps(&[
        (format!("ostler run -C {name} \"…\""), "starts a session in it"),
        (format!("ostler ls -a -C {name}"), "all its sessions"),
        (format!("ostler campaign set {name} read+=PATH"), "lets its agents read something else"),
    ]));
    lines
}

/// What a campaign's agents may do, each line with who says so.
pub(crate) fn policy(policy: &Policy, look: &Look) -> Vec<Line> {
    policy_of(policy, |_| true, look)
}

/// The part of it that these settings changed.
pub(crate) fn changed(policy: &Policy, settings: &[String], look: &Look) -> Vec<Line> {
    let keys: Vec<&str> = settings
        .iter()
        .map(|setting| setting.split('=').next().unwrap_or_default().trim_end_matches(['+', '-']))
        .collect();
    policy_of(policy, |key| keys.contains(&key), look)
}

fn policy_of(policy: &Policy, is_shown: impl Fn(&str) -> bool, look: &Look) -> Vec<Line> {
    let mut table = Table::new([Column::new("POLICY"), Column::new("").gives_way_to(20), Column::new("BY")]);
    for line in policy.lines().into_iter().filter(|line| is_shown(line.key)) {
        let (value, origin) = match line.origin {
            Origin::Default => (Line::new().faint(line.value), Line::new().faint(line.origin.as_str())),
            Origin::Campaign => (Line::new().strong(line.value), Line::of(line.origin.as_str())),
        };
        table.row(vec![Line::of(line.key), value, origin]);
    }
    table.lines(look)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::testing::{self, NOW};

    #[test]
    fn the_list_and_one_of_it() {
        let look = Look::plain(Some(80));
        let home = Some("/home/ann");
        let shown =
            |lines: Vec<Line>| lines.iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n");
        assert_snapshot!(shown(table(&[testing::campaign()], home, NOW).lines(&look)));
        assert_snapshot!(shown(lines(&testing::campaign(), &testing::fleet()[..3], home, NOW, &look)));
        assert_snapshot!(shown(empty()));
    }

    #[test]
    fn a_change_shows_what_it_changed() {
        let look = Look::plain(Some(80));
        let settings = ["budget=".to_owned(), "read+=/opt".to_owned()];
        let shown: Vec<String> =
            changed(&Policy::default(), &settings, &look).iter().map(|line| line.show(&look)).collect();
        assert_eq!(shown.len(), 3, "a head, and one line each: {shown:?}");
        assert!(shown[1].starts_with("read ") && shown[2].starts_with("budget "), "{shown:?}");
    }

    #[test]
    fn campaigns_within_each_other_are_warned_of() {
        let outer = testing::campaign();
        let mut inner = outer.clone();
        inner.root.path.push_str("/packages/a");
        let all = [outer.clone(), inner.clone()];
        assert!(nested(&outer, &all)[0].contains("lies in it"));
        assert!(nested(&inner, &all)[0].contains("it lies in"));
        assert!(nested(&outer, &all[..1]).is_empty());
    }
}
