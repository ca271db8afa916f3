//! `ostler mission logs`: what happened to it, transition by transition.

use clap::Args;
use ostler_client::{Client, Received, Watched, query::EventFilter};
use ostler_domain::{MissionId, Refusal, limits::PAGE_MOST, mission::State, text::shell_word};

use super::{Who, follow};
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    form::EventForm,
    output::{Format, Line, Rows},
    words,
};

#[derive(Debug, Args)]
pub(super) struct LogsArgs {
    #[command(flatten)]
    who: Who,
    /// Follow until it is over
    #[arg(short, long)]
    follow: bool,
    /// Only the last N transitions
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
}

pub(super) async fn run(app: &App, args: LogsArgs) -> Result<u8, Failure> {
    if args.follow && app.ui.format() == Some(Format::Json) {
        return Err(Refusal::invalid("what is followed has no end, so it is no single object")
            .hint(
                format!("ostler mission logs -f {} -o jsonl", shell_word(&args.who.who)),
                "prints an object a line",
            )
            .into());
    }
    let client = app.client().await?;
    let id = client.mission(&args.who.who).await?.mission.id;
    let mut story = Story { app, id, state: None, rows: Rows::new(&app.ui, "events") };
    let events = events(&client, id).await?;
    let seen = events.last().map_or(0, Received::seq);
    let first = args.tail.map_or(0, |tail| events.len().saturating_sub(tail));
    if !args.follow {
        app.ui.page();
    }
    for (place, event) in events.iter().enumerate() {
        story.take(event, place >= first)?;
    }
    app.ui.flush()?;
    if !args.follow {
        if app.ui.is_json() {
            story.rows.end()?;
        }
        return Ok(exit_code::OK);
    }
    let filter = EventFilter { kinds: Client::MISSION_KINDS.to_vec(), ..EventFilter::default() };
    let mut watch = client.watch(filter, Some(seen)).await?;
    while !story.state.as_ref().is_some_and(State::is_over) {
        match watch.next().await.transpose()? {
            Some(Watched::Event(event)) => story.take(&Received::Known(event), true)?,
            Some(Watched::Unknown(_)) => {}
            Some(Watched::Reconnected) => {
                app.ui.remark(&Line::new().faint("the daemon is back; nothing was missed"));
            }
            None => break,
        }
        app.ui.flush()?;
    }
    Ok(exit_code::OK)
}

async fn events(client: &Client, id: MissionId) -> Result<Vec<Received>, Failure> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let page = client.mission_events(&id.to_string(), after, PAGE_MOST).await?;
        all.extend(page.events);
        match page.next {
            Some(next) => after = next,
            None => return Ok(all),
        }
    }
}

struct Story<'a> {
    app: &'a App,
    id: MissionId,
    /// For the assignments' names.
    state: Option<State>,
    /// Where events go, if a program reads them.
    rows: Rows<'a>,
}

impl Story<'_> {
    fn take(&mut self, event: &Received, is_shown: bool) -> Result<(), Failure> {
        let Received::Known(recorded) = event else { return Ok(()) };
        if recorded.event.mission() != Some(self.id) {
            return Ok(());
        }
        match &mut self.state {
            Some(state) => state.apply(recorded.time, &recorded.event),
            None => self.state = State::replay([(recorded.time, &recorded.event)]),
        }
        let Some(state) = self.state.as_ref().filter(|_| is_shown) else { return Ok(()) };
        if self.app.ui.is_json() {
            return self.rows.row(&EventForm::new(event));
        }
        let clock = words::clock(recorded.time, &self.app.zone());
        let prefix = Line::new().faint(format!("{clock}  "));
        let lines = follow::told(state, recorded).lines(&prefix, self.app.ui.out_look().width);
        self.app.ui.data_lines(&lines)
    }
}
