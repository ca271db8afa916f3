//! Compares the two sources of tokens, call by call where both name it: what the agent said, what the wire saw, and what
//! was counted of it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    Usage,
    event::{UsageRecorded, UsageSource},
    price::plain_name,
};

/// One model's tokens in a session, from both sides.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Compared {
    /// Empty where nobody named one.
    pub model: String,
    /// What the agent reported.
    pub report: Usage,
    /// What the gateway read off the wire.
    pub wire: Usage,
    /// What is in every sum.
    pub counted: Usage,
    /// Calls that the wire saw.
    pub wire_calls: u64,
    /// Of these, calls whose answer was cut before it said what it took.
    pub cut_calls: u64,
    /// Of these, calls that the agent named too.
    pub named_by_both: u64,
    pub verdict: Verdict,
}

/// What the difference means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Both say the same.
    #[default]
    Agree,
    /// Only the agent spoke: its calls do not go through the gateway.
    ReportOnly,
    /// The wire saw the calls, and an answer was cut before it said what it took.
    Cut,
    /// The same, and the agent does not say either what it took.
    CutUnknown,
    /// Only the wire saw calls: the agent reports none, or has not yet.
    WireOnly,
    /// The wire saw more.
    WireMore,
    /// The agent reported more.
    ReportMore,
    /// More in one bucket and less in another.
    Differ,
}

impl Verdict {
    pub const fn words(self) -> &'static str {
        match self {
            Verdict::Agree => "both say the same",
            Verdict::ReportOnly => {
                "not seen on the wire: no gateway carried its calls, so counted from its report"
            }
            Verdict::Cut => {
                "an answer was cut before its usage came, so it is counted from the agent's report"
            }
            Verdict::CutUnknown => {
                "an answer was cut before its usage came, and the agent does not say what it took: that is counted nowhere"
            }
            Verdict::WireOnly => "not reported by the agent, so counted from the wire",
            Verdict::WireMore => {
                "the wire saw more: calls that were interrupted, repeated or made beside the turn are not reported"
            }
            Verdict::ReportMore => {
                "the agent reports more: calls past the gateway, or answers that did not say what they took"
            }
            Verdict::Differ => "the sources put tokens into different buckets",
        }
    }
}

/// Compares what was recorded of one session, by model. Calls without a model had the session's. Names that mean the same
/// model are one, and it is called what the wire calls it: agents put their provider's name before it.
pub fn compare<'a>(
    recorded: impl IntoIterator<Item = &'a UsageRecorded>,
    session_model: Option<&str>,
) -> Vec<Compared> {
    let mut models: BTreeMap<String, (Compared, Names<'a>, Names<'a>)> = BTreeMap::new();
    for used in recorded {
        let model = used.model.as_deref().or(session_model).unwrap_or_default();
        let (compared, reported, seen) = models.entry(plain_name(model).to_owned()).or_default();
        if compared.model.is_empty() || (used.source == UsageSource::Wire && compared.wire_calls == 0) {
            compared.model = model.to_owned();
        }
        let said = used.said();
        match used.source {
            UsageSource::Report | UsageSource::History => {
                compared.report += said;
                count(reported, used);
            }
            UsageSource::Wire => {
                compared.wire += said;
                compared.wire_calls += 1;
                compared.cut_calls += u64::from(used.cut);
                count(seen, used);
            }
        }
        compared.counted += used.usage;
    }
    let rows = models.into_values().map(|(compared, reported, seen)| Compared {
        named_by_both: seen
            .iter()
            .map(|(name, times)| reported.get(name).map_or(0, |told| *told.min(times)))
            .sum(),
        verdict: verdict(&compared),
        ..compared
    });
    rows.collect()
}

/// How often each name was told: small servers give several calls the same.
type Names<'a> = BTreeMap<&'a str, u64>;

fn count<'a>(names: &mut Names<'a>, used: &'a UsageRecorded) {
    if let Some(name) = &used.call {
        *names.entry(name).or_default() += 1;
    }
}

/// What both sources say of all models of a session together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    pub verdict: Verdict,
    /// Tokens of all buckets.
    pub report: u64,
    pub wire: u64,
    pub cut_calls: u64,
}

impl Agreement {
    /// None where no model was called.
    pub fn of(models: &[Compared]) -> Option<Self> {
        let first = models.first()?.verdict;
        let sum = |count: fn(&Compared) -> u64| models.iter().map(count).sum();
        let is_one = models.iter().all(|model| model.verdict == first);
        let others = models.iter().map(|model| model.verdict).find(|verdict| *verdict != Verdict::Agree);
        Some(Self {
            verdict: if is_one { first } else { others.map_or(first, |_| Verdict::Differ) },
            report: sum(|model| model.report.total()),
            wire: sum(|model| model.wire.total()),
            cut_calls: sum(|model| model.cut_calls),
        })
    }
}

fn verdict(compared: &Compared) -> Verdict {
    let Compared { report, wire, .. } = compared;
    if report.is_zero() && !wire.is_zero() {
        return Verdict::WireOnly;
    }
    if wire.is_zero() && compared.wire_calls == 0 {
        return if report.is_zero() { Verdict::Agree } else { Verdict::ReportOnly };
    }
    let buckets = [
        (report.input, wire.input),
        (report.cache_read, wire.cache_read),
        (report.cache_write, wire.cache_write),
        (report.output, wire.output),
    ];
    let wire_has_more = buckets.iter().any(|(report, wire)| wire > report);
    let report_has_more = buckets.iter().any(|(report, wire)| report > wire);
    match (wire_has_more, report_has_more) {
        (false, false) if compared.cut_calls > 0 => Verdict::CutUnknown,
        (false, false) => Verdict::Agree,
        (true, false) => Verdict::WireMore,
        (false, true) if compared.cut_calls > 0 => Verdict::Cut,
        (false, true) => Verdict::ReportMore,
        (true, true) => Verdict::Differ,
    }
}

#[cfg(test)]
mod tests {
    use UsageSource::{Report, Wire};

    use super::*;

    fn used(
        source: UsageSource,
        call: Option<&str>,
        model: Option<&str>,
        input: u64,
        output: u64,
    ) -> UsageRecorded {
        UsageRecorded {
            usage: Usage { input, output, ..Usage::default() },
            model: model.map(str::to_owned),
            source,
            call: call.map(str::to_owned),
            ..UsageRecorded::default()
        }
    }

    fn verdicts(recorded: &[UsageRecorded]) -> Vec<Verdict> {
        compare(recorded, Some("m")).into_iter().map(|compared| compared.verdict).collect()
    }

    #[test]
    fn each_difference_has_its_meaning() {
        let wire = used(Wire, Some("a"), Some("m"), 10, 5);
        let report = used(Report, Some("a"), None, 10, 5);
        let more = used(Wire, Some("b"), Some("m"), 1, 1);
        let unnamed = used(Report, None, None, 1, 0);
        assert_eq!(verdicts(&[wire.clone(), report.clone()]), [Verdict::Agree]);
        assert_eq!(verdicts(std::slice::from_ref(&report)), [Verdict::ReportOnly]);
        assert_eq!(verdicts(std::slice::from_ref(&wire)), [Verdict::WireOnly]);
        assert_eq!(verdicts(&[wire.clone(), report.clone(), more.clone()]), [Verdict::WireMore]);
        assert_eq!(verdicts(&[wire.clone(), report.clone(), unnamed.clone()]), [Verdict::ReportMore]);
        let other_bucket = used(Report, Some("a"), None, 11, 4);
        assert_eq!(verdicts(&[wire.clone(), other_bucket]), [Verdict::Differ]);
        assert_eq!(verdicts(&[]), []);
        let cut = UsageRecorded { cut: true, ..used(Wire, Some("c"), Some("m"), 0, 0) };
        assert_eq!(verdicts(&[cut.clone(), unnamed.clone()]), [Verdict::Cut]);
        assert_eq!(verdicts(std::slice::from_ref(&cut)), [Verdict::CutUnknown]);
        assert_eq!(verdicts(&[wire.clone(), report.clone(), cut.clone()]), [Verdict::CutUnknown]);
        assert_eq!(verdicts(&[wire.clone(), report.clone(), cut, unnamed.clone()]), [Verdict::Cut]);
        let row = compare(&[wire, report, more], None).into_iter().find(|row| row.model == "m").unwrap();
        assert_eq!(
            (row.wire_calls, row.named_by_both),
            (2, 0),
            "the report named no model, and there is none"
        );
    }

    #[test]
    fn calls_that_share_a_name_are_each_named_by_both() {
        let wire = used(Wire, Some("a"), Some("m"), 10, 5);
        let report = used(Report, Some("a"), Some("m"), 10, 5);
        let rows = compare(&[wire.clone(), report.clone(), wire.clone(), report, wire], None);
        assert_eq!((rows[0].wire_calls, rows[0].named_by_both), (3, 2));
    }

    #[test]
    fn models_agree_together_only_where_each_does() {
        let model = |verdict, report, wire| Compared {
            verdict,
            report: Usage { input: report, ..Usage::default() },
            wire: Usage { input: wire, ..Usage::default() },
            ..Compared::default()
        };
        let of = |models: &[Compared]| Agreement::of(models).map(|all| (all.verdict, all.report, all.wire));
        assert_eq!(of(&[]), None);
        let same = model(Verdict::Agree, 5, 5);
        assert_eq!(of(&[same.clone(), same.clone()]), Some((Verdict::Agree, 10, 10)));
        let own = model(Verdict::ReportOnly, 5, 0);
        assert_eq!(of(&[own.clone(), own.clone()]), Some((Verdict::ReportOnly, 10, 0)));
        assert_eq!(of(&[same, own]), Some((Verdict::Differ, 10, 5)));
    }

    #[test]
    fn one_model_by_two_names_is_one() {
        let wire = used(Wire, Some("a"), Some("qwen3"), 10, 5);
        let report = used(Report, None, Some("local/qwen3"), 10, 5);
        for both in [[wire.clone(), report.clone()], [report, wire]] {
            let rows = compare(&both, None);
            assert_eq!(rows.len(), 1, "{rows:?}");
            assert_eq!((rows[0].model.as_str(), rows[0].verdict), ("qwen3", Verdict::Agree));
        }
    }

    #[test]
    fn what_was_said_is_compared_and_what_was_added_is_counted() {
        let wire = used(Wire, Some("a"), Some("m"), 10, 5);
        let said = Usage { input: 10, output: 5, ..Usage::default() };
        let report = UsageRecorded {
            usage: Usage::default(),
            said: Some(said),
            ..used(Report, Some("a"), None, 0, 0)
        };
        let rows = compare(&[wire, report], Some("m"));
        assert_eq!((rows[0].report, rows[0].wire, rows[0].counted), (said, said, said));
        assert_eq!((rows[0].verdict, rows[0].named_by_both), (Verdict::Agree, 1));
    }
}
