//! `ostler retention plan`: what the rules come to now.

use std::cell::RefCell;

use ostler_client::Client;
use ostler_domain::retention::Standing;
use serde::Serialize;

use super::{Planning, form::StepForm, planned};
use crate::{
    app::App,
    failure::Failure,
    listing::{self, Found, List, ListArgs, Screen},
    output::Line,
    screen::{self, retention::Entry},
    words,
};

pub(super) async fn run(
    app: &App,
    client: &Client,
    campaign: Option<String>,
    list: &ListArgs,
) -> Result<u8, Failure> {
    let plan = Plan { client, campaign, most: list.most(None), waiting: RefCell::default() };
    listing::run(app, Some(client), list, &plan).await
}

struct Plan<'a> {
    client: &'a Client,
    campaign: Option<String>,
    most: Option<u32>,
    /// Who is marked and waits for its time: no rows, and said below them.
    waiting: RefCell<Vec<Standing>>,
}

impl List for Plan<'_> {
    type Row = Entry;
    const ROWS: &'static str = "steps";

    async fn find(&self) -> Result<Found<Entry>, Failure> {
        let Planning { steps, waiting } = planned(self.client, self.campaign.as_deref()).await?;
        self.waiting.replace(waiting);
        Ok(Found::whole(steps, self.most))
    }

    fn id(&self, row: &Entry) -> String {
        row.id()
    }

    fn name(&self, row: &Entry) -> String {
        row.name().to_owned()
    }

    fn form(&self, row: &Entry) -> impl Serialize {
        StepForm::new(row)
    }

    async fn screen(&self, found: &Found<Entry>) -> Result<Screen, Failure> {
        let (waiting, now) = (self.waiting.borrow(), words::now());
        if found.rows.is_empty() {
            return Ok(Screen { remarks: screen::retention::nothing(&waiting, now), ..Screen::default() });
        }
        let sum = Line::of(screen::retention::sum(&found.rows)).faint("   ostler retention run does it now");
        let mut remarks = vec![sum];
        remarks.extend(screen::retention::marked(&waiting, now));
        let table = Some(screen::retention::plan(&found.rows, now));
        Ok(Screen { table, remarks, ..Screen::default() })
    }
}
