//! Asking somebody who is gone: a copy of it, made to answer one question. It has no tools, changes nothing, has an end to
//! what it may use, and does not count as work on anything.

use ostler_domain::{
    Budget, Name, Reason, Refusal,
    budget::{Amount, WhenUsedUp},
    limits::{MESSAGE_BYTES, SEANCE_DOLLARS, SEANCE_TIME, SEANCE_TOKENS},
    session::{Approve, Config, RestartPolicy, Sandbox, State, View},
};
use ostler_providers::Provider;

use crate::{Change, Engine, fork::Branch};

/// What the copy is told with the question.
const ABOUT: &str = "You are asked about what you did and heard before, by somebody who goes on with it. You have no tools, \
                     and nothing is to be done: answer from what you remember, in a few sentences. Say so if you do not know.";

/// A question, and what its answer may use.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    question: String,
    budget: Budget,
}

impl Asked {
    pub(crate) fn prompt(&self) -> String {
        format!("{ABOUT}\n\n{}", self.question)
    }

    /// How it is run, where a copy that goes on with the work would be run like this.
    pub(crate) fn config(&self, usual: Config) -> Config {
        Config {
            budget: Some(self.budget),
            when_used_up: WhenUsedUp::Stop,
            timeout_us: u64::try_from(SEANCE_TIME.as_micros()).ok(),
            restart: RestartPolicy::Never,
            approve: Approve::Nobody,
            ends_with_turn: true,
            ticket: None,
            ticket_id: None,
            no_tools: true,
            ..usual
        }
    }
}

impl Engine {
    /// Has a copy of a session answer a question. The answer is what it said when its only turn has ended.
    pub async fn ask_copy(
        &self,
        who: &str,
        question: &str,
        amount: Option<Amount>,
        change: Change,
    ) -> Result<View, Refusal> {
        let view = self.session(who).await?;
        let shown = amount.map(|amount| format!(" {amount}")).unwrap_or_default();
        let fingerprint = format!("ask {}{shown} {question}", view.id);
        if let Some(reply) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.session(&reply).await;
        }
        if question.trim().is_empty() || question.len() > MESSAGE_BYTES {
            return Err(Refusal::invalid(format!("a question has between 1 and {MESSAGE_BYTES} bytes")));
        }
        let old = self.state_of(view.id).await?;
        if old.view().turns == 0 {
            return Err(Refusal::new(
                Reason::WrongState,
                format!("session {} has had no turn: there is nothing that it could know", view.id.short()),
            ));
        }
        let provider = self.shared.provider(&old.created().config.provider)?;
        self.check_goes_without_tools(provider.as_ref())?;
        let budget = Budget::new(amount.unwrap_or_else(|| self.usual_amount(&old)), WhenUsedUp::Stop);
        let asked = Some(Asked { question: question.to_owned(), budget });
        let branch = Branch { name: None, at: None, cut: None, asked };
        self.branch_off(&old, branch, &fingerprint, &change).await
    }

    /// Dollars only where they can be counted.
    fn usual_amount(&self, old: &State) -> Amount {
        let is_priced = |model: &&str| self.shared.prices.current().quote(model).is_some();
        let dollars = old.next_model().filter(is_priced).map(|_| SEANCE_DOLLARS);
        Amount { tokens: Some(SEANCE_TOKENS), dollars }
    }

    /// Either its program has a switch, or it asks before it acts and its sandbox holds what it does not ask for.
    fn check_goes_without_tools(&self, provider: &dyn Provider) -> Result<(), Refusal> {
        if provider.can_go_without_tools() {
            return Ok(());
        }
        let name = provider.name();
        let why = match (provider.capabilities().approvals, self.shared.sandbox()) {
            (true, Sandbox::On) => return Ok(()),
            (false, _) => format!("{name} does not ask before it uses one"),
            (true, Sandbox::Off) => {
                format!(
                    "{name} has no switch for that, and without a sandbox nothing keeps it from the files"
                )
            }
        };
        Err(Refusal::new(
            Reason::WrongState,
            format!("an agent of {name} cannot be kept from using tools, so nobody was asked"),
        )
        .because(why))
    }
}

/// `api` makes `seance-api`, `seance-api-2`.
pub(crate) fn seance_name(of: &Name, number: u32) -> Name {
    let made = Name::slug(&format!("seance-{of}")).unwrap_or_else(|| of.clone());
    if number == 1 { made } else { made.numbered(number) }
}
