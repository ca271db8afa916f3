//! `ostler worktree gc`: removes the work trees with which nothing would be lost, and says what keeps the others.

use clap::Args;
use ostler_client::Client;
use ostler_domain::{Refusal, worktree::Kept};

use super::Of;
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    input,
    listing::Object,
    output::{Format, Line},
    screen::worktree as screen,
    words,
    worktree_form::CollectedForm,
};

#[derive(Debug, Args)]
pub(super) struct GcArgs {
    #[command(flatten)]
    of: Of,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Show what would be removed, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(app: &App, client: &Client, args: GcArgs) -> Result<u8, Failure> {
    let ui = &app.ui;
    let all = client.worktrees(args.of.campaign(app)?.as_deref()).await?;
    let (going, staying): (Vec<Kept>, Vec<Kept>) = all.into_iter().partition(|kept| kept.standing.may_go());
    if args.dry_run || going.is_empty() {
        if ui.is_json() {
            let forms = going.iter().chain(&staying).map(|kept| CollectedForm::kept(kept, None)).collect();
            forms_of(app, forms)?;
            return Ok(exit_code::OK);
        }
        show(app, &going, &staying)?;
        ui.remark(&match (going.is_empty(), staying.is_empty()) {
            (true, true) => screen::nothing(),
            (true, false) => Line::of("nothing to remove"),
            (false, _) => Line::of(format!("{} would be removed", count(&going))),
        });
        return Ok(exit_code::OK);
    }
    if !args.yes {
        if !ui.has_person() {
            return Err(Refusal::invalid(format!(
                "{} would be removed, and there is nobody to ask",
                count(&going)
            ))
            .hint("ostler worktree gc -y", "does it without asking")
            .hint("ostler worktree gc --dry-run", "shows which they are, and which stay")
            .into());
        }
        show(app, &going, &staying)?;
        if !input::agrees(ui, &format!("remove {}?", count(&going))) {
            ui.remark(&Line::of("nothing was removed"));
            return Ok(exit_code::OK);
        }
    }
    collect(app, client, &going, &staying, !args.yes).await
}

fn count(trees: &[Kept]) -> String {
    words::plural(trees.len() as u64, "work tree", "work trees")
}

async fn collect(
    app: &App,
    client: &Client,
    going: &[Kept],
    staying: &[Kept],
    was_asked: bool,
) -> Result<u8, Failure> {
    let ui = &app.ui;
    let mut forms = Vec::new();
    let mut failed = false;
    let is_told = !ui.is_json() && !ui.is_quiet();
    for kept in going {
        // Whoever was asked has seen it; whoever was not sees it here, before it goes.
        if let Some(line) = screen::ignored(kept).filter(|_| is_told && !was_asked) {
            ui.remark(&Line::new().strong(kept.worktree.name()).append(line));
        }
        // Somebody may have worked in it since it was looked at: then it stays.
        match client.remove_worktree(&kept.worktree.path).await {
            Ok(removed) => {
                if !ui.is_json() {
                    let (path, told) = (Line::of(&kept.worktree.path), screen::removed(&removed));
                    ui.data(if ui.is_quiet() { &path } else { &told })?;
                }
                forms.push(CollectedForm::removed(&removed));
            }
            Err(error) => {
                failed = true;
                let refusal = error.to_refusal();
                let why = refusal.why.map(|why| format!(": {why}")).unwrap_or_default();
                let text = format!("{}{why}", refusal.message);
                ui.remark(&screen::not_removed(kept, &text));
                forms.push(CollectedForm::kept(kept, Some(text)));
            }
        }
    }
    if ui.is_json() {
        forms.extend(staying.iter().map(|kept| CollectedForm::kept(kept, None)));
        forms_of(app, forms)?;
    } else {
        staying.iter().for_each(|kept| ui.remark(&screen::stays(kept)));
    }
    Ok(if failed { exit_code::PARTLY } else { exit_code::OK })
}

fn forms_of(app: &App, forms: Vec<CollectedForm>) -> Result<(), Failure> {
    match app.ui.format() {
        Some(Format::Jsonl) => forms.iter().try_for_each(|form| app.ui.json(form)),
        _ => app.ui.json(&Object { name: "worktrees", rows: forms, next_cursor: None }),
    }
}

fn show(app: &App, going: &[Kept], staying: &[Kept]) -> Result<(), Failure> {
    let ui = &app.ui;
    if ui.is_quiet() {
        return going.iter().try_for_each(|kept| ui.data(&Line::of(&kept.worktree.path)));
    }
    for kept in going {
        ui.data_lines(&screen::goes(kept))?;
    }
    staying.iter().for_each(|kept| ui.remark(&screen::stays(kept)));
    Ok(())
}
