//! What is shared.

use ostler_domain::share::{Access, Scope};
use ostler_wire::reply::Share;

use super::Dice;

impl Dice {
    pub(crate) fn share(&mut self) -> Share {
        let at = self.time();
        let scope = match self.yes() {
            true => Scope::Session(ostler_domain::SessionId::new(at, 7)),
            false => Scope::Campaign(ostler_domain::CampaignId::new(at, 7)),
        };
        Share {
            name: self.text(),
            id: self.text(),
            access: if self.yes() { Access::Observe } else { Access::Manage },
            scope,
            created: self.time(),
            last_used: self.maybe(Dice::time),
            expires: self.time(),
        }
    }
}
