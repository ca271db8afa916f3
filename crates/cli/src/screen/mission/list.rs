//! The list of missions.

use ostler_client::Mission;
use ostler_domain::{Time, mission::Status, text::one_line};

use crate::{
    output::{Column, Line, Table, Tone},
    words,
};

pub(crate) fn table(missions: &[(Mission, String)], now: Time) -> Table {
    let columns = [
        Column::new(""),
        Column::new("ID"),
        Column::new("NAME").gives_way_to(12),
        Column::new("CAMPAIGN").goes(3),
        Column::new("STRATEGY").goes(2),
        Column::new("STATUS"),
        Column::new("DONE").right(),
        Column::new("AGE").right().goes(4),
        Column::new("COST").right(),
        Column::new("OBJECTIVE").gives_way_to(16).goes(1),
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
            Line::of(format!("{}/{}", counts.completed, counts.total - counts.cancelled.min(counts.total))),
            Line::of(words::age(now.since(mission.created_at))),
            Line::of(mission.spent.cost.to_string()),
            Line::new().faint(one_line(&mission.objective, 120)),
        ]);
    }
    table
}

/// The sign in front of a mission. The word beside it says the same.
pub(crate) fn sign(status: Status) -> (Tone, &'static str) {
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

pub(crate) fn empty(is_filtered: bool) -> Vec<Line> {
    let step =
        |command: &str, effect: &str| Line::of("  ").with(Tone::Accent, command).plain("   ").faint(effect);
    if is_filtered {
        return vec![Line::of("No mission fits."), step("ostler mission ls -a", "lists all there are")];
    }
    vec![
        Line::of("No mission is under way. A mission is a team of agents with one objective."),
        step("ostler mission template ls", "plans to start from"),
        step("ostler mission plan FILE", "what a plan would come to, and cost; changes nothing"),
        step("ostler mission ls -a", "those that are over"),
    ]
}
