//! `ostler wait`: waits for the end of sessions; the exit code says how they ended.

use std::time::Duration;

use clap::Args;
use ostler_client::{Watched, query::EventFilter};
use ostler_domain::{Event, Kind, Reason, Recorded, Refusal, SessionId};
use tokio::task::JoinSet;

use super::{
    ended,
    many::{self, Operands},
};
use crate::{
    app::App,
    failure::{Failure, of_many, of_outcome},
    output::{Line, Rows},
    parse,
    screen::{
        approval::{somebody_is_asked, somebody_is_asked_now},
        hold,
    },
    words,
};

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    operands: Operands,
    /// Give up after this time (exit 8); the sessions go on
    #[arg(long, value_parser = parse::time_limit, value_name = "SPAN")]
    timeout: Option<Duration>,
}

pub(crate) async fn run(app: &App, args: WaitArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let mut waiting = JoinSet::new();
    let mut names = Vec::new();
    let mut ids = Vec::new();
    let kinds = vec![Kind::ApprovalRequested, Kind::SessionHeld];
    let mut asked = client.watch(EventFilter { kinds, ..EventFilter::default() }, None).await?;
    for typed in &args.operands.who {
        let session = app.session(&client, typed).await?;
        names.push(session.name.to_string());
        ids.push(session.id);
        let waits_for = somebody_is_asked(&session).or_else(|| hold::at_a_budget(&session));
        waits_for.iter().for_each(|line| app.ui.insist(line));
        let client = client.clone();
        waiting.spawn(async move { ended::wait(&client, session.id).await });
    }
    let rows = many::rows(app, ids.len() > 1, "sessions");
    app.ui.show_meanwhile(Line::new().faint(format!("waiting for {} …", names.join(", "))));
    let all = async {
        let mut codes = Vec::new();
        let mut is_watched = true;
        loop {
            let joined = tokio::select! {
                joined = waiting.join_next() => joined,
                item = asked.next(), if is_watched => {
                    // Who waits for the sessions hears of a daemon that is gone.
                    is_watched = matches!(item, Some(Ok(_)));
                    if let Some(Ok(Watched::Event(event))) = item {
                        say_who_is_asked(app, &ids, &event);
                    }
                    continue;
                }
            };
            let Some(joined) = joined else { break };
            let session = joined.map_err(|error| Refusal::internal(error.to_string()))??;
            let outcome = session.outcome.map_or("ended", |outcome| outcome.as_str());
            match &rows {
                Some(rows) => rows.row(&many::form(app, &client, &session).await)?,
                None => many::say(app, &client, outcome, &session).await?,
            }
            app.ui.flush()?;
            codes.extend(session.outcome.map(of_outcome));
        }
        Ok(of_many(&codes))
    };
    let code = match args.timeout {
        None => all.await,
        Some(limit) => match tokio::time::timeout(limit, all).await {
            Ok(code) => code,
            Err(_) => {
                let message = format!("not ended within {}", words::took(limit));
                Err(Refusal::new(Reason::TimedOut, message)
                    .hint("ostler ls", "shows what they are doing")
                    .into())
            }
        },
    };
    // Also where some have not ended in time: what is printed is a whole document.
    rows.map_or(Ok(()), Rows::end)?;
    code
}

fn say_who_is_asked(app: &App, ids: &[SessionId], event: &Recorded) {
    let Some(session) = event.session.filter(|session| ids.contains(session)) else { return };
    let waits_for = match &event.event {
        Event::ApprovalRequested(asked) => somebody_is_asked_now(&session, asked),
        Event::SessionHeld(held) => hold::at_a_budget_now(&session, held),
        _ => None,
    };
    waits_for.iter().for_each(|line| app.ui.insist(line));
}
