//! `ostler ticket import`: what another tracker has.

use std::path::{Path, PathBuf};

use clap::Args;
use ostler_client::Client;
use ostler_domain::{
    Refusal,
    text::one_line,
    ticket::{Format, ImportChange, Imported, Work, read_work},
};
use serde::Serialize;

use crate::{app::App, exit_code, failure::Failure, input, output::Line, words};

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The file; - reads standard input
    file: PathBuf,
    /// markdown (a checklist), beads (JSONL), github (gh issue list --json number,title,body,state,labels,url)
    /// [default: by the name of the file: .md, .jsonl, .json]
    #[arg(long, value_parser = format, value_name = "WORD")]
    format: Option<Format>,
    /// Campaign: name, id or a path in it [default: the one around this directory]
    #[arg(short = 'C', long, value_name = "CAMPAIGN", env = "OSTLER_CAMPAIGN", hide_env_values = true)]
    campaign: Option<String>,
    /// Only say what would come
    #[arg(long)]
    dry_run: bool,
}

fn format(text: &str) -> Result<Format, String> {
    let known = Format::ALL.map(Format::as_str).join(", ");
    Format::parse(text).ok_or_else(|| format!("\"{text}\" is none of {known}"))
}

#[derive(Serialize)]
struct ImportForm<'a> {
    dry_run: bool,
    added: usize,
    changed: usize,
    same: usize,
    tickets: Vec<ImportedForm<'a>>,
}

#[derive(Serialize)]
struct ImportedForm<'a> {
    external_ref: &'a str,
    id: Option<String>,
    change: &'static str,
    title: &'a str,
}

pub(super) async fn run(app: &App, client: &Client, args: ImportArgs) -> Result<u8, Failure> {
    let name = args.file.file_name().and_then(|name| name.to_str()).unwrap_or("-").to_owned();
    let format = args.format.or_else(|| Format::of_file(&name)).ok_or_else(|| {
        Refusal::invalid(format!("the name of {name} does not say what it is"))
            .hint("ostler ticket import FILE --format markdown|beads|github", "says so")
    })?;
    let text = if name == "-" { input::whole(&app.ui)? } else { input::file(&args.file)? };
    let campaign = app.campaign_operand(args.campaign.as_deref().unwrap_or("."))?;
    let source = source(&args.file, &client.campaign(&campaign).await?.root.path);
    let work = read_work(format, &text, &source)
        .map_err(|fault| Refusal::invalid(format!("{name} is not understood")).because(fault.0))?;
    let imported = client.import_tickets(&campaign, &work, args.dry_run).await?;
    show(app, &work, &imported, args.dry_run)?;
    Ok(exit_code::OK)
}

/// What a file is called in references: its path in the campaign, or the whole path of one that is elsewhere.
fn source(file: &Path, root: &str) -> String {
    let whole = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let root = Path::new(root);
    let within = root.canonicalize().ok().and_then(|root| whole.strip_prefix(root).ok().map(Path::to_owned));
    within.unwrap_or(whole).to_string_lossy().into_owned()
}

fn show(app: &App, work: &[Work], imported: &[Imported], dry_run: bool) -> Result<(), Failure> {
    let count = |change| imported.iter().filter(|one| one.change == change).count();
    let (added, changed, same) =
        (count(ImportChange::Added), count(ImportChange::Changed), count(ImportChange::Same));
    if app.ui.is_json() {
        let titled = work.iter().zip(imported);
        let tickets = titled.map(|(work, one)| ImportedForm {
            external_ref: one.external.as_str(),
            id: one.id.map(|id| id.to_string()),
            change: one.change.as_str(),
            title: work.about.title(),
        });
        return app.ui.json(&ImportForm { dry_run, added, changed, same, tickets: tickets.collect() });
    }
    for (work, one) in work.iter().zip(imported).filter(|(_, one)| one.change != ImportChange::Same) {
        let line = Line::of(one.change.as_str()).padded(9).strong(one.external.as_str());
        app.ui.data(&line.plain(format!("  {}", one_line(work.about.title(), 100))))?;
    }
    let would = if dry_run { "would be " } else { "" };
    app.ui.remark(&Line::new().faint(format!(
        "{} {would}added, {changed} {would}changed, {same} as they were",
        words::plural(added as u64, "ticket", "tickets")
    )));
    Ok(())
}
