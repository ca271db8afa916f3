//! Finding known secrets in what an agent prints. They are overwritten in place, so that offsets stay true.

use std::ops::Range;

use ostler_tape::LaunchDocument;

/// Shorter strings are no secrets, and would blot out half of every line.
const SECRET_BYTES: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct Redactor {
    secrets: Vec<Vec<u8>>,
}

impl Redactor {
    /// Of everything that a session's document says in confidence.
    pub(crate) fn of(document: &LaunchDocument) -> Redactor {
        let model = document.gateway.as_ref().and_then(|order| order.model.as_ref());
        let key = model.and_then(|model| model.key.as_ref()).map(|key| key.reveal().to_owned());
        let secrets: Vec<String> = document.secrets.iter().cloned().chain(key).collect();
        Redactor::new(&secrets)
    }

    pub(crate) fn new(secrets: &[String]) -> Redactor {
        // Lines are taped one by one, so a secret of several lines is several secrets.
        let lines = secrets.iter().flat_map(|secret| secret.split(['\n', '\r']));
        let secrets = lines.filter(|line| line.len() >= SECRET_BYTES).map(|line| line.as_bytes().to_vec());
        Redactor { secrets: secrets.collect() }
    }

    /// How many bytes at the end of an unfinished line may be the beginning of a secret.
    pub(crate) fn hold_back(&self) -> usize {
        self.secrets.iter().map(|secret| secret.len() - 1).max().unwrap_or(0)
    }

    /// Where secrets lie in `bytes`, in order, merged where they overlap.
    pub(crate) fn find(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<_> = self.secrets.iter().flat_map(|secret| occurrences(bytes, secret)).collect();
        found.sort_unstable_by_key(|range| range.start);
        found.dedup_by(|later, earlier| {
            let overlaps = later.start < earlier.end;
            if overlaps {
                earlier.end = earlier.end.max(later.end);
            }
            overlaps
        });
        found
    }
}

fn occurrences(bytes: &[u8], secret: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|&byte| byte == secret[0]) {
        let start = from + at;
        if bytes[start..].starts_with(secret) {
            found.push(start..start + secret.len());
        }
        from = start + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use ostler_domain::{
        Secret,
        gateway::{GATEWAY_VERSION, GatewayOrder, KeyScheme, ModelOrder, Reach, Upstream},
    };

    use super::*;

    fn redactor(secrets: &[&str]) -> Redactor {
        Redactor::new(&secrets.iter().map(|&secret| secret.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_key_of_the_model_is_one_of_the_secrets() {
        let upstream = Upstream::parse("https://api.example").unwrap();
        let model = ModelOrder::new(upstream, KeyScheme::Bearer, Some(Secret::new("sk-real")));
        let mut document = LaunchDocument::new("ses_1", 1, "/s".into(), "/bin/true".into());
        document.secrets = vec!["token".to_owned()];
        document.gateway = Some(GatewayOrder {
            version: GATEWAY_VERSION,
            campaign: "shop".to_owned(),
            reach: Reach::Provider,
            allow: Vec::new(),
            idle_ms: 1,
            model: Some(model),
        });
        assert_eq!(Redactor::of(&document).find(b"a token sk-real"), [2..7, 8..15]);
        assert!(!format!("{document:?}").contains("sk-real"));
    }

    #[test]
    fn overlapping_secrets_are_covered_entirely() {
        let redactor = redactor(&["abcdef", "defghi", "aaaa"]);
        assert_eq!(redactor.find(b"..abcdefghi.aaaaaa"), [2..11, 12..18]);
        assert_eq!(redactor.hold_back(), 5);
    }

    #[test]
    fn secrets_of_several_lines_are_found_line_by_line() {
        let redactor = redactor(&["first\nsecond\nx"]);
        assert_eq!(redactor.find(b"a second first"), [2..8, 9..14]);
    }

    #[test]
    fn short_strings_are_not_secrets() {
        assert_eq!(redactor(&["", "abc"]).find(b"abc"), []);
        assert_eq!(redactor(&[]).hold_back(), 0);
    }
}
