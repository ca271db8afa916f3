//! `ostler share`: a part of this machine for somebody else, for a while.

use std::time::Duration;

use clap::{Args, Subcommand};
use ostler_client::{Client, reply::Share};
use ostler_domain::{
    Refusal,
    limits::SHARE_LONGEST,
    share::{Access, Scope},
};
use ostler_form::Object;
use serde::Serialize;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
    parse, words,
};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ShareArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Session or campaign: a name, an id or a part of one
    #[arg(value_name = "WHO", required = true)]
    who: Option<String>,
    /// What may be done: observe, interact (messages and answers too), manage (pause, resume, stop too)
    #[arg(long, value_parser = access, default_value = "observe")]
    access: Access,
    /// For how long, such as 30m, 2h or 7d
    #[arg(long = "for", value_parser = parse::duration, value_name = "SPAN", default_value = "2h")]
    lives: Duration,
    /// What to call it; whoever uses it is recorded as share.NAME [default: WHO]
    #[arg(long)]
    name: Option<String>,
    /// The whole conversation of the session, with those that go on with it
    #[arg(long)]
    conversation: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// What is shared, and until when
    #[command(alias = "list")]
    Ls,
    /// Take a share back; it opens nothing from now on
    #[command(aliases = ["revoke", "remove", "delete"])]
    Rm {
        /// Its name or id
        #[arg(value_name = "SHARE")]
        share: String,
    },
}

fn access(text: &str) -> Result<Access, String> {
    Access::parse(text).ok_or_else(|| "it is none of observe, interact, manage".to_owned())
}

#[derive(Serialize)]
struct ShareForm<'a> {
    name: &'a str,
    id: &'a str,
    access: &'static str,
    scope: String,
    created: String,
    last_used: Option<String>,
    expires: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
}

impl<'a> ShareForm<'a> {
    fn new(share: &'a Share, token: Option<&'a str>) -> Self {
        Self {
            name: &share.name,
            id: &share.id,
            access: share.access.as_str(),
            scope: share.scope.to_string(),
            created: words::rfc3339(share.created),
            last_used: share.last_used.map(words::rfc3339),
            expires: words::rfc3339(share.expires),
            token,
        }
    }
}

pub(crate) async fn run(app: &App, args: ShareArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    match args.verb {
        Some(Verb::Ls) => list(app, &client.shares().await?)?,
        Some(Verb::Rm { share }) => {
            let gone = client.revoke_share(&share).await?;
            if app.ui.is_json() {
                app.ui.json(&ShareForm::new(&gone, None))?;
            } else {
                app.ui.remark(&Line::of(format!("{} opens nothing any more", gone.name)));
            }
        }
        None => create(app, &client, args).await?,
    }
    Ok(exit_code::OK)
}

async fn create(app: &App, client: &Client, args: ShareArgs) -> Result<(), Failure> {
    let who = args.who.unwrap_or_default();
    if args.lives.is_zero() || args.lives > SHARE_LONGEST {
        return Err(Refusal::invalid("--for is more than nothing, and 90 days at most").into());
    }
    let scope = match client.campaign(&who).await {
        Ok(campaign) if !args.conversation => Scope::Campaign(campaign.id),
        _ => {
            let session = app.session(client, &who).await?;
            match args.conversation {
                true => Scope::Conversation(session.conversation),
                false => Scope::Session(session.id),
            }
        }
    };
    let name = args.name.unwrap_or(who);
    let made = client.create_share(&name, args.access, scope, args.lives).await?;
    if app.ui.is_json() {
        return app.ui.json(&ShareForm::new(&made.share, Some(&made.secret)));
    }
    app.ui.data(&Line::of(&made.secret))?;
    let (may, until) = (made.share.access.as_str(), words::span(args.lives));
    app.ui.remark(
        &Line::new()
            .faint(format!(
                "may {may} {scope} for {until}; told once. It goes into Authorization: Bearer …   "
            ))
            .with(Tone::Accent, format!("ostler share rm {name}")),
    );
    Ok(())
}

fn list(app: &App, shares: &[Share]) -> Result<(), Failure> {
    if app.ui.is_json() {
        let rows = shares.iter().map(|share| ShareForm::new(share, None)).collect();
        return app.ui.json(&Object { name: "shares", rows, next_cursor: None });
    }
    if shares.is_empty() {
        app.ui.remark(&Line::of("Nothing of this machine is shared."));
        let hint = "ostler share WHO --access interact --for 2h";
        app.ui.remark(&Line::toned(Tone::Accent, format!("  {hint}")));
        return Ok(());
    }
    let now = words::now();
    app.ui.data(
        &Line::new().faint(format!("{:<10}{:<24}{:<10}{:<32}{}", "ID", "NAME", "MAY", "OF", "ENDS IN")),
    )?;
    for share in shares {
        let ends = words::span(share.expires.since(now));
        let (may, of) = (share.access.as_str(), share.scope.to_string());
        app.ui.data(&Line::of(format!("{:<10}{:<24}{may:<10}{of:<32}{ends}", share.id, share.name)))?;
    }
    Ok(())
}
