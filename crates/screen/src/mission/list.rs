//! The list of missions.

use ostler_client::Mission;
use ostler_domain::{Time, mission::Status, price::Dollars, text::one_line};

use crate::{Column, Line, Table, Tone, words};

pub fn table(missions: &[(Mission, String)], now: Time) -> Table {
    let columns = [
        Column::new(""),
        Column::new("ID"),
        Column::new("NAME"),
        Column::new("CAMPAIGN").goes(3),
        Column::new("STRATEGY").goes(2),
        Column::new("STATUS"),
        Column::new("DONE").right(),
        Column::new("AGE").right().goes(4),
        Column::new("COST").right(),
        Column::new("OBJECTIVE").gives_way_to(16),
    ];
    let mut table = Table::new(columns);
    for (mission, campaign) in missions {
        let (tone, sign) = sign(mission.status);
        let counts = mission.counts;
        table.row(vec![
            Line::toned(tone, sign),
            Line::of(mission.id.short()),
            Line::of(mission.name.as_str()),
            Line::of(campaign),
            Line::of(mission.strategy.as_str()),
            Line::toned(tone, mission.status.as_str()),
            Line::of(format!("{}/{}", counts.completed, counts.total)),
            Line::of(words::age(now.since(mission.created_at))),
            Line::of(cost(mission)),
            Line::new().faint(one_line(&mission.objective, 120)),
        ]);
    }
    table
}

/// What was paid; `?` where tokens were used and none of them has a price.
fn cost(mission: &Mission) -> String {
    match (mission.spent.cost, mission.spent.usage.total()) {
        (Dollars(0), 1..) => "?".to_owned(),
        (paid, _) => paid.to_string(),
    }
}

/// The sign in front of a mission. The word beside it says the same.
pub fn sign(status: Status) -> (Tone, &'static str) {
    match status {
        Status::Created => (Tone::Faint, "◌"),
        Status::Running => (Tone::Good, "●"),
        Status::Paused => (Tone::Accent, "‖"),
        Status::Completed => (Tone::Good, "✓"),
        Status::Partial => (Tone::Warn, "✗"),
        Status::Failed => (Tone::Bad, "✗"),
        Status::Cancelled => (Tone::Faint, "–"),
    }
}

/// A list with nothing in it. `is_all`: those that are over were to be in it, too.
pub fn empty(is_filtered: bool, is_all: bool) -> Vec<Line> {
    let step =
        |command: &str, effect: &str| Line::of("  ").with(Tone::Accent, command).plain("   ").faint(effect);
    if is_filtered {
        return vec![Line::of("No mission fits."), step("ostler mission ls -a", "lists all there are")];
    }
    let none = if is_all { "No missions yet." } else { "No mission is under way." };
    let mut lines = vec![
        Line::of(format!("{none} A mission is a team of agents with one objective.")),
        step("ostler mission template ls", "plans to start from"),
        step("ostler mission plan FILE", "what a plan would come to, and cost; changes nothing"),
    ];
    if !is_all {
        lines.push(step("ostler mission ls -a", "those that are over"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use ostler_domain::{
        CampaignId, MissionId,
        mission::{Counts, Spent, Strategy},
    };

    use super::*;
    use crate::{
        Look,
        testing::{NOW, ago},
    };

    fn mission(n: u128, name: &str, status: Status, completed: u32) -> (Mission, String) {
        let created_at = ago(3_600 * i64::try_from(n).unwrap());
        let cancelled = if status == Status::Cancelled { 6 - completed } else { 0 };
        let mission = Mission {
            id: MissionId::new(created_at, 0x000f_1234_5678_9abc * (n + 1)),
            campaign: CampaignId::new(created_at, 1),
            name: name.parse().unwrap(),
            objective: "Move the checkout into its own crate, tests green, reviewed".to_owned(),
            strategy: Strategy::Pipeline,
            status,
            created_at,
            started_at: Some(created_at),
            ended_at: None,
            updated_at: created_at,
            counts: Counts { total: 6, completed, failed: 0, skipped: 0, cancelled },
            spent: Spent { usage: Default::default(), cost: Dollars(6_420_000), unpriced: false },
        };
        (mission, "shop".to_owned())
    }

    #[test]
    fn missions_are_listed_with_how_far_they_are() {
        let all = [
            mission(1, "checkout-v2", Status::Running, 3),
            mission(2, "bug-hunt", Status::Paused, 0),
            mission(30, "docs", Status::Partial, 5),
            mission(50, "old", Status::Completed, 6),
            mission(60, "wrong", Status::Cancelled, 1),
        ];
        for width in [80, 120] {
            let look = Look::plain(Some(width));
            let lines: Vec<String> =
                table(&all, NOW).lines(&look).iter().map(|line| line.show(&look)).collect();
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
            assert_snapshot!(format!("list_{width}"), lines.join("\n"));
        }
    }

    #[test]
    fn an_empty_list_says_what_to_do() {
        let look = Look::plain(None);
        let said = |filtered, all| {
            empty(filtered, all).iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n")
        };
        assert_snapshot!("empty", format!("{}\n\n{}", said(false, false), said(true, false)));
        assert!(!said(false, true).contains("ls -a"), "the command that was just typed");
    }
}
