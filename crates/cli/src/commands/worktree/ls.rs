//! `ostler worktree ls`: the work trees there are, and what keeps them.

use ostler_client::Client;
use ostler_domain::worktree::Kept;
use serde::Serialize;

use crate::{
    app::{App, person_home},
    failure::Failure,
    listing::{self, Found, List, ListArgs, Screen},
    screen::worktree as screen,
    words,
    worktree_form::KeptForm,
};

pub(super) async fn run(
    app: &App,
    client: &Client,
    campaign: Option<String>,
    list: &ListArgs,
) -> Result<u8, Failure> {
    listing::run(app, Some(client), list, &Trees { client, campaign, most: list.most(None) }).await
}

struct Trees<'a> {
    client: &'a Client,
    campaign: Option<String>,
    most: Option<u32>,
}

impl List for Trees<'_> {
    type Row = Kept;
    const ROWS: &'static str = "worktrees";

    async fn find(&self) -> Result<Found<Kept>, Failure> {
        Ok(Found::whole(self.client.worktrees(self.campaign.as_deref()).await?, self.most))
    }

    fn id(&self, row: &Kept) -> String {
        row.worktree.path.clone()
    }

    fn name(&self, row: &Kept) -> String {
        row.worktree.name().to_owned()
    }

    fn form(&self, row: &Kept) -> impl Serialize {
        KeptForm::new(row)
    }

    async fn screen(&self, found: &Found<Kept>) -> Result<Screen, Failure> {
        if found.rows.is_empty() {
            return Ok(Screen { remarks: vec![screen::nothing()], ..Screen::default() });
        }
        let table = screen::table(&found.rows, person_home().as_deref(), words::now());
        Ok(Screen {
            table: Some(table),
            remarks: screen::sum(&found.rows).into_iter().collect(),
            ..Screen::default()
        })
    }
}
