//! `ostler policy test send`: whether something may be said to a conversation, and what decides.

use clap::Args;
use ostler_client::{Campaign, Client};
use ostler_domain::{
    conversation::{Chat, ChatType, Entry, Key, SendAction, send_verdict, unmentioned, wants_mention},
    policy::question::{Explained, Verdict},
};

use super::Where;
use crate::{app::App, commands::send::chat_type, failure::Failure};

#[derive(Debug, Args)]
pub(super) struct SendArgs {
    /// Session, conversation or agent; without one, say --key or --channel
    #[arg(required_unless_present_any = ["key", "channel", "chat_type"])]
    who: Option<String>,
    /// As if it were in this channel
    #[arg(long)]
    channel: Option<String>,
    /// As if it were this kind of chat: dm, group, channel
    #[arg(long, value_parser = chat_type, value_name = "TYPE")]
    chat_type: Option<ChatType>,
    /// As if it had this key
    #[arg(long)]
    key: Option<Key>,
    /// What would be said: in some groups an agent hears only what mentions it
    #[arg(long)]
    text: Option<String>,
    #[command(flatten)]
    place: Where,
}

/// What is asked about, where, and the answer.
pub(super) async fn explained(
    app: &App,
    client: &Client,
    args: SendArgs,
) -> Result<(Campaign, String, Explained), Failure> {
    let (campaign, key, agent, mut entry, about, name) = match &args.who {
        Some(who) => {
            let who = app.addressee(client, who).await?;
            let found = client.conversation(&who).await?;
            let campaign = client.campaign(&found.campaign.to_string()).await?;
            let agent = match found.agent {
                Some(agent) => Some(client.agent(&agent.to_string()).await?.name.to_string()),
                None => None,
            };
            let about = format!("{} ({})", found.name, found.id.short());
            let name = agent.clone().unwrap_or_else(|| found.name.to_string());
            (campaign, found.key, agent, found.notes.entry, about, name)
        }
        None => {
            let campaign = args.place.campaign(app, client).await?;
            let about = "any conversation like that".to_owned();
            (campaign, Key::main(), None, Entry::default(), about, "its agent".to_owned())
        }
    };
    entry.channel = args.channel.or(entry.channel);
    entry.chat_type = args.chat_type.or(entry.chat_type);
    let key = args.key.unwrap_or(key);
    let chat = Chat::of(&key, agent.as_deref(), &entry);
    let policy = &campaign.policy;
    let found = send_verdict(entry.send_policy, &policy.send_rule, policy.send_default, &chat);
    if found.action == SendAction::Allow && wants_mention(&entry, &chat) {
        let set = |who: String| format!("ostler conversation set {who} group_activation=always");
        let (verdict, why) = match &args.text {
            None => (Verdict::Partly, format!("only what mentions @{name} is heard; the rest is dropped")),
            Some(text) => match unmentioned(&entry, &chat, &name, text) {
                Some(why) => (Verdict::Denied, why),
                None => (Verdict::Allowed, format!("it mentions @{name}; {}", found.rule)),
            },
        };
        let grant = args.who.map(set).filter(|_| verdict != Verdict::Allowed);
        let explained = Explained { verdict, why, by: "group_activation".to_owned(), grant };
        return Ok((campaign, format!("send to {about}"), explained));
    }
    let verdict = match found.action {
        SendAction::Allow => Verdict::Allowed,
        SendAction::Deny => Verdict::Denied,
    };
    let by = match found.is_ruled {
        true => found.rule.split([':', '=']).next().unwrap_or_default().to_owned(),
        false => "default".to_owned(),
    };
    let grant = (found.action == SendAction::Deny)
        .then(|| args.who.map(|who| format!("ostler conversation set {who} send_policy=allow")))
        .flatten();
    Ok((campaign, format!("send to {about}"), Explained { verdict, why: found.rule, by, grant }))
}
