//! The one place where is decided who may be reached. Pure: names and addresses in, a verdict out.

use std::net::IpAddr;

use ostler_domain::{
    gateway::{GatewayOrder, Reach},
    policy::host_fault,
};

use crate::{address, hello::Hello};

const HTTPS: u16 = 443;
const HTTP: u16 = 80;

/// Whom a client wants to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// In lower case, without a last dot; an IPv6 address without its brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) way: Way,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// CONNECT: TLS, whose greeting is looked at.
    Tunnel,
    /// A request in the open.
    Plain,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) rule: String,
    pub(crate) grant: Option<String>,
}

impl Denial {
    fn of(rule: impl Into<String>) -> Denial {
        Denial { rule: rule.into(), grant: None }
    }
}

/// Before anything is looked up: may this name be asked for at all? Says by which rule.
pub(crate) fn permit(order: &GatewayOrder, target: &Target) -> Result<String, Denial> {
    match (target.way, target.port) {
        (Way::Tunnel, HTTPS) | (Way::Plain, HTTP) => {}
        (Way::Tunnel, HTTP) => return Err(Denial::of("no tunnels to port 80, only plain requests")),
        _ => return Err(Denial::of("only port 443, and port 80 for hosts of net.allow")),
    }
    // No list helps to reach these.
    let address = target.host.parse::<IpAddr>().ok();
    if let Some(why) = address.and_then(address::refusal) {
        return Err(Denial::of(format!("it is {why}")));
    }
    let listed = order.allow.iter().find(|pattern| matches(pattern, &target.host));
    if let Some(pattern) = listed {
        return Ok(format!("net.allow {pattern}"));
    }
    let grant = || {
        let fits = host_fault(&target.host).is_none() && is_public_name(&target.host);
        fits.then(|| format!("ostler campaign set {} net.allow+={}", order.campaign, target.host))
    };
    if order.reach == Reach::Provider {
        return Err(Denial { rule: order.reach.rule().to_owned(), grant: grant() });
    }
    if target.way == Way::Plain {
        return Err(Denial { rule: "port 80 only for hosts of net.allow".to_owned(), grant: grant() });
    }
    if address.is_none() && !is_public_name(&target.host) {
        return Err(Denial::of("not a public name"));
    }
    Ok(order.reach.rule().to_owned())
}

/// Names without a dot are somebody's own: the resolver would put a domain behind them. So are these endings, by decree.
fn is_public_name(host: &str) -> bool {
    const OWN: [&str; 4] = [".localhost", ".local", ".internal", ".localdomain"];
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    host.contains('.') && !OWN.iter().any(|ending| host.ends_with(ending))
}

/// After the name was looked up, in every mode: the addresses that may be connected to.
pub(crate) fn public(addresses: impl IntoIterator<Item = IpAddr>) -> Result<Vec<IpAddr>, Denial> {
    let mut refused = None;
    let mut public = Vec::new();
    for found in addresses {
        match address::refusal(found) {
            None => public.push(found),
            Some(why) => refused = Some(why),
        }
    }
    match refused {
        Some(why) if public.is_empty() => Err(Denial::of(format!("it is {why}"))),
        _ => Ok(public),
    }
}

/// Whether a client's greeting asks for the host that it was allowed.
pub(crate) fn greeting(host: &str, hello: &Hello) -> Result<(), Denial> {
    let is_address = host.parse::<IpAddr>().is_ok();
    match hello {
        Hello::Whole(Some(name)) if name.strip_suffix('.').unwrap_or(name) == host => Ok(()),
        Hello::Whole(None) if is_address => Ok(()),
        Hello::Whole(Some(_)) => Err(Denial::of("TLS asks for another host")),
        Hello::Whole(None) => Err(Denial::of("TLS does not say which host")),
        Hello::Incomplete => Err(Denial::of("no whole TLS greeting in time")),
        Hello::Foreign => Err(Denial::of("no TLS on port 443")),
    }
}

fn matches(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(suffix) => {
            host.len() > suffix.len() + 1 && {
                let (label, rest) = host.split_at(host.len() - suffix.len());
                label.ends_with('.') && rest.eq_ignore_ascii_case(suffix)
            }
        }
        None => pattern.eq_ignore_ascii_case(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(reach: Reach, allow: &[&str]) -> GatewayOrder {
        GatewayOrder {
            version: 1,
            campaign: "shop".to_owned(),
            reach,
            allow: allow.iter().map(|&host| host.to_owned()).collect(),
            idle_ms: 0,
            model: None,
        }
    }

    fn tunnel(host: &str, port: u16) -> Target {
        Target { host: host.to_owned(), port, way: Way::Tunnel }
    }

    fn plain(host: &str) -> Target {
        Target { host: host.to_owned(), port: 80, way: Way::Plain }
    }

    #[test]
    fn a_list_fits_whole_names_and_everything_below_a_suffix() {
        assert!(matches("a.example", "a.example") && matches("A.Example", "a.example"));
        assert!(matches("*.example", "a.example") && matches("*.example", "b.a.example"));
        for host in ["example", "notexample", ".example", "a.example.org", "aexample", "xa.example.a"] {
            assert!(!matches("*.example", host), "{host}");
        }
        for host in ["b.a.example", "xa.example", "a.exampl", "a.example.org"] {
            assert!(!matches("a.example", host), "{host}");
        }
    }

    #[test]
    fn a_denial_names_the_grant_that_would_help() {
        let provider = order(Reach::Provider, &["api.example", "*.cdn.example"]);
        assert_eq!(permit(&provider, &tunnel("api.example", 443)).unwrap(), "net.allow api.example");
        assert_eq!(permit(&provider, &tunnel("x.cdn.example", 443)).unwrap(), "net.allow *.cdn.example");
        let denial = permit(&provider, &tunnel("evil.example", 443)).unwrap_err();
        assert_eq!(denial.rule, "net=provider");
        assert_eq!(denial.grant.as_deref(), Some("ostler campaign set shop net.allow+=evil.example"));
        let denial = permit(&provider, &tunnel("2606:2800::1", 443)).unwrap_err();
        assert_eq!(denial.grant, None, "a list has no such addresses");
        for nobody_helps in
            ["127.0.0.1", "10.0.0.7", "169.254.169.254", "::1", "localhost", "db", "x.localhost"]
        {
            let denial = permit(&provider, &tunnel(nobody_helps, 443)).unwrap_err();
            assert_eq!(denial.grant, None, "{nobody_helps}");
        }
    }

    #[test]
    fn ports_are_443_and_80_by_list() {
        for reach in [Reach::Provider, Reach::Open] {
            let order = order(reach, &["api.example"]);
            for port in [0, 22, 25, 80, 444, 8443] {
                let denial = permit(&order, &tunnel("api.example", port)).unwrap_err();
                assert_eq!(denial.grant, None, "{port}");
            }
            let odd = Target { port: 8080, ..plain("api.example") };
            assert!(permit(&order, &odd).is_err());
            assert!(permit(&order, &plain("api.example")).is_ok());
            assert!(permit(&order, &plain("other.example")).unwrap_err().grant.is_some());
        }
    }

    #[test]
    fn open_is_every_name_that_can_be_public() {
        let open = order(Reach::Open, &["intranet"]);
        for host in ["any.example", "93.184.216.34", "2606:2800::1", "intranet"] {
            assert!(permit(&open, &tunnel(host, 443)).is_ok(), "{host}");
        }
        for host in ["localhost", "metadata", "2130706433", "0x7f000001"] {
            assert!(permit(&open, &tunnel(host, 443)).is_err(), "{host}");
        }
    }

    #[test]
    fn only_public_addresses_are_connected_to() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(public([ip("10.0.0.1"), ip("93.184.216.34")]).unwrap(), [ip("93.184.216.34")]);
        assert_eq!(public([ip("10.0.0.1")]).unwrap_err().rule, "it is a private address");
        assert_eq!(public([]).unwrap(), Vec::<IpAddr>::new(), "not found is not denied");
    }

    #[test]
    fn the_greeting_asks_for_the_same_host() {
        let whole = |name: &str| Hello::Whole(Some(name.to_owned()));
        assert!(greeting("a.example", &whole("a.example")).is_ok());
        assert!(greeting("a.example", &whole("a.example.")).is_ok());
        assert!(greeting("93.184.216.34", &Hello::Whole(None)).is_ok());
        for (host, hello) in [
            ("a.example", whole("b.example")),
            ("a.example", whole("x.a.example")),
            ("a.example", Hello::Whole(None)),
            ("a.example", Hello::Incomplete),
            ("a.example", Hello::Foreign),
            ("93.184.216.34", whole("a.example")),
        ] {
            assert!(greeting(host, &hello).is_err(), "{host} {hello:?}");
        }
    }
}
