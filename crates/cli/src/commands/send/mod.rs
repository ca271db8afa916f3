//! `ostler send`: says something to a conversation and shows what becomes of it.

mod args;
mod course;
mod question;

use std::time::Duration;

use clap::Args;
use ostler_client::{
    Approval, Client, Conversation, SendMessage, Session, Taken, Watch, query::EventFilter, reply::Sent,
};
use ostler_domain::{
    ConversationId, Kind, Mode, Reason, Receipt, Refusal, SessionId, Usage,
    conversation::{Key, ResponseUsage},
    session::Attention,
};
use ostler_form::SentForm;
use tokio::time::Instant;

pub(crate) use self::args::chat_type;
use self::{
    args::{InboundArgs, When},
    course::Course,
};
use crate::{
    app::App,
    exit_code,
    failure::{Failure, of_outcome},
    form::ConversationForm,
    input,
    output::{Line, Tone},
    parse,
    screen::{approval::somebody_is_asked, message::receipts, row},
    words,
};

/// How long an idle agent is given to show the message, so that the receipt says more than `accepted`.
const FOR_RECEIPTS: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// Session, conversation or agent: name, id, part of an id, or - for the last one of this terminal
    who: String,
    /// What to say; - reads standard input
    text: String,
    /// Which of an agent's conversations, opened if it is not; then WHO is that agent
    #[arg(long)]
    key: Option<Key>,
    /// When to say it, if a turn is open: followup (when it has ended), steer (into it, where the agent can be told
    /// something there), collect (when it has ended, in one prompt with others) or interrupt (now: the turn is ended for
    /// it); the receipt says what was done. Unset: as the conversation's queue_mode says, else followup
    #[arg(long, value_enum, value_name = "MODE")]
    mode: Option<When>,
    /// The same as --mode steer
    #[arg(long, hide = true, conflicts_with = "mode")]
    steer: bool,
    /// Your own name for the message: said again under the same name, it is the same message
    #[arg(long, value_name = "KEY")]
    id: Option<String>,
    #[command(flatten)]
    inbound: InboundArgs,
    /// Wait for the answer and print it
    #[arg(long)]
    wait: bool,
    /// With --wait: give up after this time (exit 8); the agent goes on
    #[arg(long, value_parser = parse::duration, value_name = "SPAN", requires = "wait")]
    timeout: Option<Duration>,
}

impl SendArgs {
    /// To whom, and what: all that an agent may say of it.
    pub(super) fn words(self) -> (String, String) {
        (self.who, self.text)
    }

    /// Whether nothing else is said of it.
    pub(super) fn is_plain(&self) -> bool {
        let is_set = self.key.is_some() || self.mode.is_some() || self.id.is_some();
        !is_set && !self.steer && !self.wait && self.inbound.inbound().is_none()
    }
}

pub(crate) async fn run(app: &App, args: SendArgs) -> Result<u8, Failure> {
    let text = if args.text == "-" { input::whole(&app.ui)? } else { args.text.clone() };
    // An agent's question would otherwise be answered with nothing.
    if text.trim().is_empty() {
        return Err(Refusal::invalid("the message is empty")
            .hint(format!("ostler send {} \"…\"", args.who), "says something")
            .into());
    }
    let client = app.client().await?;
    let who = app.addressee(&client, &args.who).await?;
    let before = before(&client, &who, args.key.as_ref()).await?;
    // Watched before it is sent, so that no receipt is missed; the session may be one that does not exist yet.
    let mut watch = client.watch(EventFilter { kinds: kinds(), ..EventFilter::default() }, None).await?;
    if let Some(question) = asked(&client, before.as_ref()).await? {
        let wait = args.wait.then_some((&mut watch, args.timeout));
        return question::answer(app, &client, &question, &text, wait).await;
    }
    let mode = args.mode.or(args.steer.then_some(When::Steer)).map(Mode::from);
    let (key, idempotency_key, inbound) = (args.key, args.id, args.inbound.inbound());
    let has_name = idempotency_key.is_some();
    let request = SendMessage { who, text, mode, key, idempotency_key, inbound };
    let sent = match client.send_message(request).await? {
        Taken::Sent(sent) => *sent,
        Taken::Reset(fresh) => return reset(app, &client, fresh).await,
    };
    if has_name {
        // Said again, it may long be answered: it is followed from where it was first said.
        watch = since_said(&client, &sent).await?;
    }
    app.touched(&sent.session.id);
    if let Some(fresh) = &sent.opened {
        app.ui.remark(&begins_anew(&client.conversation(&fresh.to_string()).await?));
    }
    if let Some(before) = before.filter(|before| sent.woke && sent.session.continues == Some(before.id)) {
        app.ui.remark(&woke(&before, &sent.session));
    } else if sent.woke {
        app.ui.remark(&began(&sent.session));
    }
    if mode.is_some_and(|mode| mode == Mode::Steer && sent.mode != mode) {
        app.ui.remark(&not_steered(&sent.session));
    }
    for line in gave_way(&sent) {
        app.ui.remark(&line);
    }
    let mut course = Course::new(&sent);
    if course.receipt == Receipt::Dropped {
        receipt(app, &sent, &course, None)?;
        return Ok(exit_code::WRONG_STATE);
    }
    if sent.session.attention == Some(Attention::BudgetHold) {
        app.ui.remark(&held(&sent.session));
        if args.wait {
            // It hears nothing until somebody allows more: whoever waits would wait for that.
            receipt(app, &sent, &course, None)?;
            return Ok(exit_code::SESSION_BUDGET);
        }
    }
    if args.wait {
        let until = args.timeout.map(|limit| Instant::now() + limit);
        if let Some(asked) = somebody_is_asked(&sent.session) {
            app.ui.insist(&asked);
        }
        let answered = course.follow(&app.ui, &mut watch, until, |course| course.is_over()).await?;
        if !answered {
            return no_answer(app, &client, course.session, args.timeout.unwrap_or_default()).await;
        }
        return answer(app, &client, &sent, &course).await;
    }
    if has_name {
        course.receipt = client.message(&sent.message.to_string()).await?.receipt;
    }
    if sent.session.attention != Some(Attention::Working) && course.receipt < Receipt::Seen {
        let until = Instant::now() + FOR_RECEIPTS;
        course
            .follow(&app.ui, &mut watch, Some(until), |course| {
                course.receipt >= Receipt::Seen || course.ended
            })
            .await?;
    }
    // It was taken, and gave way to a later one before its agent could hear it.
    if course.receipt == Receipt::Dropped {
        app.ui.remark(&dropped(course.failure.as_deref().unwrap_or("no room was left for it")));
        receipt(app, &sent, &course, None)?;
        return Ok(exit_code::WRONG_STATE);
    }
    receipt(app, &sent, &course, None)?;
    Ok(exit_code::OK)
}

/// The time is over, and the agent goes on.
async fn no_answer(app: &App, client: &Client, session: SessionId, waited: Duration) -> Result<u8, Failure> {
    let span = words::span(waited);
    let session = client.session(&session.to_string()).await?;
    if session.attention == Some(Attention::RateLimited) {
        app.ui.remark(
            &Line::toned(Tone::Bad, format!("✗ no answer within {span}: "))
                .append(row::now(&session, words::now())),
        );
        return Ok(exit_code::SESSION_LIMITED);
    }
    Err(Refusal::new(Reason::TimedOut, format!("no answer within {span}"))
        .hint(format!("ostler logs -f {}", session.id.short()), "follows the agent, which goes on")
        .into())
}

async fn since_said(client: &Client, sent: &Sent) -> Result<Watch, Failure> {
    let said = client.message(&sent.message.to_string()).await?;
    let since = Some(said.accepted);
    Ok(client.watch(EventFilter { kinds: kinds(), since, ..EventFilter::default() }, Some(0)).await?)
}

fn kinds() -> Vec<Kind> {
    vec![
        Kind::MessageAccepted,
        Kind::MessageDelivered,
        Kind::MessageSeen,
        Kind::MessageAnswered,
        Kind::MessageUnknown,
        Kind::MessageReturned,
        Kind::MessageDropped,
        Kind::MessageCancelled,
        Kind::MessageMoved,
        Kind::AgentCompletion,
        Kind::UsageRecorded,
        Kind::TurnEnded,
        Kind::ApprovalRequested,
        Kind::SessionHeld,
        Kind::SessionCreated,
        Kind::SessionStopped,
        Kind::SessionFailed,
    ]
}

/// The session that hears it, as things stand: none where there is a conversation or an agent, and nothing was said yet.
async fn before(client: &Client, who: &str, key: Option<&Key>) -> Result<Option<Session>, Failure> {
    if key.is_some() {
        return Ok(None);
    }
    match client.session(who).await.map_err(Failure::from) {
        Ok(session) => Ok(Some(session)),
        // What fits several is refused when it is sent, with the words to send it again.
        Err(failure) if matches!(failure.reason(), Some(Reason::SessionUnknown | Reason::Ambiguous)) => {
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

async fn asked(client: &Client, before: Option<&Session>) -> Result<Option<Approval>, Failure> {
    match before {
        Some(before) => question::of(client, before).await,
        None => Ok(None),
    }
}

/// Nothing was said but that the conversation begins anew.
pub(super) async fn reset(app: &App, client: &Client, fresh: ConversationId) -> Result<u8, Failure> {
    let fresh = client.conversation(&fresh.to_string()).await?;
    if app.ui.is_json() {
        let campaign = app.campaign_name(client, &fresh.campaign).await;
        app.ui.json(&ConversationForm::new(&fresh, &campaign))?;
    } else if app.ui.is_quiet() {
        app.ui.data(&Line::of(fresh.id.to_string()))?;
    } else {
        app.ui.data(&begins_anew(&fresh))?;
    }
    Ok(exit_code::OK)
}

fn begins_anew(fresh: &Conversation) -> Line {
    let old = fresh.replaces.map(|id| id.short()).unwrap_or_default();
    let line = Line::of("conversation ").strong(fresh.name.as_str());
    line.plain(format!("  begins anew; what was said is in {old}"))
}

fn began(session: &Session) -> Line {
    Line::new().faint(format!("{}: session {} began for it", session.name, session.id.short()))
}

fn woke(before: &Session, after: &Session) -> Line {
    let outcome = before.outcome.map_or("ended", |outcome| outcome.as_str());
    let ago =
        before.ended_at.map(|at| format!(" {} ago", words::age(words::now().since(at)))).unwrap_or_default();
    Line::of(format!("{} ended ({outcome}{ago}): started session ", before.id.short()))
        .with(Tone::Accent, after.id.short())
        .plain(" in the same conversation")
}

/// Why an agent does not hear what it was told.
fn held(session: &Session) -> Line {
    let short = session.id.short();
    Line::toned(Tone::Warn, format!("{short} is held at its budget, and hears this when it goes on: "))
        .append(Line::toned(Tone::Accent, row::budget_cure(session)))
}

/// What an answer took, as its conversation wants that to be said.
fn took(wanted: Option<ResponseUsage>, usage: &Usage) -> Option<Line> {
    let input = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
    let short = format!("usage  {} in · {} out", words::count(input), words::count(usage.output));
    let text = match wanted? {
        ResponseUsage::Off => return None,
        ResponseUsage::On | ResponseUsage::Tokens => short,
        ResponseUsage::Full => format!(
            "{short} (cache read {}, cache write {}, reasoning {})",
            words::count(usage.cache_read),
            words::count(usage.cache_write),
            words::count(usage.reasoning)
        ),
    };
    Some(Line::new().faint(text))
}

/// What was dropped for want of room, or why this was.
fn gave_way(sent: &Sent) -> Vec<Line> {
    let dropped = sent.dropped.iter().map(|id| {
        Line::toned(Tone::Warn, format!("message {} was dropped for this one", id.short()))
            .plain("; ")
            .append(Line::toned(Tone::Accent, format!("ostler message show {}", id.short())))
    });
    let own = sent.why.iter().filter(|_| sent.receipt == Receipt::Dropped);
    own.map(|why| self::dropped(why)).chain(dropped).collect()
}

fn dropped(why: &str) -> Line {
    Line::toned(Tone::Warn, format!("this message was dropped: {why}"))
}

/// What happens to words for a turn where the agent cannot be told anything within one.
fn not_steered(session: &Session) -> Line {
    let then = match session.attention {
        Some(Attention::Working | Attention::WaitingApproval | Attention::WaitingInput) => {
            "it hears this when its turn has ended"
        }
        _ => "it hears this as its next prompt",
    };
    let provider = &session.provider;
    Line::toned(Tone::Warn, format!("{provider} cannot be told anything within a turn: {then}"))
        .plain("; ")
        .append(
            Line::toned(Tone::Accent, format!("ostler interrupt {}", session.id.short()))
                .faint(" ends the turn now"),
        )
}

fn receipt(app: &App, sent: &Sent, course: &Course, answer: Option<&str>) -> Result<(), Failure> {
    if app.ui.is_json() {
        return app.ui.json(&SentForm {
            message: sent.message.to_string(),
            receipt: course.receipt.as_str(),
            mode: sent.mode,
            session: course.session.to_string(),
            name: sent.session.name.as_str(),
            woke: sent.woke,
            answer,
            why: sent.why.as_deref().or(course.failure.as_deref()),
            dropped: sent.dropped.iter().map(ToString::to_string).collect(),
            rule: sent.rule.as_deref(),
            opened_conversation: sent.opened.map(|id| id.to_string()),
        });
    }
    if app.ui.is_quiet() {
        return app.ui.data(&Line::of(sent.message.to_string()));
    }
    app.ui.data(&line(course))
}

fn line(course: &Course) -> Line {
    Line::of("msg ").with(Tone::Accent, course.message.short()).plain("  ").append(receipts(course.receipt))
}

async fn answer(app: &App, client: &Client, sent: &Sent, course: &Course) -> Result<u8, Failure> {
    let session = client.session(&course.session.to_string()).await?;
    let code = match (course.receipt, session.outcome) {
        (Receipt::Answered, _) if course.failure.is_none() => exit_code::OK,
        (_, Some(outcome)) if of_outcome(outcome) != exit_code::OK => of_outcome(outcome),
        _ => exit_code::SESSION_FAILED,
    };
    if app.ui.is_json() {
        receipt(app, sent, course, course.answer.as_deref())?;
        return Ok(code);
    }
    app.ui.remark(&line(course));
    if let Some(answer) = &course.answer {
        app.ui.text(answer)?;
    }
    let conversation = client.conversation(&session.conversation.to_string()).await?;
    if let Some(line) = took(conversation.notes.entry.response_usage, &course.usage) {
        app.ui.remark(&line);
    }
    if code != exit_code::OK {
        let why = why_not(&session, course.failure.as_deref());
        app.ui.remark(&Line::toned(Tone::Bad, "✗ ").plain(why));
    }
    Ok(code)
}

/// Why there is no answer that can be relied on.
fn why_not<'a>(session: &'a Session, failure: Option<&'a str>) -> &'a str {
    let obituary = session.obituary.as_ref().map(|obituary| obituary.sentence.as_str());
    failure.or(obituary).unwrap_or("it was not answered")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_answer_took_is_said_as_wished() {
        let usage = Usage { input: 1_200, cache_read: 300, output: 80, ..Usage::default() };
        let said = |wanted| took(wanted, &usage).map(|line| line.show(&crate::output::Look::plain(None)));
        assert_eq!((said(None), said(Some(ResponseUsage::Off))), (None, None));
        assert_eq!(said(Some(ResponseUsage::Tokens)).unwrap(), "usage  1.5k in · 80 out");
        assert!(said(Some(ResponseUsage::Full)).unwrap().contains("cache read 300"));
    }
}
