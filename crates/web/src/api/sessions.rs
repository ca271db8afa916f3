//! Sessions: looking at them, starting them, saying something, steering them.

use axum::{
    Extension,
    extract::Path,
    routing::{get, post},
};
use ostler_client::{CreateSession, ResumeSession, SendMessage, Session, Taken};
use ostler_domain::{
    Budget, Mode, Name, Reason, Refusal,
    budget::{Amount, WhenUsedUp},
    handoff::Wish,
    session::Approve,
};
use ostler_form::{
    ChainForm, ConversationForm, MessageForm, Object, SentForm, SessionForm,
    seance::{SeanceForm, cite},
    tree::{DifferenceForm, RewindForm},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Endpoint, Form,
    asked::{self, PageAsked, SessionsAsked},
    names, of,
};
use crate::{
    guard::Visitor,
    reply::{Answer, Asked, Failure, Wanted, json},
    share,
};

const SESSION: Form = Form::One(of::<SessionForm>);

macro_rules! endpoint {
    ($method:literal $path:literal $id:literal $about:literal, $query:expr, $body:expr, $answer:expr, $serve:expr) => {
        Endpoint {
            method: $method,
            path: $path,
            id: $id,
            about: $about,
            query: $query,
            body: $body,
            answer: $answer,
            serve: $serve,
        }
    };
}
pub(super) use endpoint;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        endpoint!("get" "/v1/sessions" "listSessions" "Lists sessions, those that changed last first", Some(of::<SessionsAsked>), None, Form::Page("sessions", of::<SessionForm>), get(list)),
        endpoint!("post" "/v1/sessions" "createSession" "Starts a session", None, Some(of::<Create>), SESSION, post(create)),
        endpoint!("get" "/v1/sessions/{who}" "getSession" "Everything about one session", None, None, SESSION, get(show)),
        endpoint!("get" "/v1/sessions/{who}/messages" "listMessages" "What was said to its conversation, the newest first", Some(of::<PageAsked>), None, Form::Page("messages", of::<MessageForm>), get(messages)),
        endpoint!("post" "/v1/sessions/{who}/messages" "sendMessage" "Says something to a conversation; wakes it if it sleeps", None, Some(of::<Said>), Form::One(of::<TakenForm<'static>>), post(send)),
        endpoint!("get" "/v1/sessions/{who}/chain" "getChain" "The lives of its work, and who helped", None, None, Form::One(of::<ChainForm>), get(chain)),
        endpoint!("get" "/v1/sessions/{who}/diff" "getDiff" "What it changed", Some(of::<Span>), None, Form::One(of::<DifferenceForm>), get(diff)),
        endpoint!("get" "/v1/sessions/{who}/seance" "consultRecord" "Where the record of its chain speaks of a question", Some(of::<Question>), None, Form::One(of::<SeanceForm>), get(cited)),
        endpoint!("post" "/v1/sessions/{who}/seance" "askSession" "Has a copy of it answer a question, without tools: a session of its own, which is answered with", None, Some(of::<AskCopy>), SESSION, post(ask_copy)),
        endpoint!("post" "/v1/sessions/{who}/stop" "stopSession" "Ends it in an orderly way", None, Some(of::<Stop>), SESSION, post(stop)),
        endpoint!("post" "/v1/sessions/{who}/interrupt" "interruptSession" "Ends its turn", None, Some(of::<Nothing>), SESSION, post(interrupt)),
        endpoint!("post" "/v1/sessions/{who}/pause" "pauseSession" "Freezes it where it stands", None, Some(of::<Nothing>), SESSION, post(pause)),
        endpoint!("post" "/v1/sessions/{who}/resume" "resumeSession" "Lets it go on: raises what held it, tries a failed turn again, goes on with what has ended", None, Some(of::<Resume>), SESSION, post(resume)),
        endpoint!("post" "/v1/sessions/{who}/restart" "restartSession" "Replaces its process; the conversation goes on", None, Some(of::<Nothing>), SESSION, post(restart)),
        endpoint!("post" "/v1/sessions/{who}/handoff" "handOffSession" "Ends it and has another agent go on with its work", None, Some(of::<HandOff>), SESSION, post(hand_off)),
        endpoint!("post" "/v1/sessions/{who}/rewind" "rewindSession" "Puts files back as they were when a turn had ended", None, Some(of::<Rewind>), Form::One(of::<RewindForm>), post(rewind)),
        endpoint!("post" "/v1/messages/{id}/cancel" "cancelMessage" "Takes back what waits to be delivered", None, Some(of::<Nothing>), Form::One(of::<MessageForm>), post(cancel_message)),
        endpoint!("post" "/v1/sessions/{who}/fork" "forkSession" "Begins a conversation that is a copy of its own", None, Some(of::<Fork>), SESSION, post(fork)),
    ]
}

pub(super) async fn shown(visitor: &Visitor, session: &Session) -> Answer {
    let campaign = visitor.client.campaign(&session.campaign.to_string()).await;
    let campaign = campaign.map_or_else(|_| session.campaign.short(), |campaign| campaign.name.to_string());
    Ok(json(&SessionForm::new(session, &campaign)))
}

async fn list(Extension(visitor): Extension<Visitor>, Asked(asked): Asked<SessionsAsked>) -> Answer {
    let filter = asked.filter(&visitor.client).await?;
    let listed = visitor.client.sessions(&filter, asked.page()?).await?;
    let names = names(&visitor.client).await?;
    let rows =
        listed.rows.iter().map(|session| SessionForm::new(session, &names.of(&session.campaign))).collect();
    Ok(json(&Object { name: "sessions", rows, next_cursor: listed.next_cursor }))
}

async fn show(Extension(visitor): Extension<Visitor>, Path(who): Path<String>) -> Answer {
    shown(&visitor, &visitor.client.session(&who).await?).await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    /// Name, id, or a path in it.
    campaign: String,
    /// The agent program; without one, the campaign's usual one.
    provider: Option<String>,
    /// Without one, the provider's usual one.
    model: Option<String>,
    /// Of the conversation; without one it is made from the prompt.
    name: Option<String>,
    /// What the agent is told first; without one it starts and waits.
    prompt: Option<String>,
    /// A registered agent of the campaign.
    agent: Option<String>,
    /// Who answers its questions: policy, ask or all.
    approve: Option<String>,
    /// Such as 2usd,500k.
    budget: Option<String>,
    /// The work that it belongs to.
    ticket: Option<String>,
    /// It lives on when its first turn has ended; without a prompt it always does.
    #[serde(default)]
    keep: bool,
}

async fn create(Extension(visitor): Extension<Visitor>, Wanted(wanted): Wanted<Create>) -> Answer {
    let own = |text: &Option<String>| asked::said(text).map(str::to_owned);
    let budget = asked::said(&wanted.budget).map(amount).transpose()?;
    let prompt = own(&wanted.prompt);
    let request = CreateSession {
        model: own(&wanted.model),
        name: asked::said(&wanted.name).map(name).transpose()?,
        ends_with_turn: prompt.is_some() && !wanted.keep,
        initial_message: prompt,
        budget: budget.map(|Amount { tokens, dollars }| Budget {
            tokens,
            dollars,
            when_used_up: WhenUsedUp::Hold,
        }),
        approve: approve(asked::said(&wanted.approve))?,
        ticket: own(&wanted.ticket),
        agent: own(&wanted.agent),
        ..CreateSession::new(wanted.campaign, own(&wanted.provider).unwrap_or_default())
    };
    shown(&visitor, &visitor.client.create_session(request).await?).await
}

/// As `ostler run -d` has it: what no rule decides waits for a person.
fn approve(word: Option<&str>) -> Result<Approve, Failure> {
    match word {
        None | Some("policy") => Ok(Approve::Policy),
        Some("ask") => Ok(Approve::Ask),
        Some("all") => Ok(Approve::All),
        Some(other) => Err(Refusal::invalid(format!("approve: there is no \"{other}\"")).into()),
    }
}

pub(super) fn amount(text: &str) -> Result<Amount, Failure> {
    Ok(Amount::parse(text).map_err(|why| Refusal::invalid(format!("budget: {why}")))?)
}

fn name(text: &str) -> Result<Name, Failure> {
    Ok(text.parse().map_err(|problem| Refusal::invalid(format!("name: {problem}")))?)
}

async fn messages(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Asked(asked): Asked<PageAsked>,
) -> Answer {
    let listed = visitor.client.messages(&who, asked.page()?).await?;
    let rows = listed.rows.iter().map(MessageForm::new).collect();
    Ok(json(&Object { name: "messages", rows, next_cursor: listed.next_cursor }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Said {
    /// What is said.
    text: String,
    /// Followup, steer, collect or interrupt.
    mode: Option<String>,
    /// The same one again is the same message.
    idempotency_key: Option<String>,
}

/// What became of something said: it was taken down, or was the word that begins a conversation anew.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Taken")]
enum TakenForm<'a> {
    Sent(SentForm<'a>),
    Reset(Box<ConversationForm<'a>>),
}

async fn send(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(wanted): Wanted<Said>,
) -> Answer {
    if wanted.text.trim().is_empty() {
        return Err(Refusal::invalid("the message is empty").into());
    }
    let mode = match asked::said(&wanted.mode) {
        Some(word) => {
            Some(Mode::parse(word).ok_or_else(|| Refusal::invalid(format!("mode: there is no \"{word}\"")))?)
        }
        None => None,
    };
    let request = SendMessage {
        who,
        text: wanted.text,
        mode,
        idempotency_key: wanted.idempotency_key,
        ..SendMessage::default()
    };
    match visitor.client.send_message(request).await? {
        Taken::Sent(sent) => Ok(json(&TakenForm::Sent(SentForm {
            message: sent.message.to_string(),
            receipt: sent.receipt.as_str(),
            mode: sent.mode,
            session: sent.session.id.to_string(),
            name: sent.session.name.as_str(),
            woke: sent.woke,
            answer: None,
            why: sent.why.as_deref(),
            dropped: sent.dropped.iter().map(ToString::to_string).collect(),
            rule: sent.rule.as_deref(),
            opened_conversation: sent.opened.map(|id| id.to_string()),
        }))),
        // It was the word that begins a conversation anew.
        Taken::Reset(conversation) => {
            let opened = visitor.client.conversation(&conversation.to_string()).await?;
            let names = names(&visitor.client).await?;
            let conversation = ConversationForm::new(&opened, &names.of(&opened.campaign));
            Ok(json(&TakenForm::Reset(Box::new(conversation))))
        }
    }
}

async fn chain(Extension(visitor): Extension<Visitor>, Path(who): Path<String>) -> Answer {
    let session = visitor.client.session(&who).await?;
    let chain = visitor.client.whole_chain(&session.id.to_string()).await?;
    let names = names(&visitor.client).await?;
    Ok(json(&ChainForm::new(&session, &chain, |one| names.of(&one.campaign))))
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Span {
    /// A turn, or two as 2..5; without one, all that it changed.
    span: String,
}

async fn diff(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Asked(Span { span }): Asked<Span>,
) -> Answer {
    let difference = visitor.client.difference(&who, &span, true).await?;
    Ok(json(&DifferenceForm::new(&difference, true)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rewind {
    /// The turn after which files were as they are to be; 0 is the beginning. Or the name of a snapshot.
    turn: String,
    /// Says what would be changed, and changes nothing.
    #[serde(default)]
    dry_run: bool,
}

async fn rewind(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(Rewind { turn, dry_run }): Wanted<Rewind>,
) -> Answer {
    Ok(json(&RewindForm::new(&visitor.client.rewind(&who, &turn, dry_run).await?)))
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Question {
    /// What is to be known.
    question: String,
}

async fn cited(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Asked(Question { question }): Asked<Question>,
) -> Answer {
    let session = visitor.client.session(&who).await?;
    Ok(json(&cite(&visitor.client, &session, &question).await?.form(&question)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskCopy {
    /// What is to be known.
    question: String,
    /// What the answer may use, such as 0.5usd,200k; without one, little.
    budget: Option<String>,
}

async fn ask_copy(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(wanted): Wanted<AskCopy>,
) -> Answer {
    let budget = asked::said(&wanted.budget).map(amount).transpose()?.unwrap_or_default();
    shown(&visitor, &visitor.client.ask_session(&who, &wanted.question, budget).await?).await
}

async fn cancel_message(
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    Wanted(Nothing {}): Wanted<Nothing>,
) -> Answer {
    Ok(json(&MessageForm::new(&visitor.client.cancel_message(&id).await?)))
}

/// A change that takes nothing.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Stop {
    /// At once, without the orderly way.
    now: bool,
}

async fn stop(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(Stop { now }): Wanted<Stop>,
) -> Answer {
    shown(&visitor, &visitor.client.stop_session(&who, now).await?).await
}

async fn interrupt(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(Nothing {}): Wanted<Nothing>,
) -> Answer {
    shown(&visitor, &visitor.client.interrupt_session(&who).await?).await
}

async fn pause(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(Nothing {}): Wanted<Nothing>,
) -> Answer {
    shown(&visitor, &visitor.client.pause_session(&who).await?).await
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Resume {
    /// What it may use from now on, such as 5usd.
    budget: Option<String>,
}

async fn resume(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(wanted): Wanted<Resume>,
) -> Answer {
    let raised = asked::said(&wanted.budget).map(amount).transpose()?;
    if visitor.guest.share.is_some() && raised.is_some() {
        return Err(share::denied(
            "a share changes no limits",
            "what a session may use is its owner's to say",
        ));
    }
    let raised = raised.unwrap_or_default();
    let session = visitor.client.session(&who).await?;
    let who = session.id.to_string();
    // Nobody must know a session's state to pick a verb: what has ended goes on in a new session.
    if session.outcome.is_some() {
        match visitor.client.restart_with(&who, None, raised).await {
            // By this name it was asked to go on before it ended.
            Err(error) if error.is_refused_for(Reason::RequestConflict) => {}
            restarted => return shown(&visitor, &restarted?).await,
        }
    }
    let request = ResumeSession {
        who,
        max_tokens: raised.tokens,
        max_dollars: raised.dollars,
        ..ResumeSession::default()
    };
    shown(&visitor, &visitor.client.resume_session(request).await?).await
}

async fn restart(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(Nothing {}): Wanted<Nothing>,
) -> Answer {
    shown(&visitor, &visitor.client.restart_session(&who).await?).await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HandOff {
    /// Who goes on: a registered agent, PROVIDER or PROVIDER/MODEL; without one, a session like it.
    #[serde(default)]
    to: String,
    /// What it is told.
    #[serde(default)]
    note: String,
}

async fn hand_off(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(HandOff { to, note }): Wanted<HandOff>,
) -> Answer {
    let wish = Wish { note, ..Wish::default() };
    shown(&visitor, &visitor.client.hand_off(&who, &to, wish).await?).await
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Fork {
    /// Of the new conversation.
    name: Option<String>,
    /// The turn up to which it is a copy.
    at: Option<String>,
}

async fn fork(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(wanted): Wanted<Fork>,
) -> Answer {
    let name = asked::said(&wanted.name).map(name).transpose()?;
    let forked = visitor.client.fork_session(&who, name.as_ref(), asked::said(&wanted.at)).await?;
    shown(&visitor, &forked).await
}
