//! What clients ask for.

use ostler_domain::{
    conversation::{ChatType, Inbound, ThreadId},
    worktree::Wanted,
};

use super::*;

impl Dice {
    pub(crate) fn add_campaign(&mut self) -> AddCampaign {
        AddCampaign { path: format!("/{}", self.text()), name: self.maybe(Self::name) }
    }

    pub(crate) fn create_session(&mut self) -> CreateSession {
        let budget = self.maybe(Self::budget);
        let when_used_up = self.of(&[WhenUsedUp::Hold, WhenUsedUp::Stop]);
        CreateSession {
            campaign: self.text(),
            provider: self.text(),
            model: self.maybe(Self::text),
            name: self.maybe(Self::name),
            initial_message: self.maybe(Self::text),
            budget,
            // They travel as one.
            when_used_up: budget.map_or(when_used_up, |budget| budget.when_used_up),
            timeout: self.maybe(|dice| Duration::from_micros(dice.micros())),
            timeout_counts_waiting: self.yes(),
            restart: self.restart_policy(),
            approve: self.of(&[Approve::Ask, Approve::All, Approve::Nobody, Approve::Policy]),
            priority: self.of(Priority::ALL),
            ends_with_turn: self.yes(),
            environment: self.some(|dice| (dice.text(), dice.text())).into_iter().collect(),
            provider_config: self.some(|dice| (dice.text(), dice.text())).into_iter().collect(),
            ticket: self.maybe(Self::text),
            spawned_by: self.maybe(Self::session_id),
            agent: self.maybe(Self::text),
            key: self.maybe(Self::key),
            worktree: self.maybe(|dice| Wanted { branch: dice.maybe(Self::text) }),
            auth_profile: self.maybe(Self::name),
            watchdogs: WatchdogLimits {
                start_us: self.micros(),
                first_output_us: self.micros(),
                silent_us: self.micros(),
                tool_us: self.micros(),
                retries_us: self.micros(),
                rung_us: self.micros(),
            },
        }
    }

    pub(crate) fn send_message(&mut self) -> SendMessage {
        SendMessage {
            who: self.text(),
            text: self.text(),
            mode: self.maybe(|dice| dice.of(ostler_domain::Mode::ALL)),
            key: self.maybe(Self::key),
            idempotency_key: self.maybe(Self::text),
            inbound: self.maybe(Self::inbound),
        }
    }

    fn inbound(&mut self) -> Inbound {
        Inbound {
            channel: self.maybe(Self::text),
            to: self.maybe(Self::text),
            account_id: self.maybe(Self::text),
            thread_id: self.maybe(Self::text).map(ThreadId::Text),
            from: self.maybe(Self::text),
            surface: self.maybe(Self::text),
            chat_type: self.maybe(|dice| dice.of(&[ChatType::Dm, ChatType::Group, ChatType::Channel])),
        }
    }

    pub(crate) fn resume_session(&mut self) -> ResumeSession {
        ResumeSession {
            who: self.text(),
            max_tokens: self.maybe(Self::number),
            max_dollars: self.maybe(|dice| Dollars(dice.number())),
            tape_bytes: self.maybe(Self::number),
        }
    }

    pub(crate) fn list_events(&mut self) -> ListEvents {
        let from = match self.small() % 3 {
            0 => Place::After(self.number()),
            1 => Place::Before(self.number().max(1)),
            _ => Place::End,
        };
        ListEvents { filter: self.event_filter(), from, limit: self.small() }
    }

    pub(crate) fn get_usage(&mut self) -> GetUsage {
        GetUsage {
            filter: self.session_filter(),
            since: self.maybe(Self::time),
            until: self.maybe(Self::time),
            by: self.maybe(|dice| dice.of(UsageBy::ALL)),
            limit: self.small(),
        }
    }
}
