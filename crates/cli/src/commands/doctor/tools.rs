//! Toolchains in a person's home, and the campaigns whose agents can read them.

use std::collections::BTreeMap;

use ostler_client::Campaign;
use ostler_domain::policy::PRESETS;

use super::{Finding, Verdict};
use crate::{app::person_home, commands::policy::preset_parts, words};

/// What of each preset is on this machine, as people write it.
pub(super) type Here = BTreeMap<&'static str, Vec<String>>;

pub(super) fn here() -> Here {
    let shown = |preset| {
        let parts = preset_parts(preset).into_iter();
        parts.map(|part| words::path(&part.to_string_lossy(), person_home().as_deref())).collect()
    };
    let found = PRESETS.iter().map(|preset| (preset.name, shown(preset)));
    found.filter(|(_, parts): &(_, Vec<String>)| !parts.is_empty()).collect()
}

/// One line for all campaigns that can read the same, and one for each that was granted what is not there.
pub(super) fn findings(campaigns: &[Campaign], here: &Here) -> Vec<Finding> {
    let mut alike: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut missing = Vec::new();
    for campaign in campaigns {
        let granted = || campaign.policy.read.iter().filter(|name| name.starts_with('@'));
        let (found, absent): (Vec<_>, Vec<_>) = granted().partition(|name| here.contains_key(name.as_str()));
        let found: Vec<String> = found
            .into_iter()
            .map(|name| format!("{} ({})", name.trim_start_matches('@'), here[name.as_str()].join(", ")))
            .collect();
        alike.entry(found.join(", ")).or_default().push(campaign.name.to_string());
        missing.extend(absent.into_iter().map(|name| {
            let text = format!("{name} is granted in {}, and nothing of it is in your home", campaign.name);
            Finding::new(Verdict::Warn, "tools", text)
                .fix(format!("ostler campaign set {} read-={name}", campaign.name))
        }));
    }
    let readable = alike.into_iter().map(|(tools, names)| {
        let word = if names.len() == 1 { "campaign" } else { "campaigns" };
        let tools = if tools.is_empty() { "the system's own alone".to_owned() } else { tools };
        Finding::new(Verdict::Ok, "tools", format!("{tools} readable inside {word} {}", names.join(", ")))
    });
    readable.chain(missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn campaign(name: &str, read: &[&str]) -> Campaign {
        let mut campaign = Campaign { name: name.parse().unwrap(), ..testing::campaign() };
        campaign.policy.read = read.iter().map(|one| (*one).to_owned()).collect();
        campaign
    }

    #[test]
    fn campaigns_that_read_the_same_share_a_line_and_what_is_not_there_is_said() {
        let here = Here::from([("@rust", vec!["~/.cargo/bin".to_owned(), "~/.rustup".to_owned()])]);
        let campaigns = [
            campaign("shop", &["@rust", "/opt/sdk"]),
            campaign("site", &["@rust"]),
            campaign("docs", &["@go"]),
        ];
        let found = findings(&campaigns, &here);
        let told: Vec<(Verdict, &str)> =
            found.iter().map(|finding| (finding.verdict, finding.text.as_str())).collect();
        assert_eq!(
            told,
            [
                (Verdict::Ok, "the system's own alone readable inside campaign docs"),
                (Verdict::Ok, "rust (~/.cargo/bin, ~/.rustup) readable inside campaigns shop, site"),
                (Verdict::Warn, "@go is granted in docs, and nothing of it is in your home"),
            ]
        );
        assert_eq!(found[2].cure(), "ostler campaign set docs read-=@go");
        assert!(findings(&[], &here).is_empty());
    }
}
