//! Who may be connected to once it is known what a name stands for and what is asked for there. Whether a name may be asked
//! for at all is decided in the core, with `ostler policy test` and for the same reasons.

use std::net::IpAddr;

use ostler_domain::gateway::address;

pub(crate) use ostler_domain::gateway::rules::{Denial, Target, Way, permit};

use crate::hello::Hello;

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

#[cfg(test)]
mod tests {
    use super::*;

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
