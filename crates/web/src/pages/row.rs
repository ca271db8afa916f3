//! One session in one line: the words and signs of `ostler ls`.

use ostler_client::Session;
use ostler_domain::{
    Time,
    session::{Attention, Mark, Status},
    text::one_line,
};
use ostler_form::{money, words};

/// A session as a row of a table.
pub(super) struct Row {
    pub(super) id: String,
    pub(super) short: String,
    pub(super) name: String,
    pub(super) campaign: String,
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) status: &'static str,
    pub(super) sign: &'static str,
    pub(super) tone: &'static str,
    pub(super) now: String,
    pub(super) age: String,
    pub(super) context: String,
    pub(super) cost: String,
}

impl Row {
    pub(super) fn new(session: &Session, campaign: String, now: Time) -> Row {
        let (tone, sign) = sign(session);
        let context = session.context.as_ref().map(|context| {
            context.percent().map_or_else(|| words::count(context.used), |percent| format!("{percent}%"))
        });
        let model = session.model.clone().filter(|model| *model != session.provider);
        Row {
            id: session.id.to_string(),
            short: session.id.short(),
            name: session.name.to_string(),
            campaign,
            provider: session.provider.clone(),
            model: model.unwrap_or_default(),
            status: session.status.as_str(),
            sign,
            tone,
            now: doing(session, now),
            age: words::age(now.since(session.created_at)),
            context: context.unwrap_or_default(),
            cost: money::short(&session.cost),
        }
    }
}

/// The sign, and its colour. The word beside it says the same.
pub(super) fn sign(session: &Session) -> (&'static str, &'static str) {
    let mark = session.mark();
    let tone = match mark {
        Mark::Failed => "bad",
        Mark::Done | Mark::Working => "good",
        Mark::NeedsYou => "warn",
        Mark::Paused => "cool",
        Mark::Imported | Mark::Over | Mark::Beginning | Mark::Still => "dim",
    };
    (tone, mark.sign())
}

/// What happens now, from events. Of an agent outside of Ostler, that it is there.
fn doing(session: &Session, now: Time) -> String {
    let doing = known(session, now);
    match session.imported.is_some() && session.outcome.is_none() {
        true => format!("outside · {doing}"),
        false => doing,
    }
}

fn known(session: &Session, now: Time) -> String {
    let since = words::span(now.since(session.attention_since));
    let evidence = one_line(&session.evidence, 300);
    match (session.status, session.attention) {
        (Status::Stopped | Status::Failed, _) => {
            let outcome = session.outcome.map_or("ended", |outcome| outcome.as_str());
            // How it ended nobody here knows.
            let outcome = session.imported.as_ref().map_or(outcome, |_| "imported, ended");
            let ago = session.ended_at.map(|at| format!(" {} ago", words::age(now.since(at))));
            let why = session.obituary.as_ref().filter(|_| session.status == Status::Failed);
            let why = why.map(|obituary| format!(" · {}", one_line(&obituary.sentence, 200)));
            format!("{outcome}{}{}", ago.unwrap_or_default(), why.unwrap_or_default())
        }
        (Status::Created, _) | (_, None) => evidence,
        _ if session.is_getting_ready() => format!("starting {since}"),
        (_, Some(Attention::Working)) => match &session.doing {
            _ if session.background().is_some() => format!("{evidence} · {since}"),
            Some(doing) => {
                format!("{} · {}", one_line(&doing.text, 300), words::span(now.since(doing.since)))
            }
            None => format!("working {since}"),
        },
        (_, Some(attention)) if evidence.is_empty() => format!("{} {since}", attention.as_str()),
        (_, Some(attention)) => format!("{} {since} · {evidence}", attention.as_str()),
    }
}
