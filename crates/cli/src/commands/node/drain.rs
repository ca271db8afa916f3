//! `ostler node drain`: nothing new starts on a machine; what runs goes on, and with --wait is waited for.

use std::time::Duration;

use clap::Args;
use ostler_client::{Client, Session, query::EventFilter};
use ostler_domain::{
    Reason, Refusal,
    query::{Scope, SessionFilter},
    session::{Attention, Status},
};
use serde::Serialize;
use tokio::time::{Instant, timeout_at};

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    form::DrainForm,
    listing::Found,
    output::{Line, Tone},
    parse, words,
};

#[derive(Debug, Args)]
pub(super) struct DrainArgs {
    /// Let start what waits
    #[arg(long, conflicts_with_all = ["wait", "message"])]
    end: bool,
    /// Wait until nobody works any more
    #[arg(short, long)]
    wait: bool,
    /// Wait at most this long; exit 8 when somebody still works
    #[arg(long, value_parser = parse::duration, value_name = "SPAN", requires = "wait")]
    timeout: Option<Duration>,
    /// Why; shown with everything that waits meanwhile
    #[arg(short, long, value_name = "WHY", default_value = "", hide_default_value = true)]
    message: String,
}

#[derive(Serialize)]
struct Form {
    drain: Option<DrainForm>,
    /// Sessions whose agents are in the middle of something.
    working: Vec<String>,
}

pub(super) async fn run(app: &App, args: DrainArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let ui = &app.ui;
    if args.end {
        let was_drained = client.end_drain().await?;
        if ui.is_json() {
            ui.json(&Form { drain: None, working: Vec::new() })?;
        } else if was_drained {
            ui.data(&Line::toned(Tone::Good, "drained no longer").plain(": what waits starts"))?;
        } else {
            ui.data(&Line::of("it was not drained"))?;
        }
        return Ok(exit_code::OK);
    }
    let drain = client.drain(&args.message).await?;
    let mut working = at_work(&client).await?;
    if !ui.is_json() {
        let work = words::plural(working.len() as u64, "agent works", "agents work");
        ui.data(&Line::toned(Tone::Warn, "drained").plain(format!(": nothing new starts; {work}")))?;
        ui.remark(
            &Line::new()
                .faint("what is asked for waits until ")
                .with(Tone::Accent, "ostler node drain --end"),
        );
    }
    if args.wait {
        working = until_quiet(app, &client, working, args.timeout).await?;
    }
    if ui.is_json() {
        let working = working.iter().map(|session| session.id.to_string()).collect();
        ui.json(&Form { drain: Some(DrainForm::new(&drain)), working })?;
    } else if args.wait {
        ui.remark(&Line::toned(Tone::Good, "nobody works any more"));
    }
    Ok(exit_code::OK)
}

/// Sessions that are in the middle of something, or are about to be: what waits for them is told to them next.
async fn at_work(client: &Client) -> Result<Vec<Session>, Failure> {
    let filter = SessionFilter { scope: Scope::NotEnded, ..SessionFilter::default() };
    let unended = Found::paged(None, None, async |page| client.sessions(&filter, page).await).await?.rows;
    Ok(unended.into_iter().filter(is_at_work).collect())
}

fn is_at_work(session: &Session) -> bool {
    match session.status {
        // It runs outside of Ostler, which neither started it nor can hold it up.
        _ if session.imported.is_some() => false,
        Status::Starting | Status::Working | Status::Stopping => true,
        Status::Running => match session.attention {
            // Silent, and in the middle of a turn: what it does would be cut off.
            Some(Attention::Stalled) => true,
            Some(Attention::Idle) => session.messages_waiting > 0,
            _ => false,
        },
        Status::Created | Status::Stopped | Status::Failed => false,
    }
}

async fn until_quiet(
    app: &App,
    client: &Client,
    mut working: Vec<Session>,
    most: Option<Duration>,
) -> Result<Vec<Session>, Failure> {
    // From before the look, so that nothing between is missed.
    let mut events = client.watch(EventFilter::default(), None).await?;
    let deadline = Instant::now() + most.unwrap_or(Duration::from_secs(u64::from(u32::MAX)));
    working = if working.is_empty() { working } else { at_work(client).await? };
    let mut said = working.len();
    while !working.is_empty() {
        let next = timeout_at(deadline, events.next()).await;
        match next {
            Err(_) => {
                let names: Vec<_> = working.iter().map(|session| session.name.as_str()).collect();
                return Err(Refusal::new(Reason::TimedOut, "somebody still works")
                    .because(names.join(", "))
                    .hint("ostler ls", "shows who")
                    .into());
            }
            Ok(Some(Err(error))) => return Err(error.into()),
            Ok(_) => {}
        }
        working = at_work(client).await?;
        if working.len() < said {
            said = working.len();
            let left = words::plural(said as u64, "agent works", "agents work");
            app.ui.remark(&Line::new().faint(left));
        }
    }
    Ok(working)
}

#[cfg(test)]
mod tests {
    use ostler_domain::history::{Origin, Source};

    use super::*;
    use crate::testing;

    #[test]
    fn who_is_about_to_be_told_something_works() {
        let at_work = |session: &Session| is_at_work(session);
        let fleet = testing::fleet();
        let names: Vec<_> =
            fleet.iter().filter(|session| at_work(session)).map(|session| session.name.as_str()).collect();
        assert_eq!(names, ["migrate", "docs"]);
        let idle = fleet.iter().find(|session| session.name.as_str() == "triage").unwrap();
        assert!(at_work(&Session { attention: Some(Attention::Stalled), ..idle.clone() }));
        assert!(!at_work(idle) && at_work(&Session { messages_waiting: 1, ..idle.clone() }));
        let works = fleet.iter().find(|session| session.name.as_str() == "docs").unwrap();
        let origin = Origin { source: Source::Claude, dialogue: String::new(), file: String::new(), from: 0 };
        let outside = Session { imported: Some(origin), ..works.clone() };
        assert!(at_work(works) && !at_work(&outside), "nobody waits for what Ostler does not run");
    }
}
