//! Money: `$3.18`, `~$0.21` for what a subscription covers, `?` for what nobody knows.

use ostler_domain::{
    budget::{Period, Today},
    price::{Cost, Dollars},
    usage_audit::{Agreement, Verdict},
};

use crate::words;

pub use ostler_form::money::short;

/// In a sentence: what is unknown has its cure beside it.
pub fn long(cost: &Cost) -> String {
    match cost.unpriced.keys().find(|model| !model.is_empty()) {
        Some(model) => format!("{}, no price of {model} (ostler price set)", short(cost)),
        None => short(cost),
    }
}

/// `$7.67 / $25.00`: the same where there is little room.
pub fn today_short(today: &Today) -> String {
    let of = today.budget.map(|budget| format!(" / {budget}")).unwrap_or_default();
    format!("{}{of}", paid_today(today))
}

fn paid_today(today: &Today) -> String {
    match (today.paid, today.is_unknown) {
        (Dollars(0), true) => "cost unknown".to_owned(),
        (paid, true) => format!("{paid} + unknown"),
        (paid, false) => paid.to_string(),
    }
}

/// `today (UTC) $7.67 of $25.00, ~$0.21 on plan`: the day of budgets, wherever who reads it is. Empty where nothing was used and nothing limits it.
pub fn today(today: &Today) -> String {
    if today.tokens == 0 && today.budget.is_none() {
        return String::new();
    }
    let paid = paid_today(today);
    let of = today.budget.map(|budget| format!(" of {budget}")).unwrap_or_default();
    let plan = match today.plan {
        Dollars(0) => String::new(),
        plan => format!(", ~{plan} on plan"),
    };
    format!("{} {paid}{of}{plan}", Period::Day.words())
}

/// ` (wire = report)`: where the tokens come from, after their sum.
pub fn source(counted: &Agreement) -> String {
    let source = match counted.verdict {
        Verdict::Agree => "wire = report".to_owned(),
        Verdict::ReportOnly => "by its report".to_owned(),
        Verdict::WireOnly => "by the wire".to_owned(),
        Verdict::CutUnknown => {
            format!(
                "wire = report, and {} unknown",
                words::plural(counted.cut_calls, "cut answer", "cut answers")
            )
        }
        Verdict::Cut | Verdict::WireMore | Verdict::ReportMore | Verdict::Differ => {
            format!("wire {}, report {}", words::count(counted.wire), words::count(counted.report))
        }
    };
    format!(" ({source})")
}

#[cfg(test)]
mod tests {
    use ostler_domain::Usage;

    use super::*;

    #[test]
    fn what_is_unknown_is_never_nothing() {
        let tokens = Usage { output: 5, ..Usage::default() };
        let known = Cost { paid: Dollars(3_180_000), ..Cost::default() };
        let unpriced = [("new-model".to_owned(), tokens)].into();
        let unknown = Cost { unpriced, ..Cost::default() };
        let both = Cost { paid: known.paid, ..unknown.clone() };
        let plan = Cost { plan: Dollars(210_000), ..Cost::default() };
        let said = [&Cost::default(), &known, &unknown, &both, &plan].map(short);
        assert_eq!(said, ["", "$3.18", "?", "$3.18+?", "~$0.21"]);
        assert_eq!(long(&both), "$3.18+?, no price of new-model (ostler price set)");
    }

    #[test]
    fn a_day_is_told_with_its_budget_and_what_a_plan_covers() {
        let day = Today { paid: Dollars(7_670_000), tokens: 9, ..Today::default() };
        assert_eq!(today(&day), "today (UTC) $7.67");
        let whole = Today { budget: Some(Dollars(25_000_000)), plan: Dollars(2_100_000), ..day };
        assert_eq!(today(&whole), "today (UTC) $7.67 of $25.00, ~$2.10 on plan");
        assert_eq!(today(&Today { is_unknown: true, paid: Dollars(0), ..day }), "today (UTC) cost unknown");
        assert_eq!(today(&Today::default()), "");
    }
}
