//! Who may come in by the HTTP door.

use ostler_wire::reply::{HttpToken, WayIn};

use super::Dice;

impl Dice {
    pub(crate) fn http_token(&mut self) -> HttpToken {
        HttpToken {
            name: self.text(),
            id: self.text(),
            is_browser: self.yes(),
            read_only: self.yes(),
            created: self.time(),
            last_used: self.maybe(Dice::time),
            expires: self.maybe(Dice::time),
            approval: self.maybe(Dice::text),
        }
    }

    pub(crate) fn way_in(&mut self) -> WayIn {
        WayIn {
            link: self.text(),
            address: self.text(),
            expires: self.time(),
            allowed_hosts: self.some(Dice::text),
        }
    }
}
