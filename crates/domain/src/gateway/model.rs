//! The model that a sandbox may call: one upstream, one key, and what is told of each call.

use std::{collections::BTreeMap, fmt, net::Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::{Allowance, Spent};
use crate::{Usage, limits::MODEL_HOLD, price::Price, secret::Secret};

/// Where the gateway sends what an agent asks of its base URL. The operator's choice: loopback is as good as any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelOrder {
    pub upstream: Upstream,
    pub scheme: KeyScheme,
    /// Added outside; the agent has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Secret>,
    /// Certificates in PEM form that are believed besides the machine's own: of a company's proxy, or of a test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorities: Option<String>,
    /// How far the session may go, and how far it has come: what is leased lies with the keeper between two gateways.
    #[serde(default)]
    pub allowance: Allowance,
    #[serde(default)]
    pub spent: Spent,
    /// How long a call waits at the end of it.
    #[serde(default = "hold_ms")]
    pub hold_ms: u64,
    /// The operator's own, above those that are built in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, Price>,
    /// The operator has a table of his own: those that are built in do not hold.
    #[serde(default)]
    pub has_own_table: bool,
    /// The session's model, for answers that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

fn hold_ms() -> u64 {
    MODEL_HOLD.as_millis() as u64
}

impl ModelOrder {
    pub fn new(upstream: Upstream, scheme: KeyScheme, key: Option<Secret>) -> ModelOrder {
        ModelOrder {
            upstream,
            scheme,
            key,
            authorities: None,
            allowance: Allowance::default(),
            spent: Spent::default(),
            hold_ms: hold_ms(),
            prices: BTreeMap::new(),
            has_own_table: false,
            model: None,
        }
    }
}

/// How a provider wants to be shown the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyScheme {
    /// `x-api-key`, as Anthropic has it.
    ApiKey,
    /// `authorization: Bearer`, as OpenAI and everyone who speaks its protocol have it.
    Bearer,
    /// `x-goog-api-key`.
    Google,
    /// A server of one's own.
    None,
}

impl KeyScheme {
    /// What a host wants of whoever speaks to it. Everybody but two has it as OpenAI does.
    pub fn usual(upstream: &Upstream) -> KeyScheme {
        let is_of = |domain: &str| upstream.host == domain || upstream.host.ends_with(&format!(".{domain}"));
        if is_of("anthropic.com") {
            KeyScheme::ApiKey
        } else if is_of("googleapis.com") && !upstream.prefix.contains("openai") {
            KeyScheme::Google
        } else {
            KeyScheme::Bearer
        }
    }

    /// The header that shows a key, whole.
    pub fn header(self, key: &Secret) -> Option<(&'static str, String)> {
        let key = key.reveal();
        match self {
            KeyScheme::ApiKey => Some(("x-api-key", key.to_owned())),
            KeyScheme::Bearer => Some(("authorization", format!("Bearer {key}"))),
            KeyScheme::Google => Some(("x-goog-api-key", key.to_owned())),
            KeyScheme::None => None,
        }
    }
}

/// A base URL in its parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    pub tls: bool,
    /// A name or an address; an IPv6 address without its brackets.
    pub host: String,
    pub port: u16,
    /// Put before each path: empty, or a slash and more without one at its end.
    #[serde(default)]
    pub prefix: String,
}

impl Upstream {
    /// Reads `http://host:port/prefix` or `https://…`. The fault is for people.
    pub fn parse(url: &str) -> Result<Upstream, &'static str> {
        let (scheme, rest) = url.split_once("://").ok_or("it is not http://host or https://host")?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err("it is neither http nor https"),
        };
        if !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("it has characters that no address has");
        }
        if rest.contains(['?', '#']) {
            return Err("a base address has no query and no fragment");
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err("a key does not belong into the address");
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(inner) => {
                let (host, port) = inner.split_once(']').ok_or("its host is not [address]")?;
                host.parse::<Ipv6Addr>().map_err(|_| "its host is not [address]")?;
                (host, port)
            }
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        if host.is_empty() {
            return Err("it has no host");
        }
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => usual_port(tls),
            Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| "its port is not a number up to 65535")?
            }
            _ => return Err("its port is not a number up to 65535"),
        };
        let prefix = path.trim_end_matches('/').to_owned();
        if !is_plain_path(&prefix) {
            return Err("its path has a part that leads upwards");
        }
        Ok(Upstream { tls, host: host.to_ascii_lowercase(), port, prefix })
    }

    /// The host as a `Host` header has it: with its port unless that goes without saying.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == usual_port(self.tls) { host } else { format!("{host}:{}", self.port) }
    }
}

const fn usual_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.prefix)
    }
}

/// Whether no part of a path leads out of what stands before it, to any server that would resolve it.
pub fn is_plain_path(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let is_dots = |part: &str| {
        let dots = part.to_ascii_lowercase().replace("%2e", ".");
        dots == "." || dots == ".."
    };
    !path.contains('\\') && !path.to_ascii_lowercase().contains("%2f") && !path.split('/').any(is_dots)
}

/// One call that went through the gateway to the model, when it is over. The record of the stream `wire`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCall {
    /// The provider's name for the answer (`msg_…`, `chatcmpl-…`, `resp_…`), where it has said one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The provider's name for the request, from the answer's head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    pub method: String,
    /// Without its query.
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Of the answer; 0 if there was none.
    #[serde(default)]
    pub status: u16,
    /// Absent where the answer did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    pub end: CallEnd,
    #[serde(default)]
    pub duration_ms: u64,
    /// To the first byte of the answer's body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<u64>,
    /// To the agent.
    #[serde(default)]
    pub bytes_in: u64,
    /// From the agent.
    #[serde(default)]
    pub bytes_out: u64,
    /// Why there was no answer, or not all of one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failure: String,
    /// How long the server asks to be left alone, where it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl ModelCall {
    /// Whether an answer began and ended before it said what it took.
    pub fn is_cut_short(&self) -> bool {
        let began = self.method == "POST" && (200..300).contains(&self.status) && self.bytes_in > 0;
        began && self.usage.is_none() && self.end != CallEnd::Complete
    }
}

/// How a call to the model ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEnd {
    /// The answer was whole.
    Complete,
    /// The upstream broke off.
    Cut,
    /// The agent went away, and the upstream was left.
    Left,
    /// The upstream was not reached, or did not answer as HTTP.
    Failed,
    /// The session ended meanwhile.
    Stopped,
    /// The session had used up what it may, and no more was allowed while the call waited.
    Held,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_has_parts() {
        let parsed = Upstream::parse("https://Api.Example/v1/").unwrap();
        assert_eq!(
            parsed,
            Upstream { tls: true, host: "api.example".to_owned(), port: 443, prefix: "/v1".to_owned() }
        );
        for (url, shown, authority) in [
            ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1", "127.0.0.1:11434"),
            ("HTTP://localhost:80", "http://localhost", "localhost"),
            ("https://[::1]:8443/a/b", "https://[::1]:8443/a/b", "[::1]:8443"),
            ("https://[2606::1]/", "https://[2606::1]", "[2606::1]"),
        ] {
            let parsed = Upstream::parse(url).unwrap();
            assert_eq!((parsed.to_string().as_str(), parsed.authority().as_str()), (shown, authority));
            assert_eq!(Upstream::parse(shown), Ok(parsed), "said again, it is the same");
        }
    }

    #[test]
    fn what_is_no_base_url_is_refused_with_its_fault() {
        for wrong in [
            "",
            "api.example",
            "ftp://api.example",
            "http://",
            "http://:80",
            "http://a:b",
            "http://a:99999",
            "http://a:+80",
            "http://a:80:80",
            "http://user:key@a",
            "http://a/v1?x=y",
            "http://a/#x",
            "http://a/../b",
            "http://a/%2E./b",
            "http://a b/",
            "http://a\r\nHost: b/",
            "http://[::1",
            "http://[name]",
            "http://[::1]80",
        ] {
            assert!(Upstream::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_host_says_how_it_is_shown_a_key() {
        for (url, scheme) in [
            ("https://api.anthropic.com", KeyScheme::ApiKey),
            ("https://generativelanguage.googleapis.com", KeyScheme::Google),
            ("https://generativelanguage.googleapis.com/v1beta/openai", KeyScheme::Bearer),
            ("https://api.openai.com/v1", KeyScheme::Bearer),
            ("https://notanthropic.com", KeyScheme::Bearer),
        ] {
            assert_eq!(KeyScheme::usual(&Upstream::parse(url).unwrap()), scheme, "{url}");
        }
    }

    #[test]
    fn a_path_that_leads_upwards_is_known() {
        for plain in ["/v1/messages", "/a..b/.c", "/v1/x?path=../y", "/", ""] {
            assert!(is_plain_path(plain), "{plain}");
        }
        for wrong in ["/..", "/v1/../x", "/./x", "/%2e%2E/x", "/.%2e", "/a%2fb", "/a\\..\\b", "/..?x"] {
            assert!(!is_plain_path(wrong), "{wrong}");
        }
    }

    #[test]
    fn no_form_of_an_order_but_its_own_shows_the_key() {
        let upstream = Upstream::parse("https://api.example").unwrap();
        let order = ModelOrder::new(upstream, KeyScheme::Bearer, Some(Secret::new("sk-real")));
        assert!(!format!("{order:?}").contains("sk-real"));
        let json = serde_json::to_string(&order).unwrap();
        assert_eq!(serde_json::from_str::<ModelOrder>(&json).unwrap(), order);
    }
}
