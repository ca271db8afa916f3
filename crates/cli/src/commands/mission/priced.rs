//! Saying what will run and what it will cost, and asking, before anything does.

use clap::Args;
use ostler_client::{Client, MissionAction, ResumeMission, reply::MissionPreview};
use ostler_domain::Refusal;

use super::{form::PreviewForm, plan::names};
use crate::{app::App, failure::Failure, input, output::Line};

#[derive(Debug, Args)]
pub(super) struct Consent {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Say what would run and cost, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Consent {
    /// Says what a request would have run. True where it is to be asked for.
    pub(super) async fn given(
        &self,
        app: &App,
        client: &Client,
        action: MissionAction,
        wanted: &ResumeMission,
    ) -> Result<bool, Failure> {
        let verb = match action {
            MissionAction::Start => "start",
            MissionAction::Resume => "resume",
            MissionAction::Retry => "retry",
        };
        let preview = client.preview_mission(action, wanted.clone()).await?;
        let name = preview.mission.name.to_string();
        if self.dry_run && app.ui.is_json() {
            let campaign = app.campaign_name(client, &preview.mission.campaign).await;
            app.ui.json(&PreviewForm::new(&preview, &campaign))?;
            return Ok(false);
        }
        say(app, &preview, self.dry_run)?;
        if self.dry_run {
            return Ok(false);
        }
        let is_nothing = preview.runs.is_empty() && preview.goes_on.is_empty();
        if self.yes || (is_nothing && preview.merges_into.is_none()) {
            return Ok(true);
        }
        if !app.ui.has_person() {
            return Err(Refusal::invalid(format!("{name} would go on, and there is nobody to ask"))
                .because(preview.price.words.clone())
                .hint(format!("ostler mission {verb} {name} -y"), "does it without asking")
                .hint(format!("ostler mission {verb} {name} --dry-run"), "says what would run")
                .into());
        }
        let agrees = input::agrees(&app.ui, &format!("{verb} {name}?"));
        if !agrees {
            app.ui.remark(&Line::of("nothing was changed"));
        }
        Ok(agrees)
    }
}

/// What will run and cost: data where that is all that is wanted.
fn say(app: &App, preview: &MissionPreview, is_data: bool) -> Result<(), Failure> {
    let mut lines = Vec::new();
    if !preview.goes_on.is_empty() {
        lines.push(Line::new().faint("goes on  ").plain(names(&preview.goes_on)));
    }
    let runs = match (preview.runs.is_empty(), &preview.merges_into) {
        (true, None) => Some("nothing that has not begun".to_owned()),
        (true, Some(_)) => None,
        (false, _) => Some(format!("{} ({})", names(&preview.runs), preview.runs.len())),
    };
    lines.extend(runs.map(|runs| Line::new().faint("will run ").plain(runs)));
    if let Some(into) = &preview.merges_into {
        lines.push(
            Line::new().faint("merges   ").plain(format!("all of it into {into}, when all is completed")),
        );
    }
    // What was begun is paid for to its end, too.
    if !preview.runs.is_empty() || !preview.goes_on.is_empty() {
        lines.push(Line::new().faint("price    ").plain(&preview.price.words));
    }
    if is_data {
        return app.ui.data_lines(&lines);
    }
    lines.iter().for_each(|line| app.ui.remark(line));
    Ok(())
}
