//! `ostler mission show`.

use clap::Args;
use ostler_client::{Client, Session, reply::WholeMission};
use ostler_domain::{
    MissionId,
    mission::State,
    query::{Scope, SessionFilter},
};

use super::{Who, follow, form::WholeForm};
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    listing::Found,
    output::{Format, Line, Tone},
    screen::mission::show::Seen,
    words,
};

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    who: Who,
    /// Draw it again whenever something changes, until it is over
    #[arg(short, long)]
    watch: bool,
}

impl ShowArgs {
    pub(super) fn watching(who: Who) -> Self {
        Self { who, watch: true }
    }
}

pub(super) async fn run(app: &App, args: ShowArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let whole = client.mission(&args.who.who).await?;
    if args.watch {
        return follow::watch(app, &client, whole.mission.id).await;
    }
    whole_of(app, &client, &whole).await?;
    Ok(exit_code::OK)
}

/// The same for `ostler show`, which has found which it is.
pub(crate) async fn by_id(app: &App, client: &Client, whole: &WholeMission) -> Result<(), Failure> {
    whole_of(app, client, whole).await
}

async fn whole_of(app: &App, client: &Client, whole: &WholeMission) -> Result<(), Failure> {
    if app.ui.is_json() {
        let campaign = app.campaign_name(client, &whole.mission.campaign).await;
        return app.ui.json(&WholeForm::new(whole, &campaign));
    }
    if app.ui.is_quiet() || app.ui.format() == Some(Format::Name) {
        let is_name = app.ui.format() == Some(Format::Name);
        let word = if is_name { whole.mission.name.to_string() } else { whole.mission.id.to_string() };
        return app.ui.data(&Line::of(word));
    }
    let (state, _) = client.mission_state(&whole.mission.id.to_string()).await?;
    let sessions = sessions(client, whole.mission.id).await?;
    let seen = Seen { state: &state, sessions: &sessions, whole: Some(whole), now: words::now() };
    print(app, &seen)
}

/// What `ostler show` draws again and again.
pub(crate) async fn lines(app: &App, client: &Client, whole: &WholeMission) -> Result<Vec<Line>, Failure> {
    let (state, _) = client.mission_state(&whole.mission.id.to_string()).await?;
    let sessions = sessions(client, whole.mission.id).await?;
    let seen = Seen { state: &state, sessions: &sessions, whole: Some(whole), now: words::now() };
    Ok(seen.lines(app.ui.out_look()))
}

pub(super) fn print(app: &App, seen: &Seen<'_>) -> Result<(), Failure> {
    app.ui.page();
    app.ui.data_lines(&seen.lines(app.ui.out_look()))?;
    hints(app, seen);
    Ok(())
}

/// What to do next, beside the data.
pub(super) fn hints(app: &App, seen: &Seen<'_>) {
    let steps = seen.steps();
    let widest = steps.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    for (command, effect) in steps {
        let command = Line::toned(Tone::Accent, command).padded(widest);
        app.ui.remark(&Line::of("  ").append(command).plain("   ").faint(effect));
    }
}

/// All sessions that ever worked on it.
pub(crate) async fn sessions(client: &Client, mission: MissionId) -> Result<Vec<Session>, Failure> {
    let filter = SessionFilter { scope: Scope::All, missions: vec![mission], ..SessionFilter::default() };
    let found = Found::paged(None, None, async |page| client.sessions(&filter, page).await).await?;
    Ok(found.rows)
}

/// Those of them that have not ended.
pub(crate) async fn still_at_work(client: &Client, mission: MissionId) -> Result<Vec<Session>, Failure> {
    let filter =
        SessionFilter { scope: Scope::NotEnded, missions: vec![mission], ..SessionFilter::default() };
    let found = Found::paged(None, None, async |page| client.sessions(&filter, page).await).await?;
    Ok(found.rows)
}

/// The state alone, where nothing of sessions is asked.
pub(super) async fn state(client: &Client, who: &str) -> Result<State, Failure> {
    let id = client.mission(who).await?.mission.id;
    Ok(client.mission_state(&id.to_string()).await?.0)
}
