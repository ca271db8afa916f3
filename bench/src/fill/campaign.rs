//! Campaigns of a made-up team: some with a budget, some with rules, some whose policy was changed on the way.

use std::time::Duration;

use ostler_domain::{
    CampaignId, Event, Name, Time,
    budget::{CampaignBudget, Period},
    campaign::{Campaign, Root},
    event::{By, CampaignPolicyChanged},
    policy::Policy,
    price::Dollars,
};
use ostler_testkit::Seed;

use super::words::{entropy, word};

/// The `n`th campaign, added a little before the history begins.
pub(super) fn campaign(n: usize, beginning: Time, seed: &mut Seed) -> Campaign {
    let at = beginning.minus(Duration::from_secs(3_600 - n as u64));
    let name: Name =
        format!("{}-{n}", word(seed)).parse().unwrap_or_else(|_| unreachable!("a word is a name"));
    let entropy = entropy(seed);
    Campaign {
        id: CampaignId::new(at, entropy),
        root: Root { path: format!("/home/ann/code/{name}"), device: 64_769, inode: 1_000_000 + n as u64 },
        name,
        added: at,
        policy: policy(n, seed),
        tracked_hidden: Vec::new(),
        unwatched: None,
    }
}

fn policy(n: usize, seed: &mut Seed) -> Policy {
    let rules = ["allow run cargo test *", "allow read **", "deny fetch *.example", "ask run git push *"];
    Policy {
        read: if n.is_multiple_of(2) { vec!["@rust".to_owned()] } else { Vec::new() },
        net_allow: if n.is_multiple_of(3) { vec!["registry.example".to_owned()] } else { Vec::new() },
        approve_rule: rules.iter().filter(|_| seed.chance(50)).map(|rule| (*rule).to_owned()).collect(),
        // Wide enough that nobody is held: what campaigns have used is not summed up here.
        budget: n.is_multiple_of(4).then(|| CampaignBudget {
            tokens: None,
            dollars: Some(Dollars((25 + seed.below(500)) * 1_000_000)),
            period: [Period::Day, Period::Month, Period::Total][n / 4 % 3],
        }),
        ..Policy::default()
    }
}

/// Somebody widens a campaign's policy. The campaign has it from then on.
pub(super) fn widened(campaign: &mut Campaign, by: &By, seed: &mut Seed) -> Event {
    let host = format!("{}.example", word(seed));
    let setting = format!("net.allow+={host}");
    campaign.policy.net_allow.push(host);
    Event::CampaignPolicyChanged(Box::new(CampaignPolicyChanged {
        campaign: campaign.id,
        settings: vec![setting],
        policy: campaign.policy.clone(),
        by: by.clone(),
    }))
}
