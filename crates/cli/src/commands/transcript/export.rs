//! `ostler transcript export`: a transcript in a form for others.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use ostler_client::Client;
use ostler_domain::{
    Refusal,
    redact::{BLOT, blots},
    transcript::{Line as Entry, PAGE_END, Shown, TITLE, markdown, page_begin, page_entry, shown},
};
use serde::Serialize;

use super::read;
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Format, Line, Ui},
    words,
};

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Conversation or session: name, id or part of one; - for the last of this terminal
    who: String,
    /// jsonl (the form of OpenClaw, version 3), markdown, html
    #[arg(long, value_name = "FORM", hide_possible_values = true)]
    format: Option<Form>,
    /// Short for --format markdown
    #[arg(long, conflicts_with = "format")]
    markdown: bool,
    /// Into this file, readable by you alone; without, to standard output
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Jsonl,
    Markdown,
    Html,
}

impl ExportArgs {
    fn form(&self) -> Form {
        let by_name = || match self.file.as_deref()?.extension()?.to_str()? {
            "md" | "markdown" => Some(Form::Markdown),
            "html" | "htm" => Some(Form::Html),
            _ => None,
        };
        let said = if self.markdown { Some(Form::Markdown) } else { self.format };
        said.or_else(by_name).unwrap_or(Form::Jsonl)
    }
}

#[derive(Serialize)]
struct Exported {
    file: String,
    lines: u64,
    redacted: u64,
}

pub(crate) async fn run(app: &App, args: ExportArgs) -> Result<u8, Failure> {
    let form = args.form();
    let is_data = form == Form::Jsonl || args.file.is_some();
    if matches!(app.ui.format(), Some(Format::Json | Format::Name)) && !is_data {
        return Err(Refusal::invalid("a page is no JSON").hint("--file FILE", "writes it there").into());
    }
    let client = app.client().await?;
    let who = app.addressee(&client, &args.who).await?;
    // A page has small pictures in it, and lines of JSON have all; Markdown names them.
    let mut lines = match form {
        Form::Markdown => client.transcript(&who).await?,
        Form::Jsonl | Form::Html => client.transcript_with_images(&who).await?,
    };
    let mut to = match &args.file {
        Some(path) => To::File(Fresh::begin(path)?),
        None => To::Screen(&app.ui),
    };
    let title = match form {
        Form::Jsonl => String::new(),
        Form::Markdown | Form::Html => title(app, &client, &who).await,
    };
    if form == Form::Html {
        to.write(page_begin(&title).as_bytes())?;
    }
    let (mut count, mut redacted) = (0, 0);
    while let Some(text) = lines.next().await {
        let mut text = text?;
        count += 1;
        redacted += u64::from(blots(&String::from_utf8_lossy(&text)));
        let made = match form {
            Form::Jsonl => {
                text.push(b'\n');
                text
            }
            Form::Markdown => titled(&read(&text)?, &title).iter().map(markdown).collect::<String>().into(),
            Form::Html => titled(&read(&text)?, &title).iter().map(page_entry).collect::<String>().into(),
        };
        to.write(&made)?;
    }
    let left_out = redactions(redacted);
    let remark = left_out.clone().map(|text| Shown::Remark { text, is_bad: false });
    match (form, &remark) {
        (Form::Markdown, Some(remark)) => to.write(markdown(remark).as_bytes())?,
        (Form::Html, Some(remark)) => to.write(page_entry(remark).as_bytes())?,
        _ => {}
    }
    if form == Form::Html {
        to.write(PAGE_END.as_bytes())?;
    }
    if let Some(text) = left_out {
        app.ui.remark(&Line::of(text));
    }
    let To::File(fresh) = to else { return Ok(exit_code::OK) };
    let file = fresh.finish()?;
    if app.ui.is_json() {
        app.ui.json(&Exported { file, lines: count, redacted })?;
    } else if app.ui.is_quiet() {
        app.ui.data(&Line::of(file))?;
    } else {
        app.ui.data(&Line::of("wrote ").strong(file))?;
    }
    Ok(exit_code::OK)
}

/// Says how often something is left out that looked like a secret.
fn redactions(count: u64) -> Option<String> {
    let places = words::plural(count, "place", "places");
    (count > 0).then(|| format!("{places} in which something looked like a secret: {BLOT} stands there"))
}

/// Whose words they are: `Transcript of shop/api, main`. What has no name any more is called by none.
async fn title(app: &App, client: &Client, who: &str) -> String {
    let Ok(conversation) = client.conversation(who).await else { return TITLE.to_owned() };
    let campaign = app.campaign_name(client, &conversation.campaign).await;
    let key = match conversation.agent {
        Some(_) => format!(", {}", conversation.key),
        None => String::new(),
    };
    format!("{TITLE} of {campaign}/{}{key}", conversation.name)
}

/// What a line shows, under its title.
fn titled(line: &Entry, title: &str) -> Vec<Shown> {
    let mut all = shown(line);
    for one in &mut all {
        if let Shown::Title { name, .. } = one {
            title.clone_into(name);
        }
    }
    all
}

enum To<'a> {
    Screen(&'a Ui),
    File(Fresh),
}

impl To<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            To::Screen(ui) => ui.bytes(bytes),
            To::File(fresh) => fresh.write(bytes),
        }
    }
}

/// A file that appears under its name when it is whole.
pub(super) struct Fresh {
    file: BufWriter<File>,
    temporary: PathBuf,
    path: PathBuf,
}

impl Fresh {
    pub(super) fn begin(path: &Path) -> Result<Fresh, Failure> {
        let name = path.file_name().ok_or_else(|| cannot_write(path, "it names no file"))?;
        let temporary = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary);
        let file = file.map_err(|error| cannot_write(path, &error.to_string()))?;
        Ok(Fresh { file: BufWriter::new(file), temporary, path: path.to_owned() })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|error| self.cannot(&error))
    }

    pub(super) fn finish(mut self) -> Result<String, Failure> {
        let done = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        done.and_then(|()| fs::rename(&self.temporary, &self.path)).map_err(|error| self.cannot(&error))?;
        Ok(self.path.display().to_string())
    }

    fn cannot(&self, error: &std::io::Error) -> Failure {
        let _ = fs::remove_file(&self.temporary);
        cannot_write(&self.path, &error.to_string())
    }
}

fn cannot_write(path: &Path, why: &str) -> Failure {
    Refusal::invalid(format!("{} cannot be written", path.display())).because(why.to_owned()).into()
}
