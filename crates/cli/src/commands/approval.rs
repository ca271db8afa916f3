//! `ostler approval`: what agents ask leave for: who waits, one of them, answers.

use std::{
    cell::RefCell,
    collections::{HashMap, hash_map::Entry},
    io,
};

use clap::{Args, Subcommand};
use ostler_client::{AnswerApproval, Approval, Client, Session};
use ostler_domain::{
    Reason, Refusal, SessionId,
    approval::goes_by_rules,
    event::AskKind,
    limits::{PAGE_DEFAULT, PAGE_MOST},
    query::{Page, Scope, SessionFilter},
    session::{Attention, Status},
    text::visible,
};
use serde::Serialize;

use super::answer;
use crate::{
    app::{App, campaign_names},
    exit_code,
    failure::Failure,
    form::ApprovalForm,
    listing::{self, Found, List, ListArgs, Screen},
    output::{Line, Tone, to_json},
    screen::{
        approval::{self as screen, Asked},
        session::cure,
    },
    terminal::{self, OneKey},
    words,
};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ApprovalArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    ls: LsArgs,
}

#[derive(Debug, Default, Args)]
struct LsArgs {
    /// Go through those that wait, one key each
    #[arg(short, long)]
    interactive: bool,
    /// Answered ones too, the newest first: the last 50 if no limit is said
    #[arg(short, long)]
    all: bool,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List those that wait
    #[command(alias = "list")]
    Ls(LsArgs),
    /// Show one
    #[command(alias = "get")]
    Show {
        /// Its id, or a part of it
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Let agents do what they ask for
    Allow(answer::AllowArgs),
    /// Do not let agents do what they ask for
    Deny(answer::DenyArgs),
}

pub(crate) async fn run(app: &App, args: ApprovalArgs) -> Result<u8, Failure> {
    match args.verb.unwrap_or(Verb::Ls(args.ls)) {
        Verb::Ls(ls) if ls.interactive => walk(app).await,
        Verb::Ls(ls) => {
            let client = app.client().await?;
            let most = ls.list.most(ls.all.then_some(PAGE_DEFAULT));
            let list = Approvals { client: &client, all: ls.all, most, held: RefCell::default() };
            listing::run(app, Some(&client), &ls.list, &list).await
        }
        Verb::Show { id } => {
            let approval = app.client().await?.approval(&id).await?;
            if app.ui.is_json() {
                app.ui.json(&ApprovalForm::new(&approval))?;
            } else {
                app.ui.fields(&screen::lines(&approval, words::now()))?;
            }
            Ok(exit_code::OK)
        }
        Verb::Allow(args) => answer::allow(app, args).await,
        Verb::Deny(args) => answer::deny(app, args).await,
    }
}

struct Approvals<'a> {
    client: &'a Client,
    all: bool,
    most: Option<u32>,
    /// Who else needs a person, found with the last rows.
    held: RefCell<Vec<Held>>,
}

/// One that needs a person without having asked for anything, and what lets it go on.
struct Held {
    session: Session,
    cure: String,
}

/// The same for programs.
#[derive(Serialize)]
struct HeldForm<'a> {
    session: SessionId,
    agent: &'a str,
    attention: Option<&'static str>,
    since: String,
    why: &'a str,
    cure: &'a str,
}

#[derive(Serialize)]
struct Object<'a, F> {
    approvals: Vec<F>,
    also_waiting: Vec<HeldForm<'a>>,
    next_cursor: Option<String>,
}

impl Held {
    fn line(&self) -> Line {
        screen::held(&self.session, &self.cure, words::now())
    }

    fn form(&self) -> HeldForm<'_> {
        let Session { id, name, attention, attention_since, evidence, .. } = &self.session;
        HeldForm {
            session: *id,
            agent: name.as_str(),
            attention: attention.map(Attention::as_str),
            since: words::rfc3339(*attention_since),
            why: evidence,
            cure: &self.cure,
        }
    }
}

impl List for Approvals<'_> {
    type Row = Asked;
    const ROWS: &'static str = "approvals";

    async fn find(&self) -> Result<Found<Asked>, Failure> {
        let ask = async |page| self.client.approvals(!self.all, page).await;
        let Found { rows, next_cursor } = Found::paged(self.most, None, ask).await?;
        self.held.replace(held(self.client).await?);
        Ok(Found { rows: with_agents(self.client, rows).await, next_cursor })
    }

    fn id(&self, asked: &Asked) -> String {
        asked.approval.id.to_string()
    }

    fn form(&self, asked: &Asked) -> impl Serialize {
        ApprovalForm::new(&asked.approval).of_agent(&asked.agent)
    }

    fn object(&self, found: &Found<Asked>) -> Option<String> {
        let held = self.held.borrow();
        Some(to_json(&Object {
            approvals: found.rows.iter().map(|asked| self.form(asked)).collect(),
            also_waiting: held.iter().map(Held::form).collect(),
            next_cursor: found.next_cursor.map(|cursor| cursor.to_string()),
        }))
    }

    async fn screen(&self, found: &Found<Asked>) -> Result<Screen, Failure> {
        let held = self.held.take();
        if found.rows.is_empty() && held.is_empty() {
            let remarks = vec![screen::nobody(working(self.client).await?)];
            return Ok(Screen { remarks, ..Screen::default() });
        }
        // Questions of the past are rows like the others; one that waits has another answer.
        let (leave, questions): (Vec<_>, Vec<_>) = found
            .rows
            .iter()
            .partition(|Asked { approval, .. }| approval.kind == AskKind::Leave || approval.answer.is_some());
        let open: Vec<_> =
            leave.iter().map(|asked| &asked.approval).filter(|approval| approval.answer.is_none()).collect();
        Ok(Screen {
            table: (!leave.is_empty()).then(|| screen::table(&leave, words::now())),
            below: screen::also_waiting(&questions).into_iter().chain(held.iter().map(Held::line)).collect(),
            remarks: screen::next(&open).into_iter().collect(),
        })
    }
}

async fn working(client: &Client) -> Result<u64, Failure> {
    let filter =
        SessionFilter { scope: Scope::NotEnded, statuses: vec![Status::Working], ..SessionFilter::default() };
    Ok(client.sessions(&filter, Page::of(PAGE_MOST, None)).await?.rows.len() as u64)
}

/// Those that need a person as `ls` counts them, and have no question open that could be answered.
async fn held(client: &Client) -> Result<Vec<Held>, Failure> {
    let attention = Attention::ALL.iter().copied().filter(|attention| attention.needs_you()).collect();
    let filter = SessionFilter { scope: Scope::NotEnded, attention, ..SessionFilter::default() };
    let ask = async |page| client.sessions(&filter, page).await;
    let mut sessions = Found::paged(None, None, ask).await?.rows;
    sessions.retain(|session| session.approvals_open.is_empty());
    // Who waits longest comes first, as among those that ask.
    sessions.sort_by_key(|session| session.attention_since);
    if sessions.is_empty() {
        return Ok(Vec::new());
    }
    let names = campaign_names(client).await?;
    let held = |session: Session| Held { cure: cure(&session, &names.of(&session.campaign)), session };
    Ok(sessions.into_iter().map(held).collect())
}

/// Whose questions they are. A session that cannot be read is called by its id.
async fn with_agents(client: &Client, approvals: Vec<Approval>) -> Vec<Asked> {
    let mut names: HashMap<SessionId, String> = HashMap::new();
    let mut found = Vec::new();
    for approval in approvals {
        let id = approval.session;
        if let Entry::Vacant(unknown) = names.entry(id) {
            let session = client.session(&id.to_string()).await;
            unknown.insert(session.map_or_else(|_| id.short(), |session| session.name.to_string()));
        }
        let agent = names.get(&id).cloned().unwrap_or_default();
        found.push(Asked { approval, agent });
    }
    found
}

/// What one key means.
enum Key {
    Allow,
    Always,
    Deny,
    DenyAndSay,
    Show,
    Skip,
    Quit,
}

/// One after the other, the oldest first, also those that come meanwhile.
async fn walk(app: &App) -> Result<u8, Failure> {
    let ui = &app.ui;
    if !ui.has_person() || ui.is_json() {
        return Err(Refusal::invalid("-i asks at a terminal, and this is none")
            .hint("ostler approval", "lists those that wait")
            .into());
    }
    let client = app.client().await?;
    let mut seen = Vec::new();
    let open = loop {
        let open = Approvals { client: &client, all: false, most: None, held: RefCell::default() };
        let open = open.find().await?;
        let Some(next) = open.rows.iter().find(|asked| !seen.contains(&asked.approval.id)) else {
            break open;
        };
        seen.push(next.approval.id);
        if !answer_one(app, &client, next).await? {
            return Ok(exit_code::OK);
        }
    };
    let held = held(&client).await?;
    match (seen.len(), open.rows.len()) {
        (0, _) if held.is_empty() => ui.say(&screen::nobody(working(&client).await?)),
        (0, _) => {}
        (_, 0) => ui.say(&Line::of("That was all.")),
        (_, 1) => ui.say(&Line::of("That was all; 1 that was skipped still waits.")),
        (_, skipped) => ui.say(&Line::of(format!("That was all; {skipped} that were skipped still wait."))),
    }
    held.iter().for_each(|held| ui.say(&held.line()));
    Ok(exit_code::OK)
}

/// False when the person has had enough.
async fn answer_one(app: &App, client: &Client, Asked { approval, agent }: &Asked) -> Result<bool, Failure> {
    let ui = &app.ui;
    let say = |line: Line| ui.say(&Line::of("          ").append(line));
    let is_question = approval.kind == AskKind::Question;
    // A key that was pressed twice answers the question that was seen, and not the next one.
    terminal::forget_typed();
    ui.say(
        &Line::toned(Tone::Warn, "? ")
            .strong(agent)
            .plain(format!("  {}", approval.asks))
            .faint(format!("   {}", approval.why)),
    );
    let keys = if is_question {
        "[a] answer  [d] none  [v] full question  [s] skip  [q] quit"
    } else {
        "[a] once  [A] always  [d] deny  [m] deny and say why  [v] full request  [s] skip  [q] quit"
    };
    let may_be_always = !is_question && goes_by_rules(&approval.why);
    let keys = if may_be_always { keys.to_owned() } else { keys.replace("  [A] always", "") };
    say(Line::toned(Tone::Accent, keys));
    loop {
        let mut request = AnswerApproval {
            approval: approval.id.to_string(),
            allow: true,
            always: false,
            message: String::new(),
        };
        match key()? {
            Key::Quit => return Ok(false),
            Key::Skip => return Ok(true),
            Key::Show => {
                visible(&approval.input).lines().for_each(|line| say(Line::of(line)));
                continue;
            }
            Key::Allow if is_question => request.message = typed(app, "answer")?,
            Key::Allow => {}
            Key::Always if !may_be_always => continue,
            Key::Always => request.always = true,
            Key::Deny => request.allow = false,
            Key::DenyAndSay if is_question => continue,
            Key::DenyAndSay => {
                request.allow = false;
                request.message = typed(app, "why not?")?;
            }
        }
        let allow = request.allow;
        match client.answer_approval(request).await.map_err(Failure::from) {
            Ok(given) => {
                say(if allow {
                    Line::toned(Tone::Good, "allowed")
                } else {
                    Line::toned(Tone::Bad, "denied")
                });
                let (rules, undo) = answer::kept(app, client, &given).await;
                rules.into_iter().chain(undo).for_each(say);
                return Ok(true);
            }
            Err(Failure::Refused(refusal)) if refusal.reason == Reason::ApprovalAnswered => {
                say(Line::new().faint("somebody else has answered it"));
                return Ok(true);
            }
            // No rule can be made of it: another key may do.
            Err(Failure::Refused(refusal)) if refusal.reason == Reason::WrongState => {
                ui.say_refusal(&refusal)
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// Waits for a key that means something.
fn key() -> Result<Key, Failure> {
    let terminal = OneKey::begin().map_err(unread)?;
    loop {
        let Some(pressed) = terminal.key().map_err(unread)? else { return Ok(Key::Quit) };
        return Ok(match pressed {
            b'a' => Key::Allow,
            b'A' => Key::Always,
            b'd' => Key::Deny,
            b'm' => Key::DenyAndSay,
            b'v' => Key::Show,
            b's' | b'\n' => Key::Skip,
            b'q' | 3 | 4 => Key::Quit,
            _ => continue,
        });
    }
}

fn typed(app: &App, question: &str) -> Result<String, Failure> {
    app.ui.prompt(&Line::of(question).strong(" >"));
    terminal::line().map_err(unread)
}

fn unread(error: io::Error) -> Failure {
    Refusal::internal(format!("the terminal cannot be read: {error}")).into()
}
