//! How a provider's own program goes on with a conversation, without Ostler.

use ostler_domain::{Reason, Refusal};
use ostler_providers::NativeCommand;

use crate::Engine;

/// The command, and where it is run.
pub struct Native {
    pub working_dir: String,
    pub command: NativeCommand,
}

impl Engine {
    /// The command of the provider's own program. While a session lives there is none: nobody writes twice.
    pub async fn native(&self, who: &str) -> Result<Native, Refusal> {
        let view = self.session(who).await?;
        let short = view.id.short();
        if view.outcome.is_none() {
            return Err(Refusal::new(Reason::ConversationBusy, format!("session {short} has not ended"))
                .because("two programs that write one conversation would each lose what the other says")
                .hint(format!("ostler stop {short}"), "ends it; then again"));
        }
        let loaded = self.shared.store.load_session(view.id).await?;
        let state = loaded.map(|loaded| loaded.state);
        let state = state.ok_or_else(|| Refusal::internal(format!("session {} cannot be read", view.id)))?;
        let created = state.created();
        let provider = self.shared.provider(&created.config.provider)?;
        let nothing = |why: String| {
            Refusal::new(Reason::WrongState, format!("nothing goes on with {} without Ostler", view.name))
                .because(why)
                .hint(format!("ostler transcript export {short}"), "writes down what was said")
        };
        let Some(provider_id) = state.bound_id().or(created.begin.provider_id()) else {
            return Err(nothing(format!("{} has kept nothing of it", provider.name())));
        };
        let home = self.shared.options.state_dir.join("homes").join(created.conversation.to_string());
        let Some(command) = provider.native(provider_id, &home) else {
            return Err(nothing(format!("{} has no command that takes up a dialogue", provider.name())));
        };
        if let Some(why) = self.shared.gone(provider.as_ref(), created.conversation, provider_id).await {
            return Err(nothing(why));
        }
        Ok(Native { working_dir: created.config.working_dir.clone(), command })
    }
}
