//! The HTTP door: where it may listen, by which names it may be reached, and who it is that knocks. Pure: what was
//! heard comes in, what is answered goes out.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::Refusal;

/// Where the door is when nobody says.
pub const USUAL_PORT: u16 = 7878;

/// What is said of the door.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpSettings {
    /// The door is open whenever a daemon runs, here. None: it is closed until somebody opens it.
    pub listen: Option<SocketAddr>,
    /// Names beside the machine's own, through a proxy or a tunnel that speaks TLS: `ostler.example`,
    /// `laptop.tail.example:8443`.
    pub allowed_hosts: Vec<String>,
}

/// Where the door goes when it is opened and nobody says.
pub fn usual_address() -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), USUAL_PORT)
}

/// Reads an address. Only the machine's own are any: whoever comes from elsewhere comes through a proxy that knows them.
pub fn listen(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr =
        text.parse().map_err(|_| format!("\"{text}\" is no address such as 127.0.0.1:{USUAL_PORT}"))?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err(format!(
        "{address} can be reached from other machines: listen on 127.0.0.1, and let a proxy or a tunnel with TLS in \
         (http.allowed_hosts)"
    ))
}

/// What is wrong with a name by which the door is to be reached.
pub fn host_fault(host: &str) -> Option<String> {
    let (name, port) = host.rsplit_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    let is_name = !name.is_empty()
        && name
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter));
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
    (!is_name || !is_port)
        .then(|| format!("\"{host}\" is no name such as ostler.example or ostler.example:8443"))
}

/// The origin that a request was sent to, if it was meant for this door: a page of somebody else's that has its own
/// name lead here (DNS rebinding) still says that name.
pub fn origin(host: &str, port: u16, allowed_hosts: &[String]) -> Option<String> {
    let host = host.to_ascii_lowercase();
    let own = ["localhost", "127.0.0.1", "[::1]"].iter().any(|name| host == format!("{name}:{port}"));
    if own {
        return Some(format!("http://{host}"));
    }
    // Nobody serves TLS here: who comes by another name comes through something that does.
    allowed_hosts.contains(&host).then(|| format!("https://{host}"))
}

/// The header in which whoever asks names a change, so that asking twice does it once.
pub const CHANGE_NAME: &str = "idempotency-key";
pub const CHANGE_NAME_MOST: usize = 255;

/// The name of a change, of all that were given; none of a value stands for what is no text.
pub fn change_name<'a>(given: impl IntoIterator<Item = Option<&'a str>>) -> Result<Option<&'a str>, Refusal> {
    let mut given = given.into_iter();
    let Some(name) = given.next() else { return Ok(None) };
    let is_name = |name: &&str| {
        (1..=CHANGE_NAME_MOST).contains(&name.len()) && name.bytes().all(|byte| matches!(byte, b' '..=b'~'))
    };
    let name = name.filter(is_name).filter(|_| given.next().is_none());
    name.map(Some).ok_or_else(|| {
        Refusal::invalid("Idempotency-Key: not a name for one change")
            .because(format!("it is there once, and has 1 to {CHANGE_NAME_MOST} visible ASCII characters"))
    })
}

/// How somebody shows who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// A cookie, which a browser sends along by itself, whoever made it ask.
    Cookie,
    /// A token, which nobody's browser adds to what a page of another origin asks.
    Token,
}

/// What a changing request says of where it comes from.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'a> {
    /// The origin that it was sent to.
    pub own_origin: &'a str,
    pub origin: Option<&'a str>,
    pub is_change: bool,
    pub is_json: bool,
    /// The browser's secret, shown in a header that only a page of our own can set.
    pub has_csrf: bool,
    pub proof: Proof,
}

/// Why a request is not taken although whoever sent it may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// It comes from a page of another origin.
    Origin,
    /// It does not say where it comes from, and would change something.
    NoOrigin,
    /// It would change something and is no JSON.
    NotJson,
    /// It would change something and does not have the page's secret.
    NoCsrf,
}

impl Foreign {
    pub const fn why(self) -> &'static str {
        match self {
            Foreign::Origin => "it comes from a page of another origin",
            Foreign::NoOrigin => "it would change something and has no Origin",
            Foreign::NotJson => "it would change something and its content type is not application/json",
            Foreign::NoCsrf => "it would change something and has no X-Ostler-CSRF of this login",
        }
    }
}

/// Says whether a request, where it names an origin, comes from a page of our own. Holds for what anybody may have too.
pub fn check_origin(said: Option<&str>, own: &str) -> Result<(), Foreign> {
    if said.is_none_or(|said| said == own) { Ok(()) } else { Err(Foreign::Origin) }
}

/// Says whether a request comes from where it should.
pub fn check(sent: Sent<'_>) -> Result<(), Foreign> {
    check_origin(sent.origin, sent.own_origin)?;
    if sent.origin.is_none() && sent.is_change && sent.proof == Proof::Cookie {
        return Err(Foreign::NoOrigin);
    }
    match sent.is_change {
        true if !sent.is_json => Err(Foreign::NotJson),
        true if sent.proof == Proof::Cookie && !sent.has_csrf => Err(Foreign::NoCsrf),
        _ => Ok(()),
    }
}

/// Whether a content type is JSON's, whatever else it says.
pub fn is_json(content_type: &str) -> bool {
    content_type.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Whether somebody who was let in for one approval asks for that: its page, what is asked, and to answer it.
pub fn is_of_approval(method: &str, path: &str, approval: &str) -> bool {
    let is_read = matches!(method, "GET" | "HEAD");
    let page = path.strip_prefix("/approvals/");
    let own = path.strip_prefix("/v1/approvals/");
    match own.and_then(|own| own.strip_suffix("/answer")) {
        Some(answered) => method == "POST" && answered == approval,
        None => is_read && (page == Some(approval) || own == Some(approval)),
    }
}

/// Where a browser is sent when it was let in: a page of this door, and nothing that could be taken for another place.
pub fn page(path: &str) -> &str {
    let is_own = path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\r', '\n']);
    if is_own { path } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_one_name_or_none() {
        let name = |given: &[Option<&'static str>]| change_name(given.iter().copied()).map_err(|no| no.why);
        assert_eq!(name(&[]), Ok(None));
        assert_eq!(name(&[Some("a b")]), Ok(Some("a b")));
        let long = "x".repeat(CHANGE_NAME_MOST + 1).leak();
        for given in [&[Some("a"), Some("a")][..], &[Some("")], &[None], &[Some("ä")], &[Some(long)]] {
            assert!(name(given).unwrap_err().is_some_and(|why| why.contains("once")), "{given:?}");
        }
    }

    #[test]
    fn only_the_machine_itself_is_listened_to() {
        assert!(listen("127.0.0.1:0").is_ok());
        assert!(listen("[::1]:7878").is_ok());
        assert!(listen("0.0.0.0:7878").unwrap_err().contains("other machines"));
        assert!(listen("192.0.2.1:7878").is_err());
        assert!(listen("localhost").is_err());
    }

    #[test]
    fn whoever_was_let_in_for_one_approval_finds_no_other_door() {
        let may = |method: &str, path: &str| is_of_approval(method, path, "apr_1");
        assert!(may("GET", "/approvals/apr_1") && may("GET", "/v1/approvals/apr_1"));
        assert!(may("POST", "/v1/approvals/apr_1/answer"));
        for (method, path) in [
            ("GET", "/"),
            ("GET", "/approvals/apr_2"),
            ("GET", "/approvals/apr_1/"),
            ("GET", "/approvals/apr_1/../../sessions"),
            ("GET", "/v1/approvals"),
            ("GET", "/v1/approvals/apr_12"),
            ("GET", "/v1/approvals/apr_1/answer"),
            ("POST", "/v1/approvals/apr_2/answer"),
            ("POST", "/v1/approvals/apr_1"),
            ("GET", "/live"),
            ("GET", "/v1/sessions"),
            ("GET", "/v1/events"),
        ] {
            assert!(!may(method, path), "{method} {path}");
        }
    }

    #[test]
    fn a_foreign_name_that_leads_here_is_none_of_ours() {
        let allowed = ["ostler.example".to_owned()];
        let origin = |host| super::origin(host, 7878, &allowed);
        assert_eq!(origin("localhost:7878").as_deref(), Some("http://localhost:7878"));
        assert_eq!(origin("LOCALHOST:7878").as_deref(), Some("http://localhost:7878"));
        assert_eq!(origin("[::1]:7878").as_deref(), Some("http://[::1]:7878"));
        assert_eq!(origin("ostler.example").as_deref(), Some("https://ostler.example"));
        for foreign in [
            "evil.example:7878",
            "localhost",
            "localhost:80",
            "127.0.0.1.evil.example:7878",
            "ostler.example:7878",
            "x.ostler.example",
            "localhost:7878@evil.example",
            "",
        ] {
            assert_eq!(origin(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_change_by_cookie_needs_all_three() {
        let whole = Sent {
            own_origin: "http://localhost:1",
            origin: Some("http://localhost:1"),
            is_change: true,
            is_json: true,
            has_csrf: true,
            proof: Proof::Cookie,
        };
        assert_eq!(check(whole), Ok(()));
        assert_eq!(check(Sent { origin: None, ..whole }), Err(Foreign::NoOrigin));
        assert_eq!(check(Sent { origin: Some("https://evil.example"), ..whole }), Err(Foreign::Origin));
        assert_eq!(check(Sent { origin: Some("null"), ..whole }), Err(Foreign::Origin));
        assert_eq!(check(Sent { is_json: false, ..whole }), Err(Foreign::NotJson));
        assert_eq!(check(Sent { has_csrf: false, ..whole }), Err(Foreign::NoCsrf));
        let read = Sent { origin: None, is_change: false, is_json: false, has_csrf: false, ..whole };
        assert_eq!(check(read), Ok(()));
        assert_eq!(check(Sent { origin: Some("https://evil.example"), ..read }), Err(Foreign::Origin));
        let by_token = Sent { origin: None, has_csrf: false, proof: Proof::Token, ..whole };
        assert_eq!(check(by_token), Ok(()));
        assert_eq!(check(Sent { origin: Some("https://evil.example"), ..by_token }), Err(Foreign::Origin));
    }

    #[test]
    fn nobody_is_sent_elsewhere() {
        assert_eq!(page("/sessions?status=FAILED"), "/sessions?status=FAILED");
        for elsewhere in
            ["//evil.example", "https://evil.example", "/\\evil.example", "", "/a\r\nSet-Cookie: x"]
        {
            assert_eq!(page(elsewhere), "/", "{elsewhere}");
        }
    }
}
