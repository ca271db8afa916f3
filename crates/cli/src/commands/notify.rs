//! `ostler notify`: who is told when nobody looks. Kept in config.toml; the daemon reads it whenever it has something to
//! tell.

use std::env;

use clap::{Args, Subcommand, ValueEnum};
use ostler_client::UntoldChannel;
use ostler_domain::{
    Reason, Refusal,
    notice::{Channel, Notice, Occasion, To},
    text::{nearest, one_line},
};
use serde::Serialize;

use super::config::{self, Entry};
use crate::{
    app::{App, absolute},
    consent::DryRun,
    exit_code,
    failure::Failure,
    listing::{self, Found, List, ListArgs, Screen},
    output::{Column, Line, Table, Tone},
    words,
};

#[derive(Debug, Args)]
pub(crate) struct NotifyArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Who is told, and of what
    #[command(alias = "list")]
    Ls(ListArgs),
    /// Tell one more, from now on
    #[command(alias = "create")]
    Add(Box<AddArgs>),
    /// Tell one that this is a test, from where the daemon is
    Test {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Tell one no more
    #[command(aliases = ["remove", "delete"])]
    Rm {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        dry: DryRun,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// A topic of an ntfy server: a push on the phone
    Ntfy,
    /// The desktop of whoever runs the daemon, by notify-send
    Desktop,
    /// The terminal of top, attach and run, by OSC 9
    Terminal,
    /// An address, with a signed POST
    Webhook,
    /// A program, with the notice on its standard input
    Hook,
}

impl Sort {
    const fn as_str(self) -> &'static str {
        match self {
            Sort::Ntfy => "ntfy",
            Sort::Desktop => "desktop",
            Sort::Terminal => "terminal",
            Sort::Webhook => "webhook",
            Sort::Hook => "hook",
        }
    }
}

#[derive(Debug, Args)]
struct AddArgs {
    /// How
    #[arg(value_enum, value_name = "TO")]
    to: Sort,
    /// Where: https://ntfy.sh/my-topic, or the webhook's address
    #[arg(value_name = "URL", required_if_eq_any([("to", "ntfy"), ("to", "webhook")]))]
    url: Option<String>,
    /// What to call it [default: TO]
    #[arg(long)]
    name: Option<String>,
    /// Of what: approval, waiting_input, failed, budget, mission_done [default: all]
    #[arg(long, value_delimiter = ',', value_name = "OCCASION", value_parser = occasion)]
    on: Vec<Occasion>,
    /// Say what the agent wants to do too, not only with which tool
    #[arg(long)]
    details: bool,
    /// Give approvals a link that answers that one, once, for whoever follows it
    #[arg(long)]
    link: bool,
    /// The file that has the token of the ntfy topic
    #[arg(long, value_name = "PATH")]
    token_file: Option<String>,
    /// The variable of the daemon's environment that has it
    #[arg(long, value_name = "VARIABLE", conflicts_with = "token_file")]
    token_env: Option<String>,
    /// The file that has what a webhook is signed with
    #[arg(long, value_name = "PATH")]
    secret_file: Option<String>,
    /// The variable of the daemon's environment that has it
    #[arg(long, value_name = "VARIABLE", conflicts_with = "secret_file")]
    secret_env: Option<String>,
    /// How long a hook may take [default: 30s]
    #[arg(long, value_name = "SPAN")]
    limit: Option<String>,
    /// The hook's program and its arguments
    #[arg(last = true, value_name = "PROGRAM", required_if_eq("to", "hook"))]
    run: Vec<String>,
}

fn occasion(text: &str) -> Result<Occasion, String> {
    let known = || Occasion::ALL.iter().map(|on| on.as_str()).collect::<Vec<_>>().join(", ");
    Occasion::parse(text).ok_or_else(|| format!("it is none of {}", known()))
}

#[derive(Serialize)]
struct ChannelForm<'a> {
    name: &'a str,
    to: &'static str,
    place: String,
    on: Vec<&'static str>,
    details: bool,
    link: bool,
    /// Why it is not told, where the daemon knows that it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    untold: Option<&'a str>,
}

impl<'a> ChannelForm<'a> {
    fn new(channel: &'a Channel) -> Self {
        Self {
            name: &channel.name,
            to: channel.to.as_str(),
            place: channel.to.place(),
            on: channel.on.iter().map(|on| on.as_str()).collect(),
            details: channel.details,
            link: channel.link,
            untold: None,
        }
    }
}

pub(crate) async fn run(app: &App, args: NotifyArgs) -> Result<u8, Failure> {
    match args.verb.unwrap_or_else(|| Verb::Ls(ListArgs::default())) {
        Verb::Ls(args) => return listing::run(app, None, &args, &Channels { app, args: &args }).await,
        Verb::Add(args) => add(app, *args)?,
        Verb::Test { name } => test(app, &name).await?,
        Verb::Rm { name, dry } => rm(app, &name, dry)?,
    }
    Ok(exit_code::OK)
}

fn channels(app: &App) -> Result<Vec<Channel>, Failure> {
    config::check(app)?;
    Ok(config::current(app)?.channels().map_err(Refusal::invalid)?)
}

fn known(app: &App, name: &str) -> Result<Channel, Failure> {
    let mut channels = channels(app)?;
    match channels.iter().position(|channel| channel.name == name) {
        Some(place) => Ok(channels.swap_remove(place)),
        None => {
            let refusal = Refusal::invalid(format!("nobody is told by the name \"{name}\""));
            let refusal = match nearest(name, channels.iter().map(|channel| channel.name.as_str())) {
                Some(meant) => refusal.hint(format!("ostler notify test {meant}"), "is one that exists"),
                None => refusal,
            };
            Err(refusal.hint("ostler notify ls", "lists who is told").into())
        }
    }
}

fn add(app: &App, args: AddArgs) -> Result<(), Failure> {
    let name = args.name.unwrap_or_else(|| args.to.as_str().to_owned());
    if channels(app)?.iter().any(|channel| channel.name == name) {
        return Err(Refusal::invalid(format!("{name} is told already"))
            .hint(format!("ostler notify rm {name}"), "tells it no more")
            .hint(format!("ostler notify add {} … --name OTHER", args.to.as_str()), "tells another one")
            .into());
    }
    // The daemon is not where this was typed.
    let place = |path: Option<String>| path.map(|path| absolute(&path)).transpose();
    let mut entry = Entry::default();
    entry.text("name", Some(name.clone()));
    entry.text("to", Some(args.to.as_str().to_owned()));
    entry.text("url", args.url);
    entry.list("run", args.run);
    entry.list("on", args.on.iter().map(|on| on.as_str().to_owned()).collect());
    entry.switch("details", args.details);
    entry.switch("link", args.link);
    entry.text("limit", args.limit);
    entry.text("secret_file", place(args.secret_file)?);
    entry.text("secret_env", args.secret_env);
    entry.text("token_file", place(args.token_file)?);
    entry.text("token_env", args.token_env);
    config::add_entry(app, "notify", entry)?;
    let channel = known(app, &name)?;
    if app.ui.is_json() {
        return app.ui.json(&ChannelForm::new(&channel));
    }
    let test = format!("ostler notify test {name}");
    app.ui.remark(&Line::of(format!("{name} is told from now on   ")).with(Tone::Accent, test));
    Ok(())
}

async fn test(app: &App, name: &str) -> Result<(), Failure> {
    let channel = known(app, name)?;
    if channel.to == To::Terminal {
        if !app.ui.terminals().stderr_is_terminal {
            return Err(Refusal::new(
                Reason::WrongState,
                format!("{name} is not told: there is no terminal here"),
            )
            .because("what rings is the terminal of whoever types this, and nobody looks at standard error")
            .hint(format!("ostler notify test {name}"), "typed in a terminal, rings that one")
            .into());
        }
        let on = channel.on.first().copied().unwrap_or(Occasion::Approval);
        app.ui.notify(&Notice::trial(on, "", name, words::now()).text);
    } else {
        app.client().await?.test_channel(name).await?;
    }
    if app.ui.is_json() {
        return app.ui.json(&ChannelForm::new(&channel));
    }
    app.ui.remark(&Line::of(format!("{name} was told")));
    if channel.to == To::Terminal && env::var_os("TMUX").is_some() {
        let hears = "tmux hands it on where `tmux set -g allow-passthrough on` was said";
        app.ui.remark(&Line::new().faint(hears));
    }
    Ok(())
}

fn rm(app: &App, name: &str, dry: DryRun) -> Result<(), Failure> {
    let channel = known(app, name)?;
    if dry.said(&app.ui, &format!("tell {name} no more"), &ChannelForm::new(&channel))? {
        return Ok(());
    }
    config::remove_channel(app, name)?;
    if app.ui.is_json() {
        return app.ui.json(&ChannelForm::new(&channel));
    }
    app.ui.remark(&Line::of(format!("{name} is told no more")));
    Ok(())
}

/// With nothing in it yet.
pub(super) fn table() -> Table {
    Table::new(["NAME", "TO", "SAYS", "WHERE", "ON"].map(Column::new))
}

struct Channels<'a> {
    app: &'a App,
    args: &'a ListArgs,
}

/// A channel, and why it is not told.
struct Listed {
    channel: Channel,
    untold: Option<String>,
}

/// Who is not told. Only a daemon knows, and none is started to be asked.
async fn untold(app: &App) -> Vec<UntoldChannel> {
    match app.running_client().await {
        Ok(client) => client.untold().await.unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

impl List for Channels<'_> {
    type Row = Listed;
    const ROWS: &'static str = "channels";

    async fn find(&self) -> Result<Found<Listed>, Failure> {
        let (channels, untold) = (channels(self.app)?, untold(self.app).await);
        let why = |name: &str| untold.iter().find(|told| told.channel == name).map(|told| told.why.clone());
        let listed = channels.into_iter().map(|channel| Listed { untold: why(&channel.name), channel });
        Ok(Found::whole(listed.collect(), self.args.most(None)))
    }

    fn id(&self, listed: &Listed) -> String {
        listed.channel.name.clone()
    }

    fn form(&self, listed: &Listed) -> impl Serialize {
        ChannelForm { untold: listed.untold.as_deref(), ..ChannelForm::new(&listed.channel) }
    }

    async fn screen(&self, found: &Found<Listed>) -> Result<Screen, Failure> {
        if found.rows.is_empty() {
            let hint = |command: &str, effect: &str| {
                Line::toned(Tone::Accent, format!("  {command:<46}")).faint(effect)
            };
            let remarks = vec![
                Line::of("Nobody is told of anything."),
                hint("ostler notify add desktop", "tells this machine's desktop"),
                hint("ostler notify add terminal", "tells the terminal of top, attach and run"),
                hint("ostler notify add ntfy https://ntfy.sh/TOPIC", "tells a phone"),
            ];
            return Ok(Screen { remarks, ..Screen::default() });
        }
        let mut table = table();
        let mut remarks = Vec::new();
        for Listed { channel, untold } in &found.rows {
            if let Some(why) = untold {
                let name = Line::toned(Tone::Warn, &channel.name);
                let said = name.plain(format!(" is not told: {}", one_line(why, 200)));
                remarks.push(
                    said.plain("   ").with(Tone::Accent, format!("ostler notify test {}", channel.name)),
                );
            }
            let on = match channel.on.len() == Occasion::ALL.len() {
                true => "all".to_owned(),
                false => channel.on.iter().map(|on| on.as_str()).collect::<Vec<_>>().join(", "),
            };
            table.row(vec![
                Line::new().strong(&channel.name),
                Line::of(channel.to.as_str()),
                Line::of(if channel.details { "all" } else { "who" }),
                Line::of(channel.to.place()),
                Line::new().faint(on),
            ]);
        }
        Ok(Screen { table: Some(table), remarks, ..Screen::default() })
    }
}
