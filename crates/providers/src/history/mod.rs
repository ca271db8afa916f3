//! Reading the stores that agent programs keep of their own dialogues.
//!
//! A [`Reader`] is pure: it takes lines and says what they tell. What it must remember travels with it as text, so that a
//! file that has grown is gone on with where it was left. Any bytes are read: what cannot be understood is said to be so.

mod claude;
mod codex;
mod damaged;
mod openclaw;

use std::collections::VecDeque;

use ostler_domain::{
    Time,
    event::{ImageRecorded, Raw},
    history::{Source, Told, What},
    image::Image,
    limits::{JSON_DEPTH, LINE_BYTES, OPAQUE_PREVIEW_BYTES},
    text::head,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{foreign::is_deeper_than, parts::parts};

/// What a file is about, as far as its lines have said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// The program's own name for the dialogue.
    pub dialogue: Option<String>,
    pub cwd: Option<String>,
    pub branch: Option<String>,
    pub model: Option<String>,
    /// What it was called there. Nobody's words are remembered beside the record.
    #[serde(skip)]
    pub title: Option<String>,
    /// The dialogue whose agent asked for this one.
    pub parent: Option<String>,
    /// When the first and the last thing happened.
    pub first: Option<Time>,
    pub last: Option<Time>,
    /// The first thing that was said.
    #[serde(skip)]
    pub prompt: Option<String>,
}

impl About {
    fn saw(&mut self, at: Option<Time>) {
        self.first = self.first.or(at);
        self.last = at.or(self.last);
    }
}

/// Takes in one file of a store, line by line.
pub trait Reader: Send {
    /// What a line tells. It has no end, is not empty, and begins at this place of the file.
    fn object(&mut self, line: Value, place: u64, told: &mut Vec<Told>);

    /// There are no more lines for now: what was held back is told.
    fn pause(&mut self, told: &mut Vec<Told>);

    /// How its file is called, without the ending. It may say what a lost line would have said.
    fn is_named(&mut self, _stem: &str) {}

    fn about(&self) -> &About;

    /// What must be remembered to go on.
    fn memory(&self) -> String;
}

/// A reader at the beginning of a file, or where the memory says. One that cannot be read any more begins anew: it was made
/// by another version, and only what it held back is lost.
pub fn reader(source: Source, memory: Option<&str>) -> Box<dyn Reader> {
    fn at<R: Reader + Default + for<'a> Deserialize<'a> + 'static>(memory: Option<&str>) -> Box<dyn Reader> {
        Box::new(memory.and_then(|memory| serde_json::from_str::<R>(memory).ok()).unwrap_or_default())
    }
    match source {
        Source::Claude => at::<claude::Claude>(memory),
        Source::Codex => at::<codex::Codex>(memory),
        Source::OpenClaw => at::<openclaw::OpenClaw>(memory),
    }
}

/// Takes in one line as it is in the file, or the beginning of one that has more bytes. Says whether it was understood.
pub fn take_in(reader: &mut dyn Reader, line: &[u8], place: u64, bytes: u64, told: &mut Vec<Told>) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.iter().all(u8::is_ascii_whitespace) {
        return true;
    }
    if line.len() > LINE_BYTES {
        told.push(Told { at: None, what: What::Oversize(raw(line, place, bytes)) });
        return false;
    }
    let is_shallow = line.first() == Some(&b'{') && !is_deeper_than(line, JSON_DEPTH);
    match is_shallow.then(|| serde_json::from_slice::<Value>(line)) {
        Some(Ok(object)) => {
            reader.object(object, place, told);
            true
        }
        _ => take_in_damaged(reader, line, place, bytes, told),
    }
}

/// Takes in what is whole in a line that is no record; what is not is said to be so.
fn take_in_damaged(
    reader: &mut dyn Reader,
    line: &[u8],
    place: u64,
    bytes: u64,
    told: &mut Vec<Told>,
) -> bool {
    let salvaged = damaged::salvaged(line);
    let is_whole = salvaged.as_ref().is_some_and(|salvaged| !salvaged.is_torn);
    if !is_whole {
        told.push(Told { at: None, what: What::Unreadable(raw(line, place, bytes)) });
    }
    for (at, record) in salvaged.into_iter().flat_map(|salvaged| salvaged.records) {
        reader.object(record, place + at, told);
    }
    is_whole
}

fn raw(line: &[u8], place: u64, bytes: u64) -> Raw {
    let near = &line[..line.len().min(OPAQUE_PREVIEW_BYTES)];
    let text = String::from_utf8_lossy(near);
    Raw { text: head(&text, OPAQUE_PREVIEW_BYTES).to_owned(), bytes, at: place }
}

/// What a file is about, from its beginning and its end alone. The last line of the beginning and the first one of the end
/// may be cut. `stem`: how it is called.
pub fn glance(source: Source, stem: &str, beginning: &[u8], end: &[u8]) -> About {
    let mut reader = reader(source, None);
    reader.is_named(stem);
    let (mut told, mut place) = (Vec::new(), 0);
    let whole = beginning.iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |at| &beginning[..at]);
    for line in whole.split(|byte| *byte == b'\n') {
        take_in(reader.as_mut(), line, place, line.len() as u64, &mut told);
        place += line.len() as u64 + 1;
    }
    let prompt = told.iter().find_map(|told| match &told.what {
        What::Prompt { text, .. } => Some(head(text, GLANCED_PROMPT).to_owned()),
        _ => None,
    });
    let about = reader.about().clone();
    let last = end.rsplit(|byte| *byte == b'\n').find_map(|line| {
        let object: Value = serde_json::from_slice(line).ok()?;
        time_of(&object)
    });
    About { last: last.or(about.last), prompt, ..about }
}

/// How much of a first prompt is told at a glance.
const GLANCED_PROMPT: usize = 400;

fn time_of(object: &Value) -> Option<Time> {
    object["timestamp"].as_str().and_then(Time::from_rfc3339)
}

fn text_of(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The texts of blocks, and the names of those that are none.
fn words(content: &Value) -> String {
    parts(content).0
}

/// What a person said, in blocks. Where that is a picture alone, it has a word for it.
fn prompt(content: &Value, place: u64) -> What {
    let (text, images) = parts(content);
    let text = if text.trim().is_empty() && !images.is_empty() { "[image]".to_owned() } else { text };
    What::Prompt { text, place, images }
}

/// Pictures of a result, to be told before it.
fn pictures(
    images: Vec<Image>,
    at: Option<Time>,
    tool_id: &str,
    subagent: Option<&String>,
) -> impl Iterator<Item = Told> {
    let of = move |image| ImageRecorded {
        image,
        tool_id: Some(tool_id.to_owned()),
        message: None,
        subagent: subagent.cloned(),
    };
    images.into_iter().map(move |image| Told { at, what: What::Image(of(image)) })
}

/// Calls whose tokens have been told, the last few: more may be said of them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Recent(VecDeque<(String, ostler_domain::Usage)>);

impl Recent {
    const MOST: usize = 32;

    fn of(&self, name: &str) -> Option<ostler_domain::Usage> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, usage)| *usage)
    }

    fn set(&mut self, name: &str, usage: ostler_domain::Usage) {
        self.0.retain(|(known, _)| known != name);
        if self.0.len() == Self::MOST {
            self.0.pop_front();
        }
        self.0.push_back((name.to_owned(), usage));
    }
}
