//! Sessions that are named, or that a filter finds. Whoever means many is told how many, and asked.

use std::collections::HashSet;

use clap::Args;
use ostler_client::{Client, Session};
use ostler_domain::{
    Refusal, SessionId,
    query::{Page, Scope, SessionFilter},
};

use super::many::Operands;
use crate::{
    app::App,
    failure::{Failure, typed_with},
    filters::Filters,
    form::SessionForm,
    input,
    listing::{self, Found, Object},
    output::{Format, Line, Tone},
    screen::sessions,
    words,
};

// No doc comment: it would be the about of every command that this is a part of.
// Sessions to do something to: named, or found.
#[derive(Debug, Clone, Args)]
pub(crate) struct Chosen {
    /// Sessions: name, id, part of an id, or - for the last one of this terminal
    #[arg(value_name = "WHO", required_unless_present_any = Filters::IDS)]
    pub(crate) who: Vec<String>,
    #[command(flatten)]
    pub(crate) filters: Filters,
    /// Do not ask before many are changed
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Show which sessions would be changed, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// What is done to them.
pub(crate) struct Deed {
    /// `stop`, for the question.
    pub(crate) verb: &'static str,
    /// `stopped`, for what would be done.
    pub(crate) done: &'static str,
    /// Whether it makes sense for sessions that have ended.
    pub(crate) of_the_ended: bool,
}

impl Chosen {
    /// The sessions that are meant; none where nothing is to be done.
    pub(crate) async fn sessions(
        &self,
        app: &App,
        client: &Client,
        deed: &Deed,
    ) -> Result<Option<Operands>, Failure> {
        let is_found = self.filters.is_any();
        if is_found && !self.who.is_empty() {
            return Err(Failure::usage("sessions are either named or found by filters, not both"));
        }
        if !is_found && self.who.is_empty() {
            return Err(Failure::usage("which sessions? name them, or say what they have in common"));
        }
        if !is_found && !self.dry_run {
            return Ok(Some(Operands { who: self.who.clone(), are_found: false }));
        }
        let found = if is_found {
            self.found(app, client, deed).await?
        } else {
            named(app, client, &self.who).await?
        };
        let count = words::plural(found.len() as u64, "session", "sessions");
        if self.dry_run {
            would_be(app, client, &found, deed.done).await?;
            return Ok(None);
        }
        if found.is_empty() {
            app.ui.remark(&Line::of("No session fits."));
            no_rows(app)?;
            return Ok(None);
        }
        let mut meant: Vec<SessionId> = found.iter().map(|session| session.id).collect();
        if !self.yes {
            if !app.ui.has_person() {
                return Err(Refusal::invalid(format!("{count} fit, and there is nobody to ask"))
                    .hint(typed_with("-y"), "does it without asking")
                    .hint(typed_with("--dry-run"), "shows which they are")
                    .into());
            }
            show(app, client, &found).await?;
            if !input::agrees(&app.ui, &format!("{} {count}?", deed.verb)) {
                app.ui.remark(&Line::of("nothing was changed"));
                return Ok(None);
            }
            // Whoever was asked may have taken an hour.
            let fitting = self.found(app, client, deed).await?;
            let (still, gone): (Vec<_>, Vec<_>) =
                found.iter().partition(|session| fitting.iter().any(|other| other.id == session.id));
            meant = still.iter().map(|session| session.id).collect();
            leave_alone(app, &gone);
            if meant.is_empty() {
                app.ui.remark(&Line::of("nothing was changed"));
                return Ok(None);
            }
        }
        let who = meant.iter().map(ToString::to_string).collect();
        Ok(Some(Operands { who, are_found: is_found }))
    }

    async fn found(&self, app: &App, client: &Client, deed: &Deed) -> Result<Vec<Session>, Failure> {
        let filter = self.filters.resolve(app, client, false).await?;
        let scope = match filter.scope {
            Scope::All if deed.of_the_ended => Scope::All,
            _ => Scope::NotEnded,
        };
        let filter = SessionFilter { scope, ..filter };
        let ask = async |page| client.sessions(&filter, page).await;
        let mut rows = Found::paged(None, None, ask).await?.rows;
        rows.retain(|session| self.filters.has_lasted(session));
        // What runs outside of Ostler is only read; who resumes it takes it over.
        rows.retain(|session| deed.of_the_ended || session.imported.is_none());
        // Of a conversation only the last session is meant: the earlier ones have gone on.
        let mut conversations = HashSet::new();
        rows.retain(|session| conversations.insert(session.conversation));
        let mut last = Vec::with_capacity(rows.len());
        for session in rows {
            if session.outcome.is_none() || is_last(client, &session).await? {
                last.push(session);
            }
        }
        Ok(last)
    }
}

/// Those that were named, each once.
pub(super) async fn named(app: &App, client: &Client, who: &[String]) -> Result<Vec<Session>, Failure> {
    let mut named: Vec<Session> = Vec::with_capacity(who.len());
    for who in who {
        let session = client.session(&app.who(client, who).await?).await?;
        // Named twice, by its name and by its id, it is one.
        if named.iter().all(|other| other.id != session.id) {
            named.push(session);
        }
    }
    Ok(named)
}

/// Says whether nobody has gone on with a session in its conversation, whether that one fits or not.
async fn is_last(client: &Client, session: &Session) -> Result<bool, Failure> {
    let conversation = SessionFilter {
        scope: Scope::All,
        conversation: Some(session.conversation),
        ..SessionFilter::default()
    };
    let newest = client.sessions(&conversation, Page::of(1, None)).await?.rows;
    Ok(newest.first().is_none_or(|newest| newest.id == session.id))
}

/// Says who was found, and does not fit any more.
fn leave_alone(app: &App, gone: &[&Session]) {
    const NAMED: usize = 5;
    if gone.is_empty() {
        return;
    }
    let names: Vec<_> = gone.iter().take(NAMED).map(|session| session.name.as_str()).collect();
    let more = if gone.len() > NAMED { ", …" } else { "" };
    let left = match gone.len() {
        1 => "1 session no longer fits and stays as it is".to_owned(),
        n => format!("{n} sessions no longer fit and stay as they are"),
    };
    let left = format!("{left}: {}{more}", names.join(", "));
    app.ui.insist(&Line::toned(Tone::Warn, "note: ").plain(left));
}

/// What a program reads where there was nothing to do: a list, as where there was.
pub(super) fn no_rows(app: &App) -> Result<(), Failure> {
    match app.ui.format() {
        Some(Format::Json) => {
            app.ui.json(&Object { name: "sessions", rows: Vec::<SessionForm>::new(), next_cursor: None })
        }
        _ => Ok(()),
    }
}

/// Every session that has not ended and is Ostler's own.
pub(super) async fn all_that_live(client: &Client) -> Result<Vec<Session>, Failure> {
    let filter = SessionFilter { scope: Scope::NotEnded, ..SessionFilter::default() };
    let ask = async |page| client.sessions(&filter, page).await;
    let mut rows = Found::paged(None, None, ask).await?.rows;
    rows.retain(|session| session.imported.is_none());
    Ok(rows)
}

/// Shows what would be changed, and says how many that are.
pub(super) async fn would_be(
    app: &App,
    client: &Client,
    found: &[Session],
    done: &str,
) -> Result<(), Failure> {
    show(app, client, found).await?;
    let count = words::plural(found.len() as u64, "session", "sessions");
    app.ui.remark(&Line::of(format!("{count} would be {done}")));
    Ok(())
}

async fn show(app: &App, client: &Client, found: &[Session]) -> Result<(), Failure> {
    let ui = &app.ui;
    let names = app.campaign_names(client).await?;
    let campaigns: Vec<String> = found.iter().map(|session| names.of(&session.campaign)).collect();
    let rows = || found.iter().zip(campaigns.iter().map(String::as_str));
    if ui.is_json() {
        let rows = rows().map(|(session, campaign)| SessionForm::new(session, campaign)).collect();
        return ui.json(&Object { name: "sessions", rows, next_cursor: None });
    }
    if !listing::is_table(app) {
        return found.iter().try_for_each(|session| ui.data(&Line::of(session.id.to_string())));
    }
    let rows: Vec<_> = rows().map(|(session, campaign)| sessions::Shown::here(session, campaign)).collect();
    if rows.is_empty() {
        return Ok(());
    }
    ui.data_lines(&sessions::table(&rows, words::now()).lines(ui.out_look()))
}
