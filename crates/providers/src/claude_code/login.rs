//! The login of Claude Code by a subscription. `auth status` renews one that is about to end, and calls no model.

use serde_json::Value;

use super::{QUIET, STATE_DIR};
use crate::{Lent, LoginSpec, Refresh, login::lent};

pub(super) const LOGIN: LoginSpec = LoginSpec {
    words: &["auth", "login"],
    state: ("CLAUDE_CONFIG_DIR", STATE_DIR),
    quiet: &QUIET,
    file: ".credentials.json",
    hosts: &["api.anthropic.com"],
    variables: &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
    ],
    refresh: Refresh { words: &["auth", "status"], input: &[], done: None },
    lend,
};

fn lend(login: &Value) -> Option<Lent> {
    let mut login = login.clone();
    let own = login["claudeAiOauth"].as_object_mut()?;
    own.remove("refreshToken");
    let expires = own.get("expiresAt").and_then(Value::as_i64).map(|milliseconds| milliseconds / 1000);
    lent(&login, &[&login["claudeAiOauth"]["accessToken"]], expires)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_lent_what_calls_the_model_and_not_what_renews_it() {
        let file = r#"{"claudeAiOauth":{"accessToken":"at","refreshToken":"rt","expiresAt":1700000000000,"scopes":["user:inference"]}}"#;
        let lent = LOGIN.lent(file).unwrap();
        assert!(
            lent.text.contains("\"at\"")
                && lent.text.contains("user:inference")
                && !lent.text.contains("rt\"")
        );
        assert_eq!((lent.secrets.as_slice(), lent.expires), (&["at".to_owned()][..], Some(1_700_000_000)));
        assert!(!format!("{lent:?}").contains("at\""));
        for empty in ["{}", "no json", r#"{"claudeAiOauth":{"refreshToken":"rt"}}"#] {
            assert_eq!(LOGIN.lent(empty), None, "{empty}");
        }
    }
}
