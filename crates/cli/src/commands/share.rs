//! `ostler share`: a part of this machine for somebody else, for a while.

use std::time::Duration;

use clap::{Args, Subcommand};
use ostler_client::{Client, reply::Share};
use ostler_domain::{
    Refusal,
    limits::SHARE_LONGEST,
    share::{Access, Scope},
};
use serde::Serialize;

use crate::{
    app::{App, campaign_names},
    exit_code,
    failure::Failure,
    listing::{self, Found, List, ListArgs, Screen},
    output::{Column, Line, Table, Tone},
    parse,
    screen::sessions::CampaignNames,
    words,
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
    Ls(ListArgs),
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
        Some(Verb::Ls(args)) => {
            return listing::run(app, Some(&client), &args, &Shares { client: &client, args: &args }).await;
        }
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

/// With nothing in it yet.
pub(super) fn table() -> Table {
    Table::new(["ID", "NAME", "MAY", "OF", "ENDS IN"].map(Column::new))
}

impl Shares<'_> {
    /// What is shared, by its name; what cannot be read any more by its id.
    async fn part(&self, scope: &Scope, names: &CampaignNames) -> String {
        match scope {
            Scope::Campaign(id) => format!("campaign {}", names.of(id)),
            Scope::Session(id) => match self.client.session(&id.to_string()).await {
                Ok(session) => format!("session {} {}", id.short(), session.name),
                Err(_) => format!("session {}", id.short()),
            },
            Scope::Conversation(id) => match self.client.session(&id.to_string()).await {
                Ok(session) => format!("conversation {} {}", id.short(), session.name),
                Err(_) => format!("conversation {}", id.short()),
            },
        }
    }
}

struct Shares<'a> {
    client: &'a Client,
    args: &'a ListArgs,
}

impl List for Shares<'_> {
    type Row = Share;
    const ROWS: &'static str = "shares";

    async fn find(&self) -> Result<Found<Share>, Failure> {
        Ok(Found::whole(self.client.shares().await?, self.args.most(None)))
    }

    fn id(&self, share: &Share) -> String {
        share.id.clone()
    }

    fn name(&self, share: &Share) -> String {
        share.name.clone()
    }

    fn form(&self, share: &Share) -> impl Serialize {
        ShareForm::new(share, None)
    }

    async fn screen(&self, found: &Found<Share>) -> Result<Screen, Failure> {
        if found.rows.is_empty() {
            let remarks = vec![
                Line::of("Nothing of this machine is shared."),
                Line::toned(Tone::Accent, "  ostler share WHO --access interact --for 2h"),
            ];
            return Ok(Screen { remarks, ..Screen::default() });
        }
        let (now, names) = (words::now(), campaign_names(self.client).await?);
        let mut table = table();
        for share in &found.rows {
            table.row(vec![
                Line::toned(Tone::Accent, &share.id),
                Line::new().strong(&share.name),
                Line::of(share.access.as_str()),
                Line::of(self.part(&share.scope, &names).await),
                Line::of(words::span(share.expires.since(now))),
            ]);
        }
        Ok(Screen { table: Some(table), ..Screen::default() })
    }
}
