//! `ostler wait`: waits for the end of sessions; the exit code says how they ended.

use std::time::Duration;

use clap::Args;
use ostler_domain::{Reason, Refusal};
use tokio::task::JoinSet;

use super::{
    ended,
    many::{self, Operands},
};
use crate::{
    app::App,
    failure::{Failure, of_many, of_outcome},
    output::Line,
    parse, words,
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
    for typed in &args.operands.who {
        let session = app.session(&client, typed).await?;
        names.push(session.name.to_string());
        let client = client.clone();
        waiting.spawn(async move { ended::wait(&client, session.id).await });
    }
    app.ui.show_meanwhile(Line::new().faint(format!("waiting for {} …", names.join(", "))));
    let all = async {
        let mut codes = Vec::new();
        while let Some(joined) = waiting.join_next().await {
            let session = joined.map_err(|error| Refusal::internal(error.to_string()))??;
            let outcome = session.outcome.map_or("ended", |outcome| outcome.as_str());
            many::say(app, &client, outcome, &session).await?;
            app.ui.flush()?;
            codes.extend(session.outcome.map(of_outcome));
        }
        Ok(of_many(&codes))
    };
    match args.timeout {
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
    }
}
