//! The login of Codex by a subscription, or by a key that it was given. Its `app-server` renews one when it is asked about
//! the account.

use serde_json::Value;

use super::HOME;
use crate::{Lent, LoginSpec, Refresh, login::lent};

/// No telemetry, as in its sessions.
const QUIET: &str = "analytics.enabled=false";

pub(super) const LOGIN: LoginSpec = LoginSpec {
    words: &["login", "-c", QUIET],
    state: ("CODEX_HOME", HOME),
    quiet: &[],
    file: "auth.json",
    hosts: &["chatgpt.com", "api.openai.com"],
    variables: &[],
    refresh: Refresh {
        words: &["app-server", "-c", QUIET],
        input: &[
            r#"{"id":"open","method":"initialize","params":{"clientInfo":{"name":"ostler","title":"Ostler","version":"0"}}}"#,
            r#"{"method":"initialized"}"#,
            r#"{"id":"refresh","method":"account/read","params":{"refreshToken":true}}"#,
        ],
        done: Some("\"id\":\"refresh\""),
    },
    lend,
};

fn lend(login: &Value) -> Option<Lent> {
    let mut login = login.clone();
    if let Some(token) = login["tokens"].get_mut("refresh_token") {
        // It wants the field, and does not try to renew with nothing.
        *token = "".into();
    }
    let tokens = &login["tokens"];
    let expires = tokens["access_token"].as_str().and_then(expiry);
    let secrets = [&tokens["access_token"], &tokens["id_token"], &login["OPENAI_API_KEY"]];
    // Where there are both, the program goes by the subscription unless it was told otherwise.
    let has_key = login["OPENAI_API_KEY"].as_str().is_some_and(|key| !key.is_empty());
    let is_key = has_key && (login["auth_mode"] == "apikey" || tokens["access_token"].as_str().is_none());
    Some(Lent { is_key, ..lent(&login, &secrets, expires)? })
}

/// When a token ends, as its middle part says.
fn expiry(token: &str) -> Option<i64> {
    let claims: Value = serde_json::from_slice(&base64url(token.split('.').nth(1)?)?).ok()?;
    claims["exp"].as_i64()
}

/// The bytes of a text in the alphabet of URLs, without the signs that fill it up.
fn base64url(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let (mut bits, mut held) = (0_u32, 0_u32);
    for sign in text.trim_end_matches('=').bytes() {
        let value = match sign {
            b'A'..=b'Z' => sign - b'A',
            b'a'..=b'z' => sign - b'a' + 26,
            b'0'..=b'9' => sign - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_lent_what_calls_the_model_and_not_what_renews_it() {
        // {"exp":1700000000}
        let token = "e30.eyJleHAiOjE3MDAwMDAwMDB9.e30";
        let file = format!(
            r#"{{"OPENAI_API_KEY":null,"tokens":{{"id_token":"id","access_token":"{token}","refresh_token":"rt","account_id":"acc"}},"last_refresh":"2026-01-01T00:00:00Z"}}"#
        );
        let lent = LOGIN.lent(&file).unwrap();
        assert!(
            lent.text.contains("\"refresh_token\":\"\"") && !lent.text.contains("\"rt\""),
            "{}",
            lent.text
        );
        assert_eq!(lent.expires, Some(1_700_000_000));
        assert_eq!(lent.secrets, [token, "id"]);
        let key = LOGIN.lent(r#"{"auth_mode":"apikey","OPENAI_API_KEY":"sk-1"}"#).unwrap();
        assert_eq!((key.secrets, key.expires, key.is_key), (vec!["sk-1".to_owned()], None, true));
        assert!(LOGIN.lent(r#"{"OPENAI_API_KEY":"sk-1"}"#).unwrap().is_key);
        let both = format!(r#"{{"OPENAI_API_KEY":"sk-1","tokens":{{"access_token":"{token}"}}}}"#);
        assert!(!lent.is_key && !LOGIN.lent(&both).unwrap().is_key);
        assert_eq!(LOGIN.lent("{}"), None);
    }
}
