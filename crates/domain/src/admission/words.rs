//! Waiting, in words.

use super::{For, Wait};
use crate::text::{bytes, ordinal};

impl Wait {
    /// `waits for a slot (60 of 60; 3rd in line)`. `campaign` is the name of the one that is waited for.
    pub fn words(&self, campaign: &str) -> String {
        let place = format!("{} in line", ordinal(self.place));
        match &self.what {
            For::Drain { said } => format!("waits: nothing starts here, {said} ({place})"),
            For::Disk { free, least } => format!(
                "waits for disk space ({} free, {} stay free; {place}): ostler du",
                bytes(*free),
                bytes(*least)
            ),
            For::Slot { most } => format!("waits for a slot ({most} of {most}; {place})"),
            For::CampaignSlot { most, .. } => {
                format!("waits for a slot in {campaign} ({most} of {most}; {place})")
            }
            For::ProviderSlot { provider, most } => {
                format!("waits for a slot of {provider} ({most} of {most}; {place})")
            }
            For::AccountSlot { account, most } => {
                let (provider, profile) = (&account.provider, &account.profile);
                format!("waits for a slot of the account {profile} of {provider} ({most} of {most}; {place})")
            }
            For::Memory { free, least } => {
                format!("waits for memory ({} free, {} stay free; {place})", bytes(*free), bytes(*least))
            }
            For::Start { starting } => format!("waits to start ({starting} are starting; {place})"),
        }
    }
}
