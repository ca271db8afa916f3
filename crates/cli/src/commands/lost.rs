//! `ostler resume --lost`: goes on with the sessions that were lost when the machine restarted, or leaves them.

use ostler_client::Client;
use ostler_domain::{Refusal, budget::Amount, reboot::LostSession};
use serde::Serialize;

use super::many::{self, Operands};
use crate::{
    app::App, exit_code, failure::Failure, form::SessionForm, input, listing, output::Line, screen::reboot,
    words,
};

/// What is to become of them.
pub(crate) enum Wish {
    GoOn { yes: bool, dry_run: bool },
    Leave,
}

pub(crate) async fn run(app: &App, wish: Wish) -> Result<u8, Failure> {
    app.tells_restart_itself();
    let client = app.client().await?;
    // Whoever asks first waits until everybody has been looked for.
    crate::reboot::settled(&client).await?;
    match wish {
        Wish::Leave => leave(app, &client).await,
        Wish::GoOn { yes, dry_run } => go_on(app, &client, yes, dry_run).await,
    }
}

async fn leave(app: &App, client: &Client) -> Result<u8, Failure> {
    let count = client.leave_lost_sessions().await?;
    if app.ui.is_json() {
        app.ui.json(&Left { left: count })?;
        return Ok(exit_code::OK);
    }
    let line = Line::of(match count {
        1 => "1 lost session stays as it is".to_owned(),
        n => format!("{n} lost sessions stay as they are"),
    });
    app.ui.data(&line.faint("   ostler resume WHO still goes on with one"))?;
    Ok(exit_code::OK)
}

async fn go_on(app: &App, client: &Client, yes: bool, dry_run: bool) -> Result<u8, Failure> {
    let names = app.campaign_names(client).await?;
    let lost: Vec<(LostSession, String)> = client
        .lost_sessions()
        .await?
        .into_iter()
        .map(|lost| {
            let campaign = names.of(&lost.session.campaign);
            (lost, campaign)
        })
        .collect();
    if dry_run || lost.is_empty() {
        show(app, &lost)?;
        let would = words::plural(lost.len() as u64, "session", "sessions");
        app.ui.remark(&match lost.is_empty() {
            true => Line::of("No session waits that was lost with the machine."),
            false => Line::of(format!("{would} would go on · {}", reboot::sum(&lost))),
        });
        return Ok(exit_code::OK);
    }
    let count = words::plural(lost.len() as u64, "session", "sessions");
    if !yes {
        if !app.ui.has_person() {
            return Err(Refusal::invalid(format!("{count} would go on, and there is nobody to ask"))
                .hint("ostler resume --lost -y", "does it without asking")
                .hint("ostler resume --lost --dry-run", "shows which they are, and the price")
                .hint("ostler resume --lost --leave", "leaves them as they are, and asks no more")
                .into());
        }
        show(app, &lost)?;
        if !input::agrees(&app.ui, &format!("go on with {count} ({})?", reboot::sum(&lost))) {
            let line = Line::of("nothing was changed   ostler resume --lost --leave");
            app.ui.remark(&line.faint("   asks no more"));
            return Ok(exit_code::OK);
        }
    }
    let who = lost.iter().map(|(lost, _)| lost.session.id.to_string()).collect();
    many::each(app, client, &Operands { who, are_found: true }, async |client, who| {
        Ok(("goes on".to_owned(), client.restart_with(who, None, Amount::default()).await?))
    })
    .await
}

#[derive(Serialize)]
struct Left {
    left: u64,
}

/// A lost session, with the price of going on.
#[derive(Serialize)]
struct LostForm {
    restarted: String,
    /// Nothing is asked of its model until somebody says something.
    free: bool,
    /// What its model reads again; null where that is not known.
    tokens: Option<u64>,
    /// In dollars; null where that is not known.
    price: Option<String>,
    on_plan: bool,
    session: SessionForm,
}

#[derive(Serialize)]
struct LostForms {
    lost: Vec<LostForm>,
}

fn show(app: &App, lost: &[(LostSession, String)]) -> Result<(), Failure> {
    let ui = &app.ui;
    if ui.is_json() {
        let form = |(lost, campaign): &'_ (LostSession, String)| LostForm {
            restarted: words::rfc3339(lost.restarted_at),
            free: lost.price.is_free,
            tokens: lost.price.tokens,
            price: lost.price.cost.map(|cost| cost.decimal()),
            on_plan: lost.price.is_on_plan,
            session: SessionForm::new(&lost.session, campaign),
        };
        return ui.json(&LostForms { lost: lost.iter().map(form).collect() });
    }
    if !listing::is_table(app) {
        return lost.iter().try_for_each(|(lost, _)| ui.data(&Line::of(lost.session.id.to_string())));
    }
    match lost.is_empty() {
        true => Ok(()),
        false => ui.data_lines(&reboot::table(lost, words::now()).lines(ui.out_look())),
    }
}
