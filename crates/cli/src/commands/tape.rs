//! `ostler tape`: what crossed the agent's border, as it was.

use clap::Args;
use ostler_client::reply::TapeRecord;
use ostler_domain::{Reason, Refusal};
use serde::Serialize;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Format, Line, Tone},
    words,
};

/// The streams of a tape.
const STREAMS: [&str; 8] = ["out", "err", "in", "call", "wire", "net", "exit", "keeper"];

#[derive(Debug, Args)]
pub(crate) struct TapeArgs {
    /// Session: name, id, part of an id, or - for the last one of this terminal
    who: String,
    /// Only these: what the agent said (out, err), what it was told (in), its calls, the wire, the network, the keeper
    #[arg(long, value_delimiter = ',', value_name = "STREAM", value_parser = STREAMS)]
    stream: Vec<String>,
    /// From this place on
    #[arg(long, value_name = "OFFSET", default_value_t = 0)]
    after: u64,
    /// The bytes alone, exactly as they were
    #[arg(long)]
    raw: bool,
}

/// A record for programs.
#[derive(Serialize)]
struct RecordForm<'a> {
    offset: u64,
    time: String,
    stream: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_no: Option<u64>,
    text: &'a str,
    /// Some of its bytes are no text and are shown as U+FFFD: `--raw` has them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    lossy: bool,
    /// The line goes on in the next record of this stream.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

/// What cannot be read, for programs.
#[derive(Serialize)]
struct DamageForm {
    damaged_from: u64,
    damaged_to: u64,
}

pub(crate) async fn run(app: &App, args: TapeArgs) -> Result<u8, Failure> {
    if app.ui.format() == Some(Format::Json) {
        return Err(Failure::usage("a tape has no end, so it is no single object: use -o jsonl"));
    }
    let client = app.client().await?;
    let session = app.session(&client, &args.who).await?;
    let mut tape = client.tape(&session.id.to_string(), args.after).await?;
    app.ui.page();
    let mut is_empty = true;
    let mut lost = 0;
    while let Some(part) = tape.next().await {
        let part = part?;
        for stretch in &part.damage {
            lost += stretch.end - stretch.start;
            if app.ui.is_json() {
                app.ui.json(&DamageForm { damaged_from: stretch.start, damaged_to: stretch.end })?;
            } else {
                let text = format!(
                    "{} from {} on cannot be read",
                    words::bytes(stretch.end - stretch.start),
                    stretch.start
                );
                app.ui.insist(&Line::toned(Tone::Bad, text));
            }
        }
        for record in part.records.iter().filter(|record| args.wants(record)) {
            is_empty = false;
            print(app, &args, record)?;
        }
    }
    if lost > 0 {
        let why = format!("{} of it cannot be read", words::bytes(lost));
        return Err(Refusal::new(Reason::Internal, "the tape is damaged").because(why).into());
    }
    if is_empty {
        app.ui.remark(&Line::new().faint("nothing of that is on the tape"));
    }
    Ok(exit_code::OK)
}

impl TapeArgs {
    fn wants(&self, record: &TapeRecord) -> bool {
        self.stream.is_empty() || self.stream.contains(&record.stream)
    }
}

fn print(app: &App, args: &TapeArgs, record: &TapeRecord) -> Result<(), Failure> {
    if args.raw {
        app.ui.bytes(&record.payload)?;
        return if record.more { Ok(()) } else { app.ui.bytes(b"\n") };
    }
    let text = String::from_utf8_lossy(&record.payload);
    if app.ui.is_json() {
        return app.ui.json(&RecordForm {
            offset: record.offset,
            time: words::rfc3339(record.time),
            stream: &record.stream,
            input_no: record.input_no,
            lossy: matches!(text, std::borrow::Cow::Owned(_)),
            text: &text,
            more: record.more,
        });
    }
    let tone = match record.stream.as_str() {
        "out" => Tone::Plain,
        "err" => Tone::Warn,
        "in" => Tone::Accent,
        _ => Tone::Faint,
    };
    let head = Line::new().faint(format!("{:>9} {} ", record.offset, words::clock(record.time, &app.zone())));
    let more = if record.more { "…" } else { "" };
    app.ui.data(&head.with(tone, format!("{:<6} ", record.stream)).plain(text).faint(more))
}
