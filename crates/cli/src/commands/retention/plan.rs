//! `ostler retention plan`: what the rules come to now.

use ostler_client::Client;
use ostler_domain::retention::Planned;
use serde::Serialize;

use super::{form::StepForm, planned};
use crate::{
    app::App,
    failure::Failure,
    listing::{self, Found, List, ListArgs, Screen},
    output::Line,
    screen, words,
};

pub(super) async fn run(
    app: &App,
    client: &Client,
    campaign: Option<String>,
    list: &ListArgs,
) -> Result<u8, Failure> {
    let plan = Plan { client, campaign, most: list.most(None) };
    listing::run(app, Some(client), list, &plan).await
}

struct Plan<'a> {
    client: &'a Client,
    campaign: Option<String>,
    most: Option<u32>,
}

impl List for Plan<'_> {
    type Row = Planned;
    const ROWS: &'static str = "steps";

    async fn find(&self) -> Result<Found<Planned>, Failure> {
        Ok(Found::whole(planned(self.client, self.campaign.as_deref()).await?, self.most))
    }

    fn id(&self, row: &Planned) -> String {
        row.standing.session.to_string()
    }

    fn name(&self, row: &Planned) -> String {
        row.standing.name.to_string()
    }

    fn form(&self, row: &Planned) -> impl Serialize {
        StepForm::new(row)
    }

    async fn screen(&self, found: &Found<Planned>) -> Result<Screen, Failure> {
        if found.rows.is_empty() {
            return Ok(Screen { remarks: screen::retention::nothing(), ..Screen::default() });
        }
        Ok(Screen {
            table: Some(screen::retention::plan(&found.rows, words::now())),
            remarks: vec![
                Line::of(screen::retention::sum(&found.rows)).faint("   ostler retention run does it now"),
            ],
            ..Screen::default()
        })
    }
}
