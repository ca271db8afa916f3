//! The actor's part in what is kept from its agent: files that become hidden while it runs, and a start that the policy
//! does not allow.

use std::path::PathBuf;

use ostler_domain::{
    Event, Time,
    denied::{Denied, DeniedKind},
    hidden::Patterns,
    limits::AUDITED_DENIALS,
    session::{Input, Sandbox},
};
use ostler_tape::ToKeeper;

use super::actor::Actor;
use crate::{
    audit::{Decision, Door, Entry, Who},
    hidden_watch::Watched,
};

impl Actor {
    /// Hidden files that somebody replaces are covered again at once, not only when the warden next looks.
    pub(super) fn be_watched_over(&self) {
        let created = self.state.created();
        if created.sandbox == Sandbox::On {
            self.shared.watcher.watch(Watched {
                session: self.id,
                root: created.config.working_dir.clone().into(),
                patterns: Patterns::new(&created.policy.hide),
                commands: self.handle.commands.clone(),
            });
        }
    }

    pub(super) async fn remask(&mut self, paths: Vec<PathBuf>) {
        self.tell_keeper(ToKeeper::Remask { paths }).await;
    }

    /// Records that the policy stood against a start, if it was that.
    pub(super) async fn deny_start(&mut self, stage: &str, why: &str) {
        if stage != "policy" {
            return;
        }
        let denied = Denied {
            kind: DeniedKind::Policy,
            target: "start of the agent".to_owned(),
            rule: why.to_owned(),
            grant: None,
        };
        let context = self.shared.moment();
        self.decided(Input::Denied(denied), &context).await;
    }

    /// Keeps for good who was not let to do what.
    pub(super) fn audit_denied(&self, denied: &[Denied]) {
        // An agent that tries for ever is in its events; nobody reads it a thousand times over.
        if denied.is_empty() || self.state.view().denied > AUDITED_DENIALS {
            return;
        }
        let name = format!("session {}", self.id);
        for denied in denied {
            self.shared.audit.write(&Entry {
                time: self.shared.clock.now().wall,
                actor: Who { name: &name, pid: None, door: Door::Session },
                action: "denied",
                object: format!("{} {}", denied.kind.as_str(), denied.target),
                decision: Decision::Denied,
                reason: denied.rule.clone(),
                policy: None,
            });
        }
    }
}

pub(super) fn denied_in(events: &[(Time, Event)]) -> Vec<Denied> {
    let denied = events.iter().filter_map(|(_, event)| match event {
        Event::Denied(denied) => Some(denied.clone()),
        _ => None,
    });
    denied.collect()
}
