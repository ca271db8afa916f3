//! `ostler approval`: what agents ask leave for: who waits, one of them, answers.

use std::io;

use clap::{Args, Subcommand};
use ostler_client::{AnswerApproval, Approval, Client};
use ostler_domain::{
    Reason, Refusal,
    event::AskKind,
    limits::{PAGE_DEFAULT, PAGE_MOST},
    query::{Page, Scope, SessionFilter},
    session::Status,
    text::visible,
};

use super::answer;
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    form::{ApprovalForm, ApprovalsForm},
    output::{Format, Line, Tone},
    screen::approval as screen,
    terminal::{self, OneKey},
    words,
};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ApprovalArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Go through those that wait, one key each
    #[arg(short, long)]
    interactive: bool,
    /// Answered ones too, the newest first
    #[arg(short, long)]
    all: bool,
    /// At most this many; 0 means all [default: all that wait, or 50 with -a]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Leave the heads of the columns out
    #[arg(long)]
    no_headers: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List those that wait
    #[command(alias = "list")]
    Ls(ListArgs),
    /// Show one
    #[command(alias = "get")]
    Show {
        /// Its id, or a part of it
        id: String,
    },
    /// Let agents do what they ask for
    Allow(answer::AllowArgs),
    /// Do not let agents do what they ask for
    Deny(answer::DenyArgs),
}

pub(crate) async fn run(app: &App, args: ApprovalArgs) -> Result<u8, Failure> {
    match args.verb.unwrap_or(Verb::Ls(args.list)) {
        Verb::Ls(list) if list.interactive => walk(app).await,
        Verb::Ls(list) => {
            let client = app.client().await?;
            show_all(app, &client, &list).await?;
            Ok(exit_code::OK)
        }
        Verb::Show { id } => {
            let approval = app.client().await?.approval(&id).await?;
            if app.ui.is_json() {
                app.ui.json(&ApprovalForm::new(&approval))?;
            } else {
                app.ui.data_lines(&screen::lines(&approval, words::now()))?;
            }
            Ok(exit_code::OK)
        }
        Verb::Allow(args) => answer::allow(app, args).await,
        Verb::Deny(args) => answer::deny(app, args).await,
    }
}

async fn find(
    client: &Client,
    all: bool,
    limit: Option<u32>,
) -> Result<(Vec<Approval>, Option<u64>), Failure> {
    let most = match (limit, all) {
        (Some(0), _) | (None, false) => usize::MAX,
        (Some(limit), _) => limit as usize,
        (None, true) => PAGE_DEFAULT as usize,
    };
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let room = u32::try_from(most - found.len()).unwrap_or(PAGE_MOST).min(PAGE_MOST);
        let listed = client.approvals(!all, Page { limit: room, cursor }).await?;
        found.extend(listed.rows);
        cursor = listed.next_cursor;
        if cursor.is_none() || found.len() >= most {
            return Ok((found, cursor));
        }
    }
}

async fn show_all(app: &App, client: &Client, list: &ListArgs) -> Result<(), Failure> {
    let ui = &app.ui;
    let (found, next_cursor) = find(client, list.all, list.limit).await?;
    match ui.format() {
        Some(Format::Json) => {
            return ui.json(&ApprovalsForm {
                approvals: found.iter().map(ApprovalForm::new).collect(),
                next_cursor: next_cursor.map(|cursor| cursor.to_string()),
            });
        }
        Some(Format::Jsonl) => {
            return found.iter().try_for_each(|approval| ui.json(&ApprovalForm::new(approval)));
        }
        Some(Format::Name) => return ids(app, &found),
        _ if ui.is_quiet() => return ids(app, &found),
        _ => {}
    }
    if found.is_empty() {
        ui.remark(&screen::nobody(working(client).await?));
        return Ok(());
    }
    let names = names(client, &found).await;
    // Questions of the past are rows like the others; one that waits has another answer.
    let (leave, questions): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|approval| approval.kind == AskKind::Leave || approval.answer.is_some());
    if !leave.is_empty() {
        ui.data_lines(&screen::table(&leave, &names, !list.no_headers, words::now(), ui.out_look()))?;
    }
    ui.data_lines(&screen::also_waiting(&questions, &names))?;
    let open: Vec<_> = leave.into_iter().filter(|approval| approval.answer.is_none()).collect();
    screen::next(&open).iter().for_each(|line| ui.remark(line));
    Ok(())
}

fn ids(app: &App, found: &[Approval]) -> Result<(), Failure> {
    found.iter().try_for_each(|approval| app.ui.data(&Line::of(approval.id.to_string())))
}

async fn working(client: &Client) -> Result<u64, Failure> {
    let filter =
        SessionFilter { scope: Scope::NotEnded, statuses: vec![Status::Working], ..SessionFilter::default() };
    Ok(client.sessions(&filter, Page::of(PAGE_MOST, None)).await?.rows.len() as u64)
}

/// Whose questions they are. A session that cannot be read is called by its id.
async fn names(client: &Client, found: &[Approval]) -> screen::Names {
    let mut names = screen::Names::new();
    for approval in found {
        if !names.contains_key(&approval.session)
            && let Ok(session) = client.session(&approval.session.to_string()).await
        {
            names.insert(approval.session, session.name.to_string());
        }
    }
    names
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
    loop {
        let (open, _) = find(&client, false, None).await?;
        let Some(next) = open.iter().find(|approval| !seen.contains(&approval.id)) else { break };
        seen.push(next.id);
        let names = names(&client, std::slice::from_ref(next)).await;
        if !answer_one(app, &client, next, &names).await? {
            return Ok(exit_code::OK);
        }
    }
    match seen.len() {
        0 => ui.say(&screen::nobody(working(&client).await?)),
        _ => ui.say(&Line::of("That was all.")),
    }
    Ok(exit_code::OK)
}

/// False when the person has had enough.
async fn answer_one(
    app: &App,
    client: &Client,
    approval: &Approval,
    names: &screen::Names,
) -> Result<bool, Failure> {
    let ui = &app.ui;
    let say = |line: Line| ui.say(&Line::of("          ").append(line));
    let who = names.get(&approval.session).cloned().unwrap_or_else(|| approval.session.short());
    let is_question = approval.kind == AskKind::Question;
    ui.say(
        &Line::toned(Tone::Warn, "? ")
            .strong(who)
            .plain(format!("  {}", approval.asks))
            .faint(format!("   {}", approval.why)),
    );
    let keys = if is_question {
        "[a] answer  [d] none  [v] full question  [s] skip  [q] quit"
    } else {
        "[a] once  [A] always  [d] deny  [m] deny and say why  [v] full request  [s] skip  [q] quit"
    };
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
            Key::Always if is_question => continue,
            Key::Always => request.always = true,
            Key::Deny => request.allow = false,
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
