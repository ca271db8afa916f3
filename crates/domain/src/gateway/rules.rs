//! Who may be reached: names in, a verdict out. What a name turns out to stand for is asked again when it is known.

use std::net::IpAddr;

use super::{GatewayOrder, Reach, address};
use crate::policy::host_fault;

const HTTPS: u16 = 443;
const HTTP: u16 = 80;

/// Whom a client wants to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// In lower case, without a last dot; an IPv6 address without its brackets.
    pub host: String,
    pub port: u16,
    pub way: Way,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// CONNECT: TLS, whose greeting is looked at.
    Tunnel,
    /// A request in the open.
    Plain,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Denial {
    pub rule: String,
    pub grant: Option<String>,
}

impl Denial {
    pub fn of(rule: impl Into<String>) -> Denial {
        Denial { rule: rule.into(), grant: None }
    }
}

/// Before anything is looked up: may this name be asked for at all? Says by which rule.
pub fn permit(order: &GatewayOrder, target: &Target) -> Result<String, Denial> {
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
}
