//! Who is told of what happens: `[[hooks]]`, `[webhook]` and `[[notify]]`.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, de::Error};

use super::Span;
use crate::{
    limits::{CHANNELS, HOOK_TIME},
    notice::{Channel, Hook, Ntfy, Occasion, SecretPlace, To, Webhook},
};

/// A program that is run on an occasion.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HookSettings {
    on: Occasions,
    run: Vec<String>,
    limit: Option<Span>,
    #[serde(default)]
    details: bool,
}

/// An address that is told of occasions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WebhookSettings {
    url: String,
    on: Option<Occasions>,
    secret_file: Option<String>,
    secret_env: Option<String>,
    #[serde(default)]
    details: bool,
}

/// Any way to somebody, by a name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChannelSettings {
    name: String,
    to: String,
    on: Option<Occasions>,
    #[serde(default)]
    details: bool,
    #[serde(default)]
    link: bool,
    url: Option<String>,
    run: Option<Vec<String>>,
    limit: Option<Span>,
    secret_file: Option<String>,
    secret_env: Option<String>,
    token_file: Option<String>,
    token_env: Option<String>,
}

/// `"approval"` or `["approval", "failed"]`.
#[derive(Debug, Clone)]
pub(super) struct Occasions(Vec<Occasion>);

impl<'de> Deserialize<'de> for Occasions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Named {
            One(String),
            Several(Vec<String>),
        }
        let names = match Named::deserialize(deserializer)? {
            Named::One(name) => vec![name],
            Named::Several(names) => names,
        };
        let unknown = |name: &str| {
            let known: Vec<_> = Occasion::ALL.iter().map(|on| on.as_str()).collect();
            D::Error::custom(format!("\"{name}\" is none of {}", known.join(", ")))
        };
        let known = |name: &String| Occasion::parse(name).ok_or_else(|| unknown(name));
        names.iter().map(known).collect::<Result<_, _>>().map(Occasions)
    }
}

/// All of them, in the order of the file's sections; or what is wrong with one.
pub(super) fn channels(
    hooks: &[HookSettings],
    webhook: Option<&WebhookSettings>,
    named: &[ChannelSettings],
) -> Result<Vec<Channel>, String> {
    let mut channels = Vec::new();
    for (n, settings) in hooks.iter().enumerate() {
        let channel = settings.channel(n + 1);
        if let Some(fault) = channel.fault() {
            return Err(format!("hooks, number {}: {fault}", n + 1));
        }
        channels.push(channel);
    }
    if let Some(settings) = webhook {
        channels.push(settings.channel().map_err(|fault| format!("webhook: {fault}"))?);
    }
    for settings in named {
        let channel = settings.channel().map_err(|fault| format!("notify, {}: {fault}", settings.name))?;
        channels.push(channel);
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = channels.iter().find(|channel| !names.insert(channel.name.as_str())) {
        return Err(format!("notify: there are two by the name {}", twice.name));
    }
    match channels.len() {
        0..=CHANNELS => Ok(channels),
        many => Err(format!("notify: {many} are to be told; {CHANNELS} may be")),
    }
}

fn checked(channel: Channel) -> Result<Channel, String> {
    match channel.fault() {
        Some(fault) => Err(fault),
        None => Ok(channel),
    }
}

fn wanted(on: Option<&Occasions>) -> Vec<Occasion> {
    on.map_or_else(|| Occasion::ALL.to_vec(), |on| on.0.clone())
}

/// One place of a secret, or none.
pub(super) fn place(
    file: Option<&String>,
    variable: Option<&String>,
    what: &str,
) -> Result<Option<SecretPlace>, String> {
    match (file, variable) {
        (Some(file), None) => Ok(Some(SecretPlace::File(file.clone()))),
        (None, Some(name)) => Ok(Some(SecretPlace::Variable(name.clone()))),
        (Some(_), Some(_)) => Err(format!("{what}_file or {what}_env, not both")),
        (None, None) => Ok(None),
    }
}

fn secret(file: Option<&String>, variable: Option<&String>) -> Result<SecretPlace, String> {
    place(file, variable, "secret")?.ok_or_else(|| {
        "secret_file or secret_env is missing: who is told must know that it is you".to_owned()
    })
}

impl HookSettings {
    fn channel(&self, number: usize) -> Channel {
        let limit = self.limit.map_or(HOOK_TIME, |Span(span)| span);
        Channel {
            name: format!("hook-{number}"),
            on: self.on.0.clone(),
            details: self.details,
            link: false,
            to: To::Hook(Hook { run: self.run.clone(), limit }),
        }
    }
}

impl WebhookSettings {
    fn channel(&self) -> Result<Channel, String> {
        let secret = secret(self.secret_file.as_ref(), self.secret_env.as_ref())?;
        checked(Channel {
            name: "webhook".to_owned(),
            on: wanted(self.on.as_ref()),
            details: self.details,
            link: false,
            to: To::Webhook(Webhook { url: self.url.clone(), secret }),
        })
    }
}

impl ChannelSettings {
    fn channel(&self) -> Result<Channel, String> {
        let url = || self.url.clone().ok_or_else(|| "url is missing".to_owned());
        let to = match self.to.as_str() {
            "hook" => {
                let run = self.run.clone().ok_or("run is missing: a program and its arguments")?;
                To::Hook(Hook { run, limit: self.limit.map_or(HOOK_TIME, |Span(span)| span) })
            }
            "webhook" => {
                let secret = secret(self.secret_file.as_ref(), self.secret_env.as_ref())?;
                To::Webhook(Webhook { url: url()?, secret })
            }
            "ntfy" => {
                let token = place(self.token_file.as_ref(), self.token_env.as_ref(), "token")?;
                To::Ntfy(Ntfy { url: url()?, token })
            }
            "desktop" => To::Desktop,
            "terminal" => To::Terminal,
            other => {
                return Err(format!("to: \"{other}\" is none of ntfy, desktop, terminal, webhook, hook"));
            }
        };
        if let Some(odd) = self.odd(&to) {
            return Err(format!("{odd} means nothing for {}", to.as_str()));
        }
        checked(Channel {
            name: self.name.clone(),
            on: wanted(self.on.as_ref()),
            details: self.details,
            link: self.link,
            to,
        })
    }

    /// What is said that such a channel does not have: somebody believes that it has an effect.
    fn odd(&self, to: &To) -> Option<&'static str> {
        let has_url = matches!(to, To::Webhook(_) | To::Ntfy(_));
        let is_hook = matches!(to, To::Hook(_));
        let is_said = [
            ("url", self.url.is_some() && !has_url),
            ("run", self.run.is_some() && !is_hook),
            ("limit", self.limit.is_some() && !is_hook),
            ("secret_file", self.secret_file.is_some() && !matches!(to, To::Webhook(_))),
            ("secret_env", self.secret_env.is_some() && !matches!(to, To::Webhook(_))),
            ("token_file", self.token_file.is_some() && !matches!(to, To::Ntfy(_))),
            ("token_env", self.token_env.is_some() && !matches!(to, To::Ntfy(_))),
            ("link", self.link && matches!(to, To::Desktop | To::Terminal)),
        ];
        is_said.into_iter().find_map(|(name, is_odd)| is_odd.then_some(name))
    }
}

#[cfg(test)]
mod tests {
    use crate::{config::Config, notice::To};

    fn read(text: &str) -> Result<Vec<crate::notice::Channel>, String> {
        let config: Config = toml::from_str(text).map_err(|error| error.to_string())?;
        config.channels()
    }

    #[test]
    fn all_who_are_told_have_a_name() {
        let text = "[[hooks]]\non = \"failed\"\nrun = [\"page\"]\n\
            [webhook]\nurl = \"https://hooks.example/x\"\nsecret_env = \"X\"\n\
            [[notify]]\nname = \"phone\"\nto = \"ntfy\"\nurl = \"https://ntfy.example/t\"\non = [\"approval\"]\nlink = true\n\
            [[notify]]\nname = \"desk\"\nto = \"desktop\"\n\
            [[notify]]\nname = \"here\"\nto = \"terminal\"\ndetails = true\n";
        let channels = read(text).unwrap();
        let names: Vec<_> = channels.iter().map(|channel| channel.name.as_str()).collect();
        assert_eq!(names, ["hook-1", "webhook", "phone", "desk", "here"]);
        assert!(channels[2].link && matches!(channels[2].to, To::Ntfy(_)));
        assert!(channels[4].details);
        for (wrong, says) in [
            ("name = \"webhook\"\nto = \"desktop\"\n", "two by the name"),
            ("name = \"x\"\nto = \"pigeon\"\n", "none of ntfy"),
            ("name = \"x\"\nto = \"ntfy\"\n", "url is missing"),
            ("name = \"x\"\nto = \"desktop\"\nurl = \"https://a.example/b\"\n", "means nothing"),
            ("name = \"x\"\nto = \"webhook\"\nurl = \"https://a.example/b\"\n", "secret_env is missing"),
            ("name = \"x y\"\nto = \"desktop\"\n", "letters"),
            ("name = \"x\"\nto = \"desktop\"\nring = true\n", "unknown field"),
        ] {
            let fault = read(&format!("{text}[[notify]]\n{wrong}")).unwrap_err();
            assert!(fault.contains(says), "{wrong}: {fault}");
        }
    }
}
