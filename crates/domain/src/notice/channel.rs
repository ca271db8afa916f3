//! Where somebody is told.

use std::time::Duration;

use super::Occasion;
use crate::gateway::Upstream;

/// One way to somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Under which its place in the log is remembered, and which the record has for whoever comes by a link of its.
    pub name: String,
    pub on: Vec<Occasion>,
    /// What is told says what the agent works on, not only which tool it wants.
    pub details: bool,
    /// What it is told of an approval has a link that answers that one, once, for whoever follows it.
    pub link: bool,
    pub to: To,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum To {
    Hook(Hook),
    Webhook(Webhook),
    Ntfy(Ntfy),
    /// The desktop of whoever runs the daemon.
    Desktop,
    /// Terminals in which somebody follows sessions. The daemon has none: whoever has one tells it.
    Terminal,
}

/// A program that is run on an occasion, with the notice on its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// The program, by a name or an absolute path, and its arguments.
    pub run: Vec<String>,
    /// How long it may take.
    pub limit: Duration,
}

/// An address that is told of occasions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub url: String,
    /// What the signature is made with.
    pub secret: SecretPlace,
}

/// A topic of an ntfy server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ntfy {
    /// With the topic at its end.
    pub url: String,
    /// For a topic to which not everybody may write.
    pub token: Option<SecretPlace>,
}

/// Where a secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// The first line of this file.
    File(String),
    /// This variable of the daemon's environment.
    Variable(String),
}

impl SecretPlace {
    /// Read anew each time: it may be changed while a daemon runs.
    pub fn read(&self) -> Result<String, String> {
        let text = match self {
            SecretPlace::File(file) => {
                std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?
            }
            SecretPlace::Variable(name) => std::env::var(name)
                .map_err(|_| format!("{name} is not set in the environment of the daemon"))?,
        };
        let line = text.lines().next().unwrap_or_default().trim();
        if line.is_empty() { Err("the secret is empty".to_owned()) } else { Ok(line.to_owned()) }
    }
}

impl To {
    pub const fn as_str(&self) -> &'static str {
        match self {
            To::Hook(_) => "hook",
            To::Webhook(_) => "webhook",
            To::Ntfy(_) => "ntfy",
            To::Desktop => "desktop",
            To::Terminal => "terminal",
        }
    }

    /// Without which it cannot be told.
    pub const fn secret(&self) -> Option<&SecretPlace> {
        match self {
            To::Webhook(webhook) => Some(&webhook.secret),
            To::Ntfy(ntfy) => ntfy.token.as_ref(),
            To::Hook(_) | To::Desktop | To::Terminal => None,
        }
    }

    /// Where that is, in a few words.
    pub fn place(&self) -> String {
        match self {
            To::Hook(hook) => hook.run.join(" "),
            To::Webhook(Webhook { url, .. }) | To::Ntfy(Ntfy { url, .. }) => url.clone(),
            To::Desktop => "notify-send, where the daemon runs".to_owned(),
            To::Terminal => "top, attach and run, in their terminal".to_owned(),
        }
    }
}

impl Channel {
    pub fn wants(&self, on: Occasion) -> bool {
        self.on.contains(&on)
    }

    pub fn fault(&self) -> Option<String> {
        let named = name_fault(&self.name).map(str::to_owned);
        let wants = self.on.is_empty().then(|| "on names no occasion".to_owned());
        named.or(wants).or_else(|| match &self.to {
            To::Hook(hook) => hook.fault().map(str::to_owned),
            To::Webhook(webhook) => address_fault(&webhook.url),
            To::Ntfy(ntfy) => ntfy.fault(),
            To::Desktop | To::Terminal => None,
        })
    }
}

/// What is wrong with a channel's name.
pub fn name_fault(name: &str) -> Option<&'static str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let fits = (1..=64).contains(&name.len()) && name.bytes().all(is_plain);
    (!fits).then_some("a name is letters, digits, - and _, 64 at most")
}

impl Hook {
    pub fn fault(&self) -> Option<&'static str> {
        match self.run.first() {
            None => Some("run is a program and its arguments"),
            Some(program) if program.is_empty() || (program.contains('/') && !program.starts_with('/')) => {
                Some("run begins with a program's name or its absolute path")
            }
            Some(_) if self.limit.is_zero() => Some("limit gives it no time"),
            Some(_) => None,
        }
    }
}

impl Ntfy {
    fn fault(&self) -> Option<String> {
        let topic = self.url.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
        match topic {
            Some((_, topic)) if !topic.is_empty() && !topic.contains(['?', '#', '/']) => {
                address_fault(&self.url)
            }
            _ => Some("url: the topic is missing, as in https://ntfy.sh/my-topic".to_owned()),
        }
    }
}

fn address_fault(url: &str) -> Option<String> {
    Upstream::parse(url).err().map(|why| format!("url: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_tell_nobody_is_refused() {
        let fault = |name: &str, on: &[Occasion], to: To| {
            Channel { name: name.to_owned(), on: on.to_vec(), details: false, link: false, to }.fault()
        };
        let ntfy = |url: &str| To::Ntfy(Ntfy { url: url.to_owned(), token: None });
        let all = Occasion::ALL;
        assert_eq!(fault("phone", all, ntfy("https://ntfy.example/topic")), None);
        assert_eq!(fault("desk", all, To::Desktop), None);
        for url in
            ["https://ntfy.example", "https://ntfy.example/", "ntfy.example/x", "https://n.example/a?b"]
        {
            assert!(fault("phone", all, ntfy(url)).is_some(), "{url}");
        }
        assert!(fault("a b", all, To::Desktop).is_some_and(|fault| fault.contains("letters")));
        assert!(fault("desk", &[], To::Desktop).is_some_and(|fault| fault.contains("no occasion")));
    }
}
