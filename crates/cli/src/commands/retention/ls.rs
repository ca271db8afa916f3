//! `ostler retention ls`: sessions that somebody or a rule touched.

use ostler_client::Client;
use ostler_domain::retention::Standing;
use serde::Serialize;

use super::form::StandingForm;
use crate::{
    app::App,
    failure::Failure,
    listing::{self, Found, List, ListArgs, Screen},
    output::Line,
    screen, words,
};

pub(super) async fn run(app: &App, client: &Client, list: &ListArgs) -> Result<u8, Failure> {
    listing::run(app, Some(client), list, &Touched { client, most: list.most(None) }).await
}

struct Touched<'a> {
    client: &'a Client,
    most: Option<u32>,
}

impl List for Touched<'_> {
    type Row = Standing;
    const ROWS: &'static str = "retention";

    async fn find(&self) -> Result<Found<Standing>, Failure> {
        Found::paged(self.most, None, async |page| self.client.retention(page).await).await
    }

    fn id(&self, row: &Standing) -> String {
        row.session.to_string()
    }

    fn name(&self, row: &Standing) -> String {
        row.name.to_string()
    }

    fn form(&self, row: &Standing) -> impl Serialize {
        StandingForm::new(row)
    }

    async fn screen(&self, found: &Found<Standing>) -> Result<Screen, Failure> {
        if found.rows.is_empty() {
            let none = Line::of("No session is archived, to be deleted, deleted or held.");
            let remarks = vec![none.faint("   ostler retention plan says what the rules come to")];
            return Ok(Screen { remarks, ..Screen::default() });
        }
        Ok(Screen { table: Some(screen::retention::table(&found.rows, words::now())), ..Screen::default() })
    }
}
