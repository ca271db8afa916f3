//! What was used and what it cost, line by line, with the budgets it counts against.

use ostler_domain::{
    Time,
    budget::{CampaignBudget, Period},
    limits::BUDGET_WARNS_AT_PERCENT,
    price::Dollars,
    text::shell_word,
};

use crate::{Column, Line, Table, Tone, words};

pub use ostler_form::cost::{By, Sum, Sums, sums};

/// The head of its column.
pub const fn head(by: By) -> &'static str {
    match by {
        By::Session => "SESSION",
        By::Agent => "AGENT",
        By::Campaign => "CAMPAIGN",
        By::Model => "MODEL",
        By::Provider => "PROVIDER",
        By::Day => "DAY (UTC)",
        By::Ticket => "TICKET",
        By::Chain => "CHAIN",
        By::Mission => "MISSION",
    }
}

/// Blocks of a bar that is full.
const BAR: u64 = 20;

/// What was paid, and what a plan covers. Never a nothing for what nobody knows.
pub fn money(sum: &Sum) -> Line {
    let is_plan_known = sum.plan_unpriced.is_zero();
    let paid = match (sum.is_known(), sum.cost) {
        (true, Dollars(0)) if sum.plan > Dollars(0) || !is_plan_known => Line::new(),
        (true, cost) => Line::of(cost.to_string()),
        (false, Dollars(0)) => Line::toned(Tone::Warn, "unknown"),
        (false, cost) => Line::of(format!("{cost} + ")).with(Tone::Warn, "unknown"),
    };
    let paid =
        if paid.is_empty() || (sum.plan == Dollars(0) && is_plan_known) { paid } else { paid.plain(", ") };
    match (sum.plan, is_plan_known) {
        (Dollars(0), true) => paid,
        (Dollars(0), false) => paid.with(Tone::Warn, "~unknown"),
        (plan, true) => paid.plain(format!("~{plan}")),
        (plan, false) => paid.plain(format!("~{plan} + ")).with(Tone::Warn, "~unknown"),
    }
}

pub fn table(head: &'static str, rows: &[Sum], total: &Sum) -> Table {
    let number = |head| Column::new(head).right();
    let mut table = Table::new([
        Column::new(head),
        number("SESSIONS").goes(4),
        number("CALLS").extra(),
        number("INPUT"),
        number("CACHE READ").goes(5),
        number("CACHE WRITE").goes(3),
        number("OUTPUT"),
        number("REASONING").goes(2),
        number("COST"),
        // What is said below as well gives way first.
        Column::new("").goes(1),
    ]);
    let mut row = |name: Line, sum: &Sum, cure: Line| {
        let count = |n| if n == 0 { Line::new().faint("–") } else { Line::of(words::count(n)) };
        table.row(vec![
            name,
            Line::of(words::number(sum.sessions)),
            Line::of(words::number(sum.calls)),
            count(sum.usage.input),
            count(sum.usage.cache_read),
            count(sum.usage.cache_write),
            count(sum.usage.output),
            count(sum.usage.reasoning),
            money(sum),
            cure,
        ]);
    };
    for sum in rows {
        let name =
            if sum.name.is_empty() { Line::new().faint("not said") } else { Line::new().strong(&sum.name) };
        row(name, sum, cure(sum));
    }
    if rows.len() > 1 {
        row(Line::of(&total.name), total, Line::new());
    }
    table
}

/// What would give a row its price, where one model lacks it.
fn cure(sum: &Sum) -> Line {
    match sum.unpriced_models.as_slice() {
        [model] => Line::toned(Tone::Accent, format!("ostler price set {}", shell_word(model))),
        _ => Line::new(),
    }
}

/// What a campaign or an agent may use, and how much of it is gone.
#[derive(Debug)]
pub struct Against {
    /// The campaign's name, or the agent's behind it.
    pub whose: String,
    pub budget: CampaignBudget,
    /// What of it was used: dollars in millionths, or tokens.
    pub paid: Dollars,
    /// With what had no price when it was used, at the one that it has now.
    pub paid_now: Dollars,
    pub tokens: u64,
}

/// `budget shop  ██████░░░░  $7.67 of $25.00 today (31 %) · warns at 80 %, holds at 100 %`
pub fn budget(against: &Against) -> Line {
    let Against { whose, budget, paid, paid_now, tokens } = against;
    let percent = |used: u64, most: u64| (u128::from(used) * 100 / u128::from(most.max(1))) as u64;
    let (share, told) = match (budget.dollars, budget.tokens) {
        (Some(most), _) => (percent(paid.0, most.0), format!("{paid} of {most}")),
        (None, Some(most)) => {
            (percent(*tokens, most), format!("{} of {} tokens", words::count(*tokens), words::count(most)))
        }
        (None, None) => return Line::new(),
    };
    let tone = match share {
        100.. => Tone::Bad,
        BUDGET_WARNS_AT_PERCENT.. => Tone::Warn,
        _ => Tone::Good,
    };
    let filled = usize::try_from((share * BAR / 100).min(BAR)).unwrap_or_default();
    let empty = usize::try_from(BAR).unwrap_or_default() - filled;
    let when = match budget.period {
        Period::Day => " today (UTC)",
        Period::Month => " this month (UTC)",
        Period::Total => "",
    };
    let counted = match budget.dollars {
        Some(_) if paid != paid_now => {
            format!(" · without calls that had no price when they were made: with them {paid_now}")
        }
        _ => String::new(),
    };
    Line::of("budget ")
        .strong(whose)
        .plain("  ")
        .with(tone, "█".repeat(filled))
        .faint("░".repeat(empty))
        .plain(format!("  {told}{when} ({share} %)"))
        .faint(format!(" · warns at {BUDGET_WARNS_AT_PERCENT} %, holds at 100 %{counted}"))
}

/// What is said below: which prices hold, and what has none.
pub fn remarks(total: &Sum, prices_date: &str, since: &str) -> Vec<Line> {
    let prices = format!("{since}; each call at the price of its day, now those of {prices_date}");
    let mut remarks = vec![Line::new().faint(prices)];
    if let Some(model) = total.unpriced_models.first() {
        let cure = Line::toned(Tone::Accent, format!("ostler price set {model} input=… output=…"));
        let unknown = total.unpriced_models.join(", ");
        remarks.push(cure.faint(format!("   no price is known of {unknown}")));
    }
    remarks
}

/// What was used in a longer time.
#[derive(Debug)]
pub struct Earlier {
    /// `Yesterday`.
    pub when: String,
    pub sum: Sum,
    /// What shows it: `cost --since 1d`.
    pub command: String,
}

/// Nothing was used; what was before, if anything.
pub fn nothing(since: Option<&str>, earlier: Option<&Earlier>) -> Vec<Line> {
    let Some(since) = since else { return vec![Line::of("No usage recorded that fits.")] };
    let before = earlier.filter(|earlier| earlier.sum.calls > 0).map_or_else(Line::new, |earlier| {
        Line::of(format!(" {}: ", earlier.when))
            .append(money(&earlier.sum))
            .faint(format!(" ({})", earlier.command))
    });
    vec![Line::of(format!("No usage recorded {since}.")).append(before)]
}

/// `since 00:00 UTC`, as days of budgets begin; `since 9 Nov 14:02` in the zone of who reads it.
pub fn since(from: Time, midnight: Time, zone: &jiff::tz::TimeZone) -> String {
    if from == midnight {
        "since 00:00 UTC".to_owned()
    } else {
        format!("since {}", words::day_and_minute(from, zone))
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use ostler_domain::Usage;

    use super::*;
    use crate::Look;

    fn sums() -> Sums {
        let usage = |input, cache_read, output, reasoning| Usage {
            input,
            cache_read,
            cache_write: cache_read / 16,
            output,
            reasoning,
        };
        let rows = vec![
            Sum {
                name: "claude-opus-4-7".to_owned(),
                calls: 210,
                sessions: 14,
                usage: usage(1_900_000, 48_200_000, 640_000, 0),
                cost: Dollars(68_980_000),
                plan: Dollars(41_200_000),
                ..Sum::default()
            },
            Sum {
                name: "foo-1".to_owned(),
                calls: 3,
                sessions: 1,
                usage: usage(120_000, 0, 4_000, 1_000),
                unpriced: usage(120_000, 0, 4_000, 1_000),
                unpriced_models: vec!["foo-1".to_owned()],
                ..Sum::default()
            },
        ];
        let mut total = Sum { name: "TOTAL".to_owned(), ..Sum::default() };
        rows.iter().for_each(|row| total.merge(row));
        Sums { rows, total }
    }

    fn screen(look: &Look) -> String {
        let sums = sums();
        let budget = CampaignBudget { dollars: Some(Dollars(25_000_000)), tokens: None, period: Period::Day };
        let paid = Dollars(7_670_000);
        let against = Against { whose: "shop".to_owned(), budget, paid, paid_now: paid, tokens: 9 };
        let mut lines = table("MODEL", &sums.rows, &sums.total).lines(look);
        lines.push(super::budget(&against));
        lines.extend(remarks(&sums.total, "2026-11-01", "since 00:00"));
        lines.iter().map(|line| line.show(look)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn at_120_and_80_columns() {
        assert_snapshot!(screen(&Look::plain(Some(120))));
        assert_snapshot!(screen(&Look::plain(Some(80))));
    }

    #[test]
    fn what_a_plan_covers_is_never_nothing_for_want_of_a_price() {
        let shown = |sum: Sum| money(&sum).show(&Look::plain(None));
        let tokens = Usage { input: 9, output: 9, ..Usage::default() };
        let covered = Sum { plan_unpriced: tokens, ..Sum::default() };
        assert_eq!(shown(covered.clone()), "~unknown");
        assert_eq!(shown(Sum { plan: Dollars(210_000), ..covered.clone() }), "~$0.21 + ~unknown");
        assert_eq!(shown(Sum { cost: Dollars(2_000_000), ..covered }), "$2.00, ~unknown");
        assert_eq!(shown(Sum::default()), "$0.00");
    }

    #[test]
    fn a_budget_that_did_not_count_all_of_it_says_so() {
        let budget = CampaignBudget { dollars: Some(Dollars(25_000_000)), tokens: None, period: Period::Day };
        let of = |paid_now, budget| {
            let paid = Dollars(7_670_000);
            let against = Against { whose: "shop".to_owned(), budget, paid, paid_now, tokens: 9 };
            super::budget(&against).show(&Look::plain(None))
        };
        assert!(!of(Dollars(7_670_000), budget).contains("had no price"));
        let told = of(Dollars(9_000_000), budget);
        assert!(told.contains("$7.67 of $25.00") && told.contains("had no price"), "{told}");
        assert!(told.ends_with("with them $9.00"), "{told}");
        let tokens = CampaignBudget { dollars: None, tokens: Some(90), ..budget };
        assert!(!of(Dollars(9_000_000), tokens).contains("had no price"), "tokens are counted all the same");
    }

    #[test]
    fn in_colour() {
        assert_snapshot!(screen(&Look::coloured(Some(120))).replace('\u{1b}', "␛"));
        assert_snapshot!(screen(&Look::coloured(Some(80))).replace('\u{1b}', "␛"));
    }

    #[test]
    fn nothing_used_tells_of_the_day_before() {
        let look = Look::plain(None);
        let shown = |since, sum: Option<&Sum>| {
            let command = "cost --since 1d".to_owned();
            let earlier = sum.map(|sum| Earlier { when: "Yesterday".to_owned(), sum: sum.clone(), command });
            nothing(since, earlier.as_ref())
                .iter()
                .map(|line| line.show(&look))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let yesterday = Sum { calls: 1, cost: Dollars(11_370_000), ..Sum::default() };
        assert_eq!(
            shown(Some("since 00:00"), Some(&yesterday)),
            "No usage recorded since 00:00. Yesterday: $11.37 (cost --since 1d)"
        );
        assert_eq!(shown(Some("since 00:00"), Some(&Sum::default())), "No usage recorded since 00:00.");
        assert_eq!(shown(None, None), "No usage recorded that fits.");
    }
}
