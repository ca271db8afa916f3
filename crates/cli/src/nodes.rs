//! Which machine's daemon is asked: this one's, another's by SSH, or all of them.

use std::{collections::BTreeMap, fs};

use ostler_client::{Home, Way};
use ostler_domain::{
    Reason, Refusal,
    config::Config,
    node::{Address, Node},
    text::{nearest, one_line, shell_word},
};

use crate::failure::Failure;

/// Takes the place of `ssh`, with what it is told first.
const SSH_VARIABLE: &str = "OSTLER_SSH";

#[derive(Debug, Clone, Default)]
pub(crate) enum Where {
    #[default]
    Here,
    There(Box<Way>),
    Everywhere,
}

/// The machines that have names.
pub(crate) fn named(home: &Home) -> Result<BTreeMap<String, Node>, Failure> {
    Ok(settings(home)?.nodes().clone())
}

fn settings(home: &Home) -> Result<Config, Failure> {
    let path = home.config_toml();
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Config::default()),
        Err(error) => {
            return Err(Refusal::invalid(format!("{} cannot be read", path.display()))
                .because(error.to_string())
                .hint("ostler config path", "says where it is: its owner must be able to read it")
                .into());
        }
    };
    toml_edit::de::from_str(&text).map_err(|error| {
        Refusal::invalid(format!("{} cannot be understood", path.display()))
            .because(one_line(&error.to_string(), 400))
            .hint("ostler config edit", "opens it")
            .into()
    })
}

/// The machine of a name or an address.
pub(crate) fn find(home: &Home, typed: &str, batch: bool) -> Result<Where, Failure> {
    if typed == Node::ALL {
        return Ok(Where::Everywhere);
    }
    if typed == Node::HERE {
        return Ok(Where::Here);
    }
    if typed.contains("://") {
        let address = Address::parse(typed).map_err(|no| {
            Refusal::invalid(no.to_string()).hint("ostler node ls", "lists the machines that have a name")
        })?;
        let node = Node { address, program: None };
        return Ok(Where::There(Box::new(way(typed, node, batch))));
    }
    let settings = settings(home)?;
    match settings.nodes().get(typed) {
        Some(node) => Ok(Where::There(Box::new(way(typed, node.clone(), batch)))),
        None => {
            let refusal = unknown(typed, settings.nodes());
            let has_hub = matches!(settings.hub(), Ok(Some(_)));
            // Whose name came with the list of a hub.
            let refusal = if has_hub {
                refusal.because("a machine that only the hub knows is not asked from here: type it there")
            } else {
                refusal
            };
            Err(refusal.into())
        }
    }
}

/// What SSH is told to get to Ostler on a machine, `ssh://build1 ostler`; none where nobody knows it.
pub(crate) fn program_there(home: &Home, typed: &str) -> Option<String> {
    if Address::parse(typed).is_ok() {
        return Some(format!("{typed} ostler"));
    }
    named(home).ok()?.get(typed).map(|node| format!("{} {}", node.address, shell_word(node.program())))
}

pub(crate) fn unknown(typed: &str, named: &BTreeMap<String, Node>) -> Refusal {
    let refusal =
        Refusal::new(Reason::NodeUnknown, format!("there is no machine \"{}\"", one_line(typed, 64)));
    let refusal = match nearest(typed, named.keys().map(String::as_str)) {
        Some(meant) => refusal.hint(format!("--node {meant}"), "is one that exists"),
        None => refusal,
    };
    refusal
        .hint("ostler node add NAME ssh://HOST", "gives one a name")
        .hint("ostler node ls", "lists those that have one")
}

pub(crate) fn way(name: &str, node: Node, batch: bool) -> Way {
    let words = std::env::var(SSH_VARIABLE).unwrap_or_default();
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let ssh = if words.is_empty() { vec!["ssh".to_owned()] } else { words };
    Way { name: name.to_owned(), node, ssh, batch, person: ostler_client::person() }
}
