//! `sessions.json` as it came in and goes out again: what nobody has touched here is written as it was, to the byte.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value, value::RawValue};

use super::openclaw::in_words_of;
use crate::conversation::{Conversation, Entry};

/// Rows in their order, each as it is written.
#[derive(Debug)]
pub struct Index<'a>(pub Vec<(String, &'a RawValue)>);

impl<'a> Index<'a> {
    /// None where it is no object.
    pub fn read(text: &'a [u8]) -> Option<Index<'a>> {
        serde_json::from_slice(text).ok()
    }

    /// The rows that are objects.
    pub fn rows(&self) -> impl Iterator<Item = (&str, Map<String, Value>)> {
        let object = |raw: &RawValue| serde_json::from_str::<Map<String, Value>>(raw.get()).ok();
        self.0.iter().filter_map(move |(key, raw)| Some((key.as_str(), object(raw)?)))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Index<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Rows;
        impl<'de> de::Visitor<'de> for Rows {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut rows = Vec::new();
                while let Some(row) = map.next_entry::<String, &'de RawValue>()? {
                    rows.push(row);
                }
                Ok(rows)
            }
        }
        deserializer.deserialize_map(Rows).map(Index)
    }
}

/// A conversation that is to have a row.
#[derive(Debug, Clone)]
pub struct OwnRow<'a> {
    pub conversation: &'a Conversation,
    pub key: String,
    pub row: Map<String, Value>,
    /// It was imported, and nothing was run in it here.
    pub is_as_it_came: bool,
}

/// What is written.
#[derive(Debug, PartialEq, Eq)]
pub struct Written {
    pub text: Vec<u8>,
    /// The index that came in, where it could not be read and another one takes its place.
    pub aside: Option<Vec<u8>>,
}

/// The index of these conversations, of which some came with one.
pub fn written(came: Option<&[u8]>, rows: &[OwnRow<'_>]) -> Written {
    let Some(came) = came else { return Written { text: pretty(made(rows.iter())), aside: None } };
    // Transcripts that no row named have none as long as nothing happens to them.
    let has_no_row = |own: &OwnRow<'_>| own.is_as_it_came && own.conversation.notes.entry == Entry::default();
    let Some(index) = Index::read(came) else {
        return match rows.iter().all(has_no_row) {
            true => Written { text: came.to_owned(), aside: None },
            false => Written { text: pretty(made(rows.iter())), aside: Some(came.to_owned()) },
        };
    };
    let entries: Vec<Option<Entry>> = index
        .0
        .iter()
        .map(|(_, raw)| serde_json::from_str(raw.get()).ok().map(|row: Map<_, _>| Entry::of_row(&row)))
        .collect();
    // Whose row each is. A key that cannot be one here, or that another conversation has, is known by what it says.
    let places: HashMap<&str, usize> =
        index.0.iter().enumerate().map(|(place, (key, _))| (key.as_str(), place)).collect();
    let mut whose: Vec<Option<&OwnRow<'_>>> = vec![None; entries.len()];
    let mut others = Vec::new();
    for own in rows {
        let says_the_same = |place: usize| entries[place].as_ref() == Some(&own.conversation.notes.entry);
        let is_free = |place: &usize| whose[*place].is_none() && entries[*place].is_some();
        let by_key = places.get(own.key.as_str()).copied().filter(is_free);
        let by_words = || (0..entries.len()).filter(is_free).find(|place| says_the_same(*place));
        match by_key.or_else(|| own.is_as_it_came.then(by_words).flatten()) {
            Some(place) => whose[place] = Some(own),
            None if has_no_row(own) => {}
            None => others.push(own),
        }
    }
    let mut is_whole = others.is_empty();
    let told_anew: HashSet<&str> = others.iter().map(|own| own.key.as_str()).collect();
    let mut all = Vec::new();
    for (((key, raw), entry), own) in index.0.iter().zip(&entries).zip(&whose) {
        match (entry, own) {
            // A damaged row of what had come in before: that is written, and no key is there twice.
            (None, _) if told_anew.contains(key.as_str()) => {}
            // Nobody knows what it is, so it stays.
            (None, _) => all.push((key.clone(), raw.get().to_owned())),
            (Some(entry), Some(own)) if own.is_as_it_came && *entry == own.conversation.notes.entry => {
                all.push((key.clone(), raw.get().to_owned()));
            }
            (Some(_), Some(own)) => {
                is_whole = false;
                let came: Map<String, Value> = serde_json::from_str(raw.get()).unwrap_or_default();
                let own = OwnRow { row: in_words_of(own.row.clone(), &came), ..(*own).clone() };
                all.extend(made([&own].into_iter()).map(|(_, text)| (key.clone(), text)));
            }
            (Some(_), None) => is_whole = false,
        }
    }
    if is_whole {
        return Written { text: came.to_owned(), aside: None };
    }
    all.extend(made(others.into_iter()));
    Written { text: pretty(all.into_iter()), aside: None }
}

/// Rows of our own making, as they stand within the index.
fn made<'a>(rows: impl Iterator<Item = &'a OwnRow<'a>>) -> impl Iterator<Item = (String, String)> {
    rows.map(|own| {
        let text = serde_json::to_string_pretty(&own.row).unwrap_or_default();
        (own.key.clone(), text.replace('\n', "\n  "))
    })
}

fn pretty(rows: impl Iterator<Item = (String, String)>) -> Vec<u8> {
    let rows: Vec<String> = rows.map(|(key, text)| format!("  {}: {text}", Value::String(key))).collect();
    match rows.is_empty() {
        true => b"{}\n".to_vec(),
        false => format!("{{\n{}\n}}\n", rows.join(",\n")).into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{CampaignId, ConversationId, Time, conversation::Notes};

    fn conversation(key: &str, row: &Value) -> Conversation {
        let Value::Object(row) = row else { panic!("{row}") };
        let notes = Notes { entry: Entry::of_row(row), ..Notes::default() };
        let at = Time::from_micros(1);
        Conversation {
            id: ConversationId::new(at, 1),
            campaign: CampaignId::new(at, 1),
            agent: None,
            key: key.parse().unwrap(),
            name: "c".parse().unwrap(),
            opened: at,
            active: at,
            forked_from: None,
            forked_at: None,
            spawned_by: None,
            replaces: None,
            closed: None,
            notes,
        }
    }

    fn own<'a>(conversation: &'a Conversation, is_as_it_came: bool) -> OwnRow<'a> {
        let Value::Object(row) = json!({"sessionId": "ours"}) else { unreachable!() };
        OwnRow { conversation, key: conversation.key.as_str().to_owned(), row, is_as_it_came }
    }

    const CAME: &[u8] =
        br#"{"agent:main:b":{"sessionId":"b","n":1.50,"x":{}},  "agent:main:a": {"sessionId": "a"},
 "odd": 5}"#;

    #[test]
    fn what_nobody_touched_is_as_it_was_to_the_byte() {
        let (a, b) = (json!({"sessionId": "a"}), json!({"sessionId": "b", "n": 1.5, "x": {}}));
        let (a, b) = (conversation("agent:main:a", &a), conversation("agent:main:b", &b));
        let orphan = conversation("agent:main:recovered:c", &json!({}));
        let rows = [own(&a, true), own(&b, true), own(&orphan, true)];
        assert_eq!(written(Some(CAME), &rows), Written { text: CAME.to_vec(), aside: None });
        // Somebody went on with one of them: the other is still as it was.
        let text = written(Some(CAME), &[own(&a, false), own(&b, true)]).text;
        let text = String::from_utf8(text).unwrap();
        assert_eq!(
            text,
            "{\n  \"agent:main:b\": {\"sessionId\":\"b\",\"n\":1.50,\"x\":{}},\n  \"agent:main:a\": {\n    \"sessionId\": \"ours\"\n  },\n  \"odd\": 5\n}\n"
        );
        // One was deleted here.
        let text = String::from_utf8(written(Some(CAME), &[own(&b, true)]).text).unwrap();
        assert!(
            text.contains("agent:main:b") && !text.contains("agent:main:a") && text.contains("odd"),
            "{text}"
        );
        // And one has come to it: something was run in it, or somebody has noted something about it.
        let text = written(Some(CAME), &[own(&a, true), own(&b, true), own(&orphan, false)]).text;
        assert_eq!(Index::read(&text).unwrap().0.len(), 4);
        let labelled = conversation("agent:main:recovered:c", &json!({"label": "the lost one"}));
        let text = written(Some(CAME), &[own(&a, true), own(&b, true), own(&labelled, true)]).text;
        assert_eq!(Index::read(&text).unwrap().0.len(), 4, "{}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn a_key_that_is_none_here_is_found_by_what_its_row_says() {
        let a = conversation("import:openclaw:a", &json!({"sessionId": "a"}));
        let came = br#"{"agent:main:A":{"sessionId":"a"}}"#;
        assert_eq!(written(Some(came), &[own(&a, true)]).text, came);
    }

    #[test]
    fn a_row_that_was_damaged_since_is_written_once_as_it_was_before() {
        let a = conversation("agent:main:a", &json!({"sessionId": "a"}));
        let text = written(Some(br#"{"agent:main:a":5,"odd":5}"#), &[own(&a, true)]).text;
        let index = Index::read(&text).unwrap();
        let keys: Vec<&str> = index.0.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["odd", "agent:main:a"]);
    }

    #[test]
    fn an_index_that_cannot_be_read_is_not_lost() {
        let orphan = conversation("agent:main:recovered:c", &json!({}));
        let damaged = b"{\"a\": ".as_slice();
        let kept = written(Some(damaged), &[own(&orphan, true)]);
        assert_eq!(kept, Written { text: damaged.to_vec(), aside: None });
        let changed = written(Some(damaged), &[own(&orphan, false)]);
        assert_eq!(changed.aside.as_deref(), Some(damaged));
        assert_eq!(Index::read(&changed.text).unwrap().0.len(), 1);
    }
}
