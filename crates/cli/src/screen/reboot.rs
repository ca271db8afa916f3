//! A restart of the machine, and the sessions that were lost with it.

use jiff::tz::TimeZone;
use ostler_domain::{
    Time,
    price::Dollars,
    reboot::{GoingOn, LostSession, MachineRestart},
};

use super::row;
use crate::{
    output::{Column, Line, Table, Tone},
    words,
};

/// What was last done is cut to this width before a column goes.
const LAST_WIDTH: usize = 40;

/// That it happened, what it cost, and what to do about it.
pub(crate) fn notice(restart: &MachineRestart, now: Time, zone: &TimeZone) -> Vec<Line> {
    let is_today = restart.at >= words::midnight(now, zone);
    let when = match is_today {
        true => format!("at {}", words::hour_and_minute(restart.at, zone)),
        false => format!("on {}", words::day_and_minute(restart.at, zone)),
    };
    let lost = words::plural(restart.lost, "session was lost", "sessions were lost");
    vec![
        Line::toned(Tone::Warn, format!("This machine restarted {when}."))
            .plain(format!(" {lost} with it; nothing recorded is missing.")),
        Line::of("  ostler resume --lost")
            .faint("      shows what it would continue, and the price, then asks"),
    ]
}

/// The lost sessions as a table.
pub(crate) fn table(lost: &[(LostSession, String)], now: Time) -> Table {
    let mut table = Table::new(vec![
        Column::new("ID"),
        Column::new("AGENT"),
        Column::new("CAMPAIGN").goes(2),
        Column::new("PROVIDER").goes(1),
        Column::new("LAST").gives_way_to(LAST_WIDTH),
        Column::new("BEFORE").right().goes(3),
        Column::new("READS AGAIN").right().goes(4),
        Column::new("PRICE").right(),
    ]);
    let ids: Vec<_> = lost.iter().map(|(lost, _)| lost.session.id).collect();
    for ((lost, campaign), short) in lost.iter().zip(row::short_ids(&ids)) {
        let session = &lost.session;
        let last = session.obituary.as_ref().and_then(|obituary| obituary.last.as_deref());
        let seen = session.last_activity_at.unwrap_or(session.created_at);
        table.row(vec![
            Line::toned(Tone::Accent, short),
            Line::new().strong(session.name.as_str()),
            Line::of(campaign),
            Line::of(&session.provider),
            last.map_or_else(|| Line::new().faint("–"), Line::of),
            Line::of(words::age(now.since(seen))),
            lost.price.tokens.map_or_else(|| Line::new().faint("–"), |tokens| Line::of(words::count(tokens))),
            Line::of(price(&lost.price)),
        ]);
    }
    table
}

/// What it costs to go on with one: a subscription's `~` as everywhere.
fn price(price: &GoingOn) -> String {
    match price.cost {
        _ if price.is_free => "nothing".to_owned(),
        None => "unknown".to_owned(),
        Some(cost) if price.is_on_plan => format!("~{cost}"),
        Some(cost) => cost.to_string(),
    }
}

/// What all of them cost, as far as that is known.
pub(crate) fn sum(lost: &[(LostSession, String)]) -> String {
    let of = |plan: bool| {
        let costs = lost
            .iter()
            .filter(|(lost, _)| lost.price.is_on_plan == plan)
            .filter_map(|(lost, _)| lost.price.cost);
        Dollars(costs.fold(0, |sum, Dollars(cost)| sum.saturating_add(cost)))
    };
    let unknown = lost.iter().filter(|(lost, _)| !lost.price.is_free && lost.price.cost.is_none()).count();
    let mut parts = Vec::new();
    if of(false) > Dollars(0) {
        parts.push(format!("about {}", of(false)));
    }
    if of(true) > Dollars(0) {
        parts.push(format!("~{} on plan", of(true)));
    }
    if unknown > 0 {
        parts.push(format!("{unknown} unknown"));
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::testing::{self, NOW, ago};

    fn lost() -> Vec<(LostSession, String)> {
        let prices = [
            GoingOn { tokens: Some(182_000), cost: Some(Dollars(546_000)), ..GoingOn::default() },
            GoingOn { is_free: true, ..GoingOn::default() },
            GoingOn::default(),
            GoingOn {
                tokens: Some(61_000),
                cost: Some(Dollars(183_000)),
                is_on_plan: true,
                ..GoingOn::default()
            },
        ];
        let of = |(n, price): (usize, GoingOn)| {
            let mut session =
                testing::session(u32::try_from(n).unwrap(), ["api-auth", "docs", "migrate", "triage"][n]);
            let mut obituary = testing::fleet().remove(6).obituary.unwrap();
            obituary.last = Some("run: cargo test -p store --all-features".to_owned());
            session.obituary = Some(obituary);
            session.last_activity_at = Some(ago(3_600));
            (LostSession { session, restarted_at: ago(1_800), price }, "shop".to_owned())
        };
        prices.into_iter().enumerate().map(of).collect()
    }

    #[test]
    fn says_what_happened_and_what_to_do() {
        let restart = |seconds| MachineRestart { at: ago(seconds), lost: 4 };
        let screen = |seconds| testing::in_all_looks(|_| notice(&restart(seconds), NOW, &TimeZone::UTC));
        assert_snapshot!(screen(1_800));
        let other_day = notice(&restart(90_000), NOW, &TimeZone::UTC);
        assert!(other_day[0].show(&crate::output::Look::plain(None)).contains("restarted on 12 Nov"));
    }

    #[test]
    fn shows_what_each_would_cost() {
        assert_snapshot!(testing::in_all_looks(|look| table(&lost(), NOW).lines(look)));
        assert_eq!(sum(&lost()), "about $0.55, ~$0.18 on plan, 1 unknown");
        assert_eq!(sum(&lost()[1..2]), "nothing");
    }
}
