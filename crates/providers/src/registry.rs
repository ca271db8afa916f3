//! The providers there are. Adding one adds a line.

use std::sync::Arc;

use crate::{Provider, acp, claude_code, codex, openai_api, openclaw, script};

/// All built-in providers, in the order in which they are listed.
pub fn all() -> Vec<Arc<dyn Provider>> {
    vec![
        Arc::new(claude_code::ClaudeCode),
        Arc::new(codex::Codex),
        Arc::new(openai_api::OpenaiApi),
        Arc::new(openclaw::Openclaw),
        Arc::new(script::Script),
    ]
}

/// Agents that are configuration alone, and of which everything is known but where their model is.
pub fn likely() -> Vec<Arc<dyn Provider>> {
    let all = acp::LIKELY.iter().filter_map(|name| acp::Acp::named(name));
    all.map(|acp| Arc::new(acp) as Arc<dyn Provider>).collect()
}

/// The provider of this name. One that is configuration alone exists by its name: what it is to run is said when it is
/// launched, so that a session whose configuration is gone can still be looked after.
pub fn find(name: &str) -> Option<Arc<dyn Provider>> {
    let configured = || acp::Acp::named(name).map(|acp| Arc::new(acp) as Arc<dyn Provider>);
    all().into_iter().find(|provider| provider.name() == name).or_else(configured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_knows_them_by_name() {
        let names: Vec<String> = all().iter().map(|provider| provider.name().to_owned()).collect();
        assert_eq!(names, ostler_domain::provider::BUILT_IN);
    }
}
