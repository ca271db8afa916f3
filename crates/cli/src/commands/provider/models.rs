//! The models of a provider, and who says that it has them.

use ostler_domain::provider::Models;
use serde::Serialize;

use crate::{app::App, commands::price, failure::Failure};

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct KnownModels {
    models: Vec<String>,
    models_from: Source,
    /// The endpoint that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    models_asked: Option<String>,
    /// Why the endpoint did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    models_why_not: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Source {
    Endpoint,
    PriceTable,
    Nobody,
}

impl KnownModels {
    /// What the endpoint said; else those that the price table has of the provider's maker.
    pub(super) fn of(app: &App, provider: &str, said: Models) -> Result<Self, Failure> {
        let families: &[&str] = match provider {
            "claude-code" => &["claude"],
            "codex" => &["gpt", "codex"],
            "acp:gemini" => &["gemini"],
            _ => &[],
        };
        let prices = price::prices(app)?;
        let names =
            prices.models.keys().filter(|name| families.iter().any(|family| name.starts_with(family)));
        Ok(Self::from(said, names.cloned().collect()))
    }

    fn from(said: Models, priced: Vec<String>) -> Self {
        let Models { models, asked, why_not } = said;
        let (models, models_from) = match (&why_not, priced.is_empty()) {
            (None, _) => (models, Source::Endpoint),
            (Some(_), false) => (priced, Source::PriceTable),
            (Some(_), true) => (Vec::new(), Source::Nobody),
        };
        Self { models, models_from, models_asked: asked, models_why_not: why_not }
    }

    pub(super) fn words(&self) -> String {
        let names = if self.models.is_empty() { "none".to_owned() } else { self.models.join(", ") };
        let asked = self.models_asked.as_deref().unwrap_or("nobody");
        match (&self.models_why_not, self.models_from) {
            (None, _) => format!("{names} (by {asked})"),
            (Some(why), Source::Nobody) => match &self.models_asked {
                Some(asked) => format!("not known: {asked} was asked, and {why}"),
                None => format!("not known: {why}"),
            },
            (Some(why), _) => match &self.models_asked {
                Some(asked) => format!("{names} (by the price table: {asked} was asked, and {why})"),
                None => format!("{names} (by the price table; any other name is passed on)"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_so_is_said() {
        let url = || "http://127.0.0.1:1/v1/models".to_owned();
        let said = Models { models: vec!["a".into(), "b".into()], asked: Some(url()), why_not: None };
        assert_eq!(
            KnownModels::from(said, vec!["x".into()]).words(),
            "a, b (by http://127.0.0.1:1/v1/models)"
        );
        let refused = || Models::not_from(url(), "it answered 401".to_owned());
        assert_eq!(
            KnownModels::from(refused(), vec!["x".into()]).words(),
            "x (by the price table: http://127.0.0.1:1/v1/models was asked, and it answered 401)"
        );
        assert_eq!(
            KnownModels::from(refused(), Vec::new()).words(),
            "not known: http://127.0.0.1:1/v1/models was asked, and it answered 401"
        );
        let nobody = Models::unknown("neither a key nor a base_url is configured");
        let known = KnownModels::from(nobody, vec!["x".into()]);
        assert_eq!(known.words(), "x (by the price table; any other name is passed on)");
        assert_eq!(serde_json::to_value(&known).unwrap()["models_from"], "price_table");
    }
}
