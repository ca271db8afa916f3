//! Lines of a file whose writer died: a record without the end of its line has the next one behind it, and a block that was
//! never written is zeroes. What is whole in such a line is read.

use ostler_domain::limits::JSON_DEPTH;
use serde_json::{Deserializer, Value};

use crate::foreign::is_deeper_than;

/// Beginnings of records that are tried, from the end of the line on.
const TRIES: usize = 256;

/// What is whole in a line that is no record.
#[derive(Debug, PartialEq)]
pub(super) struct Salvaged {
    /// The records, with their places in the line.
    pub(super) records: Vec<(u64, Value)>,
    /// Something stands before them that is none.
    pub(super) is_torn: bool,
}

/// None where nothing in it is whole.
pub(super) fn salvaged(line: &[u8]) -> Option<Salvaged> {
    let begins = line.iter().position(|byte| *byte != 0)?;
    let ends = line.iter().rposition(|byte| *byte != 0)? + 1;
    let said = &line[begins..ends];
    let found = |from: usize, is_torn: bool| {
        let records = records(&said[from..])?;
        let placed = records.into_iter().map(|(at, record)| ((begins + from + at) as u64, record));
        Some(Salvaged { records: placed.collect(), is_torn })
    };
    // Going back from the end, what begins within a record is followed by more than its own end.
    let within = || {
        let starts = said.windows(2).enumerate().rev().filter(|(_, here)| *here == b"{\"");
        starts.map(|(at, _)| at).filter(|at| *at > 0).take(TRIES).find_map(|at| found(at, true))
    };
    found(0, false).or_else(within)
}

/// The records that a text consists of, each with its place.
fn records(text: &[u8]) -> Option<Vec<(usize, Value)>> {
    if text.first() != Some(&b'{') || is_deeper_than(text, JSON_DEPTH) {
        return None;
    }
    let mut stream = Deserializer::from_slice(text).into_iter::<Value>();
    let mut records = Vec::new();
    loop {
        let at = stream.byte_offset();
        match stream.next() {
            None => return Some(records),
            Some(Ok(record)) if record["type"].is_string() => records.push((at, record)),
            Some(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(line: &[u8]) -> Option<(Vec<(u64, String)>, bool)> {
        let Salvaged { records, is_torn } = salvaged(line)?;
        let places = records.into_iter().map(|(at, record)| (at, record["n"].to_string()));
        Some((places.collect(), is_torn))
    }

    fn found(all: &[(u64, &str)], is_torn: bool) -> Option<(Vec<(u64, String)>, bool)> {
        Some((all.iter().map(|(at, n)| (*at, (*n).to_owned())).collect(), is_torn))
    }

    #[test]
    fn what_is_whole_in_a_damaged_line_is_found() {
        let one = r#"{"type":"user","n":1,"message":{"content":[{"a":{"b":"}{"}}]}}"#;
        let two = r#"{"type":"assistant","n":2}"#;
        let len = one.len() as u64;
        assert_eq!(places(format!("{one}{two}").as_bytes()), found(&[(0, "1"), (len, "2")], false));
        assert_eq!(places(format!("\0\0\0{one}\0").as_bytes()), found(&[(3, "1")], false));
        // The first was never finished.
        for cut in [1, 10, 30, one.len() - 1] {
            let torn = &one[..cut];
            assert_eq!(
                places(format!("{torn}{two}").as_bytes()),
                found(&[(cut as u64, "2")], true),
                "{torn}"
            );
        }
        for nothing in ["", "\0\0", "{bad", "[1,2]", "null", &one[..40], r#"{"n":1}{"n":2}"#, "x{\"n\":1}"] {
            assert_eq!(places(nothing.as_bytes()), None, "{nothing}");
        }
        let deep = format!("{}{}", "{\"type\":".repeat(100_000), two);
        assert!(places(deep.as_bytes()).is_some_and(|(records, is_torn)| records.len() == 1 && is_torn));
    }
}
