//! `ostler message`: what was said to agents, what of it waits, and the receipts.

use clap::{Args, Subcommand};
use ostler_client::{Client, Delivery, MessagePlace};
use ostler_domain::{
    limits::PAGE_DEFAULT,
    query::{Scope, SessionFilter},
};
use serde::Serialize;

use crate::{
    app::App,
    consent::DryRun,
    exit_code,
    failure::Failure,
    form::MessageForm,
    input,
    listing::{self, Found, List, ListArgs, Object, Screen},
    output::{Format, Line},
    screen::message as screen,
    words,
};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct MessageArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    ls: LsArgs,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List those that wait to be delivered, in the order in which they will be
    #[command(alias = "list")]
    Ls(LsArgs),
    /// Show one
    #[command(alias = "get")]
    Show {
        /// Its id, or a part of it
        #[arg(value_name = "MESSAGE")]
        id: String,
    },
    /// Say something else instead, while it waits
    Edit {
        /// Its id, or a part of it
        #[arg(value_name = "MESSAGE")]
        id: String,
        /// What to say; - reads standard input
        text: String,
    },
    /// Take back some that wait
    #[command(aliases = ["cancel", "delete", "remove"])]
    Rm {
        /// Their ids, or parts of them
        #[arg(value_name = "MESSAGE", required = true)]
        ids: Vec<String>,
        #[command(flatten)]
        dry: DryRun,
    },
    /// Have one that waits be told sooner, or to somebody else
    #[command(group(clap::ArgGroup::new("place").required(true).args(["first", "before", "to"])))]
    Move {
        /// Its id, or a part of it
        #[arg(value_name = "MESSAGE")]
        id: String,
        /// Before all others that wait
        #[arg(long)]
        first: bool,
        /// Before this one, which waits for the same session
        #[arg(long, value_name = "MESSAGE")]
        before: Option<String>,
        /// To this session, conversation or agent
        #[arg(long, value_name = "WHO")]
        to: Option<String>,
    },
    /// Take back all that wait for somebody
    Clear {
        /// Session or conversation: name, id, part of an id, or - for the last one of this terminal
        who: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
        #[command(flatten)]
        dry: DryRun,
    },
}

#[derive(Debug, Default, Args)]
struct LsArgs {
    /// Only of these conversations: name, id, part of an id, or - for the last one of this terminal
    #[arg(value_name = "WHO")]
    who: Vec<String>,
    /// Delivered ones too: the 50 newest of each conversation if no limit is said
    #[arg(short, long, requires = "who")]
    all: bool,
    #[command(flatten)]
    list: ListArgs,
}

pub(crate) async fn run(app: &App, args: MessageArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    match args.verb.unwrap_or(Verb::Ls(args.ls)) {
        Verb::Ls(LsArgs { who, all, list: args }) => {
            let most = args.most(all.then_some(PAGE_DEFAULT));
            listing::run(app, Some(&client), &args, &Messages { app, client: &client, who, all, most }).await
        }
        Verb::Show { id } => {
            let message = client.message(&id).await?;
            if app.ui.is_json() {
                app.ui.json(&MessageForm::new(&message))?;
            } else {
                app.ui.fields(&screen::lines(&message, words::now()))?;
            }
            Ok(exit_code::OK)
        }
        Verb::Edit { id, text } => {
            let text = if text == "-" { input::whole(&app.ui)? } else { text };
            tell(app, &[client.edit_message(&id, &text).await?], "says something else now")
        }
        Verb::Rm { ids, dry } => {
            let mut taken = Vec::new();
            if dry.is_wanted() {
                for id in &ids {
                    taken.push(client.message(id).await?);
                }
                return tell_some(app, &taken, "would be taken back");
            }
            for id in &ids {
                taken.push(client.cancel_message(id).await?);
            }
            tell_some(app, &taken, "taken back")
        }
        Verb::Move { id, before, to, .. } => {
            let place = match (before, to) {
                (Some(before), _) => MessagePlace::Before(before),
                (None, Some(to)) => MessagePlace::To(app.addressee(&client, &to).await?),
                (None, None) => MessagePlace::First,
            };
            tell(app, &[client.move_message(&id, place).await?], "waits there now")
        }
        Verb::Clear { who, yes, dry } => {
            let who = app.addressee(&client, &who).await?;
            if dry.is_wanted() {
                return tell_all(app, &client.messages_in_order(&who).await?, "would be taken back");
            }
            if app.ui.has_person() && !yes {
                let waiting = client.messages_in_order(&who).await?;
                let count = words::plural(waiting.len() as u64, "message", "messages");
                waiting.iter().for_each(|message| app.ui.remark(&screen::done(message, "waits")));
                if !waiting.is_empty() && !input::agrees(&app.ui, &format!("take back {count}?")) {
                    app.ui.remark(&Line::of("nothing was changed"));
                    return Ok(exit_code::OK);
                }
            }
            let taken = client.clear_messages(&who).await?;
            if taken.is_empty() && !app.ui.is_json() {
                app.ui.remark(&Line::of("No message waits."));
            }
            tell_all(app, &taken, "taken back")
        }
    }
}

/// Says what was done to those that were named: one is its own document.
fn tell_some(app: &App, messages: &[Delivery], done: &str) -> Result<u8, Failure> {
    match messages {
        [_] => tell(app, messages, done),
        many => tell_all(app, many, done),
    }
}

/// Says what was done to as many messages as there were.
fn tell_all(app: &App, messages: &[Delivery], done: &str) -> Result<u8, Failure> {
    if app.ui.format() == Some(Format::Json) {
        let rows = messages.iter().map(MessageForm::new).collect();
        app.ui.json(&Object { name: "messages", rows, next_cursor: None })?;
        return Ok(exit_code::OK);
    }
    tell(app, messages, done)
}

/// Says what was done to messages.
fn tell(app: &App, messages: &[Delivery], done: &str) -> Result<u8, Failure> {
    for message in messages {
        if app.ui.is_json() {
            app.ui.json(&MessageForm::new(message))?;
        } else if app.ui.is_quiet() {
            app.ui.data(&Line::of(message.message.id.to_string()))?;
        } else {
            app.ui.data(&screen::done(message, done))?;
        }
    }
    Ok(exit_code::OK)
}

struct Messages<'a> {
    app: &'a App,
    client: &'a Client,
    who: Vec<String>,
    all: bool,
    most: Option<u32>,
}

/// A message and who it was said to.
struct Said {
    message: Delivery,
    name: String,
    /// The how manieth it is among those that wait for the same one.
    place: u32,
}

/// A message that waits, as programs read it.
#[derive(Serialize)]
struct WaitingForm {
    #[serde(flatten)]
    message: MessageForm,
    place: Option<u32>,
}

impl List for Messages<'_> {
    type Row = Said;
    const ROWS: &'static str = "messages";

    async fn find(&self) -> Result<Found<Said>, Failure> {
        let mut sessions = Vec::new();
        for typed in &self.who {
            sessions.push(self.app.session(self.client, typed).await?);
        }
        if self.who.is_empty() {
            let filter = SessionFilter { scope: Scope::NotEnded, ..SessionFilter::default() };
            let live =
                Found::paged(None, None, async |page| self.client.sessions(&filter, page).await).await?;
            sessions.extend(live.rows.into_iter().filter(|session| session.messages_waiting > 0));
        }
        let mut rows = Vec::new();
        for session in sessions {
            let who = session.id.to_string();
            let found = if self.all {
                let ask = async |page| self.client.messages(&who, page).await;
                Found::paged(self.most, None, ask).await?.rows
            } else {
                self.client.messages_in_order(&who).await?
            };
            let said = |(place, message)| Said { message, name: session.name.to_string(), place };
            rows.extend((1..).zip(found).map(said));
        }
        Ok(Found::whole(rows, self.most))
    }

    fn id(&self, said: &Said) -> String {
        said.message.message.id.to_string()
    }

    fn form(&self, said: &Said) -> impl Serialize {
        WaitingForm { message: MessageForm::new(&said.message), place: (!self.all).then_some(said.place) }
    }

    async fn screen(&self, found: &Found<Said>) -> Result<Screen, Failure> {
        if found.rows.is_empty() {
            return Ok(Screen { remarks: screen::nothing(self.all, self.who.first()), ..Screen::default() });
        }
        let rows: Vec<_> = found.rows.iter().map(|said| (&said.message, said.name.as_str())).collect();
        let places: Vec<_> = found.rows.iter().map(|said| said.place).filter(|_| !self.all).collect();
        Ok(Screen { table: Some(screen::table(&rows, &places, words::now())), ..Screen::default() })
    }
}
